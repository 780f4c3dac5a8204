use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::precedence::Precedence;
use self::settings::{Settings, canonical, folded};
use super::edited;
use crate::args::{Bool, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Status, Task};

mod precedence;
mod raise;
mod settings;

pub(super) static MODULE: Module = Module::of::<Sysctl>();

/// Sets kernel parameters, in a file for the next boot and live; one, or many in one task.
///
/// Every key is checked before anything is written: an unknown or read-only one fails the task with nothing changed. Only the keys that
/// are named are touched, in the file and in the kernel; other lines of the file stay as they are.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Sysctl {
    /// One key, `net.core.somaxconn` (or with slashes).
    name: Option<Text>,
    /// Its value. True and false, yes and no, on and off mean 1 and 0.
    value: Option<Text>,
    /// Many keys with their values, in place of `name` and `value`.
    keys: Option<BTreeMap<String, Option<Text>>>,
    /// `present`, or `absent` to take the keys out of the file. What is live stays then.
    #[serde(default)]
    state: State,
    /// Set the live values of these keys, too. (Ansible reads the whole file in; here no other key moves.)
    #[serde(default = "yes")]
    reload: Bool,
    /// Set the live values even where `reload` is off.
    #[serde(default)]
    sysctl_set: Bool,
    /// The file.
    #[serde(default = "conf")]
    sysctl_file: Text,
    /// Keys that this kernel does not know are written to the file and not set.
    #[serde(default)]
    ignoreerrors: Bool,
    /// Never lower a value: each number becomes the larger of the wanted and the live one. Where the live value is
    /// higher already, nothing is written for the key. (`ip_local_port_range` is only widened.)
    #[serde(default)]
    raise_only: Bool,
}

fn yes() -> Bool {
    Bool(true)
}

fn conf() -> Text {
    "/etc/sysctl.conf".into()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Absent,
}

/// A key on its way: what is wanted of it, what it is, and what it will be.
struct Parameter {
    key: String,
    wanted: String,
    live: Option<String>,
    /// What to set; none to leave it.
    set: Option<String>,
    /// What to write in the file; none to leave the file.
    write: Option<String>,
}

impl Task for Sysctl {
    const NAME: &'static str = "sysctl";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("key", "name"), ("val", "value")];

    fn check(&self) -> Result<(), ArgumentError> {
        match (&self.name, &self.keys) {
            (None, None) => {
                return Err(ArgumentError::of(
                    "name",
                    "it is required, or `keys` with many of them",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(ArgumentError::of("keys", "it does not go with `name`"));
            }
            _ => {}
        }
        for (key, value) in self.pairs() {
            if key.is_empty() || key.contains(char::is_whitespace) {
                return Err(ArgumentError::of(
                    "keys",
                    format!("`{key}` is not the name of a kernel parameter"),
                ));
            }
            if self.state == State::Present && value.is_empty() {
                return Err(ArgumentError::of(
                    "value",
                    format!("it is required for `{key}`"),
                ));
            }
            if *self.raise_only && raise::numbers(&value).is_none() {
                return Err(ArgumentError::of(
                    "raise_only",
                    format!("it goes with numbers, and {key} is `{value}`"),
                ));
            }
        }
        match self.sysctl_file.starts_with('/') {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "sysctl_file",
                "it must be an absolute path",
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let file = host.resolve(Path::new(&*self.sysctl_file))?;
        let before = host.read(&file)?.unwrap_or_default();
        let mut settings = Settings::parse(&String::from_utf8_lossy(&before));
        if self.state == State::Absent {
            for (key, _) in self.pairs() {
                settings.remove(&key);
            }
            self.write(host, &file, settings)?;
            return Ok(Report::default());
        }
        let mut parameters = Vec::new();
        for (key, wanted) in self.pairs() {
            let live = host.sysctl(&key)?;
            parameters.push(self.decide(key, wanted, live, &settings));
        }
        if let Some(report) = self.refuse(host, &parameters)? {
            return Ok(report);
        }
        set_live(host, &parameters)?;
        for parameter in &parameters {
            if let Some(value) = &parameter.write {
                settings.set(&parameter.key, value);
            }
        }
        self.write(host, &file, settings)?;
        let warnings = self.warnings(host, &file, &parameters)?;
        Ok(report(&parameters, warnings))
    }
}

impl Sysctl {
    /// The keys in their usual spelling, with their values.
    fn pairs(&self) -> Vec<(String, String)> {
        let text = |value: &Option<Text>| value.as_deref().map(normal).unwrap_or_default();
        match (&self.name, &self.keys) {
            (Some(name), _) => vec![(canonical(name.trim()), text(&self.value))],
            (None, Some(keys)) => keys
                .iter()
                .map(|(key, value)| (canonical(key.trim()), text(value)))
                .collect(),
            (None, None) => Vec::new(),
        }
    }

    fn is_live(&self) -> bool {
        *self.reload || *self.sysctl_set
    }

    fn decide(
        &self,
        key: String,
        wanted: String,
        live: Option<String>,
        settings: &Settings,
    ) -> Parameter {
        let mut parameter = Parameter {
            write: Some(wanted.clone()),
            set: Some(wanted.clone()),
            key,
            wanted,
            live,
        };
        if *self.raise_only
            && let Some(live) = &parameter.live
            && let Some(raised) = raise::raised(&parameter.key, &parameter.wanted, live)
        {
            let already = raised == *live && raised != parameter.wanted;
            parameter.write = match (already, settings.get(&parameter.key)) {
                (false, _) => Some(raised.clone()),
                // What is in the file must not lower it at the next boot.
                (true, Some(own)) => raise::raised(&parameter.key, &parameter.wanted, own),
                (true, None) => None,
            };
            parameter.set = (!already).then_some(raised);
        }
        if !self.is_live()
            || (parameter.live.is_none() && *self.ignoreerrors)
            || parameter.set == parameter.live
        {
            parameter.set = None;
        }
        parameter
    }

    /// All that the kernel would refuse, before anything is written. A key that what came before in a plan may yet bring is unknown.
    fn refuse(&self, host: &Host, parameters: &[Parameter]) -> Result<Option<Report>, Fault> {
        let mut problems = Vec::new();
        for Parameter {
            key,
            wanted,
            live,
            set,
            ..
        } in parameters
        {
            match (live, set) {
                (_, None) => {}
                (None, Some(_)) if host.open() => {
                    let message = format!("there is no kernel parameter {key} yet: what is before it may bring it");
                    return Ok(Some(Report::of(json!({"msg": message})).with_status(Status::Unknown)));
                }
                (None, Some(_)) => problems.push(format!(
                    "there is no kernel parameter {key} on this host (wanted `{wanted}`): check its spelling, or load the module that brings it"
                )),
                (Some(live), Some(set)) => {
                    if let Some(reason) = unwritable(key) {
                        problems.push(format!("{key} cannot be set here ({reason}): wanted `{set}`, and it is `{live}`"));
                    }
                }
            }
        }
        if problems.is_empty() {
            return Ok(None);
        }
        let message = format!("{}; nothing was written", problems.join("; "));
        Err(Fault::new(message).with("problems", problems))
    }

    fn write(&self, host: &mut Host, file: &Path, settings: Settings) -> Result<bool, Fault> {
        let content = settings.changed().map(String::into_bytes);
        edited::write(host, file, content, &edited::Attributes::default()).map(edited::Saved::any)
    }

    /// What another file will make of the keys at the next boot.
    fn warnings(
        &self,
        host: &Host,
        file: &Path,
        parameters: &[Parameter],
    ) -> Result<Vec<String>, Fault> {
        let precedence = Precedence::read(host)?;
        let mut warnings = Vec::new();
        if !precedence.is_read(file) && parameters.iter().any(|parameter| parameter.write.is_some())
        {
            warnings.push(format!(
                "{} is not read at boot: use a file in /etc/sysctl.d",
                file.display()
            ));
        }
        for parameter in parameters {
            let Some(value) = &parameter.write else {
                continue;
            };
            if let Some((other, theirs)) = precedence.overrides(file, &parameter.key, value) {
                let (key, other) = (&parameter.key, other.display());
                warnings.push(format!("{key} will be `{theirs}` after the next boot, not `{value}`: {other} is read after {}", file.display()));
            }
        }
        Ok(warnings)
    }
}

/// Sets what differs; where one fails, those before it are put back.
fn set_live(host: &mut Host, parameters: &[Parameter]) -> Result<(), Fault> {
    let mut done: Vec<(&str, &str)> = Vec::new();
    for Parameter { key, live, set, .. } in parameters {
        let Some(value) = set else { continue };
        match (host.set_sysctl(key, value), live) {
            (Ok(_), Some(live)) => done.push((key, live)),
            (Ok(_), None) => {}
            (Err(mut fault), _) => {
                let current = live.as_deref().unwrap_or_default();
                fault.message = format!(
                    "{} (wanted `{value}`, it was `{current}`; nothing was written)",
                    fault.message
                );
                for (key, before) in done.into_iter().rev() {
                    if let Err(problem) = host.set_sysctl(key, before) {
                        fault.message = format!(
                            "{}; {key} could not be put back to `{before}`: {problem}",
                            fault.message
                        );
                    }
                }
                return Err(fault);
            }
        }
    }
    Ok(())
}

/// Why the kernel would not let this process write a key.
fn unwritable(key: &str) -> Option<&'static str> {
    use rustix::{
        fs::{Access, access},
        io::Errno,
    };
    let path = PathBuf::from(format!("/proc/sys/{}", settings::slashed(key)));
    match access(path, Access::WRITE_OK) {
        Err(Errno::ROFS) => Some("/proc/sys is read-only, as in a container"),
        Err(Errno::ACCESS | Errno::PERM) if rustix::process::geteuid().is_root() => {
            Some("the kernel keeps it read-only")
        }
        Err(Errno::ACCESS | Errno::PERM) => Some("only root may: set `become: true`"),
        _ => None,
    }
}

/// Ansible's spelling of a value: booleans are 1 and 0.
fn normal(value: &str) -> String {
    match value.trim().to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" | "t" | "y" => "1".to_owned(),
        "no" | "off" | "false" | "f" | "n" => "0".to_owned(),
        _ => folded(value),
    }
}

fn report(parameters: &[Parameter], warnings: Vec<String>) -> Report {
    let keys: Map<String, Value> = parameters
        .iter()
        .map(|parameter| {
            let after = parameter.set.as_ref().or(parameter.live.as_ref());
            let value = json!({"wanted": parameter.wanted, "before": parameter.live, "after": after, "file": parameter.write});
            (parameter.key.clone(), value)
        })
        .collect();
    let mut report = Report::of(json!({"keys": keys}));
    if !warnings.is_empty() {
        report.fields.insert("warnings".to_owned(), warnings.into());
    }
    report
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::{MODULE, Settings, Sysctl};
    use crate::host::{Fault, Host};
    use crate::module::Report;

    fn live(key: &str) -> String {
        Host::plan().sysctl(key).unwrap().unwrap()
    }

    /// The report of a plan, and the file as it would be.
    fn plan(before: &str, args: Value) -> (Result<Report, Fault>, String) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("s.conf");
        fs::write(&file, before).unwrap();
        let mut args = args;
        args["sysctl_file"] = json!(file);
        let mut host = Host::plan();
        let report = (MODULE.run)(args, &mut host);
        let after = host.read(&file).unwrap().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), before, "a plan wrote");
        (report, String::from_utf8(after).unwrap())
    }

    #[test]
    fn many_keys_make_one_change_of_the_file_and_others_stay() {
        let somaxconn = live("net.core.somaxconn");
        let before = "# ours\nvm.swappiness = 60\nnet.core.somaxconn = 128\n\n-net.ipv4.tcp_sack=1\nnet.core.somaxconn =  256\n";
        let args = json!({"reload": false, "keys": {"net.core.somaxconn": 4096, "net/ipv4/tcp_sack": "no", "net.ipv4.tcp_rmem": "4096  131072\t6291456"}});
        let (report, after) = plan(before, args);
        assert_eq!(
            after,
            "# ours\nvm.swappiness = 60\nnet.core.somaxconn = 128\n\n-net.ipv4.tcp_sack=0\nnet.core.somaxconn =  4096\nnet.ipv4.tcp_rmem=4096 131072 6291456\n"
        );
        let fields = report.unwrap().fields;
        assert_eq!(
            fields["keys"]["net.core.somaxconn"],
            json!({"wanted": "4096", "before": somaxconn, "after": somaxconn, "file": "4096"})
        );
    }

    #[test]
    fn a_key_that_is_unknown_fails_before_anything_is_planned() {
        let (report, after) = plan(
            "a=1\n",
            json!({"keys": {"net.core.somaxconn": 1234, "net.core.nosuch": 1}}),
        );
        let fault = report.unwrap_err();
        assert!(
            fault.message.contains("net.core.nosuch")
                && fault.message.ends_with("nothing was written"),
            "{fault}"
        );
        assert_eq!(after, "a=1\n");
    }

    #[test]
    fn an_unknown_key_can_be_kept_for_a_later_kernel() {
        let (report, after) = plan(
            "",
            json!({"name": "net.nosuch.key", "value": 1, "ignoreerrors": true}),
        );
        assert!(report.is_ok());
        assert_eq!(after, "net.nosuch.key=1\n");
        let (_, again) = plan(
            &after,
            json!({"name": "net.nosuch.key", "value": 1, "ignoreerrors": true}),
        );
        assert_eq!(again, after);
    }

    #[test]
    fn absent_takes_every_line_of_the_key() {
        let (_, after) = plan(
            "a.b=1\n#a.b=2\n-a/b = 3\nc=4\n",
            json!({"name": "a.b", "state": "absent"}),
        );
        assert_eq!(after, "#a.b=2\nc=4\n");
    }

    #[test]
    fn a_raise_never_lowers() {
        let task = |wanted: Value| -> Sysctl {
            serde_json::from_value(
                json!({"name": "net.ipv4.tcp_rmem", "value": wanted, "raise_only": true}),
            )
            .unwrap()
        };
        let cases = [
            // (wanted, live, in the file) -> (set, written)
            (
                "4096 87380 16777216",
                "4096 131072 6291456",
                "",
                Some("4096 131072 16777216"),
                Some("4096 131072 16777216"),
            ),
            (
                "4096 87380 16777216",
                "4096 131072 33554432",
                "",
                None,
                None,
            ),
            (
                "4096 87380 16777216",
                "4096 131072 33554432",
                "4096 87380 1",
                None,
                Some("4096 87380 16777216"),
            ),
            (
                "4096 87380 16777216",
                "4096 131072 33554432",
                "4096 99999 16777216",
                None,
                Some("4096 99999 16777216"),
            ),
            (
                "4096 87380 16777216",
                "4096 87380 16777216",
                "",
                None,
                Some("4096 87380 16777216"),
            ),
        ];
        for (wanted, live, file, set, written) in cases {
            let file = if file.is_empty() {
                String::new()
            } else {
                format!("net.ipv4.tcp_rmem={file}\n")
            };
            let task = task(wanted.into());
            let (key, wanted) = task.pairs().remove(0);
            let decided = task.decide(key, wanted, Some(live.to_owned()), &Settings::parse(&file));
            assert_eq!(
                (decided.set.as_deref(), decided.write.as_deref()),
                (set, written),
                "{live} {file}"
            );
        }
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args: Value| (MODULE.check)(&args).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"value": 1})),
            "argument `name`: it is required, or `keys` with many of them"
        );
        assert_eq!(
            refused(json!({"key": "a.b"})),
            "argument `value`: it is required for `a.b`"
        );
        assert_eq!(
            refused(json!({"name": "a.b", "value": "bbr", "raise_only": true})),
            "argument `raise_only`: it goes with numbers, and a.b is `bbr`"
        );
        assert!((MODULE.check)(&json!({"key": "a.b", "val": true})).is_ok());
        assert!((MODULE.check)(&json!({"keys": {"a.b": 1, "c.d": "x y"}})).is_ok());
    }
}
