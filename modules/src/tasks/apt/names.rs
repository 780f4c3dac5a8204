//! What people write for packages: a name, and which of its versions.

use super::State;
use crate::glob;
use crate::host::{Fault, Host, PackageTo};
use crate::module::ArgumentError;

/// A package, or several by a pattern, as it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wish {
    name: String,
    which: Which,
    state: State,
}

#[derive(Clone, Debug, PartialEq)]
enum Which {
    Any,
    /// A version, perhaps with `*` in it.
    Version(String),
    AtLeast(String),
    Release(String),
}

/// Reads names of packages.
pub(super) fn wishes(words: &[String], state: State) -> Result<Vec<Wish>, ArgumentError> {
    let words = words
        .iter()
        .map(|word| word.trim())
        .filter(|word| !word.is_empty());
    words.map(|word| Wish::parse(word, state)).collect()
}

impl Wish {
    fn parse(word: &str, state: State) -> Result<Self, ArgumentError> {
        let (name, which) = if let Some((name, version)) = word.split_once(">=") {
            (name, Which::AtLeast(version.to_owned()))
        } else if let Some((name, version)) = word.split_once('=') {
            (name, Which::Version(version.to_owned()))
        } else if let Some((name, release)) = word.split_once('/') {
            (name, Which::Release(release.to_owned()))
        } else {
            (word, Which::Any)
        };
        let valid = |c: char| c.is_ascii_alphanumeric() || "+-.:_*?[]^".contains(c);
        let version = match &which {
            Which::Any => "x",
            Which::Version(version) | Which::AtLeast(version) | Which::Release(version) => version,
        };
        let version_valid = |c: char| c.is_ascii_alphanumeric() || "+-.:_~*?[]".contains(c);
        if name.is_empty()
            || name.starts_with('-')
            || !name.chars().all(valid)
            || version.is_empty()
            || !version.chars().all(version_valid)
        {
            return Err(ArgumentError::of(
                "name",
                format!("`{word}` is not the name of a package, alone or with `=` and a version"),
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            which,
            state,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// All that is installed, to be upgraded.
    pub(super) fn is_all(&self) -> bool {
        self.name == "*" && self.state == State::Latest
    }

    /// The names that it stands for.
    pub(super) fn known(&self, host: &Host) -> Result<Vec<String>, Fault> {
        if !self.name.contains(['*', '?', '[']) {
            return Ok(vec![self.name.clone()]);
        }
        let prefix = self.name.split(['*', '?', '[']).next().unwrap_or_default();
        let output = host.probe(&["apt-cache", "pkgnames", "--", prefix])?;
        let text = output.text();
        let mut names: Vec<String> = text
            .lines()
            .filter(|name| glob::matches(&self.name, name))
            .map(str::to_owned)
            .collect();
        names.sort();
        if names.is_empty() && self.state != State::Absent {
            return Err(Fault::new(format!(
                "No package(s) matching '{}' available",
                self.name
            )));
        }
        Ok(names)
    }

    /// What the package of this name has to become.
    pub(super) fn resolve(
        &self,
        host: &Host,
        name: &str,
        release: Option<&str>,
    ) -> Result<PackageTo, Fault> {
        let installed = host.package(name)?;
        if self.state == State::Absent {
            let other = match (&self.which, &installed) {
                (Which::Version(version), Some(installed)) => !glob::matches(version, installed),
                _ => false,
            };
            // Another version than the one that shall go is left alone.
            return Ok(if other {
                PackageTo::Present
            } else {
                PackageTo::Absent
            });
        }
        let latest = self.state == State::Latest;
        Ok(match &self.which {
            Which::Any if latest => PackageTo::Latest,
            Which::Any => PackageTo::Present,
            Which::Release(release) if latest || installed.is_none() => {
                PackageTo::Release(release.clone())
            }
            Which::Release(_) => PackageTo::Present,
            Which::Version(version) if !version.contains(['*', '?', '[']) => {
                PackageTo::Version(version.clone())
            }
            Which::Version(pattern) => {
                let fits = installed.is_some_and(|installed| glob::matches(pattern, &installed));
                if fits && !latest {
                    return Ok(PackageTo::Present);
                }
                match versions(host, name)?
                    .into_iter()
                    .find(|version| glob::matches(pattern, version))
                {
                    Some(version) => PackageTo::Version(version),
                    None if host.open() => PackageTo::Version(pattern.clone()),
                    None => return Err(none(name, &format!("={pattern}"))),
                }
            }
            Which::AtLeast(lowest) => {
                let enough = |version: &str| at_least(host, version, lowest);
                if let Some(installed) = &installed
                    && !latest
                    && enough(installed)?
                {
                    return Ok(PackageTo::Present);
                }
                match candidate(host, name, release)? {
                    Some(candidate) if enough(&candidate)? => PackageTo::Latest,
                    _ if host.open() => PackageTo::Latest,
                    _ => return Err(none(name, &format!(">={lowest}"))),
                }
            }
        })
    }
}

fn none(name: &str, version: &str) -> Fault {
    Fault::new(format!(
        "no available installation candidate for {name}{version}"
    ))
}

/// The versions that can be had, newest first.
fn versions(host: &Host, name: &str) -> Result<Vec<String>, Fault> {
    let output = host.probe(&["apt-cache", "madison", "--", name])?;
    let text = output.text();
    let second = |line: &str| {
        line.split('|')
            .nth(1)
            .map(|version| version.trim().to_owned())
    };
    Ok(text.lines().filter_map(second).collect())
}

/// The version that would be installed.
fn candidate(host: &Host, name: &str, release: Option<&str>) -> Result<Option<String>, Fault> {
    let option = release.map(|release| format!("APT::Default-Release={release}"));
    let mut argv = vec!["apt-cache"];
    if let Some(option) = &option {
        argv.extend(["-o", option]);
    }
    argv.extend(["policy", "--", name]);
    let text = host.probe(&argv)?.text();
    let found = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("Candidate: "));
    Ok(found
        .filter(|version| *version != "(none)")
        .map(str::to_owned))
}

fn at_least(host: &Host, version: &str, lowest: &str) -> Result<bool, Fault> {
    host.probe(&["dpkg", "--compare-versions", version, "ge", lowest])
        .map(|output| output.ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_with_their_versions() {
        let parse =
            |word: &str| Wish::parse(word, State::Present).map(|wish| (wish.name, wish.which));
        let of = |name: &str, which: Which| Ok((name.to_owned(), which));
        assert_eq!(parse("nginx"), of("nginx", Which::Any));
        assert_eq!(
            parse("nginx=1.2*"),
            of("nginx", Which::Version("1.2*".to_owned()))
        );
        assert_eq!(
            parse("nginx>=1:1.2~rc1"),
            of("nginx", Which::AtLeast("1:1.2~rc1".to_owned()))
        );
        assert_eq!(
            parse("nginx/sid"),
            of("nginx", Which::Release("sid".to_owned()))
        );
        for wrong in ["-x", "a b", "x=", "x>1", "x;y", "x=$(y)"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(Wish::parse("*", State::Latest).unwrap().is_all());
    }
}
