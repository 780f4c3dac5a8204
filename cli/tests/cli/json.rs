//! The JSON forms that docs/json.md describes.

use serde_json::Value;

use crate::desk::Desk;

const TASKS: &str = "  tasks:
    - name: a file
      copy: {dest: $DESK/motd, content: \"hello\\n\"}
    - name: a command
      command: touch $DESK/touched
    - name: a message
      debug: {msg: hi}
";

fn lines(text: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn keys(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

/// What a page documents: the names in code at the beginning of its tables' rows, below a heading.
fn documented(heading: &str) -> Vec<&'static str> {
    let page = include_str!("../../../docs/json.md");
    let part = page
        .split("\n## ")
        .find(|part| part.starts_with(heading))
        .unwrap();
    part.lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect()
}

#[test]
fn a_plan_is_one_document() {
    let desk = Desk::local(TASKS);
    let said = desk.output("plan --json -i here.yml site.yml");
    assert_eq!(said.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    let plan: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(plan["schema"], "fleetctl.plan/1");
    assert_eq!(keys(&plan), ["schema", "run", "summary", "groups"]);
    assert_eq!(plan["summary"]["hosts"], 1);
    assert_eq!(plan["summary"]["effects"], 2);
    assert_eq!(plan["summary"]["unknown"], 1);
    let group = &plan["groups"][0];
    assert_eq!(group["hosts"], serde_json::json!(["localhost"]));
    assert_eq!(group["end"]["state"], "done");
    let task = &group["tasks"][0];
    assert_eq!(task["task"]["name"], "a file");
    assert_eq!(task["status"], "changed");
    let effect = &task["effects"][0];
    assert_eq!(
        keys(effect),
        ["summary", "undo", "assumed", "secret", "diff"]
    );
    assert!(
        effect["diff"]
            .as_array()
            .unwrap()
            .contains(&"+hello".into()),
        "{effect}"
    );
    assert_eq!(group["tasks"][1]["status"], "unknown");

    let known = documented("The plan");
    for object in [&plan, &plan["summary"], group, task, effect, &task["task"]] {
        for key in keys(object) {
            assert!(known.contains(&key), "docs/json.md says nothing of `{key}`");
        }
    }
}

#[test]
fn an_apply_is_a_stream_of_events() {
    let desk = Desk::local(TASKS);
    let said = desk.output("apply --yes --json -i here.yml site.yml");
    assert_eq!(said.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&said.stderr), "");
    let lines = lines(&said.stdout);
    assert_eq!(lines[0], serde_json::json!({"schema": "fleetctl.events/1"}));
    let names: Vec<&str> = lines[1..]
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(names[..2], ["run_started", "play_started"]);
    assert_eq!(
        names[names.len() - 3..],
        ["host_ended", "run_ended", "recap"]
    );
    let recap = lines.last().unwrap();
    assert_eq!(recap["exit_code"], 0);
    assert_eq!(recap["hosts"]["localhost"]["changed"], 2);
    let ended: Vec<_> = lines
        .iter()
        .filter(|line| line["event"] == "task_ended")
        .collect();
    assert_eq!(ended.len(), 3);
    assert_eq!(ended[0]["status"], "changed");
    assert_eq!(ended[0]["result"]["changed"], true);
    assert_eq!(ended[1]["result"]["rc"], 0);

    let known = documented("Events");
    for line in &lines[1..] {
        for name in keys(line).into_iter().chain(line["event"].as_str()) {
            assert!(
                known.contains(&name),
                "docs/json.md says nothing of `{name}`"
            );
        }
    }
    for key in keys(&recap["hosts"]["localhost"]) {
        assert!(
            documented("The recap").contains(&key),
            "docs/json.md says nothing of `{key}` in the recap"
        );
    }
}

#[test]
fn a_failure_is_data_too_and_the_exit_code_is_in_it() {
    let desk = Desk::local("  tasks:\n    - command: 'false'\n");
    let said = desk.output("apply --yes --json -i here.yml site.yml");
    assert_eq!(said.status.code(), Some(3));
    let lines = lines(&said.stdout);
    assert_eq!(lines.last().unwrap()["exit_code"], 3);
    let end = &lines.last().unwrap()["hosts"]["localhost"]["end"];
    assert_eq!(end["state"], "failed");
    assert!(
        end["undone"]["effects"][0]["problem"]
            .as_str()
            .unwrap()
            .contains("cannot be undone")
    );
}

#[test]
fn mistakes_are_no_data() {
    let desk = Desk::with("- hosts: all\n  taks: []\n");
    for verb in ["plan", "apply --yes"] {
        let said = desk.output(&format!("{verb} --json -i hosts.yml site.yml"));
        assert_eq!(said.status.code(), Some(11));
        assert_eq!(said.stdout, b"");
        assert!(String::from_utf8_lossy(&said.stderr).contains("did you mean `tasks`?"));
    }
}

#[test]
fn the_runs_folder_holds_the_same_events() {
    let desk = Desk::local(TASKS);
    let said = desk.output("apply --yes --json --log-dir runs -i here.yml site.yml");
    let shown = lines(&said.stdout);
    let run = shown[1]["run"].as_str().unwrap();
    let kept = lines(desk.read(&format!("runs/{run}/events.jsonl")).as_bytes());
    assert_eq!(kept, shown[..shown.len() - 1], "all but the recap");
    let about: Value = serde_json::from_str(&desk.read(&format!("runs/{run}/run.json"))).unwrap();
    assert_eq!(about["schema"], "fleetctl.run/1");
    assert_eq!(about["exit_code"], 0);
}
