//! The controller's side of fleetctl, silent: it reads what people wrote, decides what each host is
//! to do, and tells what happens as events.

pub mod bench;
pub mod config;
pub mod event;
pub mod external;
pub mod extra_vars;
pub mod fact_cache;
pub mod inventory;
pub mod manual;
pub mod plan;
pub mod playbook;
pub mod recap;
pub mod run;
pub mod secret;
pub mod sources;
pub mod template;
pub mod transport;
pub mod variables;
pub mod vault;

pub use fleet_modules::chained_log;
pub use fleet_yaml::{Diagnostic, nearest, render};
