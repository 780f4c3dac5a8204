//! Whole outputs of `fleetctl`, as its users see them. No hosts: what needs some is in the crate `fleet-tests`.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

mod ansible_cfg;
mod desk;
mod docs;
mod help;
mod inventories;
mod json;
mod language;
mod local;
mod play;
mod playbooks;
mod schema;
mod shown;
mod undefined;
mod vault;
