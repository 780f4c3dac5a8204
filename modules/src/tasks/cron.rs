use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use self::crontab::{Crontab, Job, Place};
use super::group::State;
use crate::args::{Bool, Mode, Text};
use crate::host::{Command, Entry, Fault, Host, Put, To};
use crate::module::{ArgumentError, Module, Report, Task};

mod crontab;

pub(super) static MODULE: Module = Module::of::<Cron>();

/// Manages a job or a variable in a user's crontab or in a file of `/etc/cron.d`.
///
/// A job is told by the line `#Ansible: NAME` before it. The crontab is one file, so the plan shows its lines and an undo
/// puts it back.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Cron {
    /// What the job is known by, or the variable's name with `env`.
    name: Option<Text>,
    /// The command, or the variable's value with `env`.
    job: Option<Text>,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// Whose crontab; with `cron_file` the user that the job runs as. The task's own user where it is not given.
    user: Option<Text>,
    /// A file in `/etc/cron.d`, or an absolute path, instead of a user's crontab.
    cron_file: Option<Text>,
    /// The minute.
    #[serde(default = "every")]
    minute: Text,
    /// The hour.
    #[serde(default = "every")]
    hour: Text,
    /// The day of the month.
    #[serde(default = "every")]
    day: Text,
    /// The month.
    #[serde(default = "every")]
    month: Text,
    /// The day of the week.
    #[serde(default = "every")]
    weekday: Text,
    /// A named time instead.
    special_time: Option<Special>,
    /// Keep the job as a comment.
    #[serde(default)]
    disabled: Bool,
    /// Manage a variable, and no job.
    #[serde(default)]
    env: Bool,
    /// With `env`: the variable after which a new one goes.
    insertafter: Option<Text>,
    /// With `env`: the variable before which a new one goes.
    insertbefore: Option<Text>,
    /// Say where the old content is kept: an undo of the run finds it there.
    #[serde(default)]
    backup: Bool,
}

fn every() -> Text {
    "*".into()
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Special {
    Reboot,
    Yearly,
    Annually,
    Monthly,
    Weekly,
    Daily,
    Hourly,
}

impl Special {
    fn word(self) -> &'static str {
        match self {
            Self::Reboot => "@reboot",
            Self::Yearly => "@yearly",
            Self::Annually => "@annually",
            Self::Monthly => "@monthly",
            Self::Weekly => "@weekly",
            Self::Daily => "@daily",
            Self::Hourly => "@hourly",
        }
    }
}

/// Where a crontab lies.
enum Tab {
    /// A file that is written as such.
    File(PathBuf),
    /// A user's own, which only `crontab` may write for those who are not root.
    Own,
}

impl Task for Cron {
    const NAME: &'static str = "cron";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("value", "job"), ("dom", "day"), ("dow", "weekday")];

    fn check(&self) -> Result<(), ArgumentError> {
        let times = [
            &self.minute,
            &self.hour,
            &self.day,
            &self.month,
            &self.weekday,
        ];
        if self.special_time.is_some() && times.iter().any(|time| &***time != "*") {
            return Err(ArgumentError::of(
                "special_time",
                "You must specify time and date fields or special time.",
            ));
        }
        if self.name.is_none() && !(self.cron_file.is_some() && self.state == State::Absent) {
            return Err(ArgumentError::of("name", "it is required"));
        }
        if self.state == State::Present && self.job.is_none() {
            return Err(ArgumentError::of(
                "job",
                "You must specify 'job' to install a new cron job or variable",
            ));
        }
        if self.cron_file.is_some() && self.user.is_none() && self.state == State::Present {
            return Err(ArgumentError::of(
                "user",
                "To use cron_file=... parameter you must specify user=... as well",
            ));
        }
        if self.insertafter.is_some() && self.insertbefore.is_some() {
            return Err(ArgumentError::of(
                "insertafter",
                "it does not go with insertbefore",
            ));
        }
        if (self.insertafter.is_some() || self.insertbefore.is_some())
            && !(*self.env && self.state == State::Present)
        {
            return Err(ArgumentError::of(
                "insertafter",
                "Insertafter and insertbefore parameters are valid only with env=yes",
            ));
        }
        let lines = [&self.name, &self.job, &self.user];
        if lines
            .into_iter()
            .flatten()
            .any(|text| text.trim_end().contains('\n'))
        {
            return Err(ArgumentError::of(
                "job",
                "it must be one line: cron knows no others",
            ));
        }
        match times
            .iter()
            .any(|time| time.is_empty() || time.contains(char::is_whitespace))
        {
            true => Err(ArgumentError::of(
                "minute",
                "a time of cron has no white space in it",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let path = self
            .cron_file
            .as_deref()
            .map(|file| Path::new("/etc/cron.d").join(file));
        if path.as_deref() == Some(Path::new("/etc/crontab")) {
            return Err(Fault::new(
                "Will not manage /etc/crontab via cron_file, see documentation.",
            ));
        }
        let (tab, text) = match path {
            Some(path) => {
                let text = host.read(&path)?;
                (Tab::File(path), text)
            }
            None => self.own(host)?,
        };
        if let (Tab::File(path), None) = (&tab, &self.name) {
            let changed = host.put(Put::absent(path))?;
            return Ok(Report::of(
                json!({"changed": changed, "cron_file": self.cron_file.as_deref()}),
            ));
        }
        let known = text.is_some();
        let old = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let mut crontab = Crontab::parse(&old);
        self.edit(&mut crontab)?;
        let new = crontab.text();
        let blank = |text: &str| text.trim().is_empty();
        let mut fields = json!({"jobs": crontab.jobs(), "envs": crontab.variables(), "warnings": self.warnings()});
        if new != old {
            match &tab {
                Tab::File(path) if self.cron_file.is_some() && blank(&new) && known => {
                    host.put(Put::absent(path))?;
                }
                Tab::File(_) if blank(&new) && !known => {}
                Tab::File(path) => self.write(host, path, new)?,
                Tab::Own => install(host, new)?,
            }
            if let (Tab::File(path), true) = (&tab, *self.backup)
                && let Some(backup) = host.backup_of(path)
            {
                fields["backup_file"] = backup.display().to_string().into();
            }
        }
        if let Some(file) = self.cron_file.as_deref() {
            fields["cron_file"] = file.into();
        }
        Ok(Report::of(fields))
    }
}

impl Cron {
    fn warnings(&self) -> Vec<String> {
        let odd = |name: &&str| {
            !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        let file = self
            .cron_file
            .as_deref()
            .filter(|file| !file.starts_with('/'));
        let text = |name: &str| {
            format!(
                "Filename portion of cron_file (\"{name}\") should consist solely of upper- and lower-case letters, digits, underscores, and hyphens"
            )
        };
        file.filter(odd).map(text).into_iter().collect()
    }

    fn edit(&self, crontab: &mut Crontab) -> Result<(), Fault> {
        let name = self.name.as_deref().unwrap_or_default();
        let job = self.job.as_deref().unwrap_or_default();
        match (*self.env, self.state) {
            (true, State::Absent) => crontab.remove_variable(name),
            (true, State::Present) => {
                let place = match (&self.insertafter, &self.insertbefore) {
                    (Some(after), _) => Place::After(after),
                    (None, Some(before)) => Place::Before(before),
                    (None, None) => Place::First,
                };
                crontab.set_variable(name, job, place).map_err(Fault::new)?;
            }
            (false, State::Absent) => crontab.remove_job(name),
            (false, State::Present) => crontab.set_job(&Job {
                name,
                line: self.line(job),
            }),
        }
        Ok(())
    }

    fn line(&self, job: &str) -> String {
        let time = match self.special_time {
            Some(special) => special.word().to_owned(),
            None => [
                &self.minute,
                &self.hour,
                &self.day,
                &self.month,
                &self.weekday,
            ]
            .map(|time| time.to_string())
            .join(" "),
        };
        let off = if *self.disabled { "#" } else { "" };
        let user = match (&self.cron_file, &self.user) {
            (Some(_), Some(user)) => format!("{user} "),
            _ => String::new(),
        };
        format!("{off}{time} {user}{}", job.trim_end_matches('\n'))
    }

    /// Where the crontab of the user lies, and what is in it.
    fn own(&self, host: &Host) -> Result<(Tab, Option<Vec<u8>>), Fault> {
        let me = host.user();
        let user = self.user.as_deref().unwrap_or(&me.name);
        if me.uid != 0 {
            if user != me.name {
                return Err(Fault::new(format!(
                    "cannot change the crontab of `{user}` as `{}`: it needs root (`become: true`)",
                    me.name
                )));
            }
            let output = host.probe(&["crontab", "-l"])?;
            return Ok((Tab::Own, output.ok().then_some(output.stdout)));
        }
        let users = host.accounts("/etc/passwd")?.unwrap_or_default();
        let known = users
            .iter()
            .any(|line| line.split(':').next() == Some(user));
        if !known && !host.open() && !host.probe(&["getent", "passwd", "--", user])?.ok() {
            return Err(Fault::new(format!(
                "there is no user `{user}` on this host whose crontab it could be"
            )));
        }
        // Debian's and its relatives' first.
        for spool in ["/var/spool/cron/crontabs", "/var/spool/cron"] {
            let spool = Path::new(spool);
            if matches!(host.entry(spool)?, Entry::Dir(_)) {
                let path = spool.join(user);
                let text = host.read(&path)?;
                return Ok((Tab::File(path), text));
            }
        }
        match host.open() {
            true => Ok((
                Tab::File(Path::new("/var/spool/cron/crontabs").join(user)),
                None,
            )),
            false => Err(Fault::new(
                "this host has no cron: there is no /var/spool/cron; install cron before this task",
            )),
        }
    }

    fn write(&self, host: &mut Host, path: &Path, text: String) -> Result<(), Fault> {
        let new = host.entry(&host.resolve(path)?)? == Entry::Absent;
        let (mut mode, mut owner, mut group) = (None, None, None);
        if new {
            mode = Some(Mode::Octal(0o644));
        }
        if self.cron_file.is_none() {
            mode = Some(Mode::Octal(0o600));
            owner = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            // The group that may look into Debian's spool.
            let groups = host.accounts("/etc/group")?.unwrap_or_default();
            group = groups
                .iter()
                .any(|line| line.starts_with("crontab:"))
                .then(|| "crontab".to_owned());
        }
        let path = host.resolve(path)?;
        host.put(Put {
            path,
            to: To::File {
                content: Some(text.into()),
                mode,
                owner,
                group,
            },
            validate: None,
        })?;
        Ok(())
    }
}

/// Hands a crontab to its owner's own program.
fn install(host: &mut Host, text: String) -> Result<(), Fault> {
    let argv = ["crontab", "-"].map(str::to_owned).to_vec();
    let line = "crontab -".to_owned();
    let stdin = Some(text.into_bytes());
    let output = host.command(Command {
        argv,
        line,
        stdin,
        chdir: None,
    })?;
    match output.filter(|output| !output.ok()) {
        Some(output) => Err(Fault::new(format!(
            "cannot install the crontab: {}",
            output.complaint()
        ))
        .with("rc", output.rc)
        .with("stderr", output.error_text())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::Host;

    fn text(host: &Host, path: &Path) -> Option<String> {
        host.read(path)
            .unwrap()
            .map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_file_of_cron_comes_changes_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs");
        let mut host = Host::plan();
        let mut run = |more: Value| {
            let mut args = json!({"cron_file": path, "user": "root"});
            for (name, value) in more.as_object().unwrap() {
                args[name.as_str()] = value.clone();
            }
            let report = (MODULE.run)(args, &mut host).unwrap();
            let changed = !host.end().is_empty();
            (changed, report.fields["jobs"].clone(), text(&host, &path))
        };
        let job = json!({"name": "clean", "job": "rm -rf /tmp/x", "hour": 5, "minute": "*/2"});
        let (changed, jobs, content) = run(job.clone());
        assert!(changed);
        assert_eq!(jobs, json!(["clean"]));
        assert_eq!(
            content.unwrap(),
            "#Ansible: clean\n*/2 5 * * * root rm -rf /tmp/x\n"
        );
        assert!(!run(job).0);
        let (_, _, content) = run(json!({"name": "PATH", "env": true, "value": "/bin"}));
        assert_eq!(
            content.unwrap(),
            "PATH=\"/bin\"\n#Ansible: clean\n*/2 5 * * * root rm -rf /tmp/x\n"
        );
        let (_, _, content) =
            run(json!({"name": "clean", "job": "x", "special_time": "daily", "disabled": true}));
        assert_eq!(
            content.unwrap(),
            "PATH=\"/bin\"\n#Ansible: clean\n#@daily root x\n"
        );
        run(json!({"name": "PATH", "env": true, "state": "absent"}));
        let (changed, jobs, content) = run(json!({"name": "clean", "state": "absent"}));
        assert_eq!((changed, jobs, content), (true, json!([]), None));
        assert!(!run(json!({"name": "clean", "state": "absent"})).0);
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().message;
        assert!(refused(json!({"name": "x"})).contains("specify 'job'"));
        assert!(
            refused(json!({"name": "x", "job": "y", "cron_file": "f"})).contains("specify user=")
        );
        assert!(
            refused(json!({"name": "x", "job": "y", "hour": 1, "special_time": "daily"}))
                .contains("time and date fields or special time")
        );
        assert!(refused(json!({"name": "x", "job": "y\nz"})).contains("one line"));
        assert!((MODULE.check)(&json!({"cron_file": "f", "state": "absent"})).is_ok());
        let fault = (MODULE.run)(
            json!({"name": "x", "job": "y", "user": "root", "cron_file": "/etc/crontab"}),
            &mut Host::plan(),
        );
        assert!(
            fault
                .unwrap_err()
                .message
                .starts_with("Will not manage /etc/crontab")
        );
    }
}
