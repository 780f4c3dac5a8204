//! The task modules, one a file.

use crate::module::Module;

mod accounts;
mod alternatives;
mod apt;
mod apt_key;
mod apt_repository;
mod assemble;
mod async_status;
mod authorized_key;
mod blockinfile;
mod command;
mod copy;
mod counters;
mod cron;
mod deb822_repository;
mod debconf;
mod dnf;
mod dpkg_selections;
mod edited;
mod elsewhere;
mod encoding;
mod external;
mod facts;
mod fetch;
mod fetched;
mod file;
mod find;
mod get_url;
mod getent;
mod git;
mod group;
mod hostname;
mod ini_file;
mod iptables;
mod known_hosts;
mod labels;
mod lineinfile;
mod load;
mod locale_gen;
mod make;
mod modprobe;
mod mount;
mod mount_facts;
mod openpgp;
mod package;
mod package_facts;
mod pam_limits;
mod ping;
mod pip;
mod raw;
mod reboot;
mod replace;
mod script;
mod seboolean;
mod selinux;
mod service;
mod service_facts;
mod setup;
mod shell;
mod slurp;
mod stat;
mod sysctl;
mod systemd;
mod sysvinit;
mod tempfile;
mod timezone;
mod unarchive;
mod uri;
mod user;
mod wait_for;
mod web;
mod yum_repository;

/// Every task module: the only place where a new one is listed.
pub static MODULES: &[&Module] = &[
    &alternatives::MODULE,
    &apt::MODULE,
    &apt_key::MODULE,
    &apt_repository::MODULE,
    &assemble::MODULE,
    &async_status::MODULE,
    &authorized_key::MODULE,
    &blockinfile::MODULE,
    &command::MODULE,
    &copy::MODULE,
    &counters::MODULE,
    &cron::MODULE,
    &deb822_repository::MODULE,
    &debconf::MODULE,
    &dnf::MODULE,
    &elsewhere::APK,
    &elsewhere::HOMEBREW,
    &elsewhere::OPENBSD_PKG,
    &elsewhere::PACMAN,
    &elsewhere::PKGNG,
    &elsewhere::PORTAGE,
    &elsewhere::RPM_KEY,
    &elsewhere::SEPORT,
    &elsewhere::ZYPPER,
    &elsewhere::ZYPPER_REPOSITORY,
    &dpkg_selections::MODULE,
    &fetch::MODULE,
    &file::MODULE,
    &find::MODULE,
    &get_url::MODULE,
    &getent::MODULE,
    &git::MODULE,
    &group::MODULE,
    &hostname::MODULE,
    &ini_file::MODULE,
    &iptables::MODULE,
    &known_hosts::MODULE,
    &lineinfile::MODULE,
    &load::MODULE,
    &locale_gen::MODULE,
    &make::MODULE,
    &modprobe::MODULE,
    &mount::MODULE,
    &mount_facts::MODULE,
    &package::MODULE,
    &package_facts::MODULE,
    &pam_limits::MODULE,
    &ping::MODULE,
    &pip::MODULE,
    &raw::MODULE,
    &reboot::MODULE,
    &replace::MODULE,
    &script::MODULE,
    &seboolean::MODULE,
    &selinux::MODULE,
    &service::MODULE,
    &service_facts::MODULE,
    &setup::MODULE,
    &shell::MODULE,
    &slurp::MODULE,
    &stat::MODULE,
    &sysctl::MODULE,
    &systemd::MODULE,
    &sysvinit::MODULE,
    &tempfile::MODULE,
    &timezone::MODULE,
    &unarchive::MODULE,
    &uri::MODULE,
    &user::MODULE,
    &wait_for::MODULE,
    &yum_repository::MODULE,
];

/// Modules that the engine calls and no playbook names.
pub static INTERNAL: &[&Module] = &[&external::MODULE];
