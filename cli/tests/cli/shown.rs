//! `fleetctl inventory`, the twin of `ansible-inventory`.

use crate::desk::Desk;

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("group_vars/web.yml", "port: 80\n");
    desk
}

#[test]
fn a_list_is_that_of_ansible() {
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --list -l web1"), @r#"
    {
        "_meta": {
            "hostvars": {
                "web1": {
                    "port": 80
                }
            },
            "profile": "inventory_legacy"
        },
        "all": {
            "children": [
                "ungrouped",
                "web",
                "db"
            ]
        },
        "web": {
            "hosts": [
                "web1"
            ]
        }
    }
    --- exit 0
    "#);
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --list --export -y"), @"
    all:
      children:
        db:
          hosts:
            db1: {}
        web:
          hosts:
            web1: {}
            web2: {}
          vars:
            port: 80
    --- exit 0
    ");
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --list --toml"), @r#"
    [all]
    children = [
        "web",
        "db",
    ]

    [db.hosts.db1]

    [web.hosts.web1]
    port = 80

    [web.hosts.web2]
    port = 80
    --- exit 0
    "#);
}

#[test]
fn a_graph_may_begin_at_a_group() {
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --graph web --vars"), @"
    @web:
      |--web1
      |  |--{port = 80}
      |--web2
      |  |--{port = 80}
      |--{port = 80}
    --- exit 0
    ");
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --graph wbe"), @"
    --- stderr
    error: Pattern must be valid group name when using --graph: no group `wbe` in the inventory (did you mean `web`?)
    --- exit 5
    ");
}

#[test]
fn a_host_has_extra_variables_too() {
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --host web1 -e x=1"), @r#"
    {
        "port": 80,
        "x": "1"
    }
    --- exit 0
    "#);
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --host web3"), @"
    --- stderr
    error: You must pass a single valid host to --host parameter. Could not match supplied host pattern, ignoring: web3: no host `web3` in the inventory (did you mean `web1`?)
    --- exit 5
    ");
}

#[test]
fn a_playbooks_directory_may_be_named() {
    let desk = desk();
    desk.file("play/host_vars/web1", "y: 2\n");
    insta::assert_snapshot!(desk.run("inventory -i hosts.yml --playbook-dir play --host web1"), @r#"
    {
        "port": 80,
        "y": 2
    }
    --- exit 0
    "#);
}

#[test]
fn what_is_written_to_a_file_is_not_printed() {
    let desk = desk();
    assert_eq!(
        desk.run("inventory -i hosts.yml --list -y --output out.yml"),
        "--- exit 0"
    );
    assert_eq!(
        desk.run("inventory -i out.yml --host web1"),
        desk.run("inventory -i hosts.yml --host web1")
    );
}

#[test]
fn a_source_that_cannot_be_read_is_warned_of() {
    insta::assert_snapshot!(desk().run("inventory -i nowhere.yml --graph"), @"
    @all:
      |--@ungrouped:
    --- stderr
    warning[F0201]: Unable to parse $DESK/nowhere.yml as an inventory source

    warning[F0201]: No inventory was parsed, only implicit localhost is available

    --- exit 0
    ");
}

#[test]
fn a_limit_that_names_nobody_leaves_nobody() {
    let shown = desk().run("inventory -i hosts.yml --list -l nobody");
    assert!(
        shown.contains("\"hostvars\": {}") && shown.ends_with("--- exit 0"),
        "{shown}"
    );
    let all = desk().run("inventory -i hosts.yml --list");
    assert_eq!(desk().run("inventory -i hosts.yml --list -l ,,"), all);
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --list -l @."), @r#"
    --- stderr
    error[F0210]: limit starting with "@" must be a file, not a directory: `.`
     --> --limit:1:1
      |
    1 | @.
      | ^^
    --- exit 1
    "#);
}

#[test]
fn one_thing_is_to_be_said() {
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml"), @"
    --- stderr
    error: No action selected, at least one of --host, --graph or --list needs to be specified.
    --- exit 5
    ");
    insta::assert_snapshot!(desk().run("inventory -i hosts.yml --list --graph"), @"
    --- stderr
    error: Conflicting options used, only one of --host, --graph or --list can be used at the same time.
    --- exit 5
    ");
}
