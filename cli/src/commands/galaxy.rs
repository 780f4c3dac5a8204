//! `ansible-galaxy`, as far as something asks it what is there: roles and collections are fetched by Ansible's own.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Result;
use fleet_engine::sources;
use serde_json::{Value, json};

use crate::{ansible_cfg, error::Refused, place};

/// What `ansible-galaxy` returns where it does not know what it is asked for.
const MISUSE: u8 = 2;

/// List the collections on disk, as `ansible-galaxy collection list` does
#[derive(clap::Parser)]
#[command(name = "ansible-galaxy")]
pub(crate) struct Galaxy {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// What lies in the directories of `collections_path`
    Collection {
        #[command(subcommand)]
        verb: Verb,
    },
    #[command(external_subcommand)]
    Other(Vec<String>),
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the collections, with their versions
    List(List),
    #[command(external_subcommand)]
    Other(Vec<String>),
}

#[derive(clap::Args)]
struct List {
    /// Directories to look in first, parted by colons
    #[arg(short = 'p', long, value_name = "PATH")]
    collections_path: Vec<String>,
    /// How to print them
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = ["human", "json", "yaml"])]
    format: String,
    /// Only this collection
    #[arg(value_name = "COLLECTION")]
    collection: Option<String>,
}

impl Galaxy {
    pub(crate) fn run(self) -> Result<u8> {
        let words = match self.subject {
            Subject::Collection {
                verb: Verb::List(list),
            } => return list.run(),
            Subject::Collection {
                verb: Verb::Other(words),
            } => format!("collection {}", words.join(" ")),
            Subject::Other(words) => words.join(" "),
        };
        Err(Refused::new(
            MISUSE,
            format!(
                "`{words}`: fleetctl fetches no roles and collections, and only `collection list` is there: use Ansible's own \
                 ansible-galaxy, or unpack them into `roles/` and `collections/ansible_collections/`"
            ),
        )
        .into())
    }
}

impl List {
    fn run(self) -> Result<u8> {
        let config = ansible_cfg::load()?;
        let first = self
            .collections_path
            .iter()
            .flat_map(|path| path.split(':'));
        let own = config.collections_path().iter().cloned();
        let mut all: Vec<(PathBuf, BTreeMap<String, String>)> = Vec::new();
        for dir in first.map(PathBuf::from).chain(own) {
            let dir = place::absolute_dir(Some(&dir));
            let root = match dir.ends_with("ansible_collections") {
                true => dir,
                false => dir.join("ansible_collections"),
            };
            if sources::is_dir(&root) && all.iter().all(|(known, _)| *known != root) {
                let mut found = collections(&root);
                found.retain(|name, _| self.collection.as_ref().is_none_or(|only| only == name));
                all.push((root, found));
            }
        }
        all.retain(|(_, found)| !found.is_empty());
        let data: serde_json::Map<String, Value> = all
            .iter()
            .map(|(root, found)| {
                let versions = found
                    .iter()
                    .map(|(name, version)| (name.clone(), json!({"version": version})));
                let versions: serde_json::Map<String, Value> = versions.collect();
                (root.display().to_string(), versions.into())
            })
            .collect();
        match self.format.as_str() {
            // JSON is YAML.
            "json" | "yaml" => anstream::println!("{}", Value::Object(data)),
            _ => all
                .iter()
                .for_each(|(root, found)| anstream::print!("{}", table(root, found))),
        }
        Ok(0)
    }
}

/// The collections below a directory `ansible_collections`, with their versions: `*` where none is told.
fn collections(root: &Path) -> BTreeMap<String, String> {
    let below = |dir: &Path| {
        let names = sources::list(dir).unwrap_or_default();
        names
            .into_iter()
            .filter(|name| !name.contains('.'))
            .collect::<Vec<_>>()
    };
    let mut found = BTreeMap::new();
    for namespace in below(root) {
        for name in below(&root.join(&namespace)) {
            let dir = root.join(&namespace).join(&name);
            if sources::is_dir(&dir) {
                found.insert(format!("{namespace}.{name}"), version(&dir));
            }
        }
    }
    found
}

fn version(dir: &Path) -> String {
    let manifest = sources::read(dir.join("MANIFEST.json")).unwrap_or_default();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap_or_default();
    manifest["collection_info"]["version"]
        .as_str()
        .unwrap_or("*")
        .to_owned()
}

fn table(root: &Path, found: &BTreeMap<String, String>) -> String {
    let width = |head: usize, words: &mut dyn Iterator<Item = &String>| {
        words.map(String::len).max().unwrap_or(0).max(head)
    };
    let names = width("Collection".len(), &mut found.keys());
    let versions = width("Version".len(), &mut found.values());
    let mut text = format!("\n# {}\n", root.display());
    let mut row = |name: &str, version: &str| {
        text.push_str(&format!("{name:names$} {version:versions$}\n"));
    };
    row("Collection", "Version");
    row(&"-".repeat(names), &"-".repeat(versions));
    for (name, version) in found {
        row(name, version);
    }
    text
}
