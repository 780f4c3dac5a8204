//! Readers of a run's events that show them: lines, a live display, or JSON.

pub(crate) mod ansible;
mod json;
mod lines;
mod live;
mod recap;

use fleet_engine::event::Event;
use fleet_engine::recap::Recap;

pub(crate) use lines::{end_text, undone_text};
pub(crate) use recap::recap;

/// Shows a run while it goes on.
pub(crate) trait Reporter: Send {
    /// Something has happened.
    fn event(&mut self, event: &Event);
    /// Nothing more will.
    fn end(&mut self, recap: &Recap);
}

/// How a run is to be shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    pub(crate) json: bool,
    pub(crate) verbose: u8,
    /// Draw the effects below the tasks.
    pub(crate) diff: bool,
    /// A planning run, whose effects are shown by groups when it is over.
    pub(crate) quiet: bool,
}

/// The reporter that fits the terminal and the flags.
pub(crate) fn reporter(style: Style) -> Box<dyn Reporter> {
    use std::io::IsTerminal;
    if style.json {
        return Box::new(json::Json::default());
    }
    let lines = lines::Lines::new(style);
    let plain = std::env::var_os("NO_PROGRESS").is_some() || !std::io::stderr().is_terminal();
    if plain {
        Box::new(lines)
    } else {
        Box::new(live::Live::new(lines))
    }
}

/// Whether diagnostics on standard error are coloured.
pub(crate) fn colored() -> bool {
    anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never
}
