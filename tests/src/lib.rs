//! What end-to-end tests stand on: a fleet of real hosts, a slow line to reach them by, and `fleetctl` as a user runs it.
//!
//! This crate is for tests, so what cannot be done is a panic that says what was tried, not an error to handle.

pub mod faults;
mod fleet;
mod fleetctl;
mod patience;
mod proxy;
mod slow_line;
mod state;

pub use fleet::{Fleet, Output};
pub use fleetctl::{Fleetctl, Running};
pub use patience::eventually;
pub use proxy::{Counts, DelayProxy};
pub use slow_line::SlowLine;
pub use state::HostState;
