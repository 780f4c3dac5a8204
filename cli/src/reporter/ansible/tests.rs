//! Whole outputs, as Ansible 2.21.5 prints them.

use std::{sync::Arc, time::Duration};

use fleet_engine::event::{Event, HostEnd, Strategy, TaskEnded, TaskInfo};
use fleet_wire::Status;
use fleet_yaml::Source;
use serde_json::{Value, json};

use super::{Adhoc, Ansible, Callback, Line, Look};

const BOOK: &str = "- hosts: all\n  tasks:\n    - name: one\n      fail:\n";

fn task(at: u32, name: &str, module: &str) -> Arc<TaskInfo> {
    let start = BOOK.find("name: one").unwrap();
    Arc::new(TaskInfo {
        id: at as usize,
        name: name.to_owned(),
        module: module.to_owned(),
        place: "site.yml:3".to_owned(),
        handler: false,
        role: None,
        position: Arc::from([at]),
        span: Source::new("site.yml", BOOK).span(start, start + 4),
        check: false,
    })
}

fn ended(host: &str, task: &Arc<TaskInfo>, status: Status, result: Value) -> TaskEnded {
    TaskEnded {
        host: host.to_owned(),
        task: Arc::clone(task),
        item: None,
        index: 0,
        last: true,
        status,
        result,
        effects: Arc::from([]),
        digests: Arc::from([]),
        took: Duration::ZERO,
        ignored: false,
        rescued: false,
        unreachable: false,
        delegated: None,
        secret: false,
    }
}

fn item(label: &str, index: usize, last: bool, ended: TaskEnded) -> TaskEnded {
    TaskEnded {
        item: Some(label.to_owned()),
        index,
        last,
        ..ended
    }
}

fn event(ended: TaskEnded) -> Event {
    Event::TaskEnded(Box::new(ended))
}

fn begins(hosts: &[&str], strategy: Strategy) -> Event {
    Event::PlayStarted {
        play: "all".to_owned(),
        hosts: hosts.iter().map(ToString::to_string).collect(),
        strategy,
    }
}

fn starts(host: &str, task: &Arc<TaskInfo>) -> Event {
    Event::TaskStarted {
        host: host.to_owned(),
        task: Arc::clone(task),
    }
}

fn leaves(host: &str) -> Event {
    Event::PlayEnded {
        host: host.to_owned(),
    }
}

fn text(lines: &[Line]) -> String {
    lines
        .iter()
        .map(|line| format!("{}\n", line.text))
        .collect()
}

/// What is shown of the events, banners of a play and its recap left out.
fn shown(look: Look, events: impl IntoIterator<Item = Event>) -> String {
    let mut ansible = Ansible::new(look);
    let lines: Vec<Line> = events
        .into_iter()
        .flat_map(|event| ansible.take(&event))
        .collect();
    text(&lines)
}

#[test]
fn results_come_under_the_banner_of_their_task_though_hosts_run_ahead() {
    let (one, two) = (task(1, "one", "ping"), task(2, "two", "command"));
    let ok = |host, task| event(ended(host, task, Status::Ok, json!({"changed": false})));
    let changed = |host, task| event(ended(host, task, Status::Changed, json!({"changed": true})));
    let look = Look::plain();
    let mut ansible = Ansible::new(look);
    let mut take = |event: Event| text(&ansible.take(&event));
    assert_eq!(
        take(begins(&["a", "b"], Strategy::Linear)),
        format!("\nPLAY [all] {}\n", "*".repeat(69))
    );
    assert_eq!(take(starts("a", &one)), "");
    assert_eq!(
        take(starts("b", &one)),
        format!("\nTASK [one] {}\n", "*".repeat(69))
    );
    assert_eq!(take(ok("a", &one)), "ok: [a]\n");
    assert_eq!(take(starts("a", &two)), "");
    assert_eq!(
        take(changed("a", &two)),
        "",
        "b is not through with the first task"
    );
    assert_eq!(take(leaves("a")), "");
    assert_eq!(take(ok("b", &one)), "ok: [b]\n");
    assert_eq!(
        take(leaves("b")),
        format!("\nTASK [two] {}\nchanged: [a]\n", "*".repeat(69))
    );
    assert_eq!(
        text(&ansible.finish()),
        format!(
            "\nPLAY RECAP {}\n\
             a                          : ok=2    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   \n\
             b                          : ok=1    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0   \n\n",
            "*".repeat(69)
        )
    );
}

#[test]
fn free_hosts_bring_their_banners_along() {
    let one = task(1, "one", "ping");
    let two = task(2, "two", "ping");
    let ok = |host, task| event(ended(host, task, Status::Ok, json!({"changed": false})));
    let text = shown(
        Look::plain(),
        [
            begins(&["a", "b"], Strategy::Free),
            starts("a", &one),
            ok("a", &one),
            ok("a", &two),
            ok("b", &one),
        ],
    );
    let lines: Vec<_> = text
        .lines()
        .map(|line| line.trim_end_matches(['*', ' ']))
        .collect();
    assert_eq!(
        lines,
        [
            "",
            "PLAY [all]",
            "",
            "TASK [one]",
            "ok: [a]",
            "",
            "TASK [two]",
            "ok: [a]",
            "",
            "TASK [one]",
            "ok: [b]",
        ]
    );
}

#[test]
fn a_failure_shows_the_lines_around_the_task_and_its_result() {
    let one = task(1, "one", "fail");
    let failed = |host| {
        ended(
            host,
            &one,
            Status::Failed,
            json!({"failed": true, "changed": false, "msg": "oh no"}),
        )
    };
    let text = shown(
        Look::plain(),
        [
            begins(&["a", "b"], Strategy::Linear),
            event(failed("a")),
            event(TaskEnded {
                ignored: true,
                ..failed("b")
            }),
            leaves("a"),
            leaves("b"),
        ],
    );
    let (_, text) = text.split_once("TASK").unwrap();
    let (_, text) = text.split_once('\n').unwrap();
    assert_eq!(
        text,
        "[ERROR]: Task failed: Action failed: oh no\n\
         Origin: /work/site.yml:3:7\n\
         \n\
         1 - hosts: all\n\
         2   tasks:\n\
         3     - name: one\n        ^ column 7\n\
         \n\
         fatal: [a]: FAILED! => {\"changed\": false, \"msg\": \"oh no\"}\n\
         fatal: [b]: FAILED! => {\"changed\": false, \"msg\": \"oh no\"}\n\
         ...ignoring\n"
    );
}

#[test]
fn loops_show_each_item_and_debug_its_message() {
    let one = task(1, "one", "debug");
    let result = |text: &str| json!({"changed": false, "msg": text, "item": text});
    let one_of = |label, index, last, status| {
        event(item(
            label,
            index,
            last,
            ended("a", &one, status, result(label)),
        ))
    };
    let text = shown(
        Look::plain(),
        [
            begins(&["a"], Strategy::Linear),
            one_of("x", 0, false, Status::Ok),
            one_of("y", 1, true, Status::Skipped),
            leaves("a"),
        ],
    );
    assert!(
        text.ends_with(
            "ok: [a] => (item=x) => {\n    \"msg\": \"x\"\n}\nskipping: [a] => (item=y) \n"
        ),
        "{text}"
    );
    let text = shown(
        Look::plain(),
        [
            begins(&["a"], Strategy::Linear),
            one_of("x", 0, false, Status::Skipped),
            one_of("y", 1, true, Status::Skipped),
            leaves("a"),
        ],
    );
    assert!(
        text.ends_with("skipping: [a] => (item=x) \nskipping: [a] => (item=y) \nskipping: [a]\n"),
        "{text}"
    );
}

#[test]
fn what_no_log_hides_is_said_to_be_hidden() {
    let one = task(1, "one", "command");
    let hidden = TaskEnded {
        secret: true,
        ..ended(
            "a",
            &one,
            Status::Failed,
            json!({"changed": true, "msg": "s3cret"}),
        )
    };
    let text = shown(
        Look::plain(),
        [begins(&["a"], Strategy::Linear), event(hidden), leaves("a")],
    );
    assert!(
        text.ends_with(
            "fatal: [a]: FAILED! => {\"censored\": \"the output has been hidden due to the fact that 'no_log: true' was specified for this result\", \"changed\": true}\n"
        ),
        "{text}"
    );
    assert!(!text.contains("s3cret"));
}

#[test]
fn an_included_file_is_told_once_for_all_its_hosts() {
    let one = task(1, "more", "include_tasks");
    let included = |host: &str, item: Option<&str>| Event::Included {
        host: host.to_owned(),
        task: Arc::clone(&one),
        file: "more.yml".to_owned(),
        item: item.map(str::to_owned),
    };
    let text = shown(
        Look::plain(),
        [
            begins(&["a", "b"], Strategy::Linear),
            included("a", Some("1")),
            included("a", Some("2")),
            included("b", Some("1")),
            leaves("a"),
            leaves("b"),
            Event::RunEnded {
                took: Duration::ZERO,
            },
            begins(&["a"], Strategy::Linear),
        ],
    );
    assert!(
        text.contains(
            "\nincluded: /work/more.yml for a, b => (item=1)\nincluded: /work/more.yml for a => (item=2)\n"
        ),
        "{text}"
    );
}

#[test]
fn a_host_that_cannot_be_reached_is_told_and_counted() {
    let one = task(1, "one", "ping");
    let mut ansible = Ansible::new(Look::plain());
    let events = [
        begins(&["a", "b"], Strategy::Linear),
        Event::HostEnded {
            host: "a".to_owned(),
            end: HostEnd::Unreachable {
                message: "no route".to_owned(),
            },
        },
        event(ended("b", &one, Status::Failed, json!({"msg": "no"}))),
        Event::HostEnded {
            host: "b".to_owned(),
            end: HostEnd::Failed { undone: None },
        },
    ];
    let lines: Vec<Line> = events
        .iter()
        .flat_map(|event| ansible.take(event))
        .collect();
    assert!(
        text(&lines).contains(
            "fatal: [a]: UNREACHABLE! => {\"changed\": false, \"msg\": \"no route\", \"unreachable\": true}\n"
        ),
        "{lines:?}"
    );
    let recap = text(&ansible.finish());
    assert!(
        recap.contains(
            "a                          : ok=0    changed=0    unreachable=1    failed=0 "
        ),
        "{recap}"
    );
}

fn adhoc(callback: Callback, ended: TaskEnded) -> String {
    let mut adhoc = Adhoc::new(Look::plain(), callback, "Origin: <adhoc>".to_owned(), None);
    text(&adhoc.take(&event(ended)))
}

#[test]
fn one_module_shows_its_result_or_what_the_command_printed() {
    let ping = task(1, "ping", "ping");
    let pong = || {
        ended(
            "a",
            &ping,
            Status::Ok,
            json!({"ping": "pong", "changed": false}),
        )
    };
    assert_eq!(
        adhoc(Callback::Minimal, pong()),
        "a | SUCCESS => {\n    \"changed\": false,\n    \"ping\": \"pong\"\n}\n"
    );
    assert_eq!(
        adhoc(Callback::OneLine, pong()),
        "a | SUCCESS => {\"changed\": false,\"ping\": \"pong\"}\n"
    );
    let command = task(1, "command", "ansible.builtin.command");
    let result = json!({"rc": 0, "stdout": "hi", "stderr": "", "changed": true, "msg": ""});
    let ran = || ended("a", &command, Status::Changed, result.clone());
    assert_eq!(
        adhoc(Callback::Minimal, ran()),
        "a | CHANGED | rc=0 >>\nhi\n"
    );
    assert_eq!(
        adhoc(Callback::OneLine, ran()),
        "a | CHANGED | rc=0 | (stdout) hi\n"
    );
}
