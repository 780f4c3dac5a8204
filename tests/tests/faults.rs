//! Faults that have no better place, and the list of all of them.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use fleet_tests::{Fleet, Fleetctl, SlowLine, eventually, faults};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(7));

fn exists(host: &str, path: &str) -> bool {
    FLEET.root(host).join(path).exists()
}

#[test]
fn the_page_is_made_of_the_list_and_every_row_has_its_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let page = std::fs::read_to_string(root.join("docs/faults.md")).unwrap();
    assert_eq!(
        page,
        faults::page(),
        "docs/faults.md is written by `tests/faults --page`"
    );
    for row in faults::FAULTS {
        assert!(!row.tests.is_empty(), "row {}", row.number);
        for test in row.tests {
            let (package, path) = test.split_once('/').unwrap();
            let parts: Vec<&str> = path.split("::").collect();
            let file = match (package, &parts[..]) {
                ("tests", [file, _]) => format!("tests/tests/{file}.rs"),
                ("modules", [file, _]) => format!("modules/tests/{file}.rs"),
                ("modules", [folder, file, "tests", _]) => {
                    format!("modules/src/{folder}/{file}.rs")
                }
                _ => panic!("{test} is no test"),
            };
            let text = std::fs::read_to_string(root.join(&file)).unwrap_or_default();
            let name = parts.last().unwrap();
            assert!(
                text.contains(&format!("fn {name}()")),
                "row {}: there is no {name} in {file}",
                row.number
            );
        }
    }
}

#[test]
fn an_address_that_cuts_the_host_off_is_taken_back_by_the_host() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let play = ctl.play(
        r#"
  tasks:
    - find: {paths: /etc/systemd/network, patterns: "*.network"}
      register: networks
    - replace: {path: "{{ networks.files[0].path }}", regexp: "^Address=.*$", replace: "Address=192.0.2.1/24"}
      notify: [restart networkd, take the new address]
  handlers:
    - name: restart networkd
      service: {name: systemd-networkd, state: restarted}
    - name: take the new address
      command: networkctl reconfigure host0
"#,
    );
    ctl.apply(&play, &["--confirm-timeout", "5s"])
        .ended(3)
        .says("rolled_back");
    eventually("the host has its address again", || {
        FLEET.sh("web1", "true").success()
    });
    let journal = ctl.journal("web1");
    assert_eq!(journal.last().unwrap()["state"], "rolled_back");
    assert!(
        !FLEET
            .sh("web1", "cat /etc/systemd/network/*")
            .text()
            .contains("192.0.2.1")
    );
}

#[test]
fn a_file_system_without_inodes_undoes_the_run() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    FLEET
        .sh(
            "web2",
            "mkdir /srv/small && mount -t tmpfs -o nr_inodes=4 none /srv/small",
        )
        .ended(0);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/first, content: "1\n"}
    - copy: {dest: "/srv/small/{{ item }}", content: "x\n"}
      loop: [a, b, c, d, e, f]
"#,
    );
    ctl.apply(&play, &[]).ended(3).says("rolled_back");
    assert!(!exists("web2", "srv/first"));
    assert_eq!(FLEET.sh("web2", "ls -A /srv/small").text(), "");
}

#[test]
fn a_lock_is_held_by_the_helper_and_broken_by_name_only() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let play = ctl.play(
        "\n  tasks:\n    - copy: {dest: /srv/one, content: \"1\\n\"}\n    - command: sleep 30\n",
    );
    let plan = ctl.home().join("a.plan").display().to_string();
    ctl.plan(&play, &["--out", &plan]).ended(0);
    let mut running = ctl.start(["apply", &plan]);
    running.until("the host sleeps", || {
        FLEET.sh("web3", "pgrep -x sleep").success()
    });
    running.signal("KILL");
    let other = Fleetctl::on(&FLEET, &["web3"]);
    let quick = other.play("\n  tasks:\n    - command: \"true\"\n");
    other
        .apply(&quick, &[])
        .ended(6)
        .says("has held this host since");
    let inventory = FLEET.inventory().display().to_string();
    let host = |words: &[&str]| {
        let mut all = vec!["host"];
        all.extend(words);
        all.extend(["-i", &inventory]);
        other.run(all)
    };
    let status = host(&["status", "web3", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&status.ended(0).stdout).unwrap();
    let run = all["web3"]["locked"]["run"].as_str().unwrap().to_owned();
    host(&["unlock", "web3", "another-run"])
        .ended(6)
        .says("nothing was done");
    host(&["unlock", "web3", &run]).ended(0);
    other.apply(&quick, &[]).ended(0).says("was cut off in run");
    assert!(
        !exists("web3", "srv/one"),
        "what the run had written is undone"
    );
}

#[test]
fn a_host_that_is_far_away_is_only_slow() {
    let line = SlowLine::to(&FLEET, "web4", Duration::from_millis(300));
    let ctl = Fleetctl::on(&FLEET, &["web4"]).with_inventory(line.inventory().to_owned());
    let play = ctl.play(
        "\n  tasks:\n    - copy: {dest: \"/srv/far{{ item }}\", content: \"x\\n\"}\n      loop: [1, 2, 3, 4, 5, 6, 7, 8]\n",
    );
    ctl.apply(&play, &[]).ended(0).says("effects=8");
}

#[test]
fn a_host_that_came_after_the_plan_is_not_touched() {
    let ctl = Fleetctl::on(&FLEET, &["web5"]);
    let inventory = ctl.home().join("hosts.yml");
    let all = std::fs::read_to_string(FLEET.inventory()).unwrap();
    // A host is a line with its name, and the deeper lines behind it.
    let of = |hosts: &[&str]| {
        let mut own = true;
        let keeps = |line: &&str| {
            if line.starts_with("    web") {
                own = hosts.contains(&line.trim().trim_end_matches(':'));
            }
            own
        };
        all.lines().filter(keeps).collect::<Vec<_>>().join("\n")
    };
    std::fs::write(&inventory, of(&["web5"])).unwrap();
    let play = ctl.play("\n  tasks:\n    - copy: {dest: /srv/planned, content: \"x\\n\"}\n");
    let (inventory, plan) = (
        inventory.display().to_string(),
        ctl.home().join("a.plan").display().to_string(),
    );
    ctl.run([
        "plan",
        "-i",
        &inventory,
        "--out",
        &plan,
        &play.display().to_string(),
    ])
    .ended(0);
    std::fs::write(&inventory, of(&["web5", "web6"])).unwrap();
    ctl.run(["apply", &plan])
        .ended(0)
        .says("is another than when the plan was made");
    assert!(exists("web5", "srv/planned") && !exists("web6", "srv/planned"));
}

#[test]
fn a_plan_needs_the_approvals_that_are_asked_for() {
    let ctl = Fleetctl::on(&FLEET, &["web6"]);
    let play = ctl.play("\n  tasks:\n    - copy: {dest: /srv/approved, content: \"x\\n\"}\n");
    let at = |name: &str| ctl.home().join(name).display().to_string();
    let (plan, signers) = (at("a.plan"), at("signers"));
    ctl.plan(&play, &["--out", &plan]).ended(0);
    let mut allowed = String::new();
    for who in ["ann", "bob"] {
        let made = std::process::Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &at(who)])
            .status()
            .unwrap();
        assert!(made.success());
        let key = std::fs::read_to_string(at(&format!("{who}.pub"))).unwrap();
        allowed += &format!("{who} {key}");
    }
    std::fs::write(&signers, allowed).unwrap();
    let apply = [
        "apply",
        &plan,
        "--approvals",
        "2",
        "--allowed-signers",
        &signers,
    ];
    ctl.run(["approve", &plan, "--who", "ann", "--key", &at("ann")])
        .ended(0);
    // Ann twice is one, and her key is not Bob's.
    ctl.run(["approve", &plan, "--who", "ann", "--key", &at("ann")])
        .ended(0);
    ctl.run(["approve", &plan, "--who", "bob", "--key", &at("ann")])
        .ended(0);
    ctl.run(apply).ended(5).says("1 of 2 approvals are there");
    ctl.run(["approve", &plan, "--who", "bob", "--key", &at("bob")])
        .ended(0);
    ctl.run([
        "verify",
        &plan,
        "--approvals",
        "2",
        "--allowed-signers",
        &signers,
    ])
    .ended(0)
    .says("approved by bob");
    ctl.run(apply).ended(0);
    assert!(exists("web6", "srv/approved"));
    ctl.run(["audit", "verify"])
        .ended(0)
        .says("all as they were written");
    // The host's log says the same.
    let log = FLEET
        .root("web6")
        .join("var/log/fleetctl/audit.jsonl")
        .display()
        .to_string();
    ctl.run(["audit", "verify", "--file", &log]).ended(0);
    let altered = std::fs::read_to_string(&log)
        .unwrap()
        .replacen("began", "begun", 1);
    std::fs::write(&log, altered).unwrap();
    ctl.run(["audit", "verify", "--file", &log])
        .ended(1)
        .says(":2:");
}

#[test]
fn damaged_journals_let_no_run_begin_before_they_are_repaired() {
    let ctl = Fleetctl::on(&FLEET, &["web7"]);
    let play = |content: &str| {
        ctl.play(&format!(
            "\n  tasks:\n    - copy: {{dest: /srv/journaled, content: \"{content}\\n\"}}\n"
        ))
    };
    ctl.apply(&play("1"), &[]).ended(0);
    let run = ctl.journal("web7").last().unwrap()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let journal = format!("/var/lib/fleetctl/txn/{run}/journal");
    // A whole line that says something else, and no end: the run was cut off, and nobody can say what it did.
    FLEET
        .sh(
            "web7",
            &format!("sed -i -e 's/journaled/elsewhere/' -e '$d' {journal}"),
        )
        .ended(0);
    ctl.apply(&play("2"), &[])
        .ended(7)
        .says("fleetctl host repair");
    assert_eq!(FLEET.read("web7", "/srv/journaled"), "1\n");
    let inventory = FLEET.inventory().display().to_string();
    ctl.run(["host", "repair", "--yes", "web7", "-i", &inventory])
        .ended(0)
        .says("set aside: /var/lib/fleetctl/damaged/");
    ctl.apply(&play("2"), &[]).ended(0);

    FLEET.sh("web7", "rm -r /var/lib/fleetctl/txn").ended(0);
    ctl.apply(&play("3"), &[]).ended(3).says("are gone");
    ctl.run(["host", "repair", "--yes", "web7", "-i", &inventory])
        .ended(0);
    ctl.apply(&play("3"), &[]).ended(0);
    assert_eq!(FLEET.read("web7", "/srv/journaled"), "3\n");
}
