//! The bench of a play: load before and after it, measured on the host meanwhile, judged, and drawn.
//!
//! Nothing here touches a machine. [`spec`] reads the `bench:` block, [`run`] drives scenarios
//! through a [`run::Bencher`] that the caller has, [`wrk`] speaks the load tool's language,
//! [`counters`] turns two snapshots of a host into what a request cost it, [`stats`] says whether
//! a difference is one, and [`table`] and [`html`] draw a [`result::Bench`].

mod chart;
pub mod counters;
pub mod gate;
pub mod html;
pub mod result;
pub mod run;
pub mod spec;
pub mod stats;
pub mod table;
pub mod wrk;
