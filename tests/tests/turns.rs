//! Sending ahead: how long a play waits for the line does not grow with its tasks.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::fmt::Write;
use std::process::Stdio;
use std::time::Duration;

use fleet_tests::{Fleet, Fleetctl, SlowLine};

/// The tasks of a play that changes nothing once it has been applied: one of each kind, over and over.
fn tasks(count: usize) -> String {
    let mut play = "  gather_facts: true\n  tasks:\n".to_owned();
    for number in 0..count {
        let task = match number % 5 {
            0 => "file: {path: /etc/turns, state: directory, mode: \"0755\"}".to_owned(),
            1 => format!(
                "copy: {{dest: /etc/turns/{number}, content: \"of {{{{ ansible_hostname }}}}\\n\", mode: \"0644\"}}"
            ),
            2 => format!(
                "lineinfile: {{path: /etc/turns/{}, line: of web1}}",
                number - 1
            ),
            3 => "command: id -u\n      changed_when: false".to_owned(),
            _ => "service: {name: nginx, state: started}".to_owned(),
        };
        writeln!(play, "    - {task}").unwrap();
    }
    play
}

/// How often `run` had to wait for the whole way there and back. A busy machine may cut one answer in two, so the
/// least of three.
fn turns(line: &SlowLine, mut run: impl FnMut()) -> u64 {
    let once = |_| {
        let before = line.turns();
        run();
        line.turns() - before
    };
    (0..3).map(once).min().unwrap()
}

#[test]
fn turns_do_not_grow_with_tasks() {
    let fleet = Fleet::up(1);
    let line = SlowLine::to(&fleet, "web1", Duration::from_millis(25));
    let user = Fleetctl::on(&fleet, &["web1"]).with_inventory(line.inventory().to_owned());
    let play = |count| {
        let text = format!("- hosts: web\n  become: true\n{}", tasks(count));
        user.write(&format!("turns{count}.yml"), &text)
    };
    let [twelve, forty] = [play(12), play(40)].map(|playbook| {
        user.apply(&playbook, &[]).ended(0);
        turns(&line, || {
            user.run(["host", "disconnect", "--all"]).ended(0);
            user.apply(&playbook, &[]).ended(0).says("changed=0");
        })
    });
    let ssh = turns(&line, || {
        let status = line.ssh().arg("true").stdin(Stdio::null()).status();
        assert!(status.unwrap().success());
    });
    assert!(
        forty.abs_diff(twelve) <= 1,
        "{twelve} turns for 12 tasks, {forty} for 40"
    );
    assert!(
        twelve <= ssh + 6,
        "{twelve} turns for 12 tasks, {ssh} for `ssh HOST true`"
    );
}
