//! Flags that several commands share; their letters are Ansible's.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use crate::commands::vault::VaultFlags;

/// Which hosts, and how to reach them.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Target {
    /// An inventory: a file, a directory, a script, or `host1,host2,` (repeatable)
    #[arg(
        short,
        long = "inventory",
        alias = "inventory-file",
        value_name = "INVENTORY",
        help_heading = "Hosts"
    )]
    pub(crate) inventory: Vec<String>,
    /// Only these of the play's hosts: a pattern, or `@file`
    #[arg(short, long, value_name = "PATTERN", help_heading = "Hosts")]
    pub(crate) limit: Option<String>,
    /// How many hosts to work on at the same time [default: 50]
    #[arg(short, long, value_parser = number, value_name = "N", help_heading = "Hosts")]
    pub(crate) forks: Option<usize>,
    /// Log in as this user where the inventory names none
    #[arg(short, long, value_name = "USER", help_heading = "Connection")]
    pub(crate) user: Option<String>,
    /// A private key to log in with
    #[arg(
        long,
        alias = "key-file",
        value_name = "FILE",
        help_heading = "Connection"
    )]
    pub(crate) private_key: Option<PathBuf>,
    /// `ssh` or `local`, where the inventory says nothing
    #[arg(short, long, value_name = "KIND", help_heading = "Connection")]
    pub(crate) connection: Option<String>,
    /// Seconds to wait for a connection [default: 10]
    #[arg(short = 'T', long, value_parser = number, value_name = "SECONDS", help_heading = "Connection")]
    pub(crate) timeout: Option<usize>,
    /// Refused: fleetctl never types an ssh password
    #[arg(short = 'k', long, hide = true)]
    pub(crate) ask_pass: bool,
    /// Refused, as `-k` is
    #[arg(
        long,
        alias = "conn-pass-file",
        value_name = "FILE",
        conflicts_with = "ask_pass",
        hide = true
    )]
    pub(crate) connection_password_file: Option<PathBuf>,
    /// More arguments for every ssh command
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        help_heading = "Connection"
    )]
    pub(crate) ssh_common_args: Option<String>,
    /// More arguments for ssh, after those
    #[arg(
        long,
        value_name = "ARGS",
        allow_hyphen_values = true,
        help_heading = "Connection"
    )]
    pub(crate) ssh_extra_args: Option<String>,
    /// Taken for Ansible's sake: files do not travel by sftp
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, hide = true)]
    pub(crate) sftp_extra_args: Option<String>,
    /// Taken for Ansible's sake: files do not travel by scp
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true, hide = true)]
    pub(crate) scp_extra_args: Option<String>,
    /// Become another user for every task
    #[arg(short, long = "become", help_heading = "Connection")]
    pub(crate) r#become: bool,
    /// How to become another user [default: sudo]
    #[arg(long, value_name = "METHOD", help_heading = "Connection")]
    pub(crate) become_method: Option<String>,
    /// The user to become [default: root]
    #[arg(long, value_name = "USER", help_heading = "Connection")]
    pub(crate) become_user: Option<String>,
    /// Ask for the password to become another user with
    #[arg(short = 'K', long, help_heading = "Connection")]
    pub(crate) ask_become_pass: bool,
    /// Read the password to become another user with from a file
    #[arg(
        long,
        alias = "become-pass-file",
        value_name = "FILE",
        conflicts_with = "ask_become_pass",
        help_heading = "Connection"
    )]
    pub(crate) become_password_file: Option<PathBuf>,
    /// A variable `name=value`, JSON, YAML, or `@file`; wins over every other (repeatable)
    #[arg(short, long, value_name = "VARS", help_heading = "Variables")]
    pub(crate) extra_vars: Vec<String>,
    #[command(flatten)]
    pub(crate) vault: VaultFlags,
    /// Where modules of your own are, separated by colons (repeatable)
    #[arg(
        short = 'M',
        long = "module-path",
        value_name = "PATH",
        help_heading = "Variables"
    )]
    pub(crate) module_path: Vec<String>,
    /// Say more (`-vv` for still more)
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// Which tasks of a playbook.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Tasks {
    /// Only tasks with one of these tags (repeatable)
    #[arg(short, long, value_name = "TAGS", help_heading = "Tasks")]
    pub(crate) tags: Vec<String>,
    /// No task with one of these tags (repeatable)
    #[arg(long, value_name = "TAGS", help_heading = "Tasks")]
    pub(crate) skip_tags: Vec<String>,
    /// Begin with the task of this name
    #[arg(long, value_name = "NAME", help_heading = "Tasks")]
    pub(crate) start_at_task: Option<String>,
    /// Ask before each task
    #[arg(long, help_heading = "Tasks")]
    pub(crate) step: bool,
    /// Run handlers even on hosts that failed
    #[arg(long, help_heading = "Tasks")]
    pub(crate) force_handlers: bool,
    /// Forget the facts that are kept from earlier runs
    #[arg(long, help_heading = "Tasks")]
    pub(crate) flush_cache: bool,
    /// Pass over a play whose pattern matches no host
    #[arg(long, help_heading = "Hosts")]
    pub(crate) allow_no_hosts: bool,
    /// List the hosts of each play, and do nothing
    #[arg(long, help_heading = "Tasks")]
    pub(crate) list_hosts: bool,
    /// List the tasks, and do nothing
    #[arg(long, help_heading = "Tasks")]
    pub(crate) list_tasks: bool,
    /// List the tags, and do nothing
    #[arg(long, help_heading = "Tasks")]
    pub(crate) list_tags: bool,
}

impl Tasks {
    pub(crate) fn lists_only(&self) -> bool {
        self.list_hosts || self.list_tasks || self.list_tags
    }
}

/// Where what happened is kept, and in which form it is shown.
#[derive(Args, Clone, Debug)]
pub(crate) struct Output {
    /// Print JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Keep the run's folder here
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) log_dir: Option<PathBuf>,
}

/// The list of who may approve plans: the one that is named, or ssh's usual one.
pub(crate) fn signers(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let home = crate::place::Places::of_this_user().home;
    named
        .or_else(|| home.map(|home| home.join(".ssh/allowed_signers")))
        .ok_or_else(|| {
            crate::error::Invalid(
                "name the list of who may approve with `--allowed-signers`".to_owned(),
            )
            .into()
        })
}

/// A whole number from 1 on.
fn number(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a whole number from 1 on".to_owned())
}

/// A length of time: `90`, `90s`, `5m`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits
        .parse()
        .map_err(|_| "expected a number with `s`, `m` or `h`".to_owned())?;
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        other => {
            return Err(format!(
                "`{other}` is no unit of time; `s`, `m` and `h` are"
            ));
        }
    };
    Ok(Duration::from_secs(number.saturating_mul(unit)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::duration;

    #[test]
    fn lengths_of_time_have_units() {
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(
            duration("5x"),
            Err("`x` is no unit of time; `s`, `m` and `h` are".to_owned())
        );
        assert!(duration("m").is_err());
    }
}
