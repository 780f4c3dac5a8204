//! One host of a fleet behind a slow line, for `ssh` and for `fleetctl` alike.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{DelayProxy, Fleet};

/// A host that is reached through a [`DelayProxy`] of its own.
#[derive(Debug)]
pub struct SlowLine {
    proxy: DelayProxy,
    inventory: PathBuf,
    ssh: Vec<OsString>,
}

impl SlowLine {
    /// Puts `delay` between here and the host, each way.
    #[must_use]
    #[track_caller]
    pub fn to(fleet: &Fleet, host: &str, delay: Duration) -> SlowLine {
        let address = fleet.address(host);
        let proxy = DelayProxy::start("127.0.0.1:0", format!("{address}:22"), delay)
            .unwrap_or_else(|error| panic!("failed to start a slow line: {error}"));
        let port = proxy.address().port();
        // The host's key is known under its own address.
        let mut options = fleet.ssh_options();
        options.push(format!("HostKeyAlias={address}"));
        let args: String = options.iter().map(|text| format!("-o {text} ")).collect();
        let inventory = fleet.folder().join(format!("slow-{host}-{port}.yml"));
        let text = format!(
            "web:\n  hosts:\n    {host}:\n      ansible_host: 127.0.0.1\n      ansible_port: {port}\n      \
             ansible_user: ops\n      ansible_ssh_private_key_file: {}\n      ansible_ssh_common_args: {args:?}\n",
            fleet.key().display(),
        );
        fs::write(&inventory, text)
            .unwrap_or_else(|error| panic!("failed to write {}: {error}", inventory.display()));
        let mut ssh: Vec<OsString> = Vec::new();
        for option in options {
            ssh.extend(["-o".into(), option.into()]);
        }
        ssh.extend(["-i".into(), fleet.key().into()]);
        ssh.extend(["-p", &port.to_string(), "-l", "ops", "127.0.0.1"].map(OsString::from));
        SlowLine {
            proxy,
            inventory,
            ssh,
        }
    }

    /// An inventory with this host only.
    #[must_use]
    pub fn inventory(&self) -> &Path {
        &self.inventory
    }

    /// `ssh HOST`, as `fleetctl` would be told to call it; the command is to be added.
    #[must_use]
    pub fn ssh(&self) -> Command {
        let mut command = Command::new("ssh");
        command.args(&self.ssh);
        command
    }

    /// The turns so far: how often somebody waited for the whole way there and back.
    #[must_use]
    pub fn turns(&self) -> u64 {
        self.proxy.counts().turns
    }
}
