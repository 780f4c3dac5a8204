use std::path::PathBuf;

use anyhow::Result;
use fleet_wire::Mode;

use super::plan;
use crate::{
    flags::{Output, Target, Tasks},
    paint::{GOOD, paint},
    reporter::Style,
    setup::{Setup, run_name},
    view,
};

/// Show where hosts are not as the playbooks want them, and change nothing
///
/// Exits with 0 where all are, with 2 where one is not.
#[derive(clap::Args)]
pub(crate) struct Drift {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tasks: Tasks,
    #[command(flatten)]
    output: Output,
    /// Leave the diffs out
    #[arg(long)]
    no_diff: bool,
    /// The playbooks
    #[arg(required = true, value_name = "PLAYBOOK")]
    playbooks: Vec<PathBuf>,
}

impl Drift {
    pub(crate) async fn run(self) -> Result<u8> {
        let setup = Setup::read(&self.target, Some(&self.tasks), &self.playbooks)?;
        let name = run_name();
        let settings = setup.settings(&self.target, Some(&self.tasks))?;
        let style = Style {
            json: false,
            verbose: self.target.verbose,
            diff: false,
            quiet: true,
        };
        let run = setup.run(&name, Mode::Plan, settings);
        let made = plan::make(run, style, None, self.output.json).await?;
        let mut plan = made.making.plan;
        let all = plan.hosts.len();
        if self.output.json {
            anstream::println!("{}", view::json(&name, &plan));
        }
        let drifted = plan.summary().changing > 0;
        plan.hosts.retain(|_, host| {
            host.changes() || !matches!(host.end, None | Some(fleet_engine::event::HostEnd::Done))
        });
        if !self.output.json {
            match plan.hosts.is_empty() {
                true => anstream::println!(
                    "{}",
                    paint(
                        GOOD,
                        format!("no drift on {}", crate::count::count(all, "host"))
                    )
                ),
                false => anstream::println!("{}", view::plan(&plan, !self.no_diff)),
            }
        }
        Ok(match made.recap.exit_code() {
            0 if drifted => 2,
            code => code,
        })
    }
}
