//! What the plan of 1,000 hosts with 500 effects each takes: to be put together, written, read and grouped. `FILE` is where
//! the plan is left, for `fleetctl show`.

#![expect(clippy::print_stdout, reason = "this is what it is for")]

use std::{path::PathBuf, sync::Arc, time::Instant};

use fleet_engine::{
    event::{Event, HostEnd, Strategy, TaskEnded, TaskInfo},
    plan::{Header, Plan, Saved},
    playbook::Position,
    sources::Snapshot,
};
use fleet_wire::{Content, Effect, Entry, Meta, Status, UndoClass, What};

const HOSTS: usize = 1000;
const EFFECTS: usize = 500;
/// Kinds of hosts; beside them every tenth effect is a host's own.
const KINDS: usize = 3;

fn effect(number: usize, own: &str) -> Effect {
    let text = format!("# file {number}\nvalue = {own}\n");
    let file = |text: &str| {
        let content = Content {
            sha256: fleet_engine::sources::sha256(text.as_bytes()),
            size: text.len() as u64,
            bytes: Some(text.as_bytes().to_vec()),
        };
        let meta = Meta {
            mode: 0o644,
            owner: "root".into(),
            group: "root".into(),
        };
        Entry::File(meta, content)
    };
    Effect {
        what: What::File {
            path: format!("/etc/app/{number}.conf"),
            before: file(&format!("# file {number}\nvalue = old\n")),
            after: file(&text),
        },
        undo: UndoClass::Exact,
        assumed: false,
        secret: false,
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path: PathBuf = std::env::args()
        .nth(1)
        .ok_or("name the file that the plan is left in")?
        .into();
    let all_different = std::env::args().nth(2).as_deref() == Some("different");
    let span = fleet_yaml::Source::new("site.yml", "").span(0, 0);
    let mut plan = Plan::default();
    let names: Vec<String> = (0..HOSTS).map(|number| format!("web{number:04}")).collect();
    plan.take(&Event::PlayStarted {
        play: "web".into(),
        hosts: names.clone().into(),
        strategy: Strategy::Linear,
    });
    for (number, host) in names.iter().enumerate() {
        for task in 0..EFFECTS {
            let own = match all_different && task % 10 == 0 {
                true => host.clone(),
                false => format!("kind {}", number % KINDS),
            };
            let effect = effect(task, &own);
            let info = TaskInfo {
                id: task,
                name: format!("file {task}"),
                module: "copy".into(),
                place: format!("site.yml:{task}"),
                handler: false,
                role: None,
                position: Position::default(),
                span: span.clone(),
                check: false,
            };
            plan.take(&Event::TaskEnded(Box::new(TaskEnded {
                host: host.clone(),
                task: Arc::new(info),
                item: None,
                index: 0,
                last: true,
                status: Status::Changed,
                result: serde_json::json!({"changed": true}),
                digests: [effect.digest()].into(),
                effects: [effect].into(),
                took: std::time::Duration::ZERO,
                ignored: false,
                rescued: false,
                unreachable: false,
                delegated: None,
                secret: false,
            })));
        }
        plan.take(&Event::HostEnded {
            host: host.clone(),
            end: HostEnd::Done,
        });
    }
    let header = Header {
        schema: String::new(),
        hash: String::new(),
        run: "bench".into(),
        made: "2026-12-01T00:00:00Z".into(),
        made_s: 0.0,
        who: "ann@desk".into(),
        version: "0".into(),
        pinned: std::collections::BTreeMap::new(),
    };
    let began = Instant::now();
    let groups = plan.groups().len();
    println!(
        "grouped into {groups:>5}   {:>6.2} s",
        began.elapsed().as_secs_f64()
    );
    let began = Instant::now();
    let saved = Saved::new(header, Vec::new(), Snapshot::default(), Vec::new(), plan)?;
    saved.write(&path)?;
    println!(
        "written              {:>6.2} s",
        began.elapsed().as_secs_f64()
    );
    println!(
        "size                 {:>6.1} MB",
        std::fs::metadata(&path)?.len() as f64 / 1e6
    );
    println!("memory               {:>6} kB", peak());
    Ok(())
}

/// The most memory that this process has had, in kB: proc(5), `VmHWM`.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or_default()
        .trim()
        .trim_end_matches(" kB")
        .to_owned()
}
