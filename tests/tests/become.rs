//! Who does what on a host.

use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(5));

fn owner_and_mode(host: &str, path: &str) -> String {
    FLEET
        .sh(host, &format!("stat -c '%U:%G %a' {path}"))
        .text()
        .to_owned()
}

#[test]
fn each_task_acts_as_its_user() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    FLEET
        .sh("web1", "mkdir /srv/theirs && chown www-data: /srv/theirs")
        .ended(0);
    let play = ctl.write(
        "users.yml",
        r#"- hosts: web
  gather_facts: false
  tasks:
    - name: the login user, in its home
      copy: {dest: ~/own, content: "mine\n", mode: "0600"}
    - name: root
      become: true
      copy: {dest: /srv/roots, content: "all\n", mode: "0644"}
    - name: another user, in a folder of its own
      become: true
      become_user: www-data
      copy: {dest: /srv/theirs/file, content: "theirs\n", mode: "0640"}
    - become: true
      become_user: www-data
      command: id -un
      register: who
    - command: id -un
      register: me
    - assert: {that: [who.stdout == 'www-data', me.stdout == 'ops']}
"#,
    );
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(owner_and_mode("web1", "/home/ops/own"), "ops:ops 600");
    assert_eq!(owner_and_mode("web1", "/srv/roots"), "root:root 644");
    assert_eq!(
        owner_and_mode("web1", "/srv/theirs/file"),
        "www-data:www-data 640"
    );
    ctl.apply(&play, &[]).ended(0).says("effects=2"); // The two commands.

    ctl.run(["rollback", "last"]).ended(0);
}

#[test]
fn a_user_can_do_no_more_than_it_may() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    for (user, task) in [
        (
            "    become_user: www-data\n",
            "copy: {dest: /srv/not-theirs, content: x, mode: \"0644\"}",
        ),
        (
            "    become: false\n",
            "copy: {dest: /srv/not-theirs, content: x, mode: \"0644\"}",
        ),
    ] {
        let play = ctl.play(&format!("  tasks:\n  - {task}\n{user}"));
        ctl.plan(&play, &[])
            .ended(3)
            .says("cannot write /srv/not-theirs: permission denied");
        ctl.apply(&play, &[])
            .ended(3)
            .says("cannot write /srv/not-theirs: permission denied");
    }
    assert_eq!(FLEET.sh("web2", "ls /srv").text(), "");
    let nobody = ctl.play("  tasks:\n  - command: id\n    become_user: nosuchuser\n");
    ctl.apply(&nobody, &[])
        .ended(3)
        .says("there is no user `nosuchuser` on this host");
}

#[test]
fn without_root_everything_stays_in_the_home() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let play = ctl.write(
        "own.yml",
        "- hosts: web\n  gather_facts: false\n  tasks:\n    - copy: {dest: ~/own, content: \"mine\\n\", mode: \"0600\"}\n",
    );
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(owner_and_mode("web3", "/home/ops/own"), "ops:ops 600");
    assert!(!FLEET.sh("web3", "test -e /var/lib/fleetctl").success());
    assert_eq!(
        owner_and_mode("web3", "/home/ops/.local/state/fleetctl"),
        "ops:ops 700"
    );
    ctl.apply(&play, &[]).ended(0).says("changed=0 effects=0");
}

#[test]
fn sudo_may_ask_for_a_password() {
    let ctl = Fleetctl::on(&FLEET, &["web4"]).with_inventory(FLEET.inventory_for("ada"));
    let play =
        ctl.play("  tasks:\n    - copy: {dest: /srv/asked, content: \"x\\n\", mode: \"0600\"}\n");
    let right = ctl.write("right", "correct horse\n").display().to_string();
    let wrong = ctl.write("wrong", "battery staple\n").display().to_string();

    let refused = ctl.apply(&play, &["--become-password-file", &wrong]);
    refused
        .ended(3)
        .says("web4")
        .says("password")
        .keeps_silent_about("battery staple");
    let unasked = ctl.apply(&play, &[]);
    unasked.ended(3).says("web4").says("password");
    assert!(!FLEET.sh("web4", "test -e /srv/asked").success());

    ctl.apply(&play, &["--become-password-file", &right])
        .ended(0);
    assert_eq!(owner_and_mode("web4", "/srv/asked"), "root:root 600");
}

#[test]
fn where_there_is_no_sudo_su_does_with_roots_password() {
    let ctl = Fleetctl::on(&FLEET, &["web5"]);
    FLEET
        .sh(
            "web5",
            "rm /usr/bin/sudo && echo 'root:a root of its own' | chpasswd",
        )
        .ended(0);
    let play = ctl.write(
        "su.yml",
        r#"- hosts: web
  gather_facts: false
  become: true
  become_method: su
  tasks:
    - copy: {dest: /srv/roots, content: "all\n", mode: "0600"}
    - become_user: www-data
      command: id -un
      register: who
    - become: false
      command: id -un
      register: me
    - assert: {that: [who.stdout == 'www-data', me.stdout == 'ops']}
"#,
    );
    ctl.apply(&play, &[])
        .ended(3)
        .says("needs a password to become root; give it with -K");
    let right = ["-e", "ansible_become_password='a root of its own'"];
    ctl.apply(&play, &["-e", "ansible_become_password=wrong"])
        .ended(3)
        .says("refuses the password for becoming root");
    ctl.apply(&play, &right).ended(0);
    assert_eq!(owner_and_mode("web5", "/srv/roots"), "root:root 600");
    ctl.run(
        ["rollback", "last"]
            .iter()
            .chain(&right)
            .map(|word| (*word).to_owned()),
    )
    .ended(0);
}
