//! The language on real hosts: who does what, in which order, and what becomes of those who fail. Each is proved by what is
//! left on the hosts.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use fleet_tests::{Fleet, Fleetctl, Output};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(3));
const HOSTS: [&str; 3] = ["web1", "web2", "web3"];

/// A directory of its own on every host, `$D` in playbooks, and the hosts to oneself.
struct Stage {
    ctl: Fleetctl,
    dir: String,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    fn new(name: &str) -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        let alone = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = format!("/srv/{name}");
        for host in HOSTS {
            let made = FLEET.sh(host, &format!("mkdir -p {dir}"));
            assert!(made.success(), "{made:?}");
        }
        Self {
            ctl: Fleetctl::on(&FLEET, &HOSTS),
            dir,
            _alone: alone,
        }
    }

    /// Runs a play on all three as root; `$D` in it is the directory. Nothing is undone where it fails.
    fn play(&self, play: &str, more: &[&str]) -> Output {
        let head = "- hosts: web\n  become: true\n  gather_facts: false\n";
        let text = format!("{head}{play}").replace("$D", &self.dir);
        let file = self.ctl.write("site.yml", &text).display().to_string();
        let inventory = FLEET.inventory().display().to_string();
        let mut words = vec!["play", "-i", &inventory, &file];
        words.extend(more);
        self.ctl.run(words)
    }

    /// The lines of all files in the directory of a host, as `file:line`.
    fn on(&self, host: &str) -> String {
        let said = FLEET.sh(host, &format!("cd {} && grep -H . * || true", self.dir));
        said.text().to_owned()
    }

    /// The lines of one file.
    fn lines(&self, host: &str, file: &str) -> Vec<String> {
        let text = FLEET.read(host, &format!("{}/{file}", self.dir));
        text.lines().map(str::to_owned).collect()
    }

    /// Nanoseconds that a host wrote to a file. All hosts have this machine's clock.
    fn stamp(&self, host: &str, file: &str) -> u128 {
        let text = FLEET.read(host, &format!("{}/{file}", self.dir));
        text.trim().parse().expect("a time")
    }
}

#[test]
fn a_block_that_fails_is_rescued_and_ends_always() {
    let stage = Stage::new("blocks");
    let said = stage.play(
        r#"
  tasks:
    - block:
        - copy: {dest: $D/body, content: "of {{ inventory_hostname }}\n"}
        - name: breaks
          command: sh -c 'echo no >&2; exit 3'
          when: inventory_hostname != 'web2'
        - copy: {dest: $D/whole, content: "gone through\n"}
      rescue:
        - copy:
            dest: $D/rescued
            content: "{{ ansible_failed_task.name }} with {{ ansible_failed_result.rc }}: {{ ansible_failed_result.stderr }}\n"
      always:
        - copy: {dest: $D/always, content: "done\n"}
    - block:
        - fail:
          when: inventory_hostname == 'web3'
      always:
        - copy: {dest: $D/even_so, content: "done\n"}
    - copy: {dest: $D/behind, content: "here\n"}
"#,
        &[],
    );
    said.ended(2).says("rescued=1");
    assert_eq!(
        stage.on("web1"),
        "always:done\nbehind:here\nbody:of web1\neven_so:done\nrescued:breaks with 3: no"
    );
    assert_eq!(
        stage.on("web2"),
        "always:done\nbehind:here\nbody:of web2\neven_so:done\nwhole:gone through"
    );
    assert_eq!(
        stage.on("web3"),
        "always:done\nbody:of web3\neven_so:done\nrescued:breaks with 3: no"
    );
}

#[test]
fn a_task_for_another_host_works_there_with_the_variables_of_its_own() {
    let stage = Stage::new("delegated");
    let said = stage.play(
        r#"
  tasks:
    - setup: {gather_subset: "!all,!min,platform"}
      delegate_to: web3
      delegate_facts: true
      when: inventory_hostname == 'web1'
    - copy: {dest: "$D/of_{{ inventory_hostname }}", content: "{{ inventory_hostname }} at {{ ansible_host }}\n"}
      delegate_to: web3
    - command: hostname
      delegate_to: "{{ item }}"
      loop: [web2, web3]
      register: names
      when: inventory_hostname == 'web1'
    - copy:
        dest: $D/here
        content: "{{ hostvars.web3.ansible_facts.nodename }} {{ names.results | map(attribute='stdout') | join('+') }} {{ 'nodename' in ansible_facts }}\n"
      when: inventory_hostname == 'web1'
"#,
        &[],
    );
    said.ended(0);
    assert_eq!(stage.on("web1"), "here:web3 web2+web3 False");
    assert_eq!(stage.on("web2"), "");
    let of = |host: &str| format!("of_{host}:{host} at {}", FLEET.address(host));
    // The address is that of the host itself, also where another does the work.
    assert_eq!(stage.on("web3"), HOSTS.map(of).join("\n"));
}

#[test]
fn batches_follow_one_another() {
    let stage = Stage::new("serial");
    let said = stage.play(
        r#"
  serial: [1, 2]
  order: reverse_inventory
  pre_tasks:
    - shell: echo begins {{ ansible_play_batch | join('+') }} >> $D/log
      delegate_to: web1
      run_once: true
  tasks:
    - shell: echo {{ inventory_hostname }} >> $D/log
      delegate_to: web1
      throttle: 1
    - shell: echo ends >> $D/log
      delegate_to: web1
      run_once: true
"#,
        &[],
    );
    said.ended(0);
    let log = stage.lines("web1", "log");
    assert_eq!(
        log[..4],
        ["begins web3", "web3", "ends", "begins web2+web1"]
    );
    let mut both = log[4..6].to_vec();
    both.sort();
    assert_eq!(both, ["web1", "web2"]);
    assert_eq!(log[6..], ["ends"]);
}

#[test]
fn what_is_done_once_is_known_to_all() {
    let stage = Stage::new("once");
    let said = stage.play(
        r#"
  tasks:
    - shell: echo {{ inventory_hostname }} | tee $D/made
      register: made
      run_once: true
    - copy: {dest: $D/seen, content: "{{ made.stdout }}\n"}
    - set_fact: {chosen: "{{ inventory_hostname }}"}
      run_once: true
      delegate_to: web3
    - copy: {dest: $D/chosen, content: "{{ chosen }}\n"}
"#,
        &[],
    );
    said.ended(0);
    assert_eq!(stage.on("web1"), "chosen:web1\nmade:web1\nseen:web1");
    assert_eq!(stage.on("web2"), "chosen:web1\nseen:web1");
    assert_eq!(stage.on("web3"), "chosen:web1\nseen:web1");
}

#[test]
fn one_failure_that_is_fatal_for_all_lets_them_finish_the_task_and_no_more() {
    let stage = Stage::new("fatal");
    let said = stage.play(
        r#"
  any_errors_fatal: true
  tasks:
    - shell: echo one >> $D/log
    - shell: echo two >> $D/log; test {{ inventory_hostname }} != web2
    - shell: echo three >> $D/log
"#,
        &[],
    );
    said.ended(2);
    for host in HOSTS {
        assert_eq!(stage.on(host), "log:one\nlog:two", "{host}");
    }
}

#[test]
fn more_failures_than_are_allowed_end_the_play() {
    let stage = Stage::new("share");
    let play = r#"
  max_fail_percentage: SHARE
  tasks:
    - shell: echo one >> $D/log; test {{ inventory_hostname }} != web2
    - shell: echo two >> $D/log
"#;
    let one_of_three_is_too_much = stage.play(&play.replace("SHARE", "33"), &[]);
    one_of_three_is_too_much.ended(2);
    for host in HOSTS {
        assert_eq!(stage.on(host), "log:one", "{host}");
    }
    let one_of_three_may_fail = stage.play(&play.replace("SHARE", "34"), &[]);
    one_of_three_may_fail.ended(2);
    assert_eq!(stage.on("web1"), "log:one\nlog:one\nlog:two");
    assert_eq!(stage.on("web2"), "log:one\nlog:one");
    assert_eq!(stage.on("web3"), "log:one\nlog:one\nlog:two");
}

#[test]
fn handlers_run_where_something_changed_and_when_they_are_flushed() {
    let stage = Stage::new("handlers");
    let said = stage.play(
        r#"
  tasks:
    - copy: {dest: $D/conf, content: "a\n"}
      when: inventory_hostname != 'web3'
      notify: configured
    - shell: echo task >> $D/log
    - meta: flush_handlers
    - shell: echo behind the flush >> $D/log
      notify: last
  handlers:
    - name: last
      shell: echo last >> $D/log
    - name: one
      shell: echo one >> $D/log
      listen: configured
    - name: other
      shell: echo other >> $D/log
      listen: [configured, nobody]
"#,
        &[],
    );
    said.ended(0);
    let notified = ["task", "one", "other", "behind the flush", "last"];
    assert_eq!(stage.lines("web1", "log"), notified);
    assert_eq!(stage.lines("web2", "log"), notified);
    assert_eq!(
        stage.lines("web3", "log"),
        ["task", "behind the flush", "last"]
    );
}

/// Two tasks with a stamp behind each; the first takes its time on web1.
const RACE: &str = r#"
  strategy: STRATEGY
  tasks:
    - shell: test {{ inventory_hostname }} != web1 || sleep 1; date +%s%N > $D/first
    - shell: date +%s%N > $D/second
"#;

#[test]
fn hosts_wait_for_each_other_unless_they_are_free() {
    let stage = Stage::new("race");
    stage
        .play(&RACE.replace("STRATEGY", "linear"), &[])
        .ended(0);
    for host in HOSTS {
        let (slow, next) = (stage.stamp("web1", "first"), stage.stamp(host, "second"));
        assert!(slow < next, "{host} went on before web1 was done");
    }
    stage.play(&RACE.replace("STRATEGY", "free"), &[]).ended(0);
    for host in ["web2", "web3"] {
        let (slow, next) = (stage.stamp("web1", "first"), stage.stamp(host, "second"));
        assert!(next < slow, "{host} waited for web1");
    }
    let pinned = stage.play(&RACE.replace("STRATEGY", "host_pinned"), &["-f", "1"]);
    pinned.ended(0);
    let mut spans = HOSTS.map(|host| (stage.stamp(host, "first"), stage.stamp(host, "second")));
    spans.sort_unstable();
    for pair in spans.windows(2) {
        assert!(
            pair[0].1 < pair[1].0,
            "a host began before another was done: {spans:?}"
        );
    }
}

#[test]
fn a_role_is_included_once_for_each_item() {
    let stage = Stage::new("roles");
    for (file, text) in [
        (
            "tasks/main.yml",
            "- copy: {dest: \"{{ dir }}/{{ name }}\", content: \"{{ text }} by {{ role_name }}, {{ index }}\\n\"}\n  notify: told\n",
        ),
        ("defaults/main.yml", "text: nothing\n"),
        (
            "handlers/main.yml",
            "- name: told\n  shell: echo told {{ inventory_hostname }} >> {{ dir }}/log\n",
        ),
    ] {
        let path = stage.ctl.home().join("roles/page").join(file);
        std::fs::create_dir_all(path.parent().expect("it has a parent")).expect("a directory");
        std::fs::write(&path, text).expect("a file");
    }
    let said = stage.play(
        r#"
  vars: {dir: $D}
  tasks:
    - include_role: {name: page}
      vars: {name: "{{ page.name }}", text: "{{ page.text | default(omit) }}"}
      loop:
        - {name: a, text: hello}
        - {name: b, text: "hello {{ inventory_hostname }}"}
        - {name: c, text: bye}
      loop_control: {loop_var: page, index_var: index}
      when: page.name != 'c' or inventory_hostname == 'web2'
"#,
        &[],
    );
    said.ended(0);
    assert_eq!(
        stage.on("web1"),
        "a:hello by page, 0\nb:hello web1 by page, 1\nlog:told web1"
    );
    assert_eq!(
        stage.on("web2"),
        "a:hello by page, 0\nb:hello web2 by page, 1\nc:bye by page, 2\nlog:told web2"
    );
}

#[test]
fn a_throttled_task_is_done_by_one_host_after_another() {
    let stage = Stage::new("throttle");
    let said = stage.play(
        r#"
  tasks:
    - shell: date +%s%N > $D/from; sleep 0.3; date +%s%N > $D/to
      throttle: 1
"#,
        &[],
    );
    said.ended(0);
    let mut spans = HOSTS.map(|host| (stage.stamp(host, "from"), stage.stamp(host, "to")));
    spans.sort_unstable();
    for pair in spans.windows(2) {
        assert!(
            pair[0].1 < pair[1].0,
            "two hosts were at it at the same time: {spans:?}"
        );
    }
}

#[test]
fn a_host_that_cannot_be_reached_may_be_passed_over() {
    let stage = Stage::new("gone");
    let said = stage.play(
        r#"
  ignore_unreachable: true
  tasks:
    - command: "true"
      register: asked
      vars: {ansible_port: "{{ 1 if inventory_hostname == 'web2' else 22 }}"}
      delegate_to: "{{ inventory_hostname }}"
    - copy: {dest: "$D/{{ inventory_hostname }}", content: "{{ asked.unreachable | default(false) }}\n"}
      delegate_to: web1
"#,
        &[],
    );
    said.ended(0);
    assert_eq!(stage.on("web1"), "web1:False\nweb2:True\nweb3:False");
}
