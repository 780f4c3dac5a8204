use std::{collections::BTreeMap, time::Duration};

use fleet_engine::{event::Event, recap::Recap};
use indicatif::{ProgressBar, ProgressStyle};

use super::{Reporter, lines::Lines};

/// The lines, and below them one that moves: hosts done, and what is under way.
pub(super) struct Live {
    lines: Lines,
    bar: ProgressBar,
    working: BTreeMap<String, String>,
}

impl Live {
    pub(super) fn new(mut lines: Lines) -> Self {
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template(
            "{spinner} [{bar:24}] {pos}/{len} hosts  {elapsed}  {wide_msg}",
        ) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        let above = bar.clone();
        lines.out = Box::new(move |line| above.suspend(|| anstream::println!("{line}")));
        Self {
            lines,
            bar,
            working: BTreeMap::new(),
        }
    }

    fn message(&self) {
        let shown: Vec<String> = self
            .working
            .iter()
            .take(3)
            .map(|(host, task)| format!("{host}: {task}"))
            .collect();
        self.bar.set_message(shown.join("  "));
    }
}

impl Reporter for Live {
    fn event(&mut self, event: &Event) {
        match event {
            Event::PlayStarted { hosts, .. } => {
                self.bar.set_length(hosts.len() as u64);
                self.bar.set_position(0);
                self.working.clear();
            }
            Event::TaskStarted { host, task } => {
                self.working.insert(host.clone(), task.name.clone());
                self.message();
            }
            Event::PlayEnded { host } | Event::HostEnded { host, .. } => {
                if self.working.remove(host).is_some() {
                    self.bar.inc(1);
                }
                self.message();
            }
            _ => {}
        }
        self.lines.event(event);
    }

    fn end(&mut self, recap: &Recap) {
        self.bar.finish_and_clear();
        self.lines.end(recap);
    }
}
