//! Runs a run, and hands its events to those who read them.

use std::sync::atomic::Ordering;

use anyhow::Result;
use fleet_engine::{event::Event, recap::Recap, run::Run};
use tokio::sync::mpsc;

use crate::{error::Mistakes, reporter::Reporter};

/// Events under way at the most: a slow terminal slows the run instead of filling the memory.
const EVENTS: usize = 1024;

/// Runs `run` to its end. Ctrl-C once finishes the hosts in flight and starts no more; twice leaves.
pub(crate) async fn follow(
    run: Run,
    mut reader: impl FnMut(&Event),
    reporter: Option<Box<dyn Reporter>>,
) -> Result<Recap> {
    let (sender, mut receiver) = mpsc::channel(EVENTS);
    let interrupt = std::sync::Arc::clone(&run.settings.interrupt);
    let mut reporter = reporter;
    let mut recap = Recap::default();
    let work = tokio::spawn(run.go(sender));
    let mut asked = false;
    loop {
        tokio::select! {
            event = receiver.recv() => {
                let Some(event) = event else { break };
                recap.take(&event);
                reader(&event);
                if let Some(reporter) = &mut reporter {
                    reporter.event(&event);
                }
            }
            signal = tokio::signal::ctrl_c(), if !asked => {
                signal?;
                asked = true;
                interrupt.store(true, Ordering::Relaxed);
                anstream::eprintln!("\ninterrupted: hosts in flight are finished, no more are started; once more to leave now");
                tokio::spawn(async {
                    if tokio::signal::ctrl_c().await.is_ok() {
                        anstream::eprintln!("\nleft: hosts in flight undo what this run changed");
                        leave();
                    }
                });
            }
        }
    }
    if let Some(reporter) = &mut reporter {
        reporter.end(&recap);
    }
    work.await?.map_err(Mistakes)?;
    Ok(recap)
}

#[expect(
    clippy::exit,
    reason = "a second Ctrl-C is to end the program wherever it is"
)]
fn leave() -> ! {
    std::process::exit(130)
}
