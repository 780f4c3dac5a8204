//! Where things are kept on the controller.

use std::path::{Path, PathBuf};

/// The places of this user, from the environment.
pub(crate) struct Places {
    pub(crate) home: Option<PathBuf>,
    /// Where runs are kept.
    pub(crate) runs: PathBuf,
    /// Where the sockets of kept ssh connections are.
    pub(crate) control: PathBuf,
    /// Where the helper may be.
    pub(crate) helpers: Vec<PathBuf>,
}

impl Places {
    /// Reads the environment: `HOME`, `XDG_STATE_HOME`, `XDG_RUNTIME_DIR`, `FLEETCTL_HELPERS`.
    pub(crate) fn of_this_user() -> Self {
        let variable = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let home = variable("HOME");
        let state = variable("XDG_STATE_HOME")
            .or_else(|| home.as_ref().map(|home| home.join(".local/state")));
        let runs = state
            .unwrap_or_else(|| PathBuf::from("/var/tmp"))
            .join("fleetctl/runs");
        // Socket paths are short: the kernel allows 107 bytes, and ssh appends to them.
        let runtime =
            variable("XDG_RUNTIME_DIR").filter(|dir| dir.is_dir() && dir.as_os_str().len() < 40);
        let uid = uid_of_this_process();
        let control = runtime.map_or_else(
            || PathBuf::from(format!("/tmp/fleetctl-{uid}")),
            |dir| dir.join("fleetctl"),
        );
        let mut helpers: Vec<PathBuf> = Vec::new();
        if let Some(listed) = std::env::var_os("FLEETCTL_HELPERS") {
            helpers.extend(std::env::split_paths(&listed));
        }
        let own = std::env::current_exe().ok();
        helpers.extend(own.as_deref().and_then(Path::parent).map(Path::to_owned));
        Self {
            home,
            runs,
            control,
            helpers,
        }
    }
}

/// The real user's number, as `/proc` tells it.
fn uid_of_this_process() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").map_or(0, |own| own.uid())
}

/// `user@machine`, as others see who holds a host.
pub(crate) fn who() -> String {
    let user = ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!(
        "{}@{}",
        user.unwrap_or_else(|| "root".to_owned()),
        machine.trim()
    )
}

/// A directory, absolute; the one that fleetctl was started in where there is none or it is the empty path of a bare file name.
pub(crate) fn absolute_dir(dir: Option<&PathBuf>) -> PathBuf {
    let dir = dir.filter(|dir| !dir.as_os_str().is_empty());
    let dir = dir.cloned().unwrap_or_else(|| PathBuf::from("."));
    fleet_engine::sources::rooted(&dir).unwrap_or(dir)
}
