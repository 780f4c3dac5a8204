//! The output of `ansible-playbook` and `ansible`, line for line.

mod adhoc;
mod color;
mod custom_stats;
mod diff;
mod json;
mod look;
mod order;
mod origin;
mod result;
mod stats;
#[cfg(test)]
mod tests;
mod text;

use fleet_engine::{event::Event, recap::Recap};

pub(crate) use adhoc::{Adhoc, Callback};
pub(crate) use color::{Color, paint};
pub(crate) use look::Look;

use super::Reporter;

/// A line of output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) to_stderr: bool,
    pub(crate) text: String,
}

/// The default output of `ansible-playbook`.
pub(crate) struct Ansible {
    order: order::Order,
    text: text::Text,
}

impl Ansible {
    pub(crate) fn new(look: Look) -> Self {
        Self {
            order: order::Order::new(look.forks),
            text: text::Text::new(look),
        }
    }

    /// The lines that an event makes due.
    pub(crate) fn take(&mut self, event: &Event) -> Vec<Line> {
        let mut shown = Vec::new();
        self.order.take(event, &mut shown);
        for event in &shown {
            self.text.event(event);
        }
        self.text.lines()
    }

    /// Says, before each playbook begins, which it is; given with the numbers of their plays.
    pub(crate) fn books(&mut self, books: impl Iterator<Item = (String, usize)>) {
        self.text.books = books.collect();
    }

    /// The recap.
    pub(crate) fn finish(&mut self) -> Vec<Line> {
        self.text.recap();
        self.text.lines()
    }
}

/// Prints lines; whoever does not read them any more has no use for an error either.
pub(crate) fn print(lines: &[Line]) {
    use std::io::Write;
    for line in lines {
        let _ = match line.to_stderr {
            true => writeln!(std::io::stderr(), "{}", line.text),
            false => writeln!(std::io::stdout(), "{}", line.text),
        };
    }
    let _ = std::io::stdout().flush();
}

impl Reporter for Ansible {
    fn event(&mut self, event: &Event) {
        print(&self.take(event));
    }

    fn end(&mut self, _: &Recap) {
        print(&self.finish());
    }
}
