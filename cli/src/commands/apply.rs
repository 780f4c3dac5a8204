use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use fleet_engine::{recap::Recap, run, sources};
use fleet_wire::Mode;

use super::{listing, plan};
use crate::{
    audit,
    count::count,
    error::{Invalid, NOT_ALLOWED, PLAN_REFUSED, Refused},
    flags::{self, Output, Target, Tasks},
    load_tests,
    reporter::{self, Style, recap},
    runs::Folder,
    saved::{self, Making, Opened, Terms},
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
    /// How a change is confirmed that the host would undo by itself: one that may cut it off, and any of a saved plan
    #[arg(long, value_enum, default_value_t = Confirm::Auto, value_name = "HOW")]
    pub(super) confirm: Confirm,
    /// How long the host waits for that: `30s`, `5m`
    #[arg(long, value_parser = flags::duration, default_value = "60s", value_name = "TIME")]
    pub(super) confirm_timeout: Duration,
    /// How long to wait for a host that another run holds: `30s`, `5m`
    #[arg(long, value_parser = flags::duration, default_value = "0s", value_name = "TIME")]
    pub(super) lock_timeout: Duration,
    /// Only the saved plan with this hash
    #[arg(long, value_name = "HASH", help_heading = "Saved plan")]
    expect: Option<String>,
    /// Only a saved plan that is no older: `30m`, `24h`
    #[arg(long, value_parser = flags::duration, value_name = "TIME", help_heading = "Saved plan")]
    max_age: Option<Duration>,
    /// Only a saved plan that so many people have approved (`fleetctl approve`)
    #[arg(long, value_name = "N", help_heading = "Saved plan")]
    approvals: Option<usize>,
    /// Who may approve, in the form of ssh-keygen(1) [default: ~/.ssh/allowed_signers]
    #[arg(long, value_name = "FILE", help_heading = "Saved plan")]
    allowed_signers: Option<PathBuf>,
    /// Read what the saved plan could not know to be needed from the files as they are now
    #[arg(long, help_heading = "Saved plan")]
    allow_unknown: bool,
    /// Refuse a plan with effects that cannot be undone
    #[arg(long)]
    strict: bool,
    /// With `--strict`: effects that cannot be undone are fine
    #[arg(long, requires = "strict")]
    allow_irreversible: bool,
    /// Leave the load tests out
    #[arg(long)]
    no_bench: bool,
    /// The playbooks, or one saved plan
    #[arg(required = true, value_name = "PLAYBOOK|PLAN")]
    playbooks: Vec<PathBuf>,
}

/// How a change is confirmed that the host would undo by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Confirm {
    /// Over a fresh connection, at the end of the run
    Auto,
    /// By `fleetctl confirm`
    Manual,
    /// Not at all: the host does not look after the run
    Never,
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
    /// An apply of what somebody else has opened, as nothing else is said.
    pub(super) fn of(target: Target, output: Output) -> Self {
        Self {
            target,
            tasks: Tasks::default(),
            output,
            yes: true,
            check: false,
            diff: false,
            on_failure: OnFailure::RollbackHost,
            confirm: Confirm::Auto,
            confirm_timeout: Duration::from_secs(60),
            lock_timeout: Duration::ZERO,
            expect: None,
            max_age: None,
            approvals: None,
            allowed_signers: None,
            allow_unknown: false,
            strict: false,
            allow_irreversible: false,
            no_bench: true,
            playbooks: Vec::new(),
        }
    }

    pub(crate) async fn run(self) -> Result<u8> {
        match &self.playbooks[..] {
            [path] if saved::is_plan(path) => self.saved(path).await,
            _ => self.direct().await,
        }
    }

    /// Applies a saved plan, and nothing but it.
    async fn saved(&self, path: &Path) -> Result<u8> {
        if self.check || self.tasks.lists_only() {
            return Err(Invalid(format!(
                "`fleetctl show {}` shows what a plan would do",
                path.display()
            ))
            .into());
        }
        let terms = Terms {
            expect: self.expect.as_deref(),
            max_age: self.max_age,
        };
        if let Some(needed) = self.approvals {
            let signers = flags::signers(self.allowed_signers.clone())?;
            let (plan, _) = saved::read(path)?;
            let (good, bad) = crate::approvals::valid(path, &plan.header.hash, &signers)?;
            if good.len() < needed {
                let why = bad
                    .iter()
                    .fold(String::new(), |all, why| all + "\n  " + why);
                let text = format!(
                    "{}: {} of {} are there{why}",
                    path.display(),
                    good.len(),
                    count(needed, "approval")
                );
                return Err(Refused::new(PLAN_REFUSED, text).into());
            }
        }
        let opened = saved::open(path, &terms, &self.target, self.allow_unknown)?;
        let name = run_name();
        self.opened(opened, &name, path, false).await
    }

    /// Applies a plan that was opened; `resume` goes on with a run that was cut off.
    pub(crate) async fn opened(
        &self,
        opened: Opened,
        name: &str,
        path: &Path,
        resume: bool,
    ) -> Result<u8> {
        let Opened { saved, made_by } = opened;
        let setup = Setup::read(&made_by.target, Some(&made_by.tasks), &made_by.playbooks)?;
        let mut settings = self.settings(&setup, &made_by.target, &made_by.tasks)?;
        self.allowed(&saved.plan)?;
        let hosts = saved.hosts();
        if hosts.is_empty() {
            let text = format!("{}: no host could be planned", path.display());
            return Err(Refused::new(PLAN_REFUSED, text).into());
        }
        let left: Vec<&String> = saved
            .plan
            .hosts
            .keys()
            .filter(|name| !hosts.contains(&name.as_str()))
            .collect();
        if !left.is_empty() {
            let names: Vec<&str> = left.iter().map(|name| name.as_str()).collect();
            anstream::eprintln!(
                "warning: {} could not be planned, and is left alone",
                fleet_engine::plan::names(&names)
            );
        }
        settings.left_alone = left.into_iter().cloned().collect();
        settings.planned = Some(Arc::new(saved.plan.effects()));
        settings.saved = Some(saved::kept(&saved, resume));
        let mut folder = match resume {
            true => Folder::reopen(self.runs(&setup), name)?,
            false => Folder::create(
                self.runs(&setup),
                name,
                "apply",
                &made_by.target,
                &made_by.playbooks,
            )?,
        };
        if !resume {
            folder.keep_plan(path, &saved.header.hash)?;
        }
        if !self.no_bench && load_tests::any(&setup) {
            load_tests::check(&setup, settings.clone())?;
        }
        self.carry_out(&setup, name, settings, Some(&saved.plan), folder)
            .await
    }

    /// Applies, with load tests before and after where the plays have any: a plan says which hosts are worth one.
    async fn carry_out(
        &self,
        setup: &Setup,
        name: &str,
        settings: run::Settings,
        plan: Option<&fleet_engine::plan::Plan>,
        mut folder: Folder,
    ) -> Result<u8> {
        if let Some(plan) = plan
            && !self.no_bench
            && load_tests::any(setup)
        {
            return self
                .with_load_tests(setup, name, settings, plan, folder)
                .await;
        }
        let recap = self.apply(setup, name, settings, &mut folder).await?;
        self.end(&recap, folder, None, 0)
    }

    fn runs<'a>(&'a self, setup: &'a Setup) -> &'a Path {
        self.output.log_dir.as_ref().unwrap_or(&setup.places.runs)
    }

    fn settings(&self, setup: &Setup, target: &Target, tasks: &Tasks) -> Result<run::Settings> {
        let mut settings = setup.settings(target, Some(tasks))?;
        settings.lock_timeout = self.lock_timeout;
        settings.keep_on_failure = self.on_failure == OnFailure::Keep;
        settings.diff = self.diff;
        settings.confirm_timeout = self.confirm_timeout;
        settings.confirm = match self.confirm {
            Confirm::Auto => run::Confirm::Auto,
            Confirm::Manual => run::Confirm::Manual,
            Confirm::Never => run::Confirm::Never,
        };
        settings.digest_key = Some(setup.digest_key()?);
        Ok(settings)
    }

    /// What a plan must not hold without being said to be fine.
    fn allowed(&self, plan: &fleet_engine::plan::Plan) -> Result<()> {
        let summary = plan.summary();
        if self.strict && summary.irreversible > 0 && !self.allow_irreversible {
            let text = format!(
                "not applied: {} cannot be undone; `--allow-irreversible` applies the plan all the same",
                count(summary.irreversible, "effect")
            );
            return Err(Refused::new(NOT_ALLOWED, text).into());
        }
        Ok(())
    }

    async fn direct(&self) -> Result<u8> {
        // A plan comes first where somebody looks at it, or where it says which hosts are worth a load test.
        let asks = !self.yes && !self.check;
        if asks {
            sources::record();
        }
        if self.expect.is_some() || self.max_age.is_some() {
            let text =
                "`--expect` and `--max-age` belong to a saved plan: `fleetctl apply FILE.plan`";
            return Err(Invalid(text.to_owned()).into());
        }
        let setup = Setup::read(&self.target, Some(&self.tasks), &self.playbooks)?;
        let name = run_name();
        let settings = self.settings(&setup, &self.target, &self.tasks)?;
        if self.tasks.lists_only() {
            return listing::list(&setup.run(&name, Mode::Apply, settings), &self.tasks);
        }
        let has_bench = !self.no_bench && load_tests::any(&setup);
        if has_bench {
            load_tests::check(&setup, settings.clone())?;
        }
        if !self.check && !asks && !has_bench && !self.strict {
            let folder = self.folder(&setup, &name)?;
            return self.carry_out(&setup, &name, settings, None, folder).await;
        }
        let style = Style {
            json: false,
            verbose: 0,
            diff: false,
            quiet: true,
        };
        let run = setup.run(&name, Mode::Plan, settings.clone());
        let made = plan::make(run, style, None, self.output.json).await?;
        let plan = &made.making.plan;
        if self.check && self.output.json {
            anstream::println!("{}", view::json(&name, plan));
        } else if self.check || asks {
            anstream::eprintln!("{}", view::plan(plan, true));
        }
        if self.check {
            return Ok(made.recap.exit_code());
        }
        if asks {
            if made.recap.exit_code() != 0 {
                anstream::eprintln!("not applied: the plan is not whole");
                return Ok(made.recap.exit_code());
            }
            let summary = plan.summary();
            if summary.changing == 0 && summary.unknown == 0 {
                return Ok(0);
            }
        }
        self.allowed(plan)?;
        if asks {
            if !agreed()? {
                anstream::eprintln!("not applied, nothing was changed");
                return Ok(0);
            }
            return self.this_very(&setup, &name, &made.making).await;
        }
        let folder = self.folder(&setup, &name)?;
        self.carry_out(&setup, &name, settings, Some(plan), folder)
            .await
    }

    /// Applies the plan that somebody has just agreed to.
    async fn this_very(&self, setup: &Setup, name: &str, making: &Making) -> Result<u8> {
        let saved = making.save(name, saved::words())?;
        let dir = tempfile::tempdir().context("cannot keep the plan")?;
        let path = dir.path().join("agreed.plan");
        saved.write(&path)?;
        // What the answer to a prompt was stands in no file.
        let mut settings = self.settings(setup, &self.target, &self.tasks)?;
        settings.planned = Some(Arc::new(saved.plan.effects()));
        settings.saved = Some(saved::kept(&saved, false));
        let mut folder = self.folder(setup, name)?;
        folder.keep_plan(&path, &saved.header.hash)?;
        self.carry_out(setup, name, settings, Some(&saved.plan), folder)
            .await
    }

    fn folder(&self, setup: &Setup, name: &str) -> Result<Folder> {
        Folder::create(
            self.runs(setup),
            name,
            "apply",
            &self.target,
            &self.playbooks,
        )
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
        let more = serde_json::json!({
            "plan": settings.saved.as_ref().map(|saved| &saved.hash),
            "resume": settings.saved.as_ref().is_some_and(|saved| saved.resume),
            "playbooks": setup.playbooks.iter().map(|book| &book.path).collect::<Vec<_>>(),
            "allow_irreversible": self.allow_irreversible,
        });
        audit::note(&setup.places, "apply begins", name, more)?;
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
        let recap =
            crate::follow::follow(run, reader, Some(reporter::reporter(self.style()))).await?;
        let ends: std::collections::BTreeMap<_, _> = recap
            .hosts
            .iter()
            .map(|(host, counts)| {
                (
                    host,
                    serde_json::json!({"changed": counts.changed, "failed": counts.failed}),
                )
            })
            .collect();
        let more = serde_json::json!({"exit_code": recap.exit_code(), "hosts": ends});
        audit::note(&setup.places, "apply ended", name, more)?;
        Ok(recap)
    }

    async fn with_load_tests(
        &self,
        setup: &Setup,
        name: &str,
        settings: fleet_engine::run::Settings,
        plan: &fleet_engine::plan::Plan,
        mut folder: Folder,
    ) -> Result<u8> {
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
