use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::{Bool, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Getent>();

/// Looks up entries of the host's databases (users, groups, services, hosts, …) and makes them facts: `getent_passwd` and its like.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Getent {
    /// The database: `passwd`, `group`, `services`, `hosts` and others of nsswitch.conf(5).
    database: Text,
    /// The entry; all of them where it is not given.
    key: Option<Text>,
    /// What separates fields; a colon for accounts, and white space else.
    split: Option<Text>,
    /// Fail where there is no such entry.
    #[serde(default = "yes")]
    fail_key: Bool,
    /// Ask only this service, such as `files`.
    service: Option<Text>,
}

fn yes() -> Bool {
    Bool(true)
}

/// Databases whose fields have colons between them.
const ACCOUNTS: [&str; 4] = ["passwd", "shadow", "group", "gshadow"];

impl Task for Getent {
    const NAME: &'static str = "getent";

    fn check(&self) -> Result<(), ArgumentError> {
        let words = [
            Some(&self.database),
            self.key.as_ref(),
            self.service.as_ref(),
        ];
        match words
            .into_iter()
            .flatten()
            .any(|word| word.starts_with('-'))
        {
            true => Err(ArgumentError::of(
                "database",
                "a word that begins with `-` is no name",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let split = match self.split.as_deref() {
            Some("") => {
                return Err(Fault::new(
                    "Invalid split value. The value must be a non-empty string",
                ));
            }
            Some(split) => Some(split),
            None => ACCOUNTS.contains(&&*self.database).then_some(":"),
        };
        let name = format!("getent_{}", self.database);
        let facts = |entries: Map<String, Value>| json!({"ansible_facts": {&name: entries}});
        if let Some(line) = self.planned(host)? {
            return Ok(Report::of(facts(entries(&line, split))));
        }
        let mut argv = vec!["getent"];
        if let Some(service) = &self.service {
            argv.extend(["-s", service]);
        }
        argv.push(&self.database);
        argv.extend(self.key.as_deref());
        let output = host.probe(&argv)?;
        let message = match output.rc {
            0 => return Ok(Report::of(facts(entries(&output.text(), split)))),
            1 => "Missing arguments, or database unknown.",
            2 if !*self.fail_key => {
                let key = self.key.as_deref().unwrap_or_default().to_owned();
                let mut fields = facts(Map::from_iter([(key, Value::Null)]));
                fields["msg"] = NOT_FOUND.into();
                return Ok(Report::of(fields));
            }
            2 => NOT_FOUND,
            3 => "Enumeration not supported on this database.",
            _ => "Unexpected failure!",
        };
        Err(Fault::new(message)
            .with("rc", output.rc)
            .with("stderr", output.error_text()))
    }
}

const NOT_FOUND: &str = "One or more supplied key could not be found in the database.";

impl Getent {
    /// The line of an account that only a plan knows.
    fn planned(&self, host: &Host) -> Result<Option<String>, Fault> {
        let Some(key) = self.key.as_deref().filter(|_| host.planning()) else {
            return Ok(None);
        };
        if !ACCOUNTS.contains(&&*self.database) {
            return Ok(None);
        }
        let lines = host.accounts(&format!("/etc/{}", self.database));
        let lines = lines.ok().flatten().unwrap_or_default();
        Ok(lines
            .into_iter()
            .find(|line| line.split(':').next() == Some(key)))
    }
}

/// Entries by their first field; several of one name as a list.
fn entries(text: &str, split: Option<&str>) -> Map<String, Value> {
    let mut found: Map<String, Value> = Map::new();
    let mut several = Vec::new();
    for line in text.lines() {
        let mut fields: Vec<&str> = match split {
            Some(split) => line.split(split).collect(),
            None => line.split_whitespace().collect(),
        };
        if fields.is_empty() {
            continue;
        }
        let key = fields.remove(0).to_owned();
        let fields = json!(fields);
        match found.get_mut(&key) {
            None => drop(found.insert(key, fields)),
            Some(Value::Array(list)) if several.contains(&key) => list.push(fields),
            Some(first) => {
                *first = json!([first.take(), fields]);
                several.push(key);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MODULE, entries};
    use crate::host::Host;

    #[test]
    fn entries_are_named_by_their_first_field() {
        let found = Value::from(entries("root:x:0:0:root:/root:/bin/bash\n", Some(":")));
        assert_eq!(
            found,
            json!({"root": ["x", "0", "0", "root", "/root", "/bin/bash"]})
        );
        let found = Value::from(entries(
            "::1 localhost\n127.0.0.1  a b\n127.0.0.1 c\n127.0.0.1 d\n",
            None,
        ));
        assert_eq!(
            found,
            json!({"::1": ["localhost"], "127.0.0.1": [["a", "b"], ["c"], ["d"]]})
        );
    }

    #[test]
    fn the_hosts_own_answers_become_facts() {
        let run = |args| (MODULE.run)(args, &mut Host::plan());
        let report = run(json!({"database": "passwd", "key": "root"})).unwrap();
        assert_eq!(
            report.fields["ansible_facts"]["getent_passwd"]["root"][1],
            "0"
        );
        let fault = run(json!({"database": "passwd", "key": "no-such"})).unwrap_err();
        assert!(fault.message.starts_with("One or more supplied key"));
        let report =
            run(json!({"database": "passwd", "key": "no-such", "fail_key": false})).unwrap();
        assert_eq!(
            report.fields["ansible_facts"]["getent_passwd"],
            json!({"no-such": null})
        );
        let fault = run(json!({"database": "group", "split": ""})).unwrap_err();
        assert!(fault.message.contains("Invalid split value"));
    }
}
