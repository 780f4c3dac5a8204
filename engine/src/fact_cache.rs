//! Facts that are kept between runs, in the files that Ansible's cache `jsonfile` keeps them in: both can share a directory.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io::{self, ErrorKind, Write},
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value, json};

/// What every name begins with behind the prefix: the version of the files' form.
const FORM: &str = "s1_";
/// The field that holds the facts, as a JSON document in a text.
const PAYLOAD: &str = "__payload__";
/// Says what a mapping in the payload is that stands for something with marks of Ansible's own.
const TYPE: &str = "__ansible_type";

/// Facts by name.
pub type Facts = BTreeMap<String, Value>;

/// A directory of facts, a file a host.
#[derive(Clone, Debug)]
pub struct FactCache {
    /// The directory; made when it is first written to.
    pub dir: PathBuf,
    /// What the files' names begin with.
    pub prefix: String,
    /// How long facts count; none for ever.
    pub timeout: Option<Duration>,
}

impl FactCache {
    fn path(&self, host: &str) -> PathBuf {
        // A name with a slash would lead elsewhere.
        self.dir
            .join(format!("{}{FORM}{}", self.prefix, host.replace('/', "_")))
    }

    /// What is known of a host; none where that is nothing, or too old.
    ///
    /// # Errors
    /// Why a file that is there tells nothing.
    pub fn get(&self, host: &str) -> Result<Option<Facts>, String> {
        let path = self.path(host);
        let shown = |why: &dyn std::fmt::Display| {
            format!("{}: {why}; the facts are gathered anew", path.display())
        };
        let age = match fs::metadata(&path).and_then(|about| about.modified()) {
            Ok(changed) => SystemTime::now()
                .duration_since(changed)
                .unwrap_or_default(),
            Err(problem) if problem.kind() == ErrorKind::NotFound => return Ok(None),
            Err(problem) => return Err(shown(&problem)),
        };
        if self.timeout.is_some_and(|timeout| age > timeout) {
            return Ok(None);
        }
        let text = fs::read(&path).map_err(|problem| shown(&problem))?;
        let read = |text: &[u8]| -> Option<Map<String, Value>> {
            let outer: Value = serde_json::from_slice(text).ok()?;
            let inner: Value = match outer.get(PAYLOAD).and_then(Value::as_str) {
                Some(payload) => serde_json::from_str(payload).ok()?,
                // As it was before there were payloads.
                None => outer,
            };
            plain(inner).as_object().cloned()
        };
        let facts = read(&text).ok_or_else(|| shown(&"it holds no facts"))?;
        Ok(Some(facts.into_iter().collect()))
    }

    /// Keeps what is known of a host.
    ///
    /// # Errors
    /// As the system says.
    pub fn set(&self, host: &str, facts: &Facts) -> io::Result<()> {
        let payload = serde_json::to_string(facts)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)?;
        // Made with mode 0600, and put in its place whole.
        let mut fresh = tempfile::NamedTempFile::new_in(&self.dir)?;
        fresh.write_all(json!({PAYLOAD: payload}).to_string().as_bytes())?;
        fresh.persist(self.path(host))?;
        Ok(())
    }

    /// Forgets a host.
    pub fn forget(&self, host: &str) {
        // What is not there is forgotten already.
        let _ = fs::remove_file(self.path(host));
    }
}

/// A value without the marks that Ansible gives it in its files.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(mut fields) if fields.contains_key(TYPE) => {
            fields.remove("value").map_or(Value::Null, plain)
        }
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .map(|(name, value)| (name, plain(value)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(dir: &tempfile::TempDir) -> FactCache {
        FactCache {
            dir: dir.path().join("facts"),
            prefix: "p_".to_owned(),
            timeout: Some(Duration::from_secs(60)),
        }
    }

    #[test]
    fn what_is_kept_is_found_again_until_it_is_forgotten_or_too_old() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(&dir);
        assert_eq!(cache.get("web1"), Ok(None));
        let facts = Facts::from([("ansible_hostname".to_owned(), json!("web1"))]);
        cache.set("web1", &facts).unwrap();
        assert!(dir.path().join("facts/p_s1_web1").is_file());
        assert_eq!(cache.get("web1"), Ok(Some(facts)));
        let old = FactCache {
            timeout: Some(Duration::ZERO),
            ..cache.clone()
        };
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(old.get("web1"), Ok(None));
        cache.forget("web1");
        assert_eq!(cache.get("web1"), Ok(None));
    }

    #[test]
    fn files_of_ansible_are_read_and_garbage_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(&dir);
        fs::create_dir(&cache.dir).unwrap();
        let inner = r#"{"mine": {"value": [1, {"value": "a", "__ansible_type": "_AnsibleTaggedStr"}], "tags": [], "__ansible_type": "_AnsibleTaggedList"}}"#;
        fs::write(cache.path("web1"), json!({PAYLOAD: inner}).to_string()).unwrap();
        assert_eq!(
            cache.get("web1"),
            Ok(Some(Facts::from([("mine".to_owned(), json!([1, "a"]))])))
        );
        fs::write(cache.path("web1"), "{half").unwrap();
        assert!(
            cache
                .get("web1")
                .unwrap_err()
                .ends_with("it holds no facts; the facts are gathered anew")
        );
    }
}
