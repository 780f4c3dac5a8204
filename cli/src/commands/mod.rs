//! One file a verb: its flags, and what it does with the engine.

pub(crate) mod apply;
pub(crate) mod approve;
pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod confirm;
pub(crate) mod diff;
pub(crate) mod doc;
pub(crate) mod drift;
pub(crate) mod exec;
pub(crate) mod facts;
pub(crate) mod galaxy;
pub(crate) mod host;
pub(crate) mod inventory;
pub(crate) mod listing;
pub(crate) mod plan;
pub(crate) mod play;
mod play_list;
pub(crate) mod resume;
pub(crate) mod rollback;
pub(crate) mod runs;
pub(crate) mod schema;
pub(crate) mod show;
pub(crate) mod validate;
pub(crate) mod vault;
pub(crate) mod verify;
