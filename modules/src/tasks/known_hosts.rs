use serde::Deserialize;
use serde_json::json;
use sha1::{Digest, Sha1};

use super::edited::{self, Attributes};
use super::file::report;
use crate::args::{Bool, Text};
use crate::base64;
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<KnownHosts>();

/// Keeps the key of an ssh server in a file of known hosts.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct KnownHosts {
    /// The server's name, as ssh looks for it: `example.org`, or `[example.org]:2222`.
    name: Text,
    /// The line of the file: the name, the kind of the key and the key. Required where it shall be present.
    key: Option<Text>,
    /// The file.
    #[serde(default = "own_file")]
    path: Text,
    /// Write a digest of the name in place of the name.
    #[serde(default)]
    hash_host: Bool,
    /// Whether the key shall be in the file: `present` or `absent`. `absent` without a key means all of the server.
    #[serde(default)]
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Absent,
}

fn own_file() -> Text {
    "~/.ssh/known_hosts".into()
}

impl Task for KnownHosts {
    const NAME: &'static str = "known_hosts";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("host", "name")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.name.contains(',') {
            return Err(ArgumentError::of("name", COMMAS));
        }
        match self.state == State::Present && self.key.is_none() {
            true => Err(ArgumentError::of(
                "key",
                "No key specified when adding a host",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let key = self
            .key
            .as_deref()
            .map(str::trim)
            .filter(|key| !key.is_empty());
        let wanted = key
            .map(|key| {
                let line = Line::of(key).filter(|line| line.is_of(&self.name));
                line.ok_or_else(|| {
                    Fault::new("Host parameter does not match hashed host field in supplied key")
                        .with("rc", 1)
                })
            })
            .transpose()?;
        let path = host.resolve(&host.expand(&self.path))?;
        let before = host.read(&path)?.unwrap_or_default();
        let before = String::from_utf8_lossy(&before).into_owned();
        let after = self.edited(&before, wanted.as_ref(), key);
        if after != before {
            let content = Some(after.clone().into_bytes());
            edited::write(host, &path, content, &Attributes::default())?;
        }
        let shown = path.to_string_lossy();
        let mut told = report(host, &shown, &path)?;
        let own = json!({
            "name": *self.name,
            "key": key,
            "hash_host": *self.hash_host,
            "diff": {"before_header": shown, "after_header": shown, "before": before, "after": after},
        });
        told.fields.extend(Report::of(own).fields);
        Ok(told)
    }
}

const COMMAS: &str = "Comma separated list of names is not supported. Please pass a single name to lookup in the known_hosts file.";

impl KnownHosts {
    fn edited(&self, before: &str, wanted: Option<&Line<'_>>, key: Option<&str>) -> String {
        let absent = self.state == State::Absent;
        let mut kept = String::new();
        let mut there = false;
        for line in before.split_inclusive('\n') {
            let found = Line::of(line.trim()).filter(|found| found.is_of(&self.name));
            let gone = match (found, wanted) {
                (None, _) => false,
                (Some(_), None) => absent,
                (Some(found), Some(wanted)) if absent => found.same_key(wanted),
                (Some(found), Some(wanted))
                    if !there && self.is_as_wanted(line, &found, wanted) =>
                {
                    there = true;
                    false
                }
                // Another key of the same kind is an old one; of authorities and revoked keys there may be many.
                (Some(found), Some(wanted)) => {
                    found.marker == wanted.marker
                        && found.kind == wanted.kind
                        && (found.marker.is_none() || found.key == wanted.key)
                }
            };
            if !gone {
                kept.push_str(line);
            }
        }
        if let (Some(wanted), Some(key), false, false) = (wanted, key, absent, there) {
            if !kept.is_empty() && !kept.ends_with('\n') {
                kept.push('\n');
            }
            match *self.hash_host {
                true => kept.push_str(&wanted.hashed(&self.name)),
                false => kept.push_str(key),
            }
            kept.push('\n');
        }
        kept
    }

    fn is_as_wanted(&self, line: &str, found: &Line<'_>, wanted: &Line<'_>) -> bool {
        match *self.hash_host {
            true => found.names.starts_with("|1|") && found.same_key(wanted),
            false => Some(line.trim()) == self.key.as_deref().map(str::trim),
        }
    }
}

/// A line of a file of known hosts.
#[derive(Debug)]
struct Line<'a> {
    /// `@revoked` or `@cert-authority`.
    marker: Option<&'a str>,
    names: &'a str,
    kind: &'a str,
    key: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let line = line.lines().next()?;
        let mut words = line.split_whitespace().peekable();
        if line.starts_with('#') {
            return None;
        }
        let marker = words.next_if(|word| word.starts_with('@'));
        Some(Self {
            marker,
            names: words.next()?,
            kind: words.next()?,
            key: words.next()?,
        })
    }

    fn is_of(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let Some(hashed) = self.names.strip_prefix("|1|") else {
            return self
                .names
                .split(',')
                .any(|own| own.eq_ignore_ascii_case(&name));
        };
        let Some((salt, digest)) = hashed.split_once('|') else {
            return false;
        };
        base64::decode(salt).is_some_and(|salt| base64::encode(&hmac(&salt, &name)) == digest)
    }

    fn same_key(&self, other: &Line<'_>) -> bool {
        (self.marker, self.kind, self.key) == (other.marker, other.kind, other.key)
    }

    /// The line with a digest in place of the name. Its salt is made of what it hides: a plan and its apply have the same.
    fn hashed(&self, name: &str) -> String {
        let name = name.to_ascii_lowercase();
        let salt = Sha1::digest(format!("{name} {}", self.key));
        let digest = base64::encode(&hmac(&salt, &name));
        let marker = self
            .marker
            .map(|marker| format!("{marker} "))
            .unwrap_or_default();
        let salt = base64::encode(&salt);
        format!("{marker}|1|{salt}|{digest} {} {}", self.kind, self.key)
    }
}

/// HMAC with SHA-1.
fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    let mut block = [0_u8; 64];
    match key.len() {
        0..=64 => block[..key.len()].copy_from_slice(key),
        _ => block[..20].copy_from_slice(&Sha1::digest(key)),
    }
    let pad = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha1::new()
        .chain_update(pad(0x36))
        .chain_update(text)
        .finalize();
    Sha1::new()
        .chain_update(pad(0x5c))
        .chain_update(inner)
        .finalize()
        .to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{KnownHosts, Line, MODULE};
    use crate::host::Host;
    use crate::module::Task;

    /// The file after; a second run must not change it.
    fn edit(before: &str, args: Value) -> String {
        let task: KnownHosts = serde_json::from_value(args).unwrap();
        task.check().unwrap();
        let key = task.key.as_deref().map(str::trim);
        let wanted = key.and_then(Line::of);
        let after = task.edited(before, wanted.as_ref(), key);
        assert_eq!(task.edited(&after, wanted.as_ref(), key), after);
        after
    }

    #[test]
    fn keys_are_added_replaced_and_removed() {
        let x = json!({"name": "x", "key": "x ssh-rsa AAA\n"});
        for (before, args, after) in [
            ("", x.clone(), "x ssh-rsa AAA\n"),
            ("y ssh-rsa BBB", x.clone(), "y ssh-rsa BBB\nx ssh-rsa AAA\n"),
            ("x ssh-rsa OLD\n#c\n", x.clone(), "#c\nx ssh-rsa AAA\n"),
            (
                "x ssh-dss DDD\n",
                x.clone(),
                "x ssh-dss DDD\nx ssh-rsa AAA\n",
            ),
            (
                "@revoked x ssh-rsa R\n",
                x,
                "@revoked x ssh-rsa R\nx ssh-rsa AAA\n",
            ),
            (
                "x,y ssh-rsa AAA\nx ssh-dss D\n",
                json!({"name": "y", "state": "absent"}),
                "x ssh-dss D\n",
            ),
            (
                "x ssh-rsa AAA\n",
                json!({"name": "x", "state": "absent", "key": "x ssh-rsa OTHER"}),
                "x ssh-rsa AAA\n",
            ),
            (
                "x ssh-rsa AAA\n",
                json!({"name": "x", "state": "absent", "key": "x ssh-rsa AAA"}),
                "",
            ),
        ] {
            assert_eq!(edit(before, args.clone()), after, "{before} {args}");
        }
    }

    #[test]
    fn names_may_be_hashed() {
        // As ssh-keygen wrote it for github.com.
        let line =
            Line::of("|1|d71/U7CbOH3Su+d2zxlbmiNfXtI=|g2YSPAVoK7bmg16FCOOPKTZe2BM= ssh-rsa AAAA");
        let line = line.unwrap();
        assert!(line.is_of("github.com") && !line.is_of("example.com"));
        let hashed = edit(
            "x ssh-rsa AAA\n",
            json!({"name": "x", "key": "x ssh-rsa AAA", "hash_host": true}),
        );
        assert!(
            hashed.starts_with("|1|") && hashed.ends_with("= ssh-rsa AAA\n"),
            "{hashed}"
        );
        assert!(Line::of(&hashed).unwrap().is_of("x"));
        assert_eq!(
            edit(&hashed, json!({"name": "x", "key": "x ssh-rsa AAA"})),
            "x ssh-rsa AAA\n"
        );
    }

    #[test]
    fn a_key_must_be_of_the_server() {
        let args = json!({"name": "b", "key": "a ssh-rsa AAA", "path": "/tmp/x"});
        let fault = (MODULE.run)(args, &mut Host::plan()).unwrap_err();
        assert_eq!(
            fault.message,
            "Host parameter does not match hashed host field in supplied key"
        );
        let refused = |args: Value| (MODULE.check)(&args).unwrap_err().message;
        assert!(refused(json!({"name": "a,b", "key": "x"})).starts_with("Comma separated list"));
        assert_eq!(
            refused(json!({"name": "a"})),
            "No key specified when adding a host"
        );
    }
}
