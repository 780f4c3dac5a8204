use std::path::PathBuf;

use anyhow::Result;
use fleet_engine::{config::StdoutCallback, event::Event};
use fleet_wire::Mode;
use fleet_yaml::Source;
use serde_json::{Map, Value, json};

use super::play::{PARSE, complain, failed, header, warn};
use crate::{
    flags::{Target, Tasks},
    follow::follow,
    reporter::ansible::{Adhoc, Callback, Look, print},
    runs::Folder,
    setup::{Manner, Setup, Wanted, run_name},
};

/// What ansible returns where it is called in a way that makes no sense.
const MISUSED: u8 = 5;
/// Where a host failed.
const FAILED: u8 = 2;
/// Where it was interrupted.
const INTERRUPTED: u8 = 99;
/// Modules that can do nothing without an argument.
const NEED_ARGUMENTS: [&str; 4] = ["command", "shell", "raw", "script"];
/// Modules that take their argument as it stands.
const FREE: [&str; 6] = ["command", "shell", "raw", "script", "meta", "include_vars"];
/// The seconds between two looks at a job in the background.
const POLL: u64 = 15;

/// Run one module on hosts as ansible does
///
/// Takes ansible's flags, prints its output and returns its codes: 0, 1 (could not begin), 2 (a host failed, or a flag is
/// wrong), 4 (a host could not be reached), 5 (a call that makes no sense), 99 (interrupted).
#[derive(clap::Args)]
#[command(infer_long_args = true)]
pub(crate) struct Exec {
    #[command(flatten)]
    target: Target,
    /// The module [default: command]
    #[arg(short, long, value_name = "MODULE", help_heading = "Task")]
    module_name: Option<String>,
    /// Its arguments: `name=value …`, JSON, or the command
    #[arg(
        short = 'a',
        long = "args",
        value_name = "ARGS",
        allow_hyphen_values = true,
        help_heading = "Task"
    )]
    module_args: Option<String>,
    /// Let it run in the background for so many seconds
    #[arg(short = 'B', long, value_name = "SECONDS", help_heading = "Task")]
    background: Option<u64>,
    /// With `-B`: look so many seconds apart whether it is done; 0 to leave it alone [default: 15]
    #[arg(short = 'P', long, value_name = "SECONDS", help_heading = "Task")]
    poll: Option<u64>,
    /// Stop the task after so many seconds
    #[arg(long, value_name = "SECONDS", help_heading = "Task")]
    task_timeout: Option<u64>,
    /// Change nothing, and show what would be changed
    #[arg(short = 'C', long, help_heading = "Task")]
    check: bool,
    /// Show what differs in files
    #[arg(short = 'D', long, help_heading = "Output")]
    diff: bool,
    /// One line a result
    #[arg(short, long, help_heading = "Output")]
    one_line: bool,
    /// Keep each host's result in a file in this directory
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    tree: Option<PathBuf>,
    /// List the hosts, and do nothing
    #[arg(long, help_heading = "Hosts")]
    list_hosts: bool,
    /// Forget the facts that are kept from earlier runs
    #[arg(long, help_heading = "Task")]
    flush_cache: bool,
    /// A directory that stands for the playbook's: `roles/`, `group_vars/`, `files/` are looked for there
    #[arg(long, alias = "basedir", value_name = "DIR", help_heading = "Task")]
    playbook_dir: Option<PathBuf>,
    /// Which hosts: a pattern
    #[arg(value_name = "PATTERN")]
    pattern: String,
}

impl Exec {
    pub(crate) async fn run(self) -> Result<u8> {
        Ok(match self.work().await {
            Ok(code) => code,
            Err(problem) => match failed(&problem) {
                // A module that there is not fails the hosts.
                PARSE => FAILED,
                code => code,
            },
        })
    }

    async fn work(&self) -> Result<u8> {
        let config = crate::ansible_cfg::read().config;
        let module = self
            .module_name
            .clone()
            .unwrap_or_else(|| config.module_name().to_owned());
        let arguments = self
            .module_args
            .clone()
            .or_else(|| config.module_args().map(str::to_owned))
            .unwrap_or_default();
        let short = short_name(&module);
        if NEED_ARGUMENTS.contains(&short) && arguments.trim().is_empty() && !self.list_hosts {
            warn("ERROR", &format!("No argument passed to {module} module"));
            return Ok(MISUSED);
        }
        if short == "import_playbook" {
            warn(
                "ERROR",
                &format!("'{module}' is not a valid action for ad-hoc commands"),
            );
            return Ok(MISUSED);
        }
        let parsed = arguments_of(&arguments);
        let poll = self.poll.unwrap_or(POLL);
        let task = self.task(&module, &parsed, poll);
        let play = json!([{
            "name": "Ansible Ad-Hoc",
            "hosts": self.hosts(),
            "gather_facts": false,
            "tasks": [task],
        }]);
        let source = Source::new(format!("<adhoc '{module}' task>"), play.to_string());
        let dir = self
            .playbook_dir
            .clone()
            .or_else(|| config.playbook_dir().map(std::path::Path::to_owned));
        let dir = std::env::current_dir()?.join(dir.unwrap_or_default());
        let tasks = Tasks {
            flush_cache: self.flush_cache,
            ..Tasks::default()
        };
        let setup = Setup::of(&Wanted {
            manner: Manner::Ansible,
            target: &self.target,
            tasks: Some(&tasks),
            playbooks: &[],
            text: (!self.list_hosts).then_some((source, dir)),
        })?;
        if let Some(code) = complain(&setup, &self.hosts()) {
            return Ok(code);
        }
        let hosts = self.selected(&setup)?;
        if self.list_hosts {
            anstream::println!("  hosts ({}):", hosts.len());
            for host in &hosts {
                anstream::println!("    {host}");
            }
            return Ok(0);
        }
        if hosts.is_empty() {
            warn("WARNING", "No hosts matched, nothing to do");
            return Ok(0);
        }
        let told = told(&module, &parsed, self, poll);
        self.perform(&setup, &tasks, &told).await
    }

    /// The pattern; one of nothing but commas means all hosts.
    fn hosts(&self) -> String {
        let blank = self.pattern.split(',').all(|part| part.trim().is_empty());
        match blank && !self.pattern.is_empty() {
            true => "all".to_owned(),
            false => self.pattern.clone(),
        }
    }

    fn selected(&self, setup: &Setup) -> Result<Vec<String>> {
        let pattern = self.hosts();
        if pattern.contains("{{") {
            let run = setup.run("list", Mode::Read, setup.settings(&self.target, None)?);
            let plays = run.plays().map_err(crate::error::Mistakes)?;
            return Ok(plays.into_iter().flat_map(|(_, hosts)| hosts).collect());
        }
        let selection = setup
            .inventory
            .select(&pattern, setup.limit.as_ref())
            .map_err(crate::setup::one)?;
        for own in &selection.unmatched {
            warn(
                "WARNING",
                &format!("Could not match supplied host pattern, ignoring: {own}"),
            );
        }
        Ok(selection.hosts)
    }

    fn task(&self, module: &str, arguments: &Value, poll: u64) -> Value {
        let mut task = Map::new();
        task.insert(module.to_owned(), arguments.clone());
        if let Some(seconds) = self.background {
            task.insert("async".to_owned(), seconds.into());
            task.insert("poll".to_owned(), poll.into());
        }
        if let Some(seconds) = self.task_timeout {
            task.insert("timeout".to_owned(), seconds.into());
        }
        task.into()
    }

    async fn perform(&self, setup: &Setup, tasks: &Tasks, told: &str) -> Result<u8> {
        let mut settings = setup.settings(&self.target, Some(tasks))?;
        settings.diff |= self.diff;
        let mut look = Look::new(&setup.config, settings.verbosity, settings.forks);
        look.check = self.check;
        header(setup, settings.verbosity, look.color);
        let one_line = self.one_line
            || setup.config.origin("stdout_callback").is_some()
                && setup.config.stdout_callback() == StdoutCallback::Oneline;
        let callback = match one_line {
            true => Callback::OneLine,
            false => Callback::Minimal,
        };
        let origin = format!("Origin: {told}");
        let mut shown = Adhoc::new(look, callback, origin, self.tree.clone());
        let mode = if self.check { Mode::Plan } else { Mode::Apply };
        let name = run_name();
        let verb = if self.check { "plan" } else { "apply" };
        let mut folder = Folder::create(&setup.places.runs, &name, verb, &self.target, &[]).ok();
        let reader = |event: &Event| {
            if let Some(folder) = &mut folder {
                // The hosts' own journals are the truth; a full disk here must not stop the run.
                let _ = folder.event(event);
            }
            print(&shown.take(event));
        };
        let recap = follow(setup.run(&name, mode, settings), reader, None).await?;
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

fn short_name(module: &str) -> &str {
    module
        .strip_prefix("ansible.builtin.")
        .or_else(|| module.strip_prefix("ansible.legacy."))
        .unwrap_or(module)
}

/// `-a`: a mapping in JSON, else a text as it stands on a task.
fn arguments_of(text: &str) -> Value {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Value::Null;
    }
    if trimmed.starts_with('{')
        && !trimmed.starts_with("{{")
        && let Ok(Value::Object(fields)) = serde_json::from_str(trimmed)
    {
        return fields.into();
    }
    text.into()
}

/// The task as Ansible tells it above a failure.
fn told(module: &str, arguments: &Value, exec: &Exec, poll: u64) -> String {
    let pairs: Vec<(String, String)> = match arguments {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), python(value)))
            .collect(),
        Value::String(text) if FREE.contains(&short_name(module)) => {
            vec![("_raw_params".to_owned(), python(&text.as_str().into()))]
        }
        Value::String(text) => shlex::split(text)
            .unwrap_or_default()
            .iter()
            .filter_map(|word| word.split_once('='))
            .map(|(name, value)| (name.to_owned(), python(&value.into())))
            .collect(),
        _ => Vec::new(),
    };
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(name, value)| format!("'{name}': {value}"))
        .collect();
    format!(
        "<adhoc '{module}' task>\n\n{{'action': '{module}', 'args': {{{}}}, 'timeout': {}, 'async_val': {}, 'poll': {poll}}}",
        pairs.join(", "),
        exec.task_timeout.unwrap_or(0),
        exec.background.unwrap_or(0),
    )
}

/// A value as Python shows it.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::String(text) => {
            let text = text.replace('\\', "\\\\").replace('\n', "\\n");
            match text.contains('\'') && !text.contains('"') {
                true => format!("\"{text}\""),
                false => format!("'{}'", text.replace('\'', "\\'")),
            }
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(python).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|(name, value)| format!("'{name}': {}", python(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Number(number) => number.to_string(),
    }
}
