//! Waiting for what happens by itself.

use std::time::{Duration, Instant};

/// Waits until it is so, for a minute at the most: the machine may be busy.
///
/// # Panics
///
/// With `what` when it is not so then.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
