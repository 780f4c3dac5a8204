//! What end-to-end tests stand on: a fleet of real hosts, and a slow line to reach them by.
//!
//! This crate is for tests, so what cannot be done is a panic that says what was tried, not an error to handle.

mod fleet;
mod proxy;

pub use fleet::{Fleet, Output};
pub use proxy::{Counts, DelayProxy};
