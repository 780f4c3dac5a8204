use std::path::PathBuf;

use anyhow::Result;
use fleet_engine::{event::Event, recap::Recap, run::Run, sources};
use fleet_wire::Mode;

use super::listing;
use crate::{
    flags::{Output, Target, Tasks},
    load_tests,
    reporter::{self, Style},
    runs::Folder,
    saved::{self, Making},
    setup::{Setup, run_name},
    view,
};

/// Show what an apply would change, and change nothing
///
/// Runs the very code that an apply runs, over what earlier tasks would have done. Hosts with the same effects are shown once.
#[derive(clap::Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    pub(crate) target: Target,
    #[command(flatten)]
    pub(crate) tasks: Tasks,
    #[command(flatten)]
    output: Output,
    /// Save the plan in a file, which `fleetctl apply` takes
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Exit with 2 when there is something to change
    #[arg(long)]
    detailed_exitcode: bool,
    /// Leave the diffs out
    #[arg(long)]
    no_diff: bool,
    /// The playbooks
    #[arg(required = true, value_name = "PLAYBOOK")]
    pub(crate) playbooks: Vec<PathBuf>,
}

impl Plan {
    pub(crate) async fn run(self) -> Result<u8> {
        if self.out.is_some() {
            saved::no_secrets(&self.target)?;
            sources::record();
        }
        let setup = Setup::read(&self.target, Some(&self.tasks), &self.playbooks)?;
        let name = run_name();
        let mut settings = setup.settings(&self.target, Some(&self.tasks))?;
        settings.digest_key = Some(setup.digest_key()?);
        load_tests::check(&setup, settings.clone())?;
        let run = setup.run(&name, Mode::Plan, settings);
        if self.tasks.lists_only() {
            return listing::list(&run, &self.tasks);
        }
        let runs = self.output.log_dir.as_ref().unwrap_or(&setup.places.runs);
        let folder = Folder::create(runs, &name, "plan", &self.target, &self.playbooks)?;
        let style = Style {
            json: false,
            verbose: self.target.verbose,
            diff: false,
            quiet: true,
        };
        let made = make(run, style, Some(folder), self.output.json).await?;
        if self.output.json {
            anstream::println!("{}", view::json(&name, &made.making.plan));
        } else {
            anstream::println!("{}", view::plan(&made.making.plan, !self.no_diff));
        }
        if let Some(path) = &self.out {
            let plan = made.making.save(&name, saved::words())?;
            plan.write(path)?;
            anstream::eprintln!("saved {} {}", path.display(), plan.header.hash);
        }
        let code = made.recap.exit_code();
        let changes = made.making.plan.summary().changing > 0;
        Ok(if code == 0 && changes && self.detailed_exitcode {
            2
        } else {
            code
        })
    }
}

/// A plan, and how its making ended.
pub(crate) struct Made {
    pub(crate) making: Making,
    pub(crate) recap: Recap,
}

/// Makes a plan on the hosts.
pub(crate) async fn make(
    run: Run,
    style: Style,
    mut folder: Option<Folder>,
    silent: bool,
) -> Result<Made> {
    let mut making = Making::default();
    let recap = crate::follow::follow(
        run,
        |event| {
            making.take(event);
            if let (true, Event::Warning { text, .. }) = (silent, event) {
                anstream::eprintln!("warning: {text}");
            }
            if let Some(folder) = &mut folder {
                // The folder is a record; without it the plan itself is as good.
                let _ = folder.event(event);
            }
        },
        if silent {
            None
        } else {
            Some(reporter::reporter(style))
        },
    )
    .await?;
    if let Some(folder) = folder {
        folder.write("plan.json", &serde_json::to_string_pretty(&making.plan)?)?;
        folder.end(recap.exit_code())?;
    }
    Ok(Made { making, recap })
}
