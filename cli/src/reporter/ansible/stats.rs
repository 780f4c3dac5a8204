//! The counts of Ansible's recap.

use std::collections::BTreeMap;

use fleet_engine::event::TaskEnded;
use fleet_wire::Status;

/// One host's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) ok: usize,
    pub(crate) changed: usize,
    pub(crate) unreachable: usize,
    pub(crate) failed: usize,
    pub(crate) skipped: usize,
    pub(crate) rescued: usize,
    pub(crate) ignored: usize,
}

/// All hosts' counts.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    pub(crate) hosts: BTreeMap<String, Counts>,
}

/// What a task came to on a host, all items of its loop taken together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    pub(crate) changed: bool,
    pub(crate) failed: bool,
    pub(crate) ran: bool,
    pub(crate) ignored: bool,
    pub(crate) rescued: bool,
}

impl Whole {
    /// Takes an item in.
    pub(crate) fn add(&mut self, ended: &TaskEnded) {
        self.ran |= ended.status != Status::Skipped;
        self.failed |= ended.status == Status::Failed;
        self.ignored |= ended.ignored;
        self.rescued |= ended.rescued;
        self.changed |= matches!(ended.status, Status::Changed | Status::Unknown)
            || ended.status == Status::Failed
                && ended
                    .result
                    .get("changed")
                    .is_some_and(|changed| changed == true);
    }
}

impl Stats {
    pub(crate) fn of(&mut self, host: &str) -> &mut Counts {
        self.hosts.entry(host.to_owned()).or_default()
    }

    /// Counts a task; `ended` is its last item.
    pub(crate) fn count(&mut self, ended: &TaskEnded, whole: Whole) {
        let counts = self.of(&ended.host);
        if ended.unreachable {
            if ended.ignored {
                counts.skipped += 1;
                counts.ignored += 1;
            } else {
                counts.unreachable += 1;
            }
            return;
        }
        match (whole.failed, whole.ignored, whole.rescued) {
            (true, false, true) => counts.rescued += 1,
            (true, false, false) => counts.failed += 1,
            (true, true, _) => {
                counts.ok += 1;
                counts.ignored += 1;
                counts.changed += usize::from(whole.changed);
            }
            (false, ..) if whole.ran => {
                counts.ok += 1;
                counts.changed += usize::from(whole.changed);
            }
            (false, ..) => counts.skipped += 1,
        }
    }
}
