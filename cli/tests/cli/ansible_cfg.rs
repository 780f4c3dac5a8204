//! `ansible.cfg`: which file counts, what is said of it, and that it is heeded.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::desk::Desk;

/// The hosts that an inventory without any flag has.
fn hosts(desk: &Desk) -> String {
    let graph = desk.run("inventory --graph");
    let names = graph.lines().filter_map(|line| line.rsplit_once("--"));
    let names = names
        .map(|(_, name)| name)
        .filter(|name| !name.starts_with('@'));
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_file_in_the_working_directory_wins_over_the_one_at_home() {
    let desk = Desk::new();
    desk.file("here.ini", "here\n").file("home.ini", "home\n");
    desk.file(".ansible.cfg", "[defaults]\ninventory = home.ini\n");
    assert!(hosts(&desk).contains("home"), "{}", hosts(&desk));
    desk.file("ansible.cfg", "[defaults]\ninventory = ./here.ini\n");
    assert!(hosts(&desk).contains("here"), "{}", hosts(&desk));
}

#[test]
fn a_file_where_everybody_may_write_is_passed_over() {
    let desk = Desk::new();
    desk.file("open/ansible.cfg", "[defaults]\nforks = none\n");
    fs::set_permissions(desk.path().join("open"), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = assert_cmd::Command::cargo_bin("fleetctl").unwrap();
    command
        .env_clear()
        .env("NO_COLOR", "1")
        .env("HOME", desk.path());
    let said = command
        .current_dir(desk.path().join("open"))
        .args(["inventory", "-i", "a,", "--list"])
        .output()
        .unwrap();
    let told = String::from_utf8(said.stderr).unwrap();
    assert!(
        told.contains("ansible.cfg is passed over: everybody may write to its directory"),
        "{told}"
    );
    assert_eq!(said.status.code(), Some(0));
}

#[test]
fn a_variable_names_the_file_and_wins_over_it() {
    let desk = Desk::new();
    desk.file("etc/ansible.cfg", "[defaults]\ninventory = a.ini\n");
    desk.file("etc/a.ini", "a1\n").file("b.ini", "b1\n");
    let graph = |variables: &[(&str, &str)]| {
        let mut command = assert_cmd::Command::cargo_bin("fleetctl").unwrap();
        command
            .env_clear()
            .env("NO_COLOR", "1")
            .env("HOME", desk.path());
        command
            .envs(variables.iter().copied())
            .current_dir(desk.path());
        let said = command.args(["inventory", "--graph"]).output().unwrap();
        String::from_utf8([said.stdout, said.stderr].concat()).unwrap()
    };
    assert!(graph(&[("ANSIBLE_CONFIG", "etc")]).contains("--a1"));
    assert!(graph(&[("ANSIBLE_CONFIG", "etc/ansible.cfg")]).contains("--a1"));
    let both = [
        ("ANSIBLE_CONFIG", "etc"),
        ("ANSIBLE_INVENTORY", "b.ini,etc/a.ini"),
    ];
    assert!(graph(&both).contains("--b1") && graph(&both).contains("--a1"));
    let missing = graph(&[("ANSIBLE_CONFIG", "nowhere.cfg")]);
    assert!(
        missing.contains("`ANSIBLE_CONFIG` names nowhere.cfg, and there is no such file"),
        "{missing}"
    );
}

#[test]
fn mistakes_and_what_is_not_honoured_are_told_at_their_place() {
    let desk = Desk::new();
    desk.file(
        "ansible.cfg",
        "[defaults]\nstrategy_plugins = ./mitogen\nforks = many\n",
    );
    insta::assert_snapshot!(desk.run("inventory -i hosts.yml --graph"), @"
    --- stderr
    warning[F0403]: `strategy_plugins` is set, and fleetctl does not run plugins of one's own, which are Python
     --> ansible.cfg:2:1
      |
    2 | strategy_plugins = ./mitogen
      | ^^^^^^^^^^^^^^^^

    error[F0402]: `many` is no value of `forks`
     --> ansible.cfg:3:9
      |
    3 | forks = many
      |         ^^^^ expected a whole number from 1 on
    --- exit 1
    ");
}
