//! What a run changed is undone when it fails, and when a person asks for it.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl, HostState, eventually};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(14));

fn in_this_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The processes of nginx, the master first.
fn nginx(host: &str) -> Vec<String> {
    let said = FLEET.sh(host, "cat /run/nginx.pid; pgrep -P $(cat /run/nginx.pid)");
    said.text().lines().map(str::to_owned).collect()
}

#[test]
fn what_nginx_refuses_is_undone_and_nginx_has_the_word() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let before = HostState::of(&FLEET, "web1");
    let processes = nginx("web1");
    let failed = ctl.apply(&in_this_repository("tests/playbooks/broken-nginx.yml"), &[]);
    failed.ended(3);
    failed.says("invalid number of arguments in \"server_tokens\" directive in /etc/nginx/conf.d/broken.conf:3");
    failed.says("web1 rolled back: 3 effects undone, all is as it was");
    HostState::of(&FLEET, "web1").assert_same_as(&before);
    // nginx has not even been told of it.
    assert_eq!(nginx("web1"), processes);
}

#[test]
fn what_nginx_refuses_is_not_even_put_in_place_with_validate() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    ctl.write(
        "broken.conf.j2",
        "# For {{ inventory_hostname }}.\nserver_tokens off\ngzip on;\n",
    );
    let before = HostState::of(&FLEET, "web2");
    let processes = nginx("web2");
    let play = ctl.play(
        r#"
  tasks:
    - sysctl: {name: net.ipv4.tcp_fin_timeout, value: "17", sysctl_file: /etc/sysctl.d/90-x.conf}
    - template: {src: broken.conf.j2, dest: /etc/nginx/conf.d/broken.conf, mode: "0644", validate: nginx -t}
      notify: reload nginx
  handlers:
    - name: reload nginx
      service: {name: nginx, state: reloaded}
"#,
    );
    let planned = ctl.plan(&play, &[]);
    planned.ended(3).says("/etc/nginx/conf.d/broken.conf:3");
    let failed = ctl.apply(&play, &[]);
    failed
        .ended(3)
        .says("/etc/nginx/conf.d/broken.conf:3")
        .says("web2 rolled back: 2 effects undone");
    HostState::of(&FLEET, "web2").assert_same_as(&before);
    assert_eq!(nginx("web2"), processes);
}

#[test]
fn a_refused_reload_is_undone() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    // `nginx -t` does not listen on the port that another process holds; the reload tries to.
    let listener =
        "systemd-run --quiet --unit=squatter --collect systemd-socket-activate -l 8081 /bin/cat";
    FLEET.sh("web3", listener).ended(0);
    eventually("port 8081 is taken", || {
        FLEET
            .sh("web3", "ss -Hltn 'sport = :8081' | grep -q .")
            .success()
    });
    let before = HostState::of(&FLEET, "web3");
    let processes = nginx("web3");
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /etc/nginx/conf.d/taken.conf, content: "server { listen 8081; }\n", mode: "0644"}
      notify: reload nginx
  handlers:
    - name: reload nginx
      service: {name: nginx, state: reloaded}
"#,
    );
    let failed = ctl.apply(&play, &[]);
    failed.ended(3).says("rolled back").says("8081");
    HostState::of(&FLEET, "web3").assert_same_as(&before);
    // The same master serves the old configuration.
    assert_eq!(nginx("web3")[0], processes[0]);
    assert!(
        FLEET
            .sh("web3", "curl -fsS http://127.0.0.1/ >/dev/null")
            .success()
    );
}

#[test]
fn a_failed_validation_leaves_the_target_alone_and_also_that_of_a_link() {
    let ctl = Fleetctl::on(&FLEET, &["web4"]);
    FLEET
        .sh(
            "web4",
            "echo old > /srv/plain; echo old > /srv/target; ln -s target /srv/link",
        )
        .ended(0);
    let look = "cd /srv && ls && stat -c '%n %i %Z' * && cat plain link";
    let before = FLEET.sh("web4", look).text().to_owned();
    for dest in ["/srv/plain", "/srv/link", "/srv/absent"] {
        let play = ctl.play(&format!(
            r#"
  tasks:
    - copy: {{dest: {dest}, content: "new\n", mode: "0644", validate: /bin/false %s}}
"#
        ));
        ctl.apply(&play, &[])
            .ended(3)
            .says("which was not put in place")
            .says("rolled back: nothing was left to undo");
    }
    // The folder was written to, but none of its files.
    assert_eq!(FLEET.sh("web4", look).text(), before);
}

const MUCH: &str = r#"
  tasks:
    - copy: {dest: /srv/edited, content: "new\n", mode: "0644"}
    - file: {path: /srv/mode, mode: "0600", owner: www-data, group: www-data}
    - file: {path: /srv/link, src: new, state: link, force: true}
    - file: {path: /srv/gone, state: absent}
    - file: {path: /srv/made/deeply, state: directory, mode: "0711"}
    - copy: {dest: /srv/made/deeply/file, content: "x", mode: "0600"}
    - sysctl: {name: net.ipv4.tcp_fin_timeout, value: "17", sysctl_file: /etc/sysctl.d/90-much.conf}
    - service: {name: nginx, state: stopped, enabled: false}
"#;

/// What `MUCH` finds.
fn prepare(host: &str) {
    let said = "cd /srv && echo old > edited && echo mode > mode && chmod 4755 mode && ln -s old link && echo gone > gone && chown ops:games gone";
    FLEET.sh(host, said).ended(0);
}

#[test]
fn a_whole_run_can_be_rolled_back() {
    let ctl = Fleetctl::on(&FLEET, &["web5"]);
    prepare("web5");
    let before = HostState::of(&FLEET, "web5");
    let play = ctl.play(MUCH);
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(
        FLEET.read("web5", "/proc/sys/net/ipv4/tcp_fin_timeout"),
        "17\n"
    );
    assert!(!FLEET.sh("web5", "systemctl is-active nginx").success());

    ctl.run(["rollback", "last"])
        .ended(0)
        .says("web5 rolled back");
    HostState::of(&FLEET, "web5").assert_same_as(&before);

    // By its name, too; and once more, which finds nothing left to do.
    ctl.apply(&play, &[]).ended(0);
    let journal = ctl.journal("web5");
    let run = journal
        .last()
        .and_then(|run| run["run"].as_str())
        .unwrap_or_default()
        .to_owned();
    ctl.run(["rollback", &run]).ended(0);
    HostState::of(&FLEET, "web5").assert_same_as(&before);
    ctl.run(["rollback", &run]).ended(0);
    HostState::of(&FLEET, "web5").assert_same_as(&before);
    assert_eq!(
        ctl.journal("web5").last().map(|run| run["state"].clone()),
        Some("rolled_back".into())
    );
    ctl.run(["rollback", "20200101-000000-none"])
        .ended(11)
        .says("there is no run `20200101-000000-none`");
}

#[test]
fn a_rollback_leaves_what_somebody_else_has_changed_since() {
    let ctl = Fleetctl::on(&FLEET, &["web6"]);
    prepare("web6");
    ctl.apply(&ctl.play(MUCH), &[]).ended(0);
    FLEET.write("web6", "/srv/edited", "by hand\n");

    let undone = ctl.run(["rollback", "last"]);
    undone
        .ended(7)
        .says("/srv/edited")
        .says("somebody else has changed it since");
    assert_eq!(FLEET.read("web6", "/srv/edited"), "by hand\n");
    assert_eq!(FLEET.read("web6", "/srv/gone"), "gone\n");
    assert_eq!(
        FLEET.read("web6", "/proc/sys/net/ipv4/tcp_fin_timeout"),
        "60\n"
    );
    assert_eq!(
        ctl.journal("web6").last().map(|run| run["state"].clone()),
        Some("rollback_conflict".into())
    );
}

#[test]
fn the_flagship_can_be_rolled_back_with_all_that_it_restarted() {
    let ctl = Fleetctl::on(&FLEET, &["web7"]);
    let before = HostState::of(&FLEET, "web7");
    ctl.apply(
        &in_this_repository("playbooks/nginx-static.yml"),
        &["--no-bench"],
    )
    .ended(0);
    ctl.run(["rollback", "last"]).ended(0);
    HostState::of(&FLEET, "web7").assert_same_as(&before);
    let limits = "grep 'Max open files' /proc/$(cat /run/nginx.pid)/limits | awk '{print $4}'";
    assert_eq!(
        FLEET.sh("web7", limits).text(),
        FLEET.sh("web8", limits).text()
    );
}

#[test]
fn a_run_of_a_user_without_root_can_be_rolled_back() {
    let ctl = Fleetctl::on(&FLEET, &["web8"]);
    let play = ctl.write(
        "own.yml",
        "- hosts: web\n  gather_facts: false\n  tasks:\n    - copy: {dest: ~/own, content: \"mine\\n\", mode: \"0600\"}\n",
    );
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(
        FLEET.sh("web8", "stat -c '%U %a' /home/ops/own").text(),
        "ops 600"
    );
    ctl.run(["rollback", "last"]).ended(0).says("rolled back");
    assert!(!FLEET.sh("web8", "test -e /home/ops/own").success());
}

#[test]
fn runs_are_rolled_back_from_the_last_to_the_first() {
    let ctl = Fleetctl::on(&FLEET, &["web9"]);
    FLEET.write("web9", "/srv/file", "0\n");
    let write = |text: &str| {
        let play = ctl.play(&format!(
            "  tasks:\n    - copy: {{dest: /srv/file, content: \"{text}\\n\"}}\n"
        ));
        let applied = ctl.apply(&play, &[]);
        let last = applied
            .ended(0)
            .stdout
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        last.trim_start_matches("run ").to_owned()
    };
    let (first, second) = (write("1"), write("2"));
    // What the second run wrote is somebody else's change to the first.
    ctl.run(["rollback", &first])
        .ended(7)
        .says("somebody else has changed it since");
    assert_eq!(FLEET.read("web9", "/srv/file"), "2\n");
    ctl.run(["rollback", &second]).ended(0);
    assert_eq!(FLEET.read("web9", "/srv/file"), "1\n");
    ctl.run(["rollback", &first]).ended(0);
    assert_eq!(FLEET.read("web9", "/srv/file"), "0\n");
}

#[test]
fn a_kernel_parameter_that_the_host_refuses_undoes_the_run() {
    let ctl = Fleetctl::on(&FLEET, &["web10"]);
    let before = HostState::of(&FLEET, "web10");
    let play = ctl.play(
        r#"
  tasks:
    - sysctl: {name: net.ipv4.tcp_fin_timeout, value: "17", sysctl_file: /etc/sysctl.d/90-x.conf}
    - sysctl: {name: vm.swappiness, value: "7", sysctl_file: /etc/sysctl.d/90-x.conf}
"#,
    );
    let failed = ctl.apply(&play, &[]);
    failed
        .ended(3)
        .says("vm.swappiness")
        .says("read-only")
        .says("web10 rolled back: 2 effects undone");
    HostState::of(&FLEET, "web10").assert_same_as(&before);
}

#[test]
fn a_service_that_does_not_start_goes_with_its_unit() {
    let ctl = Fleetctl::on(&FLEET, &["web11"]);
    let before = HostState::of(&FLEET, "web11");
    let play = ctl.play(
        r#"
  tasks:
    - copy:
        dest: /etc/systemd/system/stillborn.service
        content: "[Service]\nExecStart=/bin/sh -c 'echo I cannot live >&2; exit 9'\n[Install]\nWantedBy=multi-user.target\n"
        mode: "0644"
    - systemd: {name: stillborn, enabled: true, state: started, daemon_reload: true}
"#,
    );
    let failed = ctl.apply(&play, &[]);
    failed
        .ended(3)
        .says("stillborn.service is failed")
        .says("I cannot live")
        .says("web11 rolled back");
    HostState::of(&FLEET, "web11").assert_same_as(&before);
    assert_eq!(
        FLEET
            .sh(
                "web11",
                "systemctl --failed --no-legend; systemctl is-system-running"
            )
            .text(),
        "running"
    );
}

#[test]
fn a_file_that_cannot_be_changed_undoes_the_run() {
    let ctl = Fleetctl::on(&FLEET, &["web12"]);
    // No room is left there, and what is mounted cannot be replaced.
    FLEET.sh("web12", "mkdir /srv/small && mount -t tmpfs -o size=64k none /srv/small && echo x > /srv/small/kept && touch /srv/mounted && mount --bind /etc/hostname /srv/mounted").ended(0);
    let before = HostState::of(&FLEET, "web12");
    for (task, why) in [
        (
            "copy: {dest: /srv/small/large, content: \"{{ 'x' * 100000 }}\", mode: \"0644\"}",
            "bytes are needed on the file system of /srv/small, and",
        ),
        (
            "copy: {dest: /srv/small/kept, content: \"{{ 'x' * 100000 }}\", mode: \"0644\"}",
            "bytes are needed on the file system of /srv/small, and",
        ),
        (
            "copy: {dest: /srv/mounted, content: x, mode: \"0644\"}",
            "it is a mount point",
        ),
        (
            "copy: {dest: /proc/sys/nothing, content: x, mode: \"0644\"}",
            "cannot write /proc/sys/nothing",
        ),
    ] {
        let play = ctl.play(&format!(
            "  tasks:\n    - copy: {{dest: /srv/first, content: x, mode: \"0644\"}}\n    - {task}\n"
        ));
        ctl.apply(&play, &[])
            .ended(3)
            .says(why)
            .says("web12 rolled back: 1 effect undone, all is as it was");
        HostState::of(&FLEET, "web12").assert_same_as(&before);
        assert_eq!(
            FLEET.sh("web12", "ls -A /srv /srv/small").text(),
            "/srv:\nmounted\nsmall\n\n/srv/small:\nkept"
        );
    }
}

#[test]
fn a_run_can_be_rolled_back_host_by_host() {
    let ctl = Fleetctl::on(&FLEET, &["web13", "web14"]);
    let play = ctl.play("  tasks:\n    - copy: {dest: /srv/made, content: x, mode: \"0644\"}\n");
    ctl.apply(&play, &[]).ended(0);
    let made = |host: &str| FLEET.sh(host, "test -e /srv/made").success();

    ctl.run(["rollback", "-l", "web13", "last"])
        .ended(0)
        .says("web13 rolled back")
        .keeps_silent_about("web14");
    assert_eq!((made("web13"), made("web14")), (false, true));

    // A host that cannot be reached keeps its change, until it is asked again.
    FLEET.cut("web14");
    ctl.run(["host", "disconnect", "--all"]).ended(0);
    let rollback = ["rollback", "-T", "2", "last"];
    ctl.run(rollback)
        .ended(4)
        .says("web13 rolled back")
        .says("web14");
    FLEET.mend("web14");
    ctl.run(rollback)
        .ended(0)
        .says("web14 rolled back: 1 effect undone, all is as it was");
    assert_eq!((made("web13"), made("web14")), (false, false));
}
