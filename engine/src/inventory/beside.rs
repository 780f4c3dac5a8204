//! `group_vars` and `host_vars`: files of variables beside inventory sources and the playbook.
//!
//! A name stands for the first that exists of `NAME`, `NAME.yml`, `NAME.yaml`, `NAME.json`; a folder
//! stands for all files in it, sorted, with folders in it. Of several inventory sources the later wins.

use std::{
    collections::{BTreeSet, HashMap},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Diagnostic, Source};

use super::{
    mistake::{code, mistake, placeless, placeless_oddity},
    vars::{Origin, VarMap, Variable},
};
use crate::{sources, vault::Vault};

/// The endings of files of variables, in the order in which they are looked for.
const ENDINGS: [&str; 4] = ["", ".yml", ".yaml", ".json"];

/// All folders that may hold files of variables, and what was read of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// In order of precedence, low to high.
    folders: Vec<Folder>,
    pub(super) warnings: Vec<Diagnostic>,
    vault: Vault,
}

/// A folder that has `group_vars` or `host_vars` in it.
#[derive(Clone, Debug)]
struct Folder {
    playbook: bool,
    groups: Files,
    hosts: Files,
}

/// One `group_vars` or `host_vars`.
#[derive(Clone, Debug, Default)]
struct Files {
    path: PathBuf,
    /// What lies in it, listed once, so that ten thousand hosts need no look at the disk each.
    names: BTreeSet<String>,
    read: HashMap<String, Arc<VarMap>>,
}

impl Beside {
    /// Looks beside the inventory sources and the playbook. A folder given twice counts where it was
    /// given last.
    pub(super) fn find(
        inventory: &[PathBuf],
        playbook: &[PathBuf],
        vault: &Vault,
    ) -> (Beside, Vec<Diagnostic>) {
        let mut beside = Beside {
            vault: vault.clone(),
            ..Beside::default()
        };
        let mut errors = Vec::new();
        for (kind, dirs) in [(false, inventory), (true, playbook)] {
            for (at, dir) in dirs.iter().enumerate() {
                if dirs[at + 1..].contains(dir) {
                    continue;
                }
                let mut list = |name| match Files::list(&dir.join(name)) {
                    Ok(files) => files,
                    Err(Unlisted::NoFolder(warning)) => {
                        beside.warnings.push(warning);
                        Files::default()
                    }
                    Err(Unlisted::Unreadable(error)) => {
                        errors.push(error);
                        Files::default()
                    }
                };
                let (groups, hosts) = (list("group_vars"), list("host_vars"));
                beside.folders.push(Folder {
                    playbook: kind,
                    groups,
                    hosts,
                });
            }
        }
        (beside, errors)
    }

    /// Reads what there is for these groups and hosts and has not been read.
    pub(super) fn read<'a>(
        &mut self,
        groups: impl Iterator<Item = &'a String> + Clone,
        hosts: impl Iterator<Item = &'a String> + Clone,
    ) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        for folder in &mut self.folders {
            for name in groups.clone() {
                let origin = || Origin::Group(name.as_str().into());
                folder
                    .groups
                    .read(name, origin, &self.vault, &mut self.warnings, &mut errors);
            }
            for name in hosts.clone() {
                let origin = || Origin::Host(name.as_str().into());
                folder
                    .hosts
                    .read(name, origin, &self.vault, &mut self.warnings, &mut errors);
            }
        }
        errors
    }

    /// The variables of these groups, folder by folder.
    pub(super) fn of_groups<'a>(
        &'a self,
        playbook: bool,
        groups: &'a [&str],
    ) -> impl Iterator<Item = &'a Arc<VarMap>> {
        self.folders
            .iter()
            .filter(move |folder| folder.playbook == playbook)
            .flat_map(move |folder| {
                groups
                    .iter()
                    .filter_map(|group| folder.groups.read.get(*group))
            })
    }

    /// The variables of this host, folder by folder.
    pub(super) fn of_host<'a>(
        &'a self,
        playbook: bool,
        host: &'a str,
    ) -> impl Iterator<Item = &'a Arc<VarMap>> {
        self.folders
            .iter()
            .filter(move |folder| folder.playbook == playbook)
            .filter_map(move |folder| folder.hosts.read.get(host))
    }
}

/// Why a folder's names are not known.
enum Unlisted {
    /// Something else has its name.
    NoFolder(Diagnostic),
    Unreadable(Diagnostic),
}

impl Files {
    fn list(path: &Path) -> Result<Files, Unlisted> {
        let names = match sources::list(path) {
            Ok(names) => names.into_iter().collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Files::default()),
            Err(error)
                if error.kind() == io::ErrorKind::NotADirectory && !sources::exists(path) =>
            {
                return Ok(Files::default());
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(Unlisted::NoFolder(
                    placeless_oddity(code::VARS, format!("`{}` is not a folder", path.display()))
                        .with_help("it is not read: put the variables into a file in a folder of this name"),
                ));
            }
            Err(error) => return Err(Unlisted::Unreadable(unreadable(path, &error))),
        };
        Ok(Files {
            path: path.to_owned(),
            names,
            read: HashMap::new(),
        })
    }

    fn read(
        &mut self,
        name: &str,
        origin: impl FnOnce() -> Origin,
        vault: &Vault,
        warnings: &mut Vec<Diagnostic>,
        errors: &mut Vec<Diagnostic>,
    ) {
        if self.names.is_empty() || self.read.contains_key(name) {
            return;
        }
        let mut found = ENDINGS
            .iter()
            .filter_map(|ending| self.names.get(&format!("{name}{ending}")));
        let Some(first) = found.next() else { return };
        for other in found {
            let [first, other] =
                [first, other].map(|name| self.path.join(name).display().to_string());
            warnings.push(
                placeless_oddity(
                    code::VARS,
                    format!("`{other}` is not read, because `{first}` is"),
                )
                .with_help(format!("merge the two, or make a folder `{name}` of both")),
            );
        }
        let path = self.path.join(first);
        let before = errors.len();
        let mut files = Vec::new();
        if sources::is_dir(&path) {
            if let Err(error) = list(&path, &mut files) {
                errors.push(error);
            }
        } else {
            files.push(path);
        }
        let mut vars = VarMap::new();
        let origin = origin();
        for file in &files {
            if let Err(error) = read_file(file, &origin, vault, &mut vars, warnings) {
                errors.push(error);
            }
        }
        if errors.len() == before {
            self.read.insert(name.to_owned(), Arc::new(vars));
        }
    }
}

/// The files of a folder and of those in it, sorted by name at each level.
fn list(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), Diagnostic> {
    for text in sources::list(path).map_err(|error| unreadable(path, &error))? {
        let entry = path.join(&text);
        if text.starts_with('.') || text.ends_with('~') {
            continue;
        }
        let ending = text.rfind('.').map_or("", |dot| &text[dot..]);
        if sources::is_dir(&entry) {
            if ending.is_empty() {
                list(&entry, files)?;
            }
        } else if ENDINGS.contains(&ending) {
            files.push(entry);
        }
    }
    Ok(())
}

/// Reads one file: a mapping of variables, or nothing.
fn read_file(
    path: &Path,
    origin: &Origin,
    vault: &Vault,
    vars: &mut VarMap,
    warnings: &mut Vec<Diagnostic>,
) -> Result<(), Diagnostic> {
    let bytes = sources::read(path).map_err(|error| unreadable(path, &error))?;
    let source = Source::from_bytes(path, vault.plain(path, bytes)?)?;
    let loaded = fleet_yaml::load(Arc::clone(&source))?;
    warnings.extend(loaded.warnings);
    let mut documents = loaded.documents.into_iter();
    let Some(root) = documents.next() else {
        return Ok(());
    };
    if let Some(second) = documents.next() {
        return Err(mistake(
            code::VARS,
            &second.span,
            "a second document in a file of variables",
        )
        .with_label("expected the end of the file"));
    }
    if root.is_null() {
        return Ok(());
    }
    let Some(map) = root.as_map() else {
        return Err(mistake(
            code::VARS,
            &root.span,
            format!("{} instead of variables", root.kind_name()),
        )
        .with_label("expected a mapping, `name: value` a line"));
    };
    for (key, value) in map.iter() {
        let Some(name) = key.as_str() else {
            return Err(mistake(
                code::VARS,
                &key.span,
                "the name of a variable is not a string",
            )
            .with_label(format!("expected a name, found {}", key.kind_name())));
        };
        vars.insert(
            name.to_owned(),
            Variable {
                value: value.clone(),
                origin: origin.clone(),
            },
        );
    }
    Ok(())
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    placeless(
        code::VARS,
        format!("cannot read `{}`: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lab::{Lab, var};

    const HOSTS: (&str, &str) = ("inv/i.ini", "[web]\nh\n");

    #[test]
    fn a_name_stands_for_the_first_file_that_exists() {
        for (files, value) in [
            (&["web.json", "web.yaml", "web.yml", "web"][..], "web"),
            (&["web.json", "web.yaml", "web.yml"], "web.yml"),
            (&["web.json", "web.yaml"], "web.yaml"),
            (&["web.json"], "web.json"),
        ] {
            let texts: Vec<(String, String)> = files
                .iter()
                .map(|file| {
                    (
                        format!("inv/group_vars/{file}"),
                        format!("{{\"from\": \"{file}\"}}"),
                    )
                })
                .collect();
            let mut all = vec![HOSTS];
            all.extend(
                texts
                    .iter()
                    .map(|(path, text)| (path.as_str(), text.as_str())),
            );
            let lab = Lab::new(&all);
            assert_eq!(var(&lab.load(&["inv/i.ini"]), "h", "from"), json!(value));
            assert_eq!(
                lab.warnings(&["inv/i.ini"]).matches("is not read").count(),
                files.len() - 1
            );
        }
    }

    #[test]
    fn a_folder_is_all_files_in_it_sorted() {
        let lab = Lab::new(&[
            HOSTS,
            ("inv/group_vars/web/10.yml", "a: 10\nb: 10\nc: 10\n"),
            ("inv/group_vars/web/20/x.yaml", "b: 20\nc: 20\n"),
            ("inv/group_vars/web/30", "c: 30\n"),
            ("inv/group_vars/web/.hidden.yml", "a: no\n"),
            ("inv/group_vars/web/old.yml~", "a: no\n"),
            ("inv/group_vars/web/notes.txt", "no variables"),
            ("inv/group_vars/web/dir.d/x.yml", "a: no\n"),
            ("inv/group_vars/web.yml", "a: no\n"),
        ]);
        let inventory = lab.load(&["inv/i.ini"]);
        let values = ["a", "b", "c"].map(|name| var(&inventory, "h", name));
        assert_eq!(values, [json!(10), json!(20), json!(30)]);
    }

    #[test]
    fn the_later_folder_wins_over_the_deeper_group() {
        let lab = Lab::new(&[
            ("a/i.yml", "top: {children: {web: {hosts: {h: }}}}"),
            ("a/group_vars/web", "v: a-web\n"),
            ("b/i.yml", "top: {hosts: {h: }}"),
            ("b/group_vars/top", "v: b-top\n"),
        ]);
        assert_eq!(
            var(&lab.load(&["a/i.yml", "b/i.yml"]), "h", "v"),
            json!("b-top")
        );
        assert_eq!(
            var(&lab.load(&["b/i.yml", "a/i.yml"]), "h", "v"),
            json!("a-web")
        );
        assert_eq!(var(&lab.load(&["b", "a", "b"]), "h", "v"), json!("b-top"));
    }

    #[test]
    fn a_list_of_hosts_has_nothing_beside_it_but_the_playbook_has() {
        let lab = Lab::new(&[
            ("play/group_vars/all.yml", "v: 1\n"),
            ("play/host_vars/h.yml", "w: 2\n"),
        ]);
        let inventory = lab.load_beside(&["h,"], "play");
        assert_eq!(
            (var(&inventory, "h", "v"), var(&inventory, "h", "w")),
            (json!(1), json!(2))
        );
    }

    #[test]
    fn an_empty_file_has_no_variables() {
        let lab = Lab::new(&[
            HOSTS,
            ("inv/group_vars/web", ""),
            ("inv/host_vars/h.yml", "---\n# none\n"),
        ]);
        let choice = super::super::show::Choice::default();
        assert_eq!(
            super::super::show::host(&lab.load(&["inv"]), "h", choice).unwrap(),
            "{}"
        );
    }

    #[test]
    fn mistakes_in_files_are_told_at_their_place() {
        let lab = Lab::new(&[
            ("i.ini", "[web]\nh1\nh2\n"),
            ("group_vars/web.yml", "- a\n"),
            ("group_vars/all", "$ANSIBLE_VAULT;1.1;AES256\n6162\n"),
            ("host_vars/h1.yml", "1: a\n"),
            ("host_vars/h2.yml", "a: 1\n---\nb: 2\n"),
            ("host_vars/nobody.yml", "not looked at: [\n"),
        ]);
        insta::assert_snapshot!(lab.errors(&["i.ini"]), @"
        error[F0802]: the vault is damaged: the hex does not hold salt, check sum and text: a part is missing
         --> group_vars/all:2:1
          |
        2 | 6162
          | ^^^^

        error[F0207]: a list instead of variables
         --> group_vars/web.yml:1:1
          |
        1 | - a
          | ^^^ expected a mapping, `name: value` a line

        error[F0207]: the name of a variable is not a string
         --> host_vars/h1.yml:1:1
          |
        1 | 1: a
          | ^ expected a name, found a number

        error[F0207]: a second document in a file of variables
         --> host_vars/h2.yml:3:1
          |
        3 | b: 2
          | ^^^^ expected the end of the file
        ");
    }

    #[test]
    fn a_file_where_a_folder_should_be_is_warned_of() {
        let lab = Lab::new(&[("i.ini", "h\n"), ("group_vars", "x: 1\n")]);
        insta::assert_snapshot!(lab.warnings(&["i.ini"]), @"
        warning[F0207]: `group_vars` is not a folder
         |
         = help: it is not read: put the variables into a file in a folder of this name
        ");
    }
}
