use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::edited::make_parents;
use super::fetched::fetch;
use super::group::State;
use super::openpgp;
use crate::args::{Bool, List, Mode, Number, Text};
use crate::host::{Fault, Host, Put, To};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<Deb822Repository>();

/// Adds a repository to apt's sources, or takes it out, in deb822 style, with the key that signs it.
///
/// It is one file and one key, so the plan shows both and an undo puts both back. No Python is needed on the host.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Deb822Repository {
    /// The repository's name, and that of its file in `/etc/apt/sources.list.d`.
    name: Text,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// `deb`, `deb-src`, or both.
    #[serde(default = "deb")]
    types: List,
    /// The addresses of the repository.
    uris: Option<List>,
    /// The suites: `bookworm`, or an exact path that ends with a slash.
    suites: Option<List>,
    /// The components: `main`.
    components: Option<List>,
    /// The key that signs it: a URL, a path on the host, a fingerprint, or the key itself.
    signed_by: Option<Text>,
    /// The architectures to fetch.
    architectures: Option<List>,
    /// Take the repository as it is, signed or not.
    trusted: Option<Bool>,
    /// Whether it is used at all.
    enabled: Option<Bool>,
    /// The languages to fetch.
    languages: Option<List>,
    /// The kinds of index to fetch.
    targets: Option<List>,
    /// The only packages to take from it.
    include: Option<List>,
    /// Packages not to take from it.
    exclude: Option<List>,
    /// Let a repository that was signed be one that is not.
    allow_downgrade_to_insecure: Option<Bool>,
    /// Let a repository be unsigned.
    allow_insecure: Option<Bool>,
    /// Let a repository be signed weakly.
    allow_weak: Option<Bool>,
    /// Fetch indexes by their hash.
    by_hash: Option<Bool>,
    /// Check that the repository is not from the future.
    check_date: Option<Bool>,
    /// Check that the repository has not expired.
    check_valid_until: Option<Bool>,
    /// How many seconds from the future it may be.
    date_max_future: Option<Number>,
    /// Where its `InRelease` lies.
    inrelease_path: Option<Text>,
    /// Fetch differences of indexes.
    pdiffs: Option<Bool>,
    /// The permissions of the file.
    #[serde(default = "readable")]
    mode: Mode,
    /// Taken for Ansible's sake: no Python is needed.
    #[serde(default, rename = "install_python_debian")]
    _install_python_debian: Option<Bool>,
}

fn deb() -> List {
    List(vec!["deb".to_owned()])
}
fn readable() -> Mode {
    Mode::Octal(0o644)
}

const LISTS: &str = "/etc/apt/sources.list.d";
const KEYS: &str = "/etc/apt/keyrings";

impl Task for Deb822Repository {
    const NAME: &'static str = "deb822_repository";

    fn check(&self) -> Result<(), ArgumentError> {
        if self.name.is_empty() || self.slug().is_empty() {
            return Err(ArgumentError::of(
                "name",
                format!("`{}` cannot be the name of a repository", self.name),
            ));
        }
        if let Some(unknown) = self
            .types
            .iter()
            .find(|kind| !["deb", "deb-src"].contains(&kind.as_str()))
        {
            return Err(ArgumentError::of(
                "types",
                format!("expected `deb` or `deb-src`, not `{unknown}`"),
            ));
        }
        if self.state == State::Present && (self.uris.is_none() || self.suites.is_none()) {
            return Err(ArgumentError::of("uris", "uris and suites are required"));
        }
        Ok(())
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let slug = self.slug();
        let path = Path::new(LISTS).join(format!("{slug}.sources"));
        let key = |end: &str| Path::new(KEYS).join(format!("{slug}.{end}"));
        if self.state == State::Absent {
            for path in [path.clone(), key("gpg"), key("asc")] {
                host.put(Put::absent(path))?;
            }
            return Ok(Report::of(
                json!({"repo": null, "dest": path, "key_filename": null}),
            ));
        }
        if !super::apt_key::there(host, Path::new("/etc/apt"))? {
            return Err(Fault::new(
                "this host has no apt: only Debian and its relatives have repositories of this kind",
            ));
        }
        let mut key_file: Option<PathBuf> = None;
        let mut unknown = None;
        let signed_by = match self.signed_by.as_deref() {
            Some(url) if url.contains("://") && !url.contains('\n') => {
                match fetch(host, url.trim(), true) {
                    Ok(content) => {
                        openpgp::keys(&content).map_err(|problem| {
                            Fault::new(format!("cannot take the key from {url}: {problem}"))
                        })?;
                        let end = if openpgp::is_armored(&content) {
                            "asc"
                        } else {
                            "gpg"
                        };
                        let file = key(end);
                        make_parents(host, &file)?;
                        self.put(host, &file, content, Mode::Octal(0o644))?;
                        let name = file.display().to_string();
                        key_file = Some(file);
                        Some(name)
                    }
                    // What fetches it may come with a package that is only planned.
                    Err(fault) if host.open() => {
                        unknown = Some(fault.message);
                        Some(key("gpg").display().to_string())
                    }
                    Err(fault) => return Err(fault),
                }
            }
            Some(text) => Some(text.to_owned()),
            None => None,
        };
        let text = self.text(signed_by.as_deref());
        make_parents(host, &path)?;
        self.put(host, &path, text.clone().into_bytes(), self.mode.clone())?;
        let report = Report::of(json!({"repo": text, "dest": path, "key_filename": key_file}));
        Ok(match unknown {
            Some(_) => report.with_status(Status::Unknown),
            None => report,
        })
    }
}

impl Deb822Repository {
    /// The name as a file's.
    fn slug(&self) -> String {
        let mut slug = String::new();
        for letter in self.name.trim().chars() {
            match letter.is_ascii_alphanumeric() || "._-".contains(letter) {
                true => slug.push(letter),
                false if slug.ends_with('-') => {}
                false => slug.push('-'),
            }
        }
        slug.trim_matches('-').to_owned()
    }

    fn put(&self, host: &mut Host, path: &Path, content: Vec<u8>, mode: Mode) -> Result<(), Fault> {
        host.put(Put {
            path: path.to_owned(),
            to: To::File {
                content: Some(content.into()),
                mode: Some(mode),
                owner: None,
                group: None,
            },
            validate: None,
        })?;
        Ok(())
    }

    /// The file's text: its fields by the names of the arguments.
    fn text(&self, signed_by: Option<&str>) -> String {
        let list = |list: &Option<List>| list.as_ref().map(|list| list.join(" "));
        let flag =
            |flag: Option<Bool>| flag.map(|flag| if *flag { "yes" } else { "no" }.to_owned());
        let fields = [
            (
                "Allow-Downgrade-To-Insecure",
                flag(self.allow_downgrade_to_insecure),
            ),
            ("Allow-Insecure", flag(self.allow_insecure)),
            ("Allow-Weak", flag(self.allow_weak)),
            ("Architectures", list(&self.architectures)),
            ("By-Hash", flag(self.by_hash)),
            ("Check-Date", flag(self.check_date)),
            ("Check-Valid-Until", flag(self.check_valid_until)),
            ("Components", list(&self.components)),
            (
                "Date-Max-Future",
                self.date_max_future.map(|seconds| seconds.to_string()),
            ),
            ("Enabled", flag(self.enabled)),
            ("Exclude", list(&self.exclude)),
            ("Include", list(&self.include)),
            (
                "Inrelease-Path",
                self.inrelease_path.as_ref().map(ToString::to_string),
            ),
            ("Languages", list(&self.languages)),
            ("X-Repolib-Name", Some(self.name.to_string())),
            ("Pdiffs", flag(self.pdiffs)),
            ("Signed-By", signed_by.map(folded)),
            ("Suites", list(&self.suites)),
            ("Targets", list(&self.targets)),
            ("Trusted", flag(self.trusted)),
            ("Types", Some(self.types.join(" "))),
            ("URIs", list(&self.uris)),
        ];
        fields
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .map(|(name, value)| match value.starts_with('\n') {
                true => format!("{name}:{value}\n"),
                false => format!("{name}: {value}\n"),
            })
            .collect()
    }
}

/// A value of many lines: each indented, an empty one a dot.
fn folded(value: &str) -> String {
    let value = value.trim();
    if !value.contains('\n') {
        return value.to_owned();
    }
    let lines = value.lines().map(|line| match line.trim() {
        "" => "\n    .".to_owned(),
        line => format!("\n    {line}"),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_repository_is_a_file_of_fields() {
        if !Path::new("/etc/apt/sources.list.d").is_dir() {
            return;
        }
        let mut host = Host::plan();
        let mut run = |args: Value| {
            let report = (MODULE.run)(args, &mut host).unwrap();
            (!host.end().is_empty(), report.fields)
        };
        let args = json!({
            "name": "an example", "uris": "http://x.org/debian", "suites": ["a", "a-updates"], "components": ["main", "extra"],
            "enabled": true, "date_max_future": 10, "signed_by": "-----BEGIN\n\nabc\n-----END",
        });
        let (changed, fields) = run(args.clone());
        assert!(changed);
        assert_eq!(fields["dest"], "/etc/apt/sources.list.d/an-example.sources");
        assert_eq!(
            fields["repo"],
            "Components: main extra\nDate-Max-Future: 10\nEnabled: yes\nX-Repolib-Name: an example\nSigned-By:\n    -----BEGIN\n    .\n    abc\n    -----END\nSuites: a a-updates\nTypes: deb\nURIs: http://x.org/debian\n"
        );
        assert!(!run(args).0);
        assert!(run(json!({"name": "an example", "state": "absent"})).0);
        assert!(!run(json!({"name": "an example", "state": "absent"})).0);
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(refused(json!({"name": "x"})).contains("uris and suites are required"));
        assert!(refused(json!({"name": "/", "state": "absent"})).contains("cannot be the name"));
        assert!(refused(json!({"name": "x", "types": "rpm"})).contains("not `rpm`"));
    }
}
