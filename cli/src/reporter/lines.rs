use std::collections::BTreeSet;

use fleet_engine::{
    event::{Event, HostEnd, TaskEnded},
    plan::draw,
    recap::Recap,
};
use fleet_wire::{Effect, Status, Undone, UndoneState};

use super::{Reporter, Style};
use crate::count::count;
use crate::paint::{BAD, CHANGED, GOOD, HEADING, QUIET, UNKNOWN, diff_line, paint};

/// Hosts of a play up to which each host's changes have lines of their own.
const FEW: usize = 12;

/// Plain lines. For many hosts only what needs a person is told host by host.
pub(super) struct Lines {
    style: Style,
    hosts: usize,
    told: BTreeSet<(usize, Option<String>)>,
    pub(super) out: Box<dyn Fn(&str) + Send>,
}

impl Lines {
    pub(super) fn new(style: Style) -> Self {
        let out = |line: &str| anstream::println!("{line}");
        Self {
            style,
            hosts: 0,
            told: BTreeSet::new(),
            out: Box::new(out),
        }
    }

    fn say(&self, line: &str) {
        (self.out)(line);
    }

    fn task(&mut self, ended: &TaskEnded) {
        let (word, style) = match ended.status {
            Status::Failed if ended.ignored => ("ignored", CHANGED),
            Status::Failed => ("failed", BAD),
            Status::Changed => ("changed", CHANGED),
            Status::Unknown => ("unknown", UNKNOWN),
            Status::Ok if self.style.verbose > 0 => ("ok", GOOD),
            Status::Skipped if self.style.verbose > 0 => ("skipped", QUIET),
            _ => return self.message(ended),
        };
        if self.style.quiet {
            return;
        }
        let many = self.hosts > FEW && ended.status != Status::Failed;
        if many && !self.told.insert((ended.task.id, ended.item.clone())) {
            return;
        }
        let host = if many { "(all)" } else { &ended.host };
        let item = ended
            .item
            .as_ref()
            .map(|item| paint(QUIET, format!(" ({})", short(item))))
            .unwrap_or_default();
        let place = paint(QUIET, format!("  {}", ended.task.place));
        let task = &ended.task.name;
        self.say(&format!(
            "  {} {} {task}{item}{place}",
            paint(style, format!("{word:<8}")),
            paint(HEADING, host)
        ));
        for effect in ended.effects.iter() {
            self.effect(effect);
        }
        self.message(ended);
        if ended.status == Status::Failed {
            self.failure(ended);
        }
    }

    /// What `debug` says.
    fn message(&self, ended: &TaskEnded) {
        if ended.task.module != "debug"
            || ended.status != Status::Ok
            || self.style.quiet
            || ended.secret
        {
            return;
        }
        for (name, value) in ended.result.as_object().into_iter().flatten() {
            if name == "changed" {
                continue;
            }
            let text = match value.as_str() {
                Some(text) => text.to_owned(),
                None => serde_json::to_string_pretty(value).unwrap_or_default(),
            };
            let name = if name == "msg" {
                String::new()
            } else {
                format!("{name} = ")
            };
            self.say(&format!(
                "  {} {} {name}{}",
                paint(QUIET, "says    "),
                paint(HEADING, &ended.host),
                indent(&text)
            ));
        }
    }

    fn effect(&self, effect: &Effect) {
        self.say(&format!("      {}", paint(QUIET, effect.summary())));
        if self.style.diff {
            for line in draw(effect) {
                self.say(&format!("        {}", diff_line(&line)));
            }
        }
    }

    fn failure(&self, ended: &TaskEnded) {
        if ended.secret {
            return self.say("      its result is hidden (`no_log`)");
        }
        let text = |name: &str| {
            ended
                .result
                .get(name)
                .and_then(serde_json::Value::as_str)
                .unwrap_or_default()
                .trim()
        };
        self.say(&format!("      {}", indent(&paint(BAD, text("msg")))));
        if let Some(cmd) = ended.result.get("cmd") {
            self.say(&format!(
                "      command: {}",
                indent(cmd.as_str().unwrap_or(&cmd.to_string()))
            ));
        }
        for name in ["stderr", "stdout"] {
            // A message often quotes what the command said.
            if !text(name).is_empty() && !text("msg").contains(text(name)) {
                self.say(&format!(
                    "      {name}: {}",
                    indent(&last_lines(text(name), 20))
                ));
            }
        }
    }

    fn end_of_host(&self, host: &str, end: &HostEnd) {
        let host = paint(HEADING, host);
        match end {
            HostEnd::Done => {}
            HostEnd::Unreachable { message } => {
                self.say(&format!(
                    "  {} {host} {}",
                    paint(BAD, "unreachable"),
                    indent(message)
                ));
            }
            HostEnd::Locked { message } => self.say(&format!(
                "  {} {host} {}",
                paint(BAD, "locked"),
                indent(message)
            )),
            HostEnd::Refused { message, .. } => {
                self.say(&format!(
                    "  {} {host} {}",
                    paint(BAD, "refused"),
                    indent(message)
                ));
            }
            HostEnd::Stale { message, undone } => {
                self.say(&format!(
                    "  {} {host} {}",
                    paint(BAD, "stale"),
                    indent(message)
                ));
                if let Some(undone) = undone {
                    self.say(&format!("  {host} {}", undone_text(undone)));
                }
            }
            HostEnd::Lost { message } => self.say(&format!(
                "  {} {host} {}",
                paint(BAD, "lost"),
                indent(message)
            )),
            HostEnd::Failed { undone } | HostEnd::Interrupted { undone } => {
                if let Some(undone) = undone {
                    self.say(&format!("  {host} {}", undone_text(undone)));
                }
            }
        }
    }
}

impl Reporter for Lines {
    fn event(&mut self, event: &Event) {
        match event {
            Event::PlayStarted { play, hosts, .. } => {
                self.hosts = hosts.len();
                self.told.clear();
                if !self.style.quiet {
                    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
                    let names = short(&fleet_engine::plan::names(&names));
                    self.say(&format!(
                        "{} {}",
                        paint(HEADING, play),
                        paint(
                            QUIET,
                            format!("on {names} ({})", count(hosts.len(), "host"))
                        )
                    ));
                }
            }
            Event::PlaySkipped { play, reason } => {
                self.say(&format!(
                    "{} {}",
                    paint(HEADING, play),
                    paint(QUIET, format!("skipped: {reason}"))
                ));
            }
            Event::Connected {
                host,
                recovered,
                pending,
                uploaded,
                took,
                ..
            } => {
                for undone in recovered {
                    let text =
                        format!("was cut off in run {}: {}", undone.run, undone_text(undone));
                    self.say(&format!(
                        "  {} {} {text}",
                        paint(CHANGED, "recovered"),
                        paint(HEADING, host)
                    ));
                }
                if !pending.is_empty() {
                    let names = pending.join(", ");
                    self.say(&format!(
                        "  {} {} left over by a run that failed: {names}",
                        paint(CHANGED, "pending"),
                        paint(HEADING, host)
                    ));
                }
                if self.style.verbose > 1 {
                    let sent = if *uploaded { ", helper sent" } else { "" };
                    self.say(&paint(
                        QUIET,
                        format!("  connected {host} in {} ms{sent}", took.as_millis()),
                    ));
                }
            }
            Event::TaskEnded(ended) => self.task(ended),
            // A plan shows its hosts' ends itself.
            Event::HostEnded { host, end } if !self.style.quiet => self.end_of_host(host, end),
            Event::Warning { host, text } => {
                let host = host.as_deref().unwrap_or_default();
                self.say(&format!("  {} {host} {text}", paint(CHANGED, "warning")));
            }
            Event::Retrying {
                host, task, left, ..
            } if self.style.verbose > 0 && !self.style.quiet => {
                self.say(&format!(
                    "  {} {} {}, {left} tries left",
                    paint(CHANGED, "again   "),
                    paint(HEADING, host),
                    task.name
                ));
            }
            Event::RunStarted { .. }
            | Event::Retrying { .. }
            | Event::HostEnded { .. }
            | Event::TaskStarted { .. }
            | Event::Included { .. }
            | Event::FactsUsed { .. }
            | Event::NoHostsLeft
            | Event::PlayEnded { .. }
            | Event::RunEnded { .. } => {}
        }
    }

    fn end(&mut self, _: &Recap) {}
}

/// What became of a run's changes on a host, in words.
pub(crate) fn undone_text(undone: &Undone) -> String {
    let problems = undone.effects.iter().filter_map(|effect| {
        Some(format!(
            "\n      {}: {}",
            effect.effect,
            effect.problem.as_ref()?
        ))
    });
    let by_itself = match &undone.why {
        Some(why) => format!(" by the host itself, for {why}"),
        None => String::new(),
    };
    match undone.state {
        UndoneState::Kept => "its changes are in place".to_owned(),
        UndoneState::Unchanged => paint(GOOD, "nothing had been changed"),
        UndoneState::RolledBack => {
            // Commands and their like cannot be undone, and whether they changed anything nobody knows.
            let lasting = undone
                .effects
                .iter()
                .filter(|effect| effect.problem.is_some())
                .count();
            let done = match undone.effects.len() - lasting {
                0 => format!("rolled back{by_itself}: nothing was left to undo"),
                many => format!("rolled back{by_itself}: {} undone", count(many, "effect")),
            };
            match lasting {
                0 => paint(GOOD, format!("{done}, all is as it was")),
                _ => paint(GOOD, done) + &problems.collect::<String>(),
            }
        }
        UndoneState::RollbackConflict => {
            paint(
                BAD,
                "rolled back but for what somebody else has changed since, which was left as found:",
            ) + &problems.collect::<String>()
        }
        UndoneState::RollbackFailed => {
            paint(BAD, "the rollback FAILED; a person is needed:") + &problems.collect::<String>()
        }
        UndoneState::NotFound => "this run is not in the host's journal".to_owned(),
    }
}

/// How a host ended, in words.
pub(crate) fn end_text(end: &HostEnd) -> String {
    match end {
        HostEnd::Done => "done".to_owned(),
        HostEnd::Unreachable { message }
        | HostEnd::Locked { message }
        | HostEnd::Refused { message, .. }
        | HostEnd::Stale { message, .. }
        | HostEnd::Lost { message } => message.clone(),
        HostEnd::Failed { undone } | HostEnd::Interrupted { undone } => undone
            .as_ref()
            .map_or_else(|| "failed".to_owned(), undone_text),
    }
}

fn indent(text: &str) -> String {
    text.replace('\n', "\n      ")
}

fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= 100 && line.len() == text.len() {
        return text.to_owned();
    }
    let cut: String = line.chars().take(99).collect();
    format!("{cut}…")
}

fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    match lines.len().checked_sub(most) {
        None | Some(0) => text.to_owned(),
        Some(cut) => format!("… {cut} lines before\n{}", lines[cut..].join("\n")),
    }
}
