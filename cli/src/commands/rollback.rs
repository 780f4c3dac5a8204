use anyhow::Result;
use fleet_engine::{event::HostEnd, run::Errands};
use fleet_wire::{Mode, Undone, UndoneState};
use tokio::task::JoinSet;

use crate::{
    flags::{Output, Target},
    paint::{BAD, HEADING, paint},
    reporter::undone_text,
    runs,
    setup::{Setup, run_name},
};

/// Undo a past run, from the hosts' own journals
///
/// Effects are taken back in reverse order, services are brought to the old configuration, and what somebody else has changed since is left as found.
#[derive(clap::Args)]
pub(crate) struct Rollback {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
    /// The run, or `last` for the last apply
    run: String,
}

impl Rollback {
    pub(crate) async fn run(mut self) -> Result<u8> {
        let places = crate::place::Places::of_this_user();
        let folder = self.output.log_dir.as_ref().unwrap_or(&places.runs);
        let about = runs::find(folder, &self.run)?;
        let playbooks = crate::saved::revive(&about, folder, &mut self.target)?;
        let setup = Setup::read(&self.target, None, &playbooks)?;
        let settings = setup.settings(&self.target, None)?;
        let more = serde_json::json!({"limit": self.target.limit});
        crate::audit::note(&setup.places, "rollback", &about.run, more)?;
        let forks = settings.forks;
        let (events, _unread) = tokio::sync::mpsc::channel(1024);
        let errands = setup
            .run(&run_name(), Mode::Apply, settings)
            .errands(events);
        let hosts = match &self.target.limit {
            Some(limit) => errands.hosts(limit).map_err(crate::setup::one)?,
            None => about.hosts.clone(),
        };
        let permits = std::sync::Arc::new(tokio::sync::Semaphore::new(forks));
        let mut set = JoinSet::new();
        for host in hosts.into_iter().filter(|host| about.hosts.contains(host)) {
            let (errands, run, permits) = (
                errands.clone(),
                about.run.clone(),
                std::sync::Arc::clone(&permits),
            );
            set.spawn(async move {
                let _permit = permits.acquire_owned().await.ok();
                let root = errands.needs_root(&host);
                let mut undone = roll_back(&errands, &host, root, &run).await;
                // With `-b` the run worked as root, whatever its playbooks say.
                if !root && matches!(&undone, Ok(undone) if undone.state == UndoneState::NotFound) {
                    undone = roll_back(&errands, &host, true, &run).await;
                }
                (host, undone)
            });
        }
        let mut code = 0_u8;
        let mut told = Vec::new();
        while let Some(joined) = set.join_next().await {
            told.push(joined?);
        }
        told.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (host, undone) in told {
            let (text, own) = match &undone {
                Ok(undone) => (
                    undone_text(undone),
                    match undone.state {
                        UndoneState::RollbackConflict | UndoneState::RollbackFailed => 7,
                        _ => 0,
                    },
                ),
                Err(HostEnd::Unreachable { message }) => (paint(BAD, message), 4),
                Err(HostEnd::Locked { message }) => (paint(BAD, message), 6),
                Err(HostEnd::Refused { message, .. } | HostEnd::Lost { message }) => {
                    (paint(BAD, message), 7)
                }
                Err(_) => (paint(BAD, "interrupted"), 7),
            };
            code = code.max(own);
            if self.output.json {
                anstream::println!(
                    "{}",
                    serde_json::json!({"host": host, "result": undone.ok(), "text": anstream::adapter::strip_str(&text).to_string()})
                );
            } else {
                anstream::println!("{} {text}", paint(HEADING, &host));
            }
        }
        Ok(code)
    }
}

async fn roll_back(
    errands: &Errands,
    host: &str,
    root: bool,
    run: &str,
) -> std::result::Result<Undone, HostEnd> {
    let mut errand = errands.host(host, root, Mode::Apply).await?;
    let undone = errand.rollback(run).await?;
    errand.close().await;
    Ok(undone)
}
