use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::edited;
use crate::args::{Bool, Mode, Text};
use crate::host::{Entry, Fault, Host, Put, To, User};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<AuthorizedKey>();

/// Keeps public keys with which one may log in as a user.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct AuthorizedKey {
    /// The user.
    user: Text,
    /// The public keys, one a line.
    key: Text,
    /// The file; `.ssh/authorized_keys` of the user's home where none is given.
    path: Option<Text>,
    /// Make the file's directory, and set its mode and owner.
    #[serde(default = "yes")]
    manage_dir: Bool,
    /// Whether the keys shall be in the file: `present` or `absent`.
    #[serde(default)]
    state: State,
    /// The options that stand before a key, such as `no-port-forwarding,from="10.0.1.1"`.
    key_options: Option<Text>,
    /// Remove all other keys.
    #[serde(default)]
    exclusive: Bool,
    /// The comment behind a key, in place of its own.
    comment: Option<Text>,
    /// Where the file is a link, write to what it points to.
    #[serde(default)]
    follow: Bool,
    /// Taken for Ansible's sake: keys are not fetched from elsewhere.
    #[serde(default, rename = "validate_certs")]
    _validate_certs: Option<Bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Absent,
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for AuthorizedKey {
    const NAME: &'static str = "authorized_key";

    fn check(&self) -> Result<(), ArgumentError> {
        if self.key.starts_with("http://") || self.key.starts_with("https://") {
            return Err(ArgumentError::of(
                "key",
                "keys are not fetched from elsewhere: use lookup('url', …), so that the plan shows what they are",
            ));
        }
        self.wanted().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let Some(user) = host.account(&self.user) else {
            let message = format!(
                "Failed to lookup user {}: there is no such user on this host",
                self.user
            );
            return match host.planning() {
                true => Ok(Report::of(json!({"msg": message})).with_status(Status::Unknown)),
                false => Err(Fault::new(message)),
            };
        };
        let mut file = match &self.path {
            Some(path) => host.expand(path),
            None => user.home.join(".ssh/authorized_keys"),
        };
        if *self.follow {
            file = host.resolve(&file)?;
        }
        let before = host.read(&file)?;
        let text = String::from_utf8_lossy(before.as_deref().unwrap_or_default()).into_owned();
        let after = self.edited(&text)?;
        if self.state == State::Present || before.is_some() {
            self.put(host, &user, &file, (after != text).then_some(after))?;
        }
        Ok(Report::of(json!({
            "user": *self.user,
            "key": *self.key,
            "keyfile": file.to_string_lossy(),
            "path": self.path.as_deref(),
            "key_options": self.key_options.as_deref(),
            "comment": self.comment.as_deref(),
            "exclusive": *self.exclusive,
            "manage_dir": *self.manage_dir,
            "state": if self.state == State::Present { "present" } else { "absent" },
        })))
    }
}

impl AuthorizedKey {
    fn put(
        &self,
        host: &mut Host,
        user: &User,
        file: &Path,
        after: Option<String>,
    ) -> Result<(), Fault> {
        let (name, group) = host.owners(user.uid, user.gid);
        let owned = |mode| {
            (
                Some(Mode::Octal(mode)),
                Some(name.clone()),
                Some(group.clone()),
            )
        };
        if let (true, Some(dir)) = (*self.manage_dir, file.parent()) {
            edited::make_parents(host, dir)?;
            let (mode, owner, group) = owned(0o700);
            host.put(Put {
                path: host.resolve(dir)?,
                to: To::Dir { mode, owner, group },
                validate: None,
            })?;
        }
        let absent = host.entry(file)? == Entry::Absent;
        if after.is_none() && absent {
            return Ok(());
        }
        let (mode, owner, group) = owned(0o600);
        host.put(Put {
            path: file.to_owned(),
            to: To::File {
                content: after.map(Into::into),
                // A file that is there keeps a stricter mode.
                mode: mode.filter(|_| absent),
                owner: owner.filter(|_| absent),
                group: group.filter(|_| absent),
            },
            validate: None,
        })
        .map(drop)
    }

    /// The keys of the arguments, with the options and the comment that were given for them.
    fn wanted(&self) -> Result<Vec<Key>, ArgumentError> {
        let mut wanted = Vec::new();
        for line in self.key.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let mut key = Key::of(line).ok_or_else(|| {
                ArgumentError::of("key", format!("invalid key specified: {line}"))
            })?;
            if let Some(options) = &self.key_options {
                key.options = options.to_string();
            }
            if let Some(comment) = &self.comment {
                key.comment = comment.to_string();
            }
            wanted.push(key);
        }
        Ok(wanted)
    }

    fn edited(&self, before: &str) -> Result<String, ArgumentError> {
        let wanted = self.wanted()?;
        let mut lines: Vec<String> = Vec::new();
        let mut there = vec![false; wanted.len()];
        for line in before.lines() {
            let key = Key::of(line.trim());
            let at = key
                .as_ref()
                .and_then(|key| wanted.iter().position(|wanted| wanted.data == key.data));
            match (at, self.state) {
                (Some(_), State::Absent) => {}
                // A key that stands there twice is there once.
                (Some(at), State::Present) if there[at] => {}
                (Some(at), State::Present) => {
                    there[at] = true;
                    let same = key.as_ref() == Some(&wanted[at]);
                    lines.push(if same {
                        line.to_owned()
                    } else {
                        wanted[at].line()
                    });
                }
                (None, State::Present) if *self.exclusive => {}
                (None, _) => lines.push(line.to_owned()),
            }
        }
        if self.state == State::Present {
            let missing = wanted.iter().zip(&there).filter(|(_, there)| !**there);
            lines.extend(missing.map(|(key, _)| key.line()));
        }
        Ok(lines.into_iter().map(|line| line + "\n").collect())
    }
}

/// A public key with what stands around it.
#[derive(Debug, PartialEq)]
struct Key {
    options: String,
    kind: String,
    data: String,
    comment: String,
}

impl Key {
    fn of(line: &str) -> Option<Self> {
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (first, rest) = word(line);
        let (options, (kind, rest)) = match is_kind(first) {
            true => ("", (first, rest)),
            false => (first, word(rest)),
        };
        if !is_kind(kind) {
            return None;
        }
        let (data, comment) = word(rest);
        let fine = !data.is_empty()
            && data
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
        fine.then(|| Self {
            options: options.to_owned(),
            kind: kind.to_owned(),
            data: data.to_owned(),
            comment: comment.to_owned(),
        })
    }

    fn line(&self) -> String {
        let parts = [&self.options, &self.kind, &self.data, &self.comment];
        let parts = parts.iter().filter(|part| !part.is_empty());
        parts
            .map(|part| part.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

fn is_kind(word: &str) -> bool {
    ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-sha2-"]
        .iter()
        .any(|start| word.starts_with(start))
}

/// A line's first word, in which blanks may stand between quotes, and the rest.
fn word(line: &str) -> (&str, &str) {
    let mut quoted = false;
    let mut escaped = false;
    let end = line.find(|letter: char| {
        match letter {
            '"' if !escaped => quoted = !quoted,
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
        letter.is_whitespace() && !quoted
    });
    let (first, rest) = line.split_at(end.unwrap_or(line.len()));
    (first, rest.trim())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use serde_json::{Value, json};

    use super::{AuthorizedKey, MODULE};
    use crate::host::{Host, State};

    fn edit(before: &str, mut args: Value) -> String {
        args["user"] = "root".into();
        let task: AuthorizedKey = serde_json::from_value(args).unwrap();
        let after = task.edited(before).unwrap();
        assert_eq!(task.edited(&after).unwrap(), after);
        after
    }

    #[test]
    fn keys_are_added_changed_and_removed() {
        let a = "ssh-ed25519 AAAA me@desk";
        for (before, args, after) in [
            ("", json!({"key": a}), "ssh-ed25519 AAAA me@desk\n"),
            (
                "# mine\nssh-rsa B\n",
                json!({"key": a}),
                "# mine\nssh-rsa B\nssh-ed25519 AAAA me@desk\n",
            ),
            (
                "ssh-ed25519 AAAA old\nssh-rsa B",
                json!({"key": a}),
                "ssh-ed25519 AAAA me@desk\nssh-rsa B\n",
            ),
            (
                "",
                json!({"key": a, "key_options": "from=\"1.2.3.4, 5\",no-pty", "comment": "x"}),
                "from=\"1.2.3.4, 5\",no-pty ssh-ed25519 AAAA x\n",
            ),
            (
                "from=\"a b\" ssh-ed25519 AAAA me@desk\n",
                json!({"key": a}),
                "ssh-ed25519 AAAA me@desk\n",
            ),
            (
                "ssh-rsa B\nssh-rsa C\n",
                json!({"key": "ssh-rsa C\nssh-rsa D\n", "exclusive": true}),
                "ssh-rsa C\nssh-rsa D\n",
            ),
            (
                "ssh-rsa B\nssh-rsa C x\n",
                json!({"key": "ssh-rsa C", "state": "absent"}),
                "ssh-rsa B\n",
            ),
        ] {
            assert_eq!(edit(before, args.clone()), after, "{args}");
        }
        let refused = (MODULE.check)(&json!({"user": "x", "key": "nonsense"})).unwrap_err();
        assert_eq!(refused.message, "invalid key specified: nonsense");
    }

    #[test]
    fn the_directory_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().join("state").to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state, "r1", "test");
        let file = dir.path().join("home/.ssh/authorized_keys");
        let me = host.user().name.clone();
        let args = json!({"user": me, "key": "ssh-rsa A", "path": file});
        let report = (MODULE.run)(args.clone(), &mut host).unwrap();
        assert_eq!(report.fields["keyfile"], json!(file));
        let mode =
            |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        host.end();
        (MODULE.run)(args, &mut host).unwrap();
        assert!(host.end().is_empty());
    }
}
