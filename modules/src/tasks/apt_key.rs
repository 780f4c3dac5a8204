use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::fetched::fetch;
use super::group::State;
use super::openpgp::{self, Key};
use crate::args::{Bool, Text};
use crate::host::{Entry, Fault, Host, Put};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<AptKey>();

/// Trusts a key for apt's repositories, or trusts it no more.
///
/// Neither `apt-key` nor GnuPG is needed: the keyring is a file, so the plan shows it and an undo puts it back. Without
/// `keyring` each key gets a file of its own in `/etc/apt/trusted.gpg.d`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct AptKey {
    /// The key's id or, better, its fingerprint. A key that comes from elsewhere must be this one.
    id: Option<Text>,
    /// Where to fetch it from.
    url: Option<Text>,
    /// A file on the host that holds it.
    file: Option<Text>,
    /// The key itself.
    data: Option<Text>,
    /// A key server; needs `id`.
    keyserver: Option<Text>,
    /// The keyring, `/usr/share/keyrings/x.gpg` or another path.
    keyring: Option<Text>,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// Whether the server of `url` must prove who it is.
    #[serde(default = "yes")]
    validate_certs: Bool,
}

fn yes() -> Bool {
    Bool(true)
}

const TRUSTED: &str = "/etc/apt/trusted.gpg.d";

impl Task for AptKey {
    const NAME: &'static str = "apt_key";

    fn check(&self) -> Result<(), ArgumentError> {
        if let Some(id) = &self.id
            && openpgp::id(id).is_none()
        {
            return Err(ArgumentError::of(
                "id",
                format!(
                    "`{id}` is no id of a key: at least 8 hexadecimal digits, 40 for a fingerprint"
                ),
            ));
        }
        let sources = [&self.url, &self.file, &self.data, &self.keyserver];
        let given = sources.iter().filter(|source| source.is_some()).count();
        if given > 1 {
            return Err(ArgumentError::of(
                "data",
                "parameters are mutually exclusive: data|file|keyserver|url",
            ));
        }
        if self.id.is_none() && (self.keyserver.is_some() || given == 0) {
            return Err(ArgumentError::of("id", "missing required arguments: id"));
        }
        Ok(())
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let id = self.id.as_deref().and_then(openpgp::id);
        let rings = self.rings(host)?;
        let before: Vec<Key> = rings.iter().flat_map(|ring| ring.keys.clone()).collect();
        if self.state == State::Absent {
            let Some(id) = id else {
                return Err(Fault::new("an id is needed for a key that shall be absent"));
            };
            for ring in &rings {
                ring.without(host, &id)?;
            }
            let after = before.iter().filter(|key| !key.is(&id));
            return Ok(Report::of(told(Some(&id), &before, after)));
        }
        if let Some(id) = &id
            && before.iter().any(|key| key.is(id))
        {
            return Ok(Report::of(told(Some(id), &before, before.iter())));
        }
        let content = match self.content(host, id.as_deref()) {
            Ok(content) => content,
            // What fetches it may come with a package that is only planned.
            Err(fault) if host.open() => {
                return Ok(Report::of(json!({"msg": fault.message})).with_status(Status::Unknown));
            }
            Err(fault) => return Err(fault),
        };
        let keys = openpgp::keys(&content).map_err(|problem| {
            Fault::new(format!(
                "cannot take the key from {}: {problem}",
                self.source()
            ))
        })?;
        if let Some(id) = &id
            && !keys.iter().any(|key| key.is(id))
        {
            let found: Vec<&str> = keys.iter().map(Key::fingerprint).collect();
            return Err(Fault::new(format!(
                "the key with the id {id} is not in {}: there is {}",
                self.source(),
                found.join(", ")
            )));
        }
        let new: Vec<Key> = keys
            .into_iter()
            .filter(|key| {
                !before
                    .iter()
                    .any(|known| known.fingerprint() == key.fingerprint())
            })
            .collect();
        self.add(host, &rings, &new)?;
        let id = id.or_else(|| new.first().map(|key| key.fingerprint().to_owned()));
        Ok(Report::of(told(
            id.as_deref(),
            &before,
            before.iter().chain(&new),
        )))
    }
}

fn told<'a>(id: Option<&str>, before: &[Key], after: impl Iterator<Item = &'a Key>) -> Value {
    let after: Vec<&Key> = after.collect();
    let of = |key: &Key, digits: usize| {
        let fingerprint = key.fingerprint();
        fingerprint[fingerprint.len().saturating_sub(digits)..].to_owned()
    };
    let key = id.and_then(|id| after.iter().copied().chain(before).find(|key| key.is(id)));
    let mut fields = Map::new();
    fields.insert("id".to_owned(), json!(id));
    fields.insert(
        "fp".to_owned(),
        json!(key.map_or_else(|| id.unwrap_or_default().to_owned(), |key| of(key, 40))),
    );
    fields.insert("key_id".to_owned(), json!(key.map(|key| of(key, 16))));
    fields.insert("short_id".to_owned(), json!(key.map(|key| of(key, 8))));
    fields.insert(
        "before".to_owned(),
        before.iter().map(|key| of(key, 8)).collect(),
    );
    fields.insert(
        "after".to_owned(),
        after.iter().map(|key| of(key, 8)).collect(),
    );
    fields.into()
}

impl AptKey {
    /// Where the key comes from, in words.
    fn source(&self) -> String {
        let named = [&self.url, &self.file, &self.keyserver];
        match named.into_iter().flatten().next() {
            Some(source) => source.to_string(),
            None => "`data`".to_owned(),
        }
    }

    fn content(&self, host: &Host, id: Option<&str>) -> Result<Vec<u8>, Fault> {
        if let Some(data) = &self.data {
            return Ok(data.as_bytes().to_vec());
        }
        if let Some(file) = &self.file {
            let path = Path::new(&**file);
            return host.read(path)?.ok_or_else(|| {
                Fault::new(format!(
                    "there is no file {} that could hold the key",
                    path.display()
                ))
            });
        }
        if let Some(url) = &self.url {
            return fetch(host, url, *self.validate_certs);
        }
        let (Some(server), Some(id)) = (&self.keyserver, id) else {
            return Err(Fault::new(format!(
                "the key {} is not trusted, and nothing says where it comes from: give url, file, data or keyserver",
                id.unwrap_or_default()
            )));
        };
        let lookup = format!("/pks/lookup?op=get&options=mr&search=0x{id}");
        fetch(host, &(server_url(server) + &lookup), *self.validate_certs)
    }

    fn rings(&self, host: &Host) -> Result<Vec<Ring>, Fault> {
        if let Some(ring) = &self.keyring {
            return Ok(vec![Ring::read(host, PathBuf::from(&**ring))?]);
        }
        let mut rings = Vec::new();
        for name in host.list(Path::new(TRUSTED))?.unwrap_or_default() {
            if name.ends_with(".gpg") || name.ends_with(".asc") {
                rings.push(Ring::read(host, Path::new(TRUSTED).join(name))?);
            }
        }
        rings.push(Ring::read(host, "/etc/apt/trusted.gpg".into())?);
        Ok(rings)
    }

    fn add(&self, host: &mut Host, rings: &[Ring], new: &[Key]) -> Result<(), Fault> {
        if new.is_empty() {
            return Ok(());
        }
        let bytes = |keys: &[Key]| {
            keys.iter()
                .flat_map(|key| key.bytes.clone())
                .collect::<Vec<u8>>()
        };
        if self.keyring.is_some() {
            let [ring] = rings else {
                return Err(Fault::new("no keyring was read"));
            };
            return ring.with(host, &[ring.keys.clone(), new.to_vec()].concat());
        }
        for key in new {
            let fingerprint = key.fingerprint();
            let id = &fingerprint[fingerprint.len().saturating_sub(16)..];
            let path = Path::new(TRUSTED).join(format!("{id}.gpg"));
            super::edited::make_parents(host, &path)?;
            host.put(Put::content(path, bytes(std::slice::from_ref(key))))?;
        }
        Ok(())
    }
}

/// A keyring on the host.
struct Ring {
    path: PathBuf,
    keys: Vec<Key>,
    /// Why it cannot be read; such a one is never written.
    problem: Option<String>,
}

impl Ring {
    fn read(host: &Host, path: PathBuf) -> Result<Self, Fault> {
        let content = host.read(&path)?.filter(|content| !content.is_empty());
        let (keys, problem) = match content.as_deref().map(openpgp::keys) {
            None => (Vec::new(), None),
            Some(Ok(keys)) => (keys, None),
            Some(Err(problem)) => (Vec::new(), Some(problem)),
        };
        Ok(Self {
            path,
            keys,
            problem,
        })
    }

    fn with(&self, host: &mut Host, keys: &[Key]) -> Result<(), Fault> {
        if let Some(problem) = &self.problem {
            return Err(Fault::new(format!(
                "cannot change the keyring {}: {problem}",
                self.path.display()
            )));
        }
        let bytes: Vec<u8> = keys.iter().flat_map(|key| key.bytes.clone()).collect();
        super::edited::make_parents(host, &self.path)?;
        let path = host.resolve(&self.path)?;
        host.put(Put::content(path, bytes))?;
        Ok(())
    }

    /// Takes keys out; a keyring without any goes.
    fn without(&self, host: &mut Host, id: &str) -> Result<(), Fault> {
        let rest: Vec<Key> = self
            .keys
            .iter()
            .filter(|key| !key.is(id))
            .cloned()
            .collect();
        if rest.len() == self.keys.len() {
            return Ok(());
        }
        if rest.is_empty() {
            host.put(Put::absent(&self.path))?;
            return Ok(());
        }
        // Armour cannot be cut: what stays is written plainly, and apt tells by the name.
        if self.path.extension().is_some_and(|end| end == "asc") {
            return Err(Fault::new(format!(
                "cannot take one of several keys out of {}: remove the file and add those that stay",
                self.path.display()
            )));
        }
        self.with(host, &rest)
    }
}

/// The web address of a key server.
fn server_url(server: &str) -> String {
    let (scheme, rest) = server.split_once("://").unwrap_or(("hkps", server));
    let rest = rest.trim_end_matches('/');
    match scheme {
        "hkp" if !rest.contains(':') => format!("http://{rest}:11371"),
        "hkp" | "http" => format!("http://{rest}"),
        _ => format!("https://{rest}"),
    }
}

/// Whether a file is there, for the modules that bring keys with them.
pub(super) fn there(host: &Host, path: &Path) -> Result<bool, Fault> {
    Ok(host.entry(path)? != Entry::Absent)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::openpgp::keys;
    use super::{MODULE, server_url};
    use crate::host::Host;

    const ARMORED: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\
        mDMEYCQjIxYJKwYBBAHaRw8BAQdAD/P5Nvvnvk66SxBBHDbhRml9ORg1WV5CvzKY\n\
        CuMfoIS0BmFiY2RlZoiQBBMWCgA4FiEErCIG1VhKWMWo2yfAREZd5NfO31cFAmAk\n\
        IyMCGyMFCwkIBwMFFQoJCAsFFgIDAQACHgECF4AACgkQREZd5NfO31fbOwD6ArzS\n\
        dM0Dkd5h2Ujy1b6KcAaVW9FOa5UNfJ9FFBtjLQEBAJ7UyWD3dZzhvlaAwunsk7DG\n\
        3bHcln8DMpIJVXht78sL\n=IE0r\n-----END PGP PUBLIC KEY BLOCK-----\n";
    const ID: &str = "44465DE4D7CEDF57";

    #[test]
    fn a_key_comes_into_a_keyring_once_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let ring = dir.path().join("keyrings/x.gpg");
        let mut host = Host::plan();
        let mut run = |more: Value| {
            let mut args = json!({"keyring": ring});
            for (name, value) in more.as_object().unwrap() {
                args[name.as_str()] = value.clone();
            }
            let report = (MODULE.run)(args, &mut host).unwrap();
            let changed = !host.end().is_empty();
            (changed, report.fields, host.read(&ring).unwrap())
        };
        let (changed, fields, content) = run(json!({"data": ARMORED, "id": ID}));
        assert!(changed);
        assert_eq!(fields["fp"], "AC2206D5584A58C5A8DB27C044465DE4D7CEDF57");
        assert_eq!(
            (&fields["key_id"], &fields["short_id"]),
            (&json!(ID), &json!("D7CEDF57"))
        );
        assert_eq!(keys(&content.unwrap()).unwrap().len(), 1);
        assert!(!run(json!({"data": ARMORED})).0);
        // A key that is there is not fetched.
        assert!(!run(json!({"id": "0xd7cedf57", "url": "http://127.0.0.1:1/"})).0);
        let (changed, fields, content) = run(json!({"id": ID, "state": "absent"}));
        assert_eq!((changed, content), (true, None));
        assert_eq!(fields["after"], json!([]));
        assert!(!run(json!({"id": ID, "state": "absent"})).0);
    }

    #[test]
    fn a_wrong_key_is_refused() {
        let run = |args| (MODULE.run)(args, &mut Host::plan()).unwrap_err().message;
        let ring = "/nonexistent/x.gpg";
        assert!(
            run(json!({"keyring": ring, "data": ARMORED, "id": "0123456789ABCDEF"}))
                .contains("is not in `data`: there is AC2206D5")
        );
        assert!(run(json!({"keyring": ring, "data": "no key"})).contains("inline data"));
        assert!(
            run(json!({"keyring": ring, "id": ID})).contains("nothing says where it comes from")
        );
        let refused = |args| (MODULE.check)(&args).unwrap_err().message;
        assert!(refused(json!({"id": "nginx"})).contains("no id of a key"));
        assert!(refused(json!({"data": "x", "url": "y"})).contains("mutually exclusive"));
        assert!(refused(json!({"keyserver": "x"})).contains("required arguments: id"));
        assert_eq!(
            server_url("keyserver.ubuntu.com"),
            "https://keyserver.ubuntu.com"
        );
        assert_eq!(server_url("hkp://keys.x.org:80/"), "http://keys.x.org:80");
        assert_eq!(server_url("hkp://keys.x.org"), "http://keys.x.org:11371");
    }
}
