//! Handlers: what runs once, at the end, because something changed.

use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(6));

#[test]
fn handlers_run_once_and_in_the_order_in_which_they_are_written() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/one, content: "1\n", mode: "0644"}
      notify: [third, first]
    - copy: {dest: "/srv/{{ item }}", content: "2\n", mode: "0644"}
      loop: [two, three]
      notify: first
    - copy: {dest: /srv/one, content: "1\n", mode: "0644"}
      notify: never
    - copy: {dest: /srv/four, content: "4\n", mode: "0644"}
      notify: everybody
  handlers:
    - name: first
      shell: echo first >> /srv/order
      notify: by a handler
    - name: never
      shell: echo never >> /srv/order
    - name: second
      shell: echo second >> /srv/order
      listen: everybody
    - name: third
      shell: echo third >> /srv/order
      listen: everybody
    - name: by a handler
      shell: echo by a handler >> /srv/order
"#,
    );
    let plan = ctl.plan(&play, &[]);
    plan.ended(0)
        .says("? first")
        .says("? second")
        .says("? third")
        .says("? by a handler")
        .keeps_silent_about("? never");
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(
        FLEET.read("web1", "/srv/order"),
        "first\nsecond\nthird\nby a handler\n"
    );
    ctl.apply(&play, &[]).ended(0).says("changed=0 effects=0");
    assert_eq!(
        FLEET.read("web1", "/srv/order"),
        "first\nsecond\nthird\nby a handler\n"
    );
}

#[test]
fn handlers_can_be_flushed_in_between() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/one, content: "1\n", mode: "0644"}
      notify: note
    - meta: flush_handlers
    - shell: echo between >> /srv/order
    - copy: {dest: /srv/two, content: "2\n", mode: "0644"}
      notify: note
  handlers:
    - name: note
      shell: echo handler >> /srv/order
"#,
    );
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(
        FLEET.read("web2", "/srv/order"),
        "handler\nbetween\nhandler\n"
    );
}

#[test]
fn a_failed_handler_undoes_what_notified_it_and_runs_again_with_it() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/config, content: "new\n", mode: "0644"}
      notify: load
  handlers:
    - name: load
      shell: test -e /srv/ready && echo loaded >> /tmp/order
"#,
    );
    ctl.apply(&play, &[]).ended(3).says("web3 rolled back");
    assert_eq!(FLEET.sh("web3", "ls /srv").text(), "");
    // Nothing is left to be loaded: the change that notified it is not there any more.
    let other = ctl.play("  tasks:\n    - copy: {dest: /srv/ready, content: \"\", mode: \"0644\"}\n  handlers:\n    - name: load\n      shell: echo too early >> /tmp/order\n");
    ctl.apply(&other, &[])
        .ended(0)
        .keeps_silent_about("pending");
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(FLEET.read("web3", "/tmp/order"), "loaded\n");
}

#[test]
fn a_handler_that_failed_and_was_kept_stays_pending_until_it_succeeds() {
    let ctl = Fleetctl::on(&FLEET, &["web4"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/config, content: "new\n", mode: "0644"}
      notify: load
  handlers:
    - name: load
      shell: echo tried >> /srv/order; test -e /srv/ready
"#,
    );
    ctl.apply(&play, &["--on-failure", "keep"]).ended(3);
    ctl.apply(&play, &["--on-failure", "keep"])
        .ended(3)
        .says("pending");
    FLEET.write("web4", "/srv/ready", "");
    ctl.plan(&play, &[]).ended(0).says("? load");
    ctl.apply(&play, &[]).ended(0).says("pending");
    ctl.apply(&play, &[]).ended(0).keeps_silent_about("pending");
    assert_eq!(FLEET.read("web4", "/srv/order"), "tried\ntried\ntried\n");
}

#[test]
fn a_handler_that_waits_for_other_hosts_is_done_with_on_each() {
    // A command of several hosts waits for them, and so is sent when the controller knows who was notified.
    let ctl = Fleetctl::on(&FLEET, &["web5", "web6"]);
    let play = ctl.play(
        r#"
  tasks:
    - copy: {dest: /srv/one, content: "1\n", mode: "0644"}
      notify: [a command, said here]
  handlers:
    - name: a command
      shell: echo done >> /srv/order
    - name: said here
      debug: {msg: said}
"#,
    );
    ctl.apply(&play, &[]).ended(0);
    ctl.apply(&play, &[])
        .ended(0)
        .keeps_silent_about("pending")
        .says("changed=0 effects=0");
    for host in ["web5", "web6"] {
        assert_eq!(FLEET.read(host, "/srv/order"), "done\n");
    }
}
