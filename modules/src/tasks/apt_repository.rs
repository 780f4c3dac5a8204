use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use self::sources::{Source, Sources};
use super::fetched::fetch;
use super::group::State;
use super::openpgp;
use crate::args::{Bool, Mode, Number, Text};
use crate::host::{Fault, Host, Put, To};
use crate::module::{ArgumentError, Module, Report, Task};

mod sources;

pub(super) static MODULE: Module = Module::of::<AptRepository>();

/// Adds a repository to apt's sources, or takes it out, in one-line style.
///
/// A list is a file, so the plan shows its lines and an undo puts it back. Only the list that holds the repository is written.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct AptRepository {
    /// The line of the repository, `deb http://deb.debian.org/debian bookworm main`, or `ppa:owner/name`.
    #[serde(default)]
    repo: Text,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// The list's name in `/etc/apt/sources.list.d`, with or without `.list`; made from the repository's address where it is not given.
    filename: Option<Text>,
    /// The list's permissions.
    mode: Option<Mode>,
    /// Read the package index anew after a change.
    #[serde(default = "yes")]
    update_cache: Bool,
    /// How often to try to read it.
    #[serde(default = "five")]
    update_cache_retries: Number,
    /// Most seconds to wait between two tries.
    #[serde(default = "twelve")]
    update_cache_retry_max_delay: Number,
    /// The release of a PPA; the host's own where it is not given.
    codename: Option<Text>,
    /// Whether the server of a PPA's key must prove who it is.
    #[serde(default = "yes")]
    validate_certs: Bool,
    /// Taken for Ansible's sake: no Python is needed.
    #[serde(default, rename = "install_python_apt")]
    _install_python_apt: Option<Bool>,
}

fn yes() -> Bool {
    Bool(true)
}
fn five() -> Number {
    Number(5)
}
fn twelve() -> Number {
    Number(12)
}

const LIST: &str = "/etc/apt/sources.list";
const LISTS: &str = "/etc/apt/sources.list.d";

impl Task for AptRepository {
    const NAME: &'static str = "apt_repository";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("update-cache", "update_cache")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self
            .filename
            .as_ref()
            .is_some_and(|name| name.contains('\0') || name.is_empty())
        {
            return Err(ArgumentError::of("filename", "it is empty"));
        }
        Ok(())
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if self.repo.trim().is_empty() {
            return Err(Fault::new(
                "Please set argument 'repo' to a non-empty value",
            ));
        }
        if !super::apt_key::there(host, Path::new("/etc/apt"))? {
            return Err(Fault::new(
                "this host has no apt: only Debian and its relatives have repositories of this kind",
            ));
        }
        let ppa = Ppa::of(&self.repo);
        let line = match &ppa {
            Some(ppa) => ppa.line(self.codename.as_deref(), host)?,
            None => self.repo.trim().to_owned(),
        };
        let wanted = Source::parse(&line)
            .ok_or_else(|| Fault::new(format!("Invalid repository string: {line}")))?;
        let mut lists = lists(host)?;
        let known: Vec<PathBuf> = lists.iter().map(|(path, _)| path.clone()).collect();
        let mut changed = Vec::new();
        for (path, sources) in &mut lists {
            let touched = match self.state {
                State::Present => sources.enable(&wanted),
                State::Absent => sources.remove(&wanted),
            };
            if touched {
                changed.push(path.clone());
            }
        }
        let there = lists.iter().any(|(_, sources)| sources.has(&wanted));
        if self.state == State::Present && !there {
            let path = self.list(&wanted);
            if let Some(ppa) = &ppa {
                ppa.trust(host, *self.validate_certs)?;
            }
            match lists.iter_mut().find(|(list, _)| *list == path) {
                Some((_, sources)) => sources.add(&wanted),
                None => {
                    let mut sources = Sources::default();
                    sources.add(&wanted);
                    lists.push((path.clone(), sources));
                }
            }
            changed.push(path);
        }
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (path, sources) in lists.iter().filter(|(path, _)| changed.contains(path)) {
            if sources.is_empty() {
                host.put(Put::absent(path))?;
                removed.push(path.display().to_string());
                continue;
            }
            let new = !known.contains(path);
            if new {
                added.push(path.display().to_string());
            }
            self.write(host, path, sources.text(), new)?;
        }
        if self.state == State::Present
            && let Some(mode) = &self.mode
            && changed.is_empty()
            && let Some((path, _)) = lists.iter().find(|(_, sources)| sources.has(&wanted))
        {
            self.set_mode(host, path, mode)?;
        }
        if !changed.is_empty() && *self.update_cache {
            self.update(host)?;
        }
        let state = if self.state == State::Absent {
            "absent"
        } else {
            "present"
        };
        Ok(Report::of(json!({
            "repo": &*self.repo,
            "state": state,
            "sources_added": added,
            "sources_removed": removed,
        })))
    }
}

impl AptRepository {
    /// The list for a new repository.
    fn list(&self, source: &Source) -> PathBuf {
        let name = self
            .filename
            .as_ref()
            .map_or_else(|| source.name(), ToString::to_string);
        let path = Path::new(LISTS).join(name);
        match path.extension().is_some_and(|end| end == "list") {
            true => path,
            false => {
                let mut name = path.into_os_string();
                name.push(".list");
                name.into()
            }
        }
    }

    fn write(&self, host: &mut Host, path: &Path, text: String, new: bool) -> Result<(), Fault> {
        let usual = new.then_some(Mode::Octal(0o644));
        let path = host.resolve(path)?;
        super::edited::make_parents(host, &path)?;
        host.put(Put {
            path,
            to: To::File {
                content: Some(text.into()),
                mode: self.mode.clone().or(usual),
                owner: None,
                group: None,
            },
            validate: None,
        })?;
        Ok(())
    }

    fn set_mode(&self, host: &mut Host, path: &Path, mode: &Mode) -> Result<(), Fault> {
        let path = host.resolve(path)?;
        host.put(Put {
            path,
            to: To::File {
                content: None,
                mode: Some(mode.clone()),
                owner: None,
                group: None,
            },
            validate: None,
        })?;
        Ok(())
    }

    fn update(&self, host: &mut Host) -> Result<(), Fault> {
        super::apt::refresh(
            host,
            0,
            *self.update_cache_retries,
            *self.update_cache_retry_max_delay,
        )
        .map(drop)
        .map_err(|fault| Fault {
            message: format!(
                "Failed to update apt cache after {} retries: {}",
                *self.update_cache_retries, fault.message
            ),
            ..fault
        })
    }
}

/// The host's lists of one-line sources.
fn lists(host: &Host) -> Result<Vec<(PathBuf, Sources)>, Fault> {
    let mut paths = vec![PathBuf::from(LIST)];
    let names = host.list(Path::new(LISTS))?.unwrap_or_default();
    paths.extend(
        names
            .iter()
            .filter(|name| name.ends_with(".list"))
            .map(|name| Path::new(LISTS).join(name)),
    );
    let mut lists = Vec::new();
    for path in paths {
        if let Some(text) = host.read(&path)? {
            lists.push((path, Sources::parse(&String::from_utf8_lossy(&text))));
        }
    }
    Ok(lists)
}

/// An archive of Launchpad.
struct Ppa {
    owner: String,
    name: String,
}

impl Ppa {
    fn of(repo: &str) -> Option<Self> {
        let path = repo.trim().strip_prefix("ppa:")?;
        let (owner, name) = path.split_once('/').unwrap_or((path, "ppa"));
        Some(Self {
            owner: owner.trim_start_matches('~').to_owned(),
            name: name.trim_end_matches('/').to_owned(),
        })
    }

    fn line(&self, codename: Option<&str>, host: &Host) -> Result<String, Fault> {
        let release = host.read(Path::new("/etc/os-release"))?.unwrap_or_default();
        let known = super::accounts::definitions(&String::from_utf8_lossy(&release));
        let codename = codename
            .or(known.get("VERSION_CODENAME").map(String::as_str))
            .ok_or_else(|| Fault::new("this host does not say its release: give `codename`"))?;
        Ok(format!(
            "deb https://ppa.launchpadcontent.net/{}/{}/ubuntu {codename} main",
            self.owner, self.name
        ))
    }

    /// Trusts the key that Launchpad names.
    fn trust(&self, host: &mut Host, validate_certs: bool) -> Result<(), Fault> {
        let path =
            Path::new("/etc/apt/trusted.gpg.d").join(format!("{}_{}.gpg", self.owner, self.name));
        if super::apt_key::there(host, &path)? {
            return Ok(());
        }
        let about = format!(
            "https://api.launchpad.net/1.0/~{}/+archive/{}",
            self.owner, self.name
        );
        let answer = fetch(host, &about, validate_certs)?;
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
        let fingerprint = answer["signing_key_fingerprint"]
            .as_str()
            .unwrap_or_default();
        let id = openpgp::id(fingerprint).ok_or_else(|| {
            Fault::new(format!(
                "Launchpad names no key for ppa:{}/{}",
                self.owner, self.name
            ))
        })?;
        let url =
            format!("https://keyserver.ubuntu.com/pks/lookup?op=get&options=mr&search=0x{id}");
        let keys = openpgp::keys(&fetch(host, &url, validate_certs)?).map_err(|problem| {
            Fault::new(format!(
                "cannot take the key {id} from its server: {problem}"
            ))
        })?;
        let key = keys
            .iter()
            .find(|key| key.is(&id))
            .ok_or_else(|| Fault::new(format!("the key server gave another key than {id}")))?;
        super::edited::make_parents(host, &path)?;
        host.put(Put::content(path, key.bytes.clone()))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_repository_comes_into_a_list_of_its_own_and_goes() {
        if !Path::new("/etc/apt/sources.list.d").is_dir() {
            return;
        }
        let mut host = Host::plan();
        let list = Path::new("/etc/apt/sources.list.d/packages_example_com_x.list");
        let mut run = |repo: &str, more: Value| {
            let mut args = json!({"repo": repo, "update_cache": false});
            for (name, value) in more.as_object().unwrap() {
                args[name.as_str()] = value.clone();
            }
            let report = (MODULE.run)(args, &mut host).unwrap();
            let changed = !host.end().is_empty();
            (
                changed,
                report.fields,
                host.read(list)
                    .unwrap()
                    .map(|text| String::from_utf8(text).unwrap()),
            )
        };
        let line = "deb [arch=amd64]  https://user:secret@packages.example.com/x bookworm main";
        let (changed, fields, text) = run(line, json!({}));
        assert!(changed);
        assert_eq!(
            text.unwrap(),
            "deb [arch=amd64] https://user:secret@packages.example.com/x bookworm main\n"
        );
        assert_eq!(fields["sources_added"], json!([list]));
        assert_eq!(fields["repo"], line);
        assert!(!run(line, json!({})).0);
        let (changed, fields, text) = run(line, json!({"state": "absent"}));
        assert_eq!((changed, text), (true, None));
        assert_eq!(fields["sources_removed"], json!([list]));
        assert!(!run(line, json!({"state": "absent"})).0);
        let (_, fields, _) = run("deb http://a.example.com b c", json!({"filename": "mine"}));
        assert_eq!(
            fields["sources_added"],
            json!(["/etc/apt/sources.list.d/mine.list"])
        );
    }

    #[test]
    fn what_is_no_repository_is_refused() {
        let run = |args| (MODULE.run)(args, &mut Host::plan()).unwrap_err().message;
        assert_eq!(
            run(json!({"repo": ""})),
            "Please set argument 'repo' to a non-empty value"
        );
        if Path::new("/etc/apt").is_dir() {
            assert_eq!(
                run(json!({"repo": "http://x"})),
                "Invalid repository string: http://x"
            );
        }
    }
}
