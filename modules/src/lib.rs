//! What runs on a host: task modules over [`host::Host`], the journal, the undo, and the loop of `fleet-helper serve`.
//!
//! Threads and the standard library only. The C library's name services are never called: a static
//! binary would load the host's own and may crash (`getent` is asked instead).

pub mod args;
pub mod base64;
pub mod chained_log;
pub mod checksum;
pub mod host;
pub mod module;
pub mod parts;
pub mod serve;
pub mod tasks;
pub mod versions;

mod arguments;
mod glob;
mod http;
mod pattern;
