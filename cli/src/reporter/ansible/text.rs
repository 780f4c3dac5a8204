//! Events as lines of Ansible's default output: a state machine without a terminal.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::Arc,
};

use fleet_engine::event::{Event, HostEnd, Strategy, TaskEnded, TaskInfo};
use fleet_wire::Status;
use serde_json::{Value, json};

use super::{
    Line, Look,
    color::{self, Color},
    custom_stats::CustomStats,
    diff, origin,
    result::{self, short_name, speaks},
    stats::{Stats, Whole},
};

/// What has been shown so far, as far as it decides what comes next.
pub(super) struct Text {
    look: Look,
    /// Playbooks that have not begun, each with the number of its plays; empty where it is not to be told.
    pub(super) books: VecDeque<(String, usize)>,
    pub(super) stats: Stats,
    custom_stats: CustomStats,
    strategy: Strategy,
    /// The task whose banner was shown last.
    shown: Option<Arc<TaskInfo>>,
    /// Items of loops that are not over, by host.
    open: HashMap<String, Whole>,
    /// The differences that loops have made so far, by host.
    diffs: HashMap<String, String>,
    /// Files that the current task included: file, item, hosts.
    included: Vec<(String, Option<String>, Vec<String>)>,
    /// Errors and warnings are told once.
    told: HashSet<String>,
    /// Hosts whose failure was shown.
    failed: HashSet<String>,
    lines: Vec<Line>,
}

impl Text {
    pub(super) fn new(look: Look) -> Self {
        Self {
            look,
            books: VecDeque::new(),
            stats: Stats::default(),
            custom_stats: CustomStats::default(),
            strategy: Strategy::Linear,
            shown: None,
            open: HashMap::new(),
            diffs: HashMap::new(),
            included: Vec::new(),
            told: HashSet::new(),
            failed: HashSet::new(),
            lines: Vec::new(),
        }
    }

    /// The lines that are due.
    pub(super) fn lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::RunStarted { .. } if self.look.check && self.look.markers => {
                self.banner("DRY RUN");
            }
            Event::PlayStarted { play, strategy, .. } => {
                self.play(play);
                self.strategy = *strategy;
            }
            Event::PlaySkipped { play, .. } => {
                self.play(play);
                self.say(Some(Color::Cyan), "skipping: no hosts matched");
            }
            Event::TaskStarted { task, .. } => {
                if short_name(&task.module) == "meta" {
                    self.shown = None;
                    return self.task(task);
                }
                let all = self.look.skipped && self.look.ok;
                if self.strategy == Strategy::Linear && all {
                    self.task(task);
                }
            }
            Event::TaskEnded(ended) => {
                self.custom_stats.take(&ended.host, &ended.result);
                self.ended(ended);
            }
            Event::Retrying {
                host,
                task,
                left,
                result,
                ..
            } => {
                self.task(task);
                let name = title(task);
                // Ansible does not count the last one.
                let left = left.saturating_sub(1);
                let mut text =
                    format!("FAILED - RETRYING: [{host}]: {name} ({left} retries left).");
                if self.look.format.verbose > 2 {
                    text.push_str(&format!(
                        "Result was: {}",
                        result::written(result, false, self.look.format)
                    ));
                }
                self.say(Some(Color::DarkGray), &text);
            }
            Event::Included {
                host,
                task,
                file,
                item,
            } => {
                self.task(task);
                self.stats.of(host).ok += 1;
                let same = |(own, label, _): &&mut (String, Option<String>, Vec<String>)| {
                    own == file && label == item
                };
                match self.included.iter_mut().find(same) {
                    Some((_, _, hosts)) => hosts.push(host.clone()),
                    None => {
                        self.included
                            .push((file.clone(), item.clone(), vec![host.clone()]));
                    }
                }
            }
            Event::HostEnded { host, end } => self.host_ended(host, end),
            Event::Warning { text, .. } => self.warning(text),
            // Ansible goes over it in silence.
            Event::NoHostsLeft
            | Event::FactsUsed { .. }
            | Event::RunStarted { .. }
            | Event::Connected { .. }
            | Event::PlayEnded { .. }
            | Event::RunEnded { .. } => {}
        }
    }

    /// The recap at the end.
    pub(super) fn recap(&mut self) {
        self.flush();
        self.banner("PLAY RECAP");
        let lines: Vec<String> = self
            .stats
            .hosts
            .iter()
            .map(|(host, counts)| {
                let paint = |name: &str, count: usize, color: Color| {
                    let text = format!("{name}={count:<4}");
                    match count {
                        0 => text,
                        _ => color::paint(Some(color), &text, self.look.color),
                    }
                };
                let host_color = match counts {
                    own if own.failed > 0 || own.unreachable > 0 => Color::Red,
                    own if own.changed > 0 => Color::Yellow,
                    _ => Color::Green,
                };
                // Ansible counts the colour's own characters into the width.
                let host = color::paint(Some(host_color), host, self.look.color);
                let width = if self.look.color { 37 } else { 26 };
                format!(
                    "{host:<width$} : {} {} {} {} {} {} {}",
                    paint("ok", counts.ok, Color::Green),
                    paint("changed", counts.changed, Color::Yellow),
                    paint("unreachable", counts.unreachable, Color::BrightRed),
                    paint("failed", counts.failed, Color::Red),
                    paint("skipped", counts.skipped, Color::Cyan),
                    paint("rescued", counts.rescued, Color::Green),
                    paint("ignored", counts.ignored, Color::Purple),
                )
            })
            .collect();
        for line in lines {
            self.say(None, &line);
        }
        self.say(None, "");
        let custom = self.custom_stats.lines();
        if self.look.custom_stats && !custom.is_empty() {
            self.banner("CUSTOM STATS:");
            for line in custom {
                self.say(None, &line);
            }
        }
        if self.look.check && self.look.markers {
            self.banner("DRY RUN");
        }
    }

    fn play(&mut self, name: &str) {
        self.flush();
        self.shown = None;
        // Of several playbooks only the first is told where it begins: events do not say where one ends.
        for (path, plays) in std::mem::take(&mut self.books) {
            let file = std::path::Path::new(&path).file_name();
            let name = file.map_or(path.clone(), |name| name.to_string_lossy().into_owned());
            self.banner(&format!("PLAYBOOK: {name}"));
            self.say(Some(Color::DarkGray), &format!("{plays} plays in {path}"));
        }
        let marker = self.marker();
        match name.trim() {
            "" => self.banner(&format!("PLAY{marker}")),
            name => self.banner(&format!("PLAY [{name}]{marker}")),
        }
    }

    fn marker(&self) -> &'static str {
        match self.look.check && self.look.markers {
            true => " [CHECK MODE]",
            false => "",
        }
    }

    /// Begins a task, unless it is the one that is being shown.
    fn task(&mut self, task: &Arc<TaskInfo>) {
        let same = self
            .shown
            .as_ref()
            .is_some_and(|shown| shown.position == task.position && shown.id == task.id);
        if same {
            return;
        }
        self.flush();
        self.shown = Some(Arc::clone(task));
        let kind = if task.handler {
            "RUNNING HANDLER"
        } else {
            "TASK"
        };
        let marker = match task.check && self.look.markers {
            true => " [CHECK MODE]",
            false => "",
        };
        self.banner(&format!("{kind} [{}]{marker}", title(task).trim()));
        if self.look.format.verbose > 1 {
            self.task_path(task);
        }
    }

    fn task_path(&mut self, task: &TaskInfo) {
        if task.name != "Gathering Facts" {
            let path = origin::path(task, &self.look.directory);
            self.say(Some(Color::DarkGray), &format!("task path: {path}"));
        }
    }

    fn ended(&mut self, ended: &TaskEnded) {
        if matches!(ended.status, Status::NotReached | Status::NotNotified) {
            return;
        }
        let module = short_name(&ended.task.module);
        if module == "meta" && ended.status != Status::Failed {
            // Each host begins it anew.
            self.shown = None;
            self.task(&ended.task);
            if ended.status == Status::Skipped && self.look.skipped {
                self.say(Some(Color::Cyan), &format!("skipping: [{}]", label(ended)));
            }
            return;
        }
        let open = self.open.entry(ended.host.clone()).or_default();
        open.add(ended);
        let whole = *open;
        if !ended.secret {
            let warnings = result::texts(&ended.result, "warnings");
            let shown = ended.status != Status::Skipped || self.look.skipped;
            if !warnings.is_empty() && shown && !is_include(module) {
                self.task(&ended.task);
            }
            for warning in warnings {
                self.warning(&warning);
            }
        }
        match ended.status {
            Status::Failed => self.failure(ended),
            Status::Skipped => self.skipped(ended),
            _ if is_include(module) => {}
            Status::Unknown if runs_commands(module) => self.skipped(ended),
            _ => self.went_through(ended),
        }
        if ended.last {
            self.open.remove(&ended.host);
            if let Some(text) = self.diffs.remove(&ended.host) {
                self.diff(ended, &text);
            }
            if ended.item.is_some() {
                self.loop_ended(ended, whole);
            }
            if whole.failed && whole.ignored {
                self.say(Some(Color::Cyan), "...ignoring");
            }
            if whole.failed && !whole.ignored && !whole.rescued {
                self.failed.insert(ended.host.clone());
            }
            self.stats.count(ended, whole);
        }
    }

    fn went_through(&mut self, ended: &TaskEnded) {
        let changed = matches!(ended.status, Status::Changed | Status::Unknown);
        if changed && !ended.secret {
            let text = diff::of_result(&ended.result, self.look.context);
            match ended.item {
                // Those of a loop are shown behind all its items.
                Some(_) => self
                    .diffs
                    .entry(ended.host.clone())
                    .or_default()
                    .push_str(&text),
                None => self.diff(ended, &text),
            }
        }
        let (word, color) = match changed {
            true => ("changed", Color::Yellow),
            false if self.look.ok => ("ok", Color::Green),
            false => return,
        };
        self.task(&ended.task);
        let mut line = format!("{word}: [{}]", label(ended));
        if let Some(item) = item(ended) {
            line.push_str(&format!(" => (item={item})"));
        }
        if self.tells(ended) {
            line.push_str(&format!(" => {}", self.result(ended)));
        }
        self.say(Some(color), &line);
    }

    fn skipped(&mut self, ended: &TaskEnded) {
        if !self.look.skipped {
            return;
        }
        self.task(&ended.task);
        let mut line = format!("skipping: [{}]", label(ended));
        if let Some(item) = item(ended) {
            line.push_str(&format!(" => (item={item}) "));
        }
        if self.look.format.verbose > 0 {
            line.push_str(&format!(" => {}", self.result(ended)));
        }
        self.say(Some(Color::Cyan), &line);
    }

    fn failure(&mut self, ended: &TaskEnded) {
        self.task(&ended.task);
        self.error(ended);
        if self.look.path_on_failure && self.look.format.verbose < 2 {
            self.task_path(&ended.task);
        }
        let result = self.result(ended);
        let label = label(ended);
        let line = match (ended.unreachable, item(ended)) {
            (true, _) => format!("fatal: [{label}]: UNREACHABLE! => {result}"),
            (false, Some(item)) => format!("failed: [{label}] (item={item}) => {result}"),
            (false, None) => format!("fatal: [{label}]: FAILED! => {result}"),
        };
        let color = match ended.unreachable {
            true => Color::BrightRed,
            false => Color::Red,
        };
        // Where the play itself is wrong, Ansible says only why.
        if ended.result.get("rescuable") != Some(&Value::Bool(false)) {
            self.say_failure(color, &line);
        }
    }

    /// What is said of a loop as a whole, behind its items.
    fn loop_ended(&mut self, ended: &TaskEnded, whole: Whole) {
        if !whole.ran && self.look.skipped {
            self.say(Some(Color::Cyan), &format!("skipping: [{}]", label(ended)));
        } else if whole.failed && short_name(&ended.task.module) == "debug" {
            let result = result::written(
                &json!({"msg": "One or more items failed"}),
                false,
                self.look.format,
            );
            self.say_failure(
                Color::Red,
                &format!("fatal: [{}]: FAILED! => {result}", label(ended)),
            );
        }
    }

    /// The message with the lines around the task, above a failure.
    fn error(&mut self, ended: &TaskEnded) {
        let mut text = format!("[ERROR]: {}", error_text(ended));
        // Places are whole paths here, as in Ansible's own messages.
        let directory = self.look.directory.display();
        if let Some((said, place)) = text.split_once(" --> ")
            && !place.starts_with('/')
        {
            text = format!("{said} --> {directory}/{place}");
        }
        // A mistake that was found here shows its own place.
        if result::diagnosis(&ended.result).is_some() {
            text.push('\n');
        } else if let Some(origin) = origin::origin(&ended.task, &self.look.directory) {
            text.push_str(&format!("\n{origin}\n"));
        }
        // The lines around a task may be those of an encrypted playbook.
        let text = crate::error::masked(&text).into_owned();
        if self.told.insert(text.clone()) {
            self.say_failure(Color::Red, &text);
        }
    }

    fn host_ended(&mut self, host: &str, end: &HostEnd) {
        let (word, message) = match end {
            HostEnd::Unreachable { message } | HostEnd::Lost { message } => {
                ("UNREACHABLE", message)
            }
            HostEnd::Locked { message }
            | HostEnd::Refused { message, .. }
            | HostEnd::Stale { message, .. } => ("FAILED", message),
            HostEnd::Done | HostEnd::Failed { .. } | HostEnd::Interrupted { .. } => return,
        };
        if !self.failed.insert(host.to_owned()) {
            return;
        }
        let counts = self.stats.of(host);
        let mut result = json!({"changed": false, "msg": message});
        if word == "UNREACHABLE" {
            counts.unreachable += 1;
            result["unreachable"] = Value::Bool(true);
        } else {
            counts.failed += 1;
        }
        let first = message.lines().next().unwrap_or_default();
        let error = format!("[ERROR]: Task failed: {first}");
        if self.told.insert(error.clone()) {
            self.say_failure(Color::Red, &error);
        }
        let result = result::written(&result, false, self.look.format);
        self.say_failure(
            Color::BrightRed,
            &format!("fatal: [{host}]: {word}! => {result}"),
        );
    }

    pub(super) fn warning(&mut self, text: &str) {
        let text = format!("[WARNING]: {text}");
        if self.told.insert(text.clone()) {
            self.lines.push(Line {
                to_stderr: true,
                text: color::paint(Some(Color::BrightPurple), &text, self.look.color),
            });
        }
    }

    fn tells(&self, ended: &TaskEnded) -> bool {
        let verbose = self.look.format.verbose;
        match short_name(&ended.task.module) {
            "setup" | "gather_facts" => verbose > 2,
            _ => verbose > 0 || speaks(ended),
        }
    }

    fn result(&self, ended: &TaskEnded) -> String {
        let shown = result::shown(ended, self.look.format.verbose);
        result::written(&shown, speaks(ended), self.look.format)
    }

    fn diff(&mut self, ended: &TaskEnded, text: &str) {
        if text.is_empty() {
            return;
        }
        self.task(&ended.task);
        let lines: Vec<String> = text
            .lines()
            .map(|line| {
                let color = match line.as_bytes().first() {
                    Some(b'+') => Some(Color::Green),
                    Some(b'-') => Some(Color::Red),
                    Some(b'@') => Some(Color::Cyan),
                    _ => None,
                };
                color::paint(color, line, self.look.color)
            })
            .collect();
        self.say(None, &(lines.join("\n") + "\n"));
    }

    /// Tells what was included, which is known when all hosts have come by.
    fn flush(&mut self) {
        for (file, item, hosts) in std::mem::take(&mut self.included) {
            if !self.look.included {
                continue;
            }
            let path = self.look.directory.join(&file).display().to_string();
            let mut line = format!("included: {path} for {}", hosts.join(", "));
            if let Some(item) = item {
                line.push_str(&format!(" => (item={item})"));
            }
            self.say(Some(Color::Cyan), &line);
        }
    }

    pub(super) fn banner(&mut self, text: &str) {
        self.flush();
        let stars = self.look.width.saturating_sub(text.chars().count()).max(3);
        self.say(None, &format!("\n{text} {}", "*".repeat(stars)));
    }

    fn say(&mut self, color: Option<Color>, text: &str) {
        self.lines.push(Line {
            to_stderr: false,
            text: color::paint(color, text, self.look.color),
        });
    }

    fn say_failure(&mut self, color: Color, text: &str) {
        self.lines.push(Line {
            to_stderr: self.look.failed_to_stderr,
            text: color::paint(Some(color), text, self.look.color),
        });
    }
}

/// The name with the role's before it.
pub(super) fn title(task: &TaskInfo) -> String {
    match &task.role {
        Some(role) => format!("{role} : {}", task.name),
        None => task.name.clone(),
    }
}

/// The host, and whom the task was handed to.
pub(super) fn label(ended: &TaskEnded) -> String {
    match &ended.delegated {
        Some(other) => format!("{} -> {other}", ended.host),
        None => ended.host.clone(),
    }
}

fn item(ended: &TaskEnded) -> Option<&str> {
    match ended.secret {
        true => ended.item.as_ref().map(|_| "(censored due to no_log)"),
        false => ended.item.as_deref(),
    }
}

fn is_include(module: &str) -> bool {
    matches!(module, "include_tasks" | "include_role")
}

/// Modules that Ansible passes over in check mode.
fn runs_commands(module: &str) -> bool {
    matches!(module, "command" | "shell" | "raw" | "script" | "expect")
}

/// What is said above a failure.
pub(super) fn error_text(ended: &TaskEnded) -> String {
    if ended.secret {
        return "Task failed: the output has been hidden due to the fact that 'no_log: true' was specified for this result".to_owned();
    }
    if result::judged_failed(ended) {
        return format!("Task failed: {}", result::JUDGED);
    }
    if let Some(whole) = result::diagnosis(&ended.result) {
        return format!("Task failed: {whole}");
    }
    let message = ended
        .result
        .get("msg")
        .map_or("unknown error".into(), |msg| match msg {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
    if ended.unreachable || message.starts_with("Task failed") {
        let bare = message.strip_prefix("Task failed: ").unwrap_or(&message);
        return format!("Task failed: {bare}");
    }
    let who = match short_name(&ended.task.module) {
        "assert"
        | "debug"
        | "fail"
        | "set_fact"
        | "include_vars"
        | "template"
        | "pause"
        | "add_host"
        | "group_by"
        | "set_stats"
        | "fetch"
        | "validate_argument_spec" => "Action",
        module if is_include(module) => return message,
        _ => "Module",
    };
    format!("Task failed: {who} failed: {message}")
}
