//! Whole outputs of `fleetctl`, as its users see them. No hosts: what needs some is in the crate `fleet-tests`.

mod desk;
mod docs;
mod help;
mod inventories;
mod json;
mod local;
mod playbooks;
mod undefined;
