use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use fleet_engine::{config::Mismatch, event::Event, recap::Recap, run::Settings};
use fleet_wire::Mode;

use super::play_list;
use crate::{
    error::{self, Invalid, Mistakes},
    flags::{Target, Tasks},
    follow::follow,
    questions,
    reporter::ansible::{Ansible, Color, Look, paint, print},
    runs::Folder,
    setup::{Manner, Setup, Wanted, run_name},
};

/// What ansible-playbook returns where it could not begin.
const ERROR: u8 = 1;
/// Where files cannot be understood.
pub(super) const PARSE: u8 = 4;
/// Where it was interrupted.
const INTERRUPTED: u8 = 99;

/// Run playbooks as ansible-playbook does
///
/// Takes its flags, prints its output and returns its codes: 0, 1 (could not begin), 2 (a host failed, or a flag is wrong),
/// 4 (a host could not be reached, or a file cannot be understood), 5, 99 (interrupted). A host that fails keeps its changes;
/// `fleetctl rollback` undoes them.
#[derive(clap::Args)]
#[command(infer_long_args = true)]
pub(crate) struct Play {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tasks: Tasks,
    /// Change nothing, and show what would be changed
    #[arg(short = 'C', long)]
    check: bool,
    /// Show what differs in files
    #[arg(short = 'D', long)]
    diff: bool,
    /// Read the playbooks, and do nothing
    #[arg(long, help_heading = "Tasks")]
    syntax_check: bool,
    /// The playbooks
    #[arg(required = true, value_name = "PLAYBOOK")]
    playbooks: Vec<PathBuf>,
}

impl Play {
    pub(crate) async fn run(self) -> Result<u8> {
        Ok(match self.work().await {
            Ok(code) => code,
            Err(problem) => failed(&problem),
        })
    }

    async fn work(&self) -> Result<u8> {
        for path in &self.playbooks {
            let name = path.display();
            if !path.exists() {
                return Err(Invalid(format!("the playbook: {name} could not be found")).into());
            }
            if path.is_dir() {
                return Err(
                    Invalid(format!("the playbook: {name} does not appear to be a file")).into(),
                );
            }
        }
        let setup = Setup::of(&Wanted {
            manner: Manner::Ansible,
            target: &self.target,
            tasks: Some(&self.tasks),
            playbooks: &self.playbooks,
            text: None,
        })?;
        if let Some(code) = complain(&setup, "all") {
            return Ok(code);
        }
        let mut settings = setup.settings(&self.target, Some(&self.tasks))?;
        settings.diff |= self.diff;
        let mode = if self.check { Mode::Plan } else { Mode::Apply };
        if self.tasks.lists_only() || self.syntax_check {
            let run = setup.run("list", mode, settings);
            return play_list::list(&run, &self.tasks, self.syntax_check);
        }
        if let Some(code) = unmatched(&setup) {
            return Ok(code);
        }
        let plays = setup.playbooks.iter().flat_map(|book| &book.plays);
        let prompted = questions::prompts(plays, &setup.extra_vars, &setup.templar)?;
        settings.prompted = Arc::new(prompted);
        self.play(&setup, mode, settings).await
    }

    async fn play(&self, setup: &Setup, mode: Mode, settings: Settings) -> Result<u8> {
        let name = run_name();
        let verbose = settings.verbosity;
        let mut look = Look::new(&setup.config, verbose, settings.forks);
        look.check = self.check;
        let color = look.color;
        header(setup, verbose, color);
        let verb = if self.check { "plan" } else { "apply" };
        let mut folder = Folder::create(
            &setup.places.runs,
            &name,
            verb,
            &self.target,
            &self.playbooks,
        )
        .ok();
        let mut shown = Ansible::new(look);
        if verbose > 1 {
            shown.books(
                setup
                    .playbooks
                    .iter()
                    .map(|book| (book.path.display().to_string(), book.plays.len())),
            );
        }
        let reader = |event: &Event| {
            if let Some(folder) = &mut folder {
                // The hosts' own journals are the truth; a full disk here must not stop the run.
                let _ = folder.event(event);
            }
            print(&shown.take(event));
        };
        let recap: Recap = follow(setup.run(&name, mode, settings), reader, None).await?;
        print(&shown.finish());
        let code = match recap.exit_code() {
            130 => INTERRUPTED,
            _ => recap.ansible_exit_code(),
        };
        if let Some(folder) = folder {
            // As above.
            let _ = folder.end(code);
        }
        Ok(code)
    }
}

/// What `-v` says before anything else.
pub(super) fn header(setup: &Setup, verbose: u8, color: bool) {
    if verbose == 0 {
        return;
    }
    let text = match setup.config.file() {
        Some(file) => format!("Using {} as config file", file.display()),
        None => "No config file found; using defaults".to_owned(),
    };
    anstream::println!("{}", paint(Some(Color::Blue), &text, color));
}

/// Prints why nothing was done; returns Ansible's code for it.
pub(super) fn failed(problem: &anyhow::Error) -> u8 {
    if let Some(Mistakes(mistakes)) = problem.downcast_ref::<Mistakes>() {
        for mistake in mistakes {
            // Whoever reads the output of Ansible's commands looks for its words at the beginning of the line.
            let shown = fleet_engine::render(mistake, false);
            let (_, text) = shown.split_once(": ").unwrap_or(("", &shown));
            warn("ERROR", &error::masked(text));
        }
        return PARSE;
    }
    warn("ERROR", &format!("{problem:#}"));
    ERROR
}

/// A line on standard error, marked as Ansible marks it.
pub(crate) fn warn(kind: &str, text: &str) {
    let color = match kind {
        "ERROR" => Color::Red,
        _ => Color::BrightPurple,
    };
    let colored = crate::reporter::colored();
    anstream::eprintln!(
        "{}",
        paint(Some(color), &format!("[{kind}]: {text}"), colored)
    );
}

/// Warns where there are no hosts; a code where that ends it.
pub(super) fn complain(setup: &Setup, pattern: &str) -> Option<u8> {
    let none = setup.inventory.hosts().next().is_none();
    if none {
        let own = ["localhost", "127.0.0.1", "::1"].contains(&pattern);
        if setup.config.localhost_warning() && !own {
            warn(
                "WARNING",
                "provided hosts list is empty, only localhost is available. Note that the implicit localhost does not match 'all'",
            );
        }
        return None;
    }
    let limit = setup.limit.as_ref()?;
    let selection = setup.inventory.select(pattern, Some(limit)).ok()?;
    if !selection.hosts.is_empty() {
        return None;
    }
    for own in &selection.unmatched {
        warn(
            "WARNING",
            &format!("Could not match supplied host pattern, ignoring: {own}"),
        );
    }
    warn(
        "ERROR",
        "Specified inventory, host pattern and/or --limit leaves us with no hosts to target.",
    );
    Some(ERROR)
}

/// Tells of patterns that match nothing; a code where the configuration calls that an error.
fn unmatched(setup: &Setup) -> Option<u8> {
    let mismatch = setup.config.host_pattern_mismatch();
    let mut told = std::collections::HashSet::new();
    for play in setup.playbooks.iter().flat_map(|book| &book.plays) {
        let hosts = play
            .hosts
            .as_seq()
            .unwrap_or(std::slice::from_ref(&play.hosts));
        let patterns: Vec<_> = hosts.iter().filter_map(|host| host.as_str()).collect();
        let pattern = patterns.join(",");
        if pattern.contains("{{") {
            continue;
        }
        let Ok(selection) = setup.inventory.select(&pattern, None) else {
            continue;
        };
        for own in selection.unmatched {
            let text = format!("Could not match supplied host pattern, ignoring: {own}");
            match mismatch {
                Mismatch::Error => {
                    warn("ERROR", &text);
                    return Some(ERROR);
                }
                Mismatch::Warning if told.insert(own) => warn("WARNING", &text),
                Mismatch::Warning | Mismatch::Ignore => {}
            }
        }
        if play.all_tasks().any(|task| task.action.may_make_hosts()) {
            // Behind it there may be hosts that are not there yet.
            break;
        }
    }
    None
}
