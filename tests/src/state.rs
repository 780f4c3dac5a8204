//! What a host is, so that it can be said to be the same as before.

use std::collections::BTreeSet;

use crate::Fleet;

/// Files, kernel parameters and nginx of a host, one fact a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostState {
    facts: BTreeSet<String>,
}

/// The helper's own places are not looked at: they are its cache and its journal.
const ENTRIES: &str = r"find /etc /usr /home /root /var/www /srv -xdev \
    \( -path '/home/*/.cache' -o -path '/home/*/.local' \) -prune -o";

const CONTENTS: &str = r"find /etc /home /root /var/www /srv -xdev \
    \( -path '/home/*/.cache' -o -path '/home/*/.local' \) -prune -o -type f -print0 | xargs -0 sha256sum";

/// Keys that can only be written, such as `flush`, say nothing.
const PARAMETERS: &str =
    "find /proc/sys/net -type f -perm /222 -exec grep -H '' {} + 2>/dev/null; true";

const NGINX: &str =
    "systemctl show nginx --property=ActiveState,UnitFileState,LimitNOFILE,NeedDaemonReload";

impl HostState {
    /// What a user would call the same: types, contents, modes, owners, links, settable kernel parameters of the network,
    /// and the state of nginx.
    #[must_use]
    #[track_caller]
    pub fn of(fleet: &Fleet, host: &str) -> HostState {
        let entries = format!(r"{ENTRIES} -printf '%p %y %m %u:%g %l\n'");
        HostState::ask(fleet, host, &[&entries, CONTENTS, PARAMETERS, NGINX])
    }

    /// Besides, when each file was last touched, which processes serve, and since when nginx has been up: nothing has
    /// even been written anew.
    #[must_use]
    #[track_caller]
    pub fn untouched(fleet: &Fleet, host: &str) -> HostState {
        // The home's own time moves with the helper's cache.
        let entries = format!(
            r"{ENTRIES} \( -path '/home/*' -printf '%p %y %m %u:%g %l\n' -o -printf '%p %y %m %u:%g %l %C@\n' \)"
        );
        let processes =
            "echo nginx $(pgrep -x nginx); systemctl show nginx --property=ActiveEnterTimestamp";
        HostState::ask(
            fleet,
            host,
            &[&entries, CONTENTS, PARAMETERS, NGINX, processes],
        )
    }

    /// Checks that it is the same as `before`, and shows only what differs.
    #[track_caller]
    pub fn assert_same_as(&self, before: &HostState) {
        let gone: Vec<_> = before.facts.difference(&self.facts).collect();
        let new: Vec<_> = self.facts.difference(&before.facts).collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "the host differs\nbefore: {gone:#?}\nnow: {new:#?}"
        );
    }

    #[track_caller]
    fn ask(fleet: &Fleet, host: &str, commands: &[&str]) -> HostState {
        let said = fleet.sh(host, &commands.join("\n"));
        let facts: BTreeSet<String> = said.text().lines().map(str::to_owned).collect();
        // An empty answer would be the same as any other.
        assert!(
            facts.len() > 1000,
            "too little was found on {host}: {said:?}"
        );
        HostState { facts }
    }
}
