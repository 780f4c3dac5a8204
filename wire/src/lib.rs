//! What the controller and the helper on a host say to each other: types and their codec, no I/O.
//!
//! Both ends come from one build (the helper is found by its content's hash), so the codec is
//! postcard and has no field names. What is kept on disk (journals, plans, runs) is JSON instead.

mod chain;
mod effect;
mod frame;
mod key;
mod message;

pub use chain::{chain, verify_chain};
pub use effect::{
    AccountLine, Content, Effect, Entry, INLINE_LIMIT, Meta, SettingKind, UndoClass, UnitAction,
    What,
};
pub use frame::{FRAME_LIMIT, FrameError, decode, encode};
pub use key::{DigestKey, KEYED};
pub use message::{
    As, Blob, Finish, FromHost, Hello, Journaled, Json, Locked, Mode, OnlyIf, Outcome, PROTOCOL,
    Ready, Refusal, Standing, Status, Task, ToHost, Transaction, Undone, UndoneEffect, UndoneState,
};
