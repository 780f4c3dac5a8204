//! The task modules, one a file.

use crate::module::Module;

mod apt;
mod command;
mod copy;
mod counters;
mod edited;
mod facts;
mod file;
mod lineinfile;
mod load;
mod package;
mod pam_limits;
mod ping;
mod service;
mod setup;
mod shell;
mod stat;
mod sysctl;
mod systemd;

/// Every task module: the only place where a new one is listed.
pub static MODULES: &[&Module] = &[
    &apt::MODULE,
    &command::MODULE,
    &copy::MODULE,
    &counters::MODULE,
    &file::MODULE,
    &lineinfile::MODULE,
    &load::MODULE,
    &package::MODULE,
    &pam_limits::MODULE,
    &ping::MODULE,
    &service::MODULE,
    &setup::MODULE,
    &shell::MODULE,
    &stat::MODULE,
    &sysctl::MODULE,
    &systemd::MODULE,
];
