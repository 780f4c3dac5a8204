use serde::Deserialize;
use serde_json::json;

use crate::args::{List, Number, Text};
use crate::host::{Command, Fault, Host, words};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Reboot>();

/// Boots the host anew, and waits until it is back.
///
/// The changes that the run has made so far stay in place; a later failure of the run undoes them, too. A plan shows the
/// command and does nothing.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Reboot {
    /// What those who are logged in are told.
    #[serde(default = "message")]
    msg: Text,
    /// Seconds to wait before the shutdown.
    #[serde(default)]
    pre_reboot_delay: Number,
    /// Seconds to wait after the host is back.
    #[serde(default, rename = "post_reboot_delay")]
    _post_reboot_delay: Number,
    /// Seconds that the host may take to be back.
    #[serde(default, rename = "reboot_timeout")]
    _reboot_timeout: Option<Number>,
    /// Seconds for one attempt to connect.
    #[serde(default, rename = "connect_timeout")]
    _connect_timeout: Option<Number>,
    /// The command that shows that the host is back.
    #[serde(default, rename = "test_command")]
    _test_command: Option<Text>,
    /// The command whose answer differs after a boot.
    #[serde(default, rename = "boot_time_command")]
    _boot_time_command: Option<Text>,
    /// The command that boots, with its words.
    reboot_command: Option<Text>,
    /// Taken for Ansible's sake: programs are found where root's are.
    #[serde(default, rename = "search_paths")]
    _search_paths: Option<List>,
}

fn message() -> Text {
    "Reboot initiated by Ansible".into()
}

impl Task for Reboot {
    const NAME: &'static str = "reboot";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("pre_reboot_delay_sec", "pre_reboot_delay"),
        ("post_reboot_delay_sec", "post_reboot_delay"),
        ("reboot_timeout_sec", "reboot_timeout"),
        ("connect_timeout_sec", "connect_timeout"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        let command = self.reboot_command.as_deref().map(words).transpose();
        command
            .map(drop)
            .map_err(|problem| ArgumentError::of("reboot_command", problem))
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let boot = host.sysctl("kernel.random.boot_id")?.unwrap_or_default();
        let own = match self.reboot_command.as_deref() {
            Some(command) => words(command).map_err(Fault::new)?,
            None => ["shutdown", "-r", "now", &self.msg]
                .map(str::to_owned)
                .to_vec(),
        };
        let line = own.join(" ");
        // A moment later, so that this answer is on its way; in a session of its own, so that nothing ends it.
        let delay = (*self.pre_reboot_delay).max(0) + 2;
        let script = format!("sleep {delay}; exec \"$@\"");
        let mut argv = ["setsid", "-f", "sh", "-c", &script, "sh"]
            .map(str::to_owned)
            .to_vec();
        argv.extend(own);
        let output = host.command(Command {
            argv,
            line,
            ..Command::default()
        })?;
        match output.filter(|output| !output.ok()) {
            Some(output) => Err(Fault::new(format!(
                "cannot boot the host anew: {}",
                output.complaint()
            ))
            .with("rc", output.rc)),
            None => Ok(Report::of(json!({"boot_id": boot, "rebooted": true}))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_boot_is_planned_and_known_by_its_id() {
        let mut host = Host::plan();
        let report = (MODULE.run)(json!({"msg": "kernel"}), &mut host).unwrap();
        assert_eq!(report.fields["boot_id"].as_str().unwrap().len(), 36);
        assert_eq!(host.end()[0].summary(), "command shutdown -r now kernel");
        assert!((MODULE.check)(&json!({"reboot_command": "'x"})).is_err());
    }
}
