use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use anyhow::Result;
use fleet_engine::recap::Recap;
use fleet_wire::Mode;

use super::{listing, plan};
use crate::{
    error::Invalid,
    flags::{self, Output, Target, Tasks},
    load_tests,
    reporter::{self, Style, recap},
    runs::Folder,
    setup::{Setup, run_name},
    view,
};

/// Make it true: plan, show, ask, apply, prove
///
/// With `--yes` every task is checked and performed in one pass. A host on which something fails is put back to what it was before the run.
#[derive(clap::Args)]
pub(crate) struct Apply {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tasks: Tasks,
    #[command(flatten)]
    output: Output,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Only plan, as with Ansible
    #[arg(short = 'C', long)]
    check: bool,
    /// Show the diffs
    #[arg(short = 'D', long)]
    diff: bool,
    /// What becomes of a failed host's changes
    #[arg(long, value_enum, default_value_t = OnFailure::RollbackHost, value_name = "WHAT")]
    on_failure: OnFailure,
    /// How long to wait for a host that another run holds: `30s`, `5m`
    #[arg(long, value_parser = flags::duration, default_value = "0s", value_name = "TIME")]
    lock_timeout: Duration,
    /// Leave the load tests out
    #[arg(long)]
    no_bench: bool,
    /// The playbooks
    #[arg(required = true, value_name = "PLAYBOOK")]
    playbooks: Vec<PathBuf>,
}

/// What becomes of a failed host's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnFailure {
    /// All that this run changed on the host is undone
    RollbackHost,
    /// They stay, as with Ansible
    Keep,
}

impl Apply {
    pub(crate) async fn run(self) -> Result<u8> {
        let setup = Setup::read(&self.target, Some(&self.tasks), &self.playbooks)?;
        let name = run_name();
        let mut settings = setup.settings(&self.target, Some(&self.tasks))?;
        settings.lock_timeout = self.lock_timeout;
        settings.keep_on_failure = self.on_failure == OnFailure::Keep;
        settings.diff = self.diff;
        if self.tasks.lists_only() {
            return listing::list(&setup.run(&name, Mode::Apply, settings), &self.tasks);
        }
        let has_bench = !self.no_bench && load_tests::any(&setup);
        if has_bench {
            load_tests::check(&setup, settings.clone())?;
        }
        if self.check || !self.yes || has_bench {
            let planning = settings.clone();
            let style = Style {
                json: false,
                verbose: 0,
                diff: false,
                quiet: true,
            };
            let run = setup.run(&name, Mode::Plan, planning);
            let made = plan::make(run, style, None, self.output.json).await?;
            let show = self.check || !self.yes;
            if show && self.output.json && self.check {
                anstream::println!("{}", view::json(&name, &made.plan));
            } else if show {
                anstream::eprintln!("{}", view::plan(&made.plan, true));
            }
            if self.check {
                return Ok(made.recap.exit_code());
            }
            if !self.yes {
                if made.recap.exit_code() != 0 {
                    anstream::eprintln!("not applied: the plan is not whole");
                    return Ok(made.recap.exit_code());
                }
                let summary = made.plan.summary();
                if summary.changing == 0 && summary.unknown == 0 {
                    return Ok(0);
                }
                if !agreed()? {
                    anstream::eprintln!("not applied, nothing was changed");
                    return Ok(0);
                }
                settings.planned = Some(Arc::new(made.plan.effects()));
            }
            if has_bench {
                return self
                    .with_load_tests(&setup, &name, settings, &made.plan)
                    .await;
            }
        }
        let mut folder = self.folder(&setup, &name)?;
        let recap = self.apply(&setup, &name, settings, &mut folder).await?;
        self.end(&recap, folder, None, 0)
    }

    fn folder(&self, setup: &Setup, name: &str) -> Result<Folder> {
        let runs = self.output.log_dir.as_ref().unwrap_or(&setup.places.runs);
        Folder::create(runs, name, "apply", &self.target, &self.playbooks)
    }

    fn style(&self) -> Style {
        Style {
            json: self.output.json,
            verbose: self.target.verbose,
            diff: self.diff,
            quiet: false,
        }
    }

    async fn apply(
        &self,
        setup: &Setup,
        name: &str,
        settings: fleet_engine::run::Settings,
        folder: &mut Folder,
    ) -> Result<Recap> {
        let run = setup.run(name, Mode::Apply, settings);
        let mut unwritten = false;
        let reader = |event: &_| {
            // The hosts' own journals are the truth; a full disk here must not stop the run, nor pass unsaid.
            if folder.event(event).is_err() && !std::mem::replace(&mut unwritten, true) {
                anstream::eprintln!(
                    "warning: the run's folder cannot be written; the hosts' journals still tell what happened"
                );
            }
        };
        crate::follow::follow(run, reader, Some(reporter::reporter(self.style()))).await
    }

    async fn with_load_tests(
        &self,
        setup: &Setup,
        name: &str,
        settings: fleet_engine::run::Settings,
        plan: &fleet_engine::plan::Plan,
    ) -> Result<u8> {
        let mut folder = self.folder(setup, name)?;
        let changing: Vec<String> = plan
            .hosts
            .iter()
            .filter(|(_, host)| host.changes())
            .map(|(name, _)| name.clone())
            .collect();
        let mut tests = load_tests::LoadTests::new(
            setup,
            name,
            settings.clone(),
            Some(&changing),
            self.output.json,
        )?;
        tests.baseline().await?;
        let recap = self.apply(setup, name, settings, &mut folder).await?;
        tests.after(&recap).await?;
        if !self.output.json && !tests.is_empty() {
            anstream::println!("{}", tests.table());
        }
        let reds = tests.red_gates(&recap);
        let mut gates = 0;
        if !reds.is_empty() {
            anstream::eprintln!("{}", tests.gate_text());
            gates = if tests.undo(&reds).await { 8 } else { 7 };
        }
        let outcome = match (recap.exit_code(), gates) {
            (0, 0) => "applied",
            (0, _) => "a gate was red, and its hosts were put back",
            _ => "not all hosts went through",
        };
        let report = tests.write(&folder, Some(plan), outcome)?;
        self.end(&recap, folder, report, gates)
    }

    fn end(&self, recap: &Recap, folder: Folder, report: Option<PathBuf>, gates: u8) -> Result<u8> {
        // In the order of gravity that the documentation gives the codes.
        let code = [7, 8]
            .into_iter()
            .find(|code| *code == gates || *code == recap.exit_code());
        let code = code.unwrap_or(recap.exit_code());
        let path = folder.end(code)?;
        if !self.output.json {
            anstream::println!("{}", self::recap(recap));
            if let Some(report) = report {
                anstream::println!("report {}", report.display());
            }
            anstream::println!(
                "run {}",
                path.file_name().unwrap_or_default().to_string_lossy()
            );
        }
        Ok(code)
    }
}

fn agreed() -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Invalid(
            "there is no terminal to ask on: say `--yes` to apply without asking".to_owned(),
        )
        .into());
    }
    anstream::eprint!("apply this plan? [y/N] ");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
