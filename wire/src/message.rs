use serde::{Deserialize, Serialize};

use crate::{DigestKey, Effect};

/// Raised with every change of these types: both ends refuse another number.
pub const PROTOCOL: u32 = 6;

/// A JSON document as text: postcard cannot carry values of no fixed type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Json(pub String);

/// From the controller to a host. The first message is [`ToHost::Hello`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum ToHost {
    /// Opens the conversation; answered by [`FromHost::Ready`] or [`FromHost::Refused`].
    Hello(Hello),
    /// A task, to be run after those sent before it; answered by [`FromHost::Done`]. Boxed for its size.
    Task(Box<Task>),
    /// A part of a content that the host asked for by [`FromHost::Need`].
    Blob {
        /// SHA-256 of the whole content, lower-case hex.
        sha256: String,
        /// The next bytes, at most 1 MiB.
        bytes: Vec<u8>,
        /// No more parts follow.
        last: bool,
    },
    /// The controller is there, and has nothing to say. Sent while a run is looked after by its host.
    Alive,
    /// A handler has run that this host was not told of as a task of its own: one of the controller, or on another host.
    Handled(String),
    /// The tasks of this lane run again: the controller has seen the failure that stopped it.
    Clear(u32),
    /// Ends the run on this host; answered by [`FromHost::Finished`].
    Finish(Finish),
    /// Undoes a past run of this host, from its journal; answered by [`FromHost::Finished`].
    Rollback {
        /// The run's name.
        run: String,
    },
    /// Keeps a run that waits for being confirmed; answered by [`FromHost::Finished`].
    Confirm {
        /// The run's name in the host's journal.
        run: String,
    },
    /// Asks how things stand; answered by [`FromHost::Standing`].
    Standing,
    /// Sets damaged journals aside, so that runs can begin again; answered by [`FromHost::Standing`].
    Repair,
    /// Ends the helper that holds the lock for a run; answered by [`FromHost::Standing`].
    Unlock {
        /// The run that holds it: nobody breaks a lock that has changed hands.
        run: String,
    },
    /// Asks for the journal's runs; answered by [`FromHost::Journal`].
    Journal,
}

/// The opening of a conversation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the controller.
    pub protocol: u32,
    /// What the conversation is for.
    pub mode: Mode,
    /// The run's name: letters, digits, `-`; unique in a fleet.
    pub run: String,
    /// Tells this controller from another one that goes on with the same run: conversations of one controller share the
    /// host's lock.
    pub controller: u64,
    /// Who runs it, as shown to whoever finds the host locked: `user@machine`.
    pub who: String,
    /// Where the host keeps locks and journals; none for the usual place.
    pub state_dir: Option<String>,
    /// How long to wait for the host's lock, in milliseconds.
    pub lock_timeout_ms: u64,
    /// How the changes of this conversation hang together with others.
    pub transaction: Transaction,
    /// The key of the digests of secrets in the plan that is applied.
    pub digest_key: Option<DigestKey>,
}

/// What makes one change of all that a run does on a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transaction {
    /// The hash of the saved plan that is applied: once, by one run.
    pub plan: Option<String>,
    /// The run was cut off and goes on: what it did already is told from the record.
    pub resume: bool,
    /// The `/etc/machine-id` that the host must have.
    pub machine_id: Option<String>,
    /// Seconds within which the change is to be confirmed over another connection, or the host undoes it; none where nothing
    /// is to be confirmed.
    pub confirm_s: Option<u32>,
}

/// What a conversation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mode {
    /// Reads only: facts, journals. Takes no lock.
    Read,
    /// Effects are recorded over an overlay, and not performed. Takes no lock.
    Plan,
    /// Effects are journaled and performed, under the host's lock.
    Apply,
    /// What fleetctl keeps on the host is seen to: runs are confirmed, journals repaired, locks broken. Takes no lock, and
    /// recovers nothing.
    Care,
}

/// One task, ready to run: conditions decided and templates rendered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Its number in this conversation, rising.
    pub id: u32,
    /// The line of tasks that it belongs to: one for each host of a play that works here, be it this one or one that
    /// delegates to it. A failure stops its own lane only.
    pub lane: u32,
    /// The items of one loop share a group: a failed item stops the lane only behind its group.
    pub group: u32,
    /// What it is known by when its run goes on after it was cut off: the same for the same step.
    pub key: String,
    /// Its name, for the journal and for messages.
    pub name: String,
    /// Where it is written, `file:line`.
    pub place: String,
    /// The module's own name, without a collection.
    pub module: String,
    /// The module's arguments: a JSON object.
    pub args: Json,
    /// The content that goes with the arguments (`copy`, `template`).
    pub blob: Option<Blob>,
    /// The user to act as.
    pub user: As,
    /// Environment variables for commands.
    pub environment: Vec<(String, String)>,
    /// `check_mode: true` (only record effects) or `false` (perform even in a plan); none as the conversation says.
    pub check: Option<bool>,
    /// A failure does not stop the lane.
    pub ignore_errors: bool,
    /// A constant `changed_when`.
    pub changed: Option<bool>,
    /// Effects must not be shown.
    pub no_log: bool,
    /// Handlers that a change notifies, by their full names.
    pub notify: Vec<String>,
    /// A handler's condition; none for a task that always runs.
    pub only_if: Option<OnlyIf>,
    /// Digests ([`Effect::digest`]) of the effects that a plan showed: any other is refused. None where nothing was planned.
    pub planned: Option<Vec<String>>,
    /// Seconds after which the task is stopped; 0 for never.
    pub timeout_s: u32,
    /// Seconds for which it may go on by itself: it ends at once with the number of its job, and what it does there is not
    /// undone. None for a task that is waited for.
    pub background_s: Option<u32>,
}

/// Whom a task acts as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum As {
    /// The helper's own user.
    Helper,
    /// The user who logged in: `SUDO_USER` where the helper runs through sudo, else its own.
    Login,
    /// A user by name.
    User(String),
}

/// A handler runs if a notifying task changed something in this conversation, or if a
/// notification was left over by a run that failed in between.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OnlyIf {
    /// The handler's full name.
    pub handler: String,
    /// Also run where the controller knows that it was notified.
    pub notified: bool,
}

/// A content that goes with a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
    /// The bytes where they are few; else the host asks by [`FromHost::Need`] if it lacks them.
    pub bytes: Option<Vec<u8>>,
}

/// How a run ends on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// The changes stay.
    Keep,
    /// The changes of this run are undone.
    Undo,
    /// The conversation ends and the run does not: the host is about to boot, or is talked to anew.
    Leave,
}

/// From a host to the controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FromHost {
    /// The answer to a hello.
    Ready(Ready),
    /// The host will not work, and nothing was changed.
    Refused(Refusal),
    /// A task has begun.
    Started {
        /// The task's number.
        id: u32,
    },
    /// A content is needed that did not come with its task.
    Need {
        /// Its SHA-256.
        sha256: String,
    },
    /// A task has ended. Boxed for its size.
    Done(Box<Outcome>),
    /// A run has ended on this host.
    Finished(Undone),
    /// From here on the host undoes the run unless it is confirmed in time; comes before the first change that may cut the link.
    LookedAfter {
        /// The run's name in the host's journal.
        run: String,
    },
    /// A run's changes are in place, and the host undoes them unless they are confirmed in time.
    Armed {
        /// The run's name in the host's journal.
        run: String,
    },
    /// The runs in the host's journal, oldest first.
    Journal(Vec<Journaled>),
    /// How things stand.
    Standing(Standing),
}

/// A host that is ready.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ready {
    /// [`PROTOCOL`] of the helper.
    pub protocol: u32,
    /// The effective user's number.
    pub uid: u32,
    /// `/etc/machine-id`; empty where there is none.
    pub machine_id: String,
    /// A run that had been cut off and was undone before anything else.
    pub recovered: Vec<Undone>,
    /// Handlers that were notified by runs that ended before they ran.
    pub pending: Vec<String>,
}

/// Why a host will not work.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Refusal {
    /// Another run holds the lock.
    Locked(Locked),
    /// The helper speaks another protocol.
    Protocol(u32),
    /// The state directory, the journal or the machine is not fit; the text says what and what to do.
    Unfit(String),
    /// It is another machine than the plan was made for.
    Identity {
        /// Its `/etc/machine-id`.
        found: String,
    },
    /// The plan was applied here already.
    Applied {
        /// By which run.
        run: String,
        /// What became of that, as in [`Journaled::state`].
        state: String,
    },
    /// A cut-off run could not be undone: a person is needed.
    Unrecovered(Undone),
}

/// How things stand on a host with what fleetctl keeps there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// The state directory.
    pub state_dir: String,
    /// Who holds the lock.
    pub locked: Option<Locked>,
    /// Runs that are not over: under way, held, or waiting for being confirmed.
    pub open: Vec<Journaled>,
    /// Handlers that are left over.
    pub pending: Vec<String>,
    /// Journals that cannot be read, with the reason: no run begins before they are repaired.
    pub damaged: Vec<(String, String)>,
    /// Where damaged journals were set aside.
    pub aside: Vec<String>,
    /// Bytes that journals and backups take.
    pub bytes: u64,
}

/// Who holds a host's lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    /// `user@machine`.
    pub who: String,
    /// The run's name.
    pub run: String,
    /// Since when, RFC 3339.
    pub since: String,
}

/// The end of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The task's number.
    pub id: u32,
    /// How it ended.
    pub status: Status,
    /// What `register` sees: a JSON object in Ansible's words (`changed`, `msg`, `rc`, `stdout`, …).
    pub result: Json,
    /// The effects, performed or planned; empty when nothing changed.
    pub effects: Vec<Effect>,
    /// How long it took on the host, in microseconds.
    pub took_us: u64,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Nothing had to change.
    Ok,
    /// The effects were performed, or would be in a plan.
    Changed,
    /// It failed; the result's `msg` says why.
    Failed,
    /// A plan cannot say what it does or returns.
    Unknown,
    /// It was not reached: a task before it in its lane failed.
    NotReached,
    /// A handler that nobody notified.
    NotNotified,
    /// It does not apply (`creates:` exists, a check-mode task that cannot be checked).
    Skipped,
}

/// A run's end on a host: what was kept or undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// The run's name.
    pub run: String,
    /// What state the host is in now.
    pub state: UndoneState,
    /// Each effect that was undone, or could not be, in the order of undoing.
    pub effects: Vec<UndoneEffect>,
    /// Why the host undid it by itself; none where it was told to.
    pub why: Option<String>,
}

/// What state a host is in after a run or an undo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoneState {
    /// The run's changes are in place.
    Kept,
    /// The run had changed nothing.
    Unchanged,
    /// All that can be undone is undone. Effects with a problem are those that never can be (a command): where there is
    /// one, nobody can say that all is as it was.
    RolledBack,
    /// Something had been changed by somebody else since, and was left as found.
    RollbackConflict,
    /// Something could not be put back.
    RollbackFailed,
    /// The run is not in this host's journal.
    NotFound,
}

impl UndoneState {
    /// The one to worry about more.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        let rank = |state| match state {
            Self::NotFound => 0,
            Self::Unchanged => 1,
            Self::Kept => 2,
            Self::RolledBack => 3,
            Self::RollbackConflict => 4,
            Self::RollbackFailed => 5,
        };
        if rank(other) > rank(self) {
            other
        } else {
            self
        }
    }
}

/// One effect's undoing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoneEffect {
    /// The effect in a few words: `file /etc/nginx/nginx.conf`.
    pub effect: String,
    /// Why it was not undone; none where it was.
    pub problem: Option<String>,
}

/// A run in a host's journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journaled {
    /// The run's name.
    pub run: String,
    /// `user@machine`.
    pub who: String,
    /// When it began, RFC 3339.
    pub began: String,
    /// `open`, `kept`, `rolled_back`, `rollback_conflict`, `rollback_failed`.
    pub state: String,
    /// How many effects it made.
    pub effects: u32,
    /// Why the host undid it by itself; none where it did not.
    pub why: Option<String>,
    /// Seconds until the host undoes it unless it is confirmed; none where it does not wait for that.
    pub waits_s: Option<u64>,
}
