//! The output of `ansible`: a result a host, as it comes.

use std::{collections::HashSet, path::PathBuf};

use fleet_engine::{
    event::{Event, HostEnd, TaskEnded},
    recap::Recap,
};
use fleet_wire::Status;
use serde_json::{Value, json};

use super::{
    Line, Look,
    color::{self, Color},
    diff,
    json::{LINE, Layout, dump},
    print,
    result::{self, Format, short_name},
    stats::Whole,
    text::error_text,
};
use crate::reporter::Reporter;

/// Which of Ansible's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Callback {
    Minimal,
    OneLine,
}

/// The results of `exec`.
pub(crate) struct Adhoc {
    look: Look,
    callback: Callback,
    /// The task as it is told above a failure: `<adhoc 'ping' task>` and its words.
    task: String,
    /// A directory that takes each host's result.
    tree: Option<PathBuf>,
    failed: HashSet<String>,
    told: HashSet<String>,
    lines: Vec<Line>,
}

impl Adhoc {
    pub(crate) fn new(look: Look, callback: Callback, task: String, tree: Option<PathBuf>) -> Self {
        Self {
            look,
            callback,
            task,
            tree,
            failed: HashSet::new(),
            told: HashSet::new(),
            lines: Vec::new(),
        }
    }

    /// The lines that an event makes due.
    pub(crate) fn take(&mut self, event: &Event) -> Vec<Line> {
        match event {
            Event::TaskEnded(ended) => self.ended(ended),
            Event::HostEnded { host, end } => self.host_ended(host, end),
            Event::Warning { text, .. } => self.warning(text),
            _ => {}
        }
        std::mem::take(&mut self.lines)
    }

    fn ended(&mut self, ended: &TaskEnded) {
        if matches!(ended.status, Status::NotReached | Status::NotNotified)
            || short_name(&ended.task.module) == "meta" && ended.status != Status::Failed
        {
            return;
        }
        let mut whole = Whole::default();
        whole.add(ended);
        for warning in result::texts(&ended.result, "warnings") {
            self.warning(&warning);
        }
        if whole.changed && !ended.secret {
            let text = diff::of_result(&ended.result, self.look.context);
            if !text.is_empty() {
                self.say(None, &text);
            }
        }
        let shown = result::shown(ended, self.look.format.verbose);
        self.keep(&ended.host, &shown);
        if ended.status == Status::Failed {
            self.failed.insert(ended.host.clone());
            let message = error_text(ended);
            // A mistake that was found here shows its own place.
            let place = match result::diagnosis(&ended.result) {
                Some(_) => "",
                None => &self.task,
            };
            self.error(&format!("[ERROR]: {message}\n{place}\n"));
        }
        let changed = whole.changed;
        let (word, color) = match ended.status {
            Status::Failed if ended.unreachable => ("UNREACHABLE!", Color::BrightRed),
            Status::Failed => ("FAILED", Color::Red),
            Status::Skipped => ("SKIPPED", Color::Cyan),
            _ if changed => ("CHANGED", Color::Yellow),
            _ => ("SUCCESS", Color::Green),
        };
        let failed = ended.status == Status::Failed && !ended.unreachable;
        let line = match self.callback {
            Callback::Minimal => minimal(ended, &shown, word, failed, self.look.format),
            Callback::OneLine => one_line(ended, &shown, word, failed),
        };
        self.say(Some(color), &line);
    }

    fn host_ended(&mut self, host: &str, end: &HostEnd) {
        let (word, message) = match end {
            HostEnd::Unreachable { message } | HostEnd::Lost { message } => {
                ("UNREACHABLE!", message)
            }
            HostEnd::Locked { message }
            | HostEnd::Refused { message, .. }
            | HostEnd::Stale { message, .. } => ("FAILED!", message),
            HostEnd::Done | HostEnd::Failed { .. } | HostEnd::Interrupted { .. } => return,
        };
        if !self.failed.insert(host.to_owned()) {
            return;
        }
        let mut result = json!({"changed": false, "msg": message});
        if word == "UNREACHABLE!" {
            result["unreachable"] = Value::Bool(true);
        }
        self.keep(host, &result);
        self.error(&format!("[ERROR]: Task failed: {message}\n{}\n", self.task));
        let line = match self.callback {
            Callback::Minimal => {
                format!("{host} | {word} => {}", dump(&result, Layout::Indented(4)))
            }
            Callback::OneLine => format!("{host} | {word}: {message}"),
        };
        self.say(Some(Color::BrightRed), &line);
    }

    /// `-t DIR`: one file a host.
    fn keep(&mut self, host: &str, result: &Value) {
        let Some(tree) = &self.tree else { return };
        let file = tree.join(host);
        let written =
            std::fs::create_dir_all(tree).and_then(|()| std::fs::write(&file, dump(result, LINE)));
        if let Err(problem) = written {
            self.warning(&format!("Unable to write to {}: {problem}", file.display()));
        }
    }

    fn warning(&mut self, text: &str) {
        let text = format!("[WARNING]: {text}");
        if self.told.insert(text.clone()) {
            self.lines.push(Line {
                to_stderr: true,
                text: color::paint(Some(Color::BrightPurple), &text, self.look.color),
            });
        }
    }

    fn error(&mut self, text: &str) {
        if self.callback == Callback::Minimal && self.told.insert(text.to_owned()) {
            self.say(Some(Color::Red), text);
        }
    }

    fn say(&mut self, color: Option<Color>, text: &str) {
        self.lines.push(Line {
            to_stderr: false,
            text: color::paint(color, text, self.look.color),
        });
    }
}

/// Modules whose results are their output, not JSON.
fn prints(module: &str) -> bool {
    matches!(short_name(module), "command" | "shell" | "raw" | "script")
}

fn field<'a>(result: &'a Value, name: &str) -> &'a str {
    result.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn minimal(ended: &TaskEnded, shown: &Value, word: &str, failed: bool, format: Format) -> String {
    let host = &ended.host;
    let job = shown.get("ansible_job_id").is_some();
    if prints(&ended.task.module) && !job && !ended.unreachable && shown.get("rc").is_some() {
        let mut text = format!(
            "{host} | {word} | rc={} >>\n{}{}",
            shown.get("rc").unwrap_or(&Value::from(-1)),
            field(shown, "stdout"),
            field(shown, "stderr")
        );
        text.push_str(field(shown, "msg"));
        return text;
    }
    let mark = if failed { "!" } else { "" };
    let pretty = Format {
        pretty: Some(format.pretty.unwrap_or(true)),
        ..format
    };
    let result = result::written(shown, true, pretty);
    format!("{host} | {word}{mark} => {result}")
}

fn one_line(ended: &TaskEnded, shown: &Value, word: &str, failed: bool) -> String {
    let host = &ended.host;
    if ended.unreachable {
        return format!("{host} | {word}: {}", field(shown, "msg"));
    }
    let compact = dump(shown, Layout::Line(",", ": "));
    let mark = if failed { "!" } else { "" };
    let job = shown.get("ansible_job_id").is_some();
    if prints(&ended.task.module) && !job && shown.get("rc").is_some() {
        let folded = |name: &str| field(shown, name).replace('\n', "\\n").replace('\r', "\\r");
        let mut text = format!(
            "{host} | {word} | rc={} | (stdout) {}",
            shown.get("rc").unwrap_or(&Value::from(-1)),
            folded("stdout")
        );
        if !field(shown, "stderr").is_empty() {
            text.push_str(&format!(" (stderr) {}", folded("stderr")));
        }
        // A failure is told twice, as Ansible does.
        if failed {
            text.push_str(&format!("\n{host} | {word}{mark} => {compact}"));
        }
        return text;
    }
    format!("{host} | {word}{mark} => {compact}")
}

impl Reporter for Adhoc {
    fn event(&mut self, event: &Event) {
        print(&self.take(event));
    }

    fn end(&mut self, _: &Recap) {}
}
