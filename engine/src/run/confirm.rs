//! The confirmation of a change that the host would undo by itself: over a fresh connection, which shows that one can still
//! be made.

use std::time::{Duration, Instant};

use fleet_wire::{FromHost, Mode, ToHost, Undone, UndoneState};

use super::{Confirm, connection::Reach, link::Link, shared::Shared};
use crate::{
    event::{Event, HostEnd},
    transport,
};

/// How much longer than its timeout a host may take to undo what nobody confirmed, and to be reached again.
const GRACE: Duration = Duration::from_secs(60);

/// Confirms a run on a host; how it ended there.
///
/// # Errors
/// When the host cannot be reached any more, and so nobody knows.
pub(super) async fn confirm(
    shared: &Shared,
    name: &str,
    reach: &Reach,
    run: &str,
) -> Result<Undone, String> {
    let kept = |run: &str| Undone {
        run: run.to_owned(),
        state: UndoneState::Kept,
        effects: Vec::new(),
        why: None,
    };
    if shared.settings.confirm == Confirm::Manual {
        let seconds = shared.settings.confirm_timeout.as_secs();
        let text = format!(
            "the host undoes this run unless it is confirmed within {seconds} s: fleetctl confirm {}",
            shared.run
        );
        let host = Some(name.to_owned());
        shared.emit(Event::Warning { host, text }).await;
        return Ok(kept(run));
    }
    let began = Instant::now();
    let patience = shared.settings.confirm_timeout + GRACE;
    loop {
        let heard = match ask(shared, name, reach, run).await {
            Ok(undone) => return Ok(undone),
            Err(heard) => heard,
        };
        if began.elapsed() > patience {
            return Err(format!(
                "no fresh connection could be made to confirm the change: {heard}"
            ));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// One attempt.
///
/// # Errors
/// Why there is no answer.
pub(super) async fn ask(
    shared: &Shared,
    name: &str,
    reach: &Reach,
    run: &str,
) -> Result<Undone, String> {
    let confirm = ToHost::Confirm {
        run: run.to_owned(),
    };
    match afresh(shared, name, reach, &confirm).await? {
        FromHost::Finished(undone) => Ok(undone),
        _ => Err("the helper answered out of turn".to_owned()),
    }
}

/// Asks over a connection of its own.
async fn afresh(
    shared: &Shared,
    name: &str,
    reach: &Reach,
    message: &ToHost,
) -> Result<FromHost, String> {
    let mut settings = shared.settings.transport.clone();
    // A connection that is kept shows nothing: it was there before the change.
    settings.control_dir = settings
        .control_dir
        .join(format!("fresh-{}", std::process::id()));
    let link = Link::reach_by(shared, name, reach, Mode::Care, &settings)
        .await
        .map_err(told)?;
    let answer = link.ask(message).await;
    transport::masters::disconnect(&reach.address, &settings.control_dir).await;
    answer
}

/// How a host ended that was lost while it looked after the run: it undoes the run by itself, and can be asked then.
pub(super) async fn truth(shared: &Shared, name: &str, lost: HostEnd) -> HostEnd {
    let mut ended: Option<Undone> = None;
    for watched in shared.links.watched(name) {
        let Some(run) = watched.run() else {
            continue;
        };
        let Some(undone) = undone_at_last(shared, name, &watched.reach, &run).await else {
            return lost;
        };
        match &mut ended {
            Some(before) => before.state = before.state.worse(undone.state),
            None => ended = Some(undone),
        }
    }
    match ended {
        Some(undone) => HostEnd::Failed {
            undone: Some(undone),
        },
        None => lost,
    }
}

/// How the host's own undo of a run ended; none where it cannot be reached for too long, or the run may go on.
async fn undone_at_last(shared: &Shared, name: &str, reach: &Reach, run: &str) -> Option<Undone> {
    let settings = &shared.settings;
    let patience = settings.confirm_timeout + GRACE;
    let text = format!(
        "the connection was lost; the host undoes the run by itself, and is asked about it for {} s at most",
        patience.as_secs()
    );
    let host = Some(name.to_owned());
    shared.emit(Event::Warning { host, text }).await;
    let began = Instant::now();
    while began.elapsed() < patience && !settings.interrupted() {
        if let Ok(FromHost::Journal(runs)) = afresh(shared, name, reach, &ToHost::Journal).await {
            let known = runs.into_iter().find(|known| known.run == run)?;
            let state = match known.state.as_str() {
                "rolled_back" => Some(UndoneState::RolledBack),
                "rollback_conflict" => Some(UndoneState::RollbackConflict),
                "rollback_failed" => Some(UndoneState::RollbackFailed),
                "kept" => return None,
                _ => None,
            };
            if let Some(state) = state {
                return Some(Undone {
                    run: known.run,
                    state,
                    effects: Vec::new(),
                    why: known.why,
                });
            }
            if settings.saved.is_some() {
                // It can be reached, so somebody may go on with it.
                return None;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    None
}

fn told(end: HostEnd) -> String {
    match end {
        HostEnd::Unreachable { message }
        | HostEnd::Refused { message, .. }
        | HostEnd::Locked { message }
        | HostEnd::Stale { message, .. }
        | HostEnd::Lost { message } => message,
        _ => "it does not answer".to_owned(),
    }
}
