use anyhow::Result;
use fleet_engine::event::HostEnd;
use fleet_wire::{Mode, UndoneState};

use crate::{
    flags::{Output, Target},
    paint::{BAD, GOOD, HEADING, paint},
    place::Places,
    reporter::{end_text, undone_text},
    runs,
    setup::{Setup, run_name},
};

/// Keep a change that its hosts would undo by themselves
///
/// Over a fresh connection to each host. It is for runs with `--confirm manual`; any other confirms itself.
#[derive(clap::Args)]
pub(crate) struct Confirm {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
    /// The run, or `last` for the last apply
    run: String,
}

impl Confirm {
    pub(crate) async fn run(mut self) -> Result<u8> {
        let places = Places::of_this_user();
        let folder = self.output.log_dir.as_ref().unwrap_or(&places.runs);
        let about = runs::find(folder, &self.run)?;
        let playbooks = crate::saved::revive(&about, folder, &mut self.target)?;
        let setup = Setup::read(&self.target, None, &playbooks)?;
        let settings = setup.settings(&self.target, None)?;
        crate::audit::note(&setup.places, "confirm", &about.run, serde_json::json!({}))?;
        let (events, _unread) = tokio::sync::mpsc::channel(1024);
        let errands = setup.run(&run_name(), Mode::Care, settings).errands(events);
        let mut code = 0_u8;
        let mut set = tokio::task::JoinSet::new();
        for host in about.hosts.clone() {
            let (errands, run) = (errands.clone(), about.run.clone());
            set.spawn(async move {
                let root = errands.needs_root(&host);
                let ended = errands.confirm(&host, root, &run).await;
                (host, ended)
            });
        }
        let mut told = Vec::new();
        while let Some(joined) = set.join_next().await {
            told.push(joined?);
        }
        told.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (host, ended) in told {
            let (text, own) = match &ended {
                Ok(undone) if undone.state == UndoneState::Kept => (paint(GOOD, "confirmed"), 0),
                Ok(undone) if undone.state == UndoneState::NotFound => {
                    ("nothing to confirm".to_owned(), 0)
                }
                Ok(undone) => (paint(BAD, undone_text(undone)), 3),
                Err(end @ HostEnd::Unreachable { .. }) => (paint(BAD, end_text(end)), 4),
                Err(end) => (paint(BAD, end_text(end)), 7),
            };
            code = code.max(own);
            if self.output.json {
                let text = anstream::adapter::strip_str(&text).to_string();
                anstream::println!(
                    "{}",
                    serde_json::json!({"host": host, "result": ended.ok(), "text": text})
                );
            } else {
                anstream::println!("{} {text}", paint(HEADING, &host));
            }
        }
        Ok(code)
    }
}
