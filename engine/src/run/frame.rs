//! A task as it goes over the wire.

use std::sync::atomic::Ordering;

use fleet_modules::module::Module;
use fleet_wire::{Blob, Json, Mode, OnlyIf};
use fleet_yaml::Node;

use super::{
    dispatch::Call, flight::Flight, host::Host, link::Link, payload::Payload, terms::Terms,
};

impl Host {
    /// A call of item `index`, and the content that the machine may ask for.
    pub(super) fn frame(
        &self,
        flight: &Flight,
        index: usize,
        call: Call,
        terms: &Terms,
        only_if: Option<&OnlyIf>,
        link: &Link,
    ) -> (fleet_wire::Task, Option<Payload>) {
        let task = &flight.task;
        let (blob, content) = match call.content {
            Some(content) => offer(content),
            None => (None, None),
        };
        let vault = self.shared.templar.vault();
        let args = serde_json::Value::Object(call.args).to_string();
        // A command's line goes into the journal as it is; of anything else only what it did.
        let is_command = matches!(
            call.module.name,
            "command" | "shell" | "raw" | "script" | "git" | "make" | "pip"
        );
        let told = is_command && vault.is_in(&args);
        // Here it is decided what a failure and a change are; the machine only does.
        let decided_here = flight.judged || flight.returns;
        let sent = self.count_sent(task.id, index);
        let frame = fleet_wire::Task {
            key: format!("{}/{}/{index}/{sent}", self.name, task.id),
            id: self.shared.next_task.fetch_add(1, Ordering::Relaxed),
            lane: self.lane,
            group: flight.group,
            name: vault.mask(&flight.info.name).into_owned(),
            place: flight.info.place.clone(),
            module: call.module.name.to_owned(),
            args: Json(args),
            blob,
            user: terms.user(link.root),
            environment: terms.environment.clone(),
            check: terms.check.or(past_the_plan(self, call.module)),
            ignore_errors: terms.ignore_errors || flight.returns || !task.failed_when.is_empty(),
            changed: constant(&task.changed_when),
            no_log: terms.secret || told,
            notify: match decided_here {
                true => Vec::new(),
                false => terms.notify.clone(),
            },
            only_if: only_if.cloned(),
            planned: self
                .planned
                .as_ref()
                .and_then(|planned| planned.of(&self.name, task.id, index)),
            timeout_s: terms.timeout_s,
            background_s: terms.background_s,
        };
        (frame, content)
    }
}

/// Who asks for Ansible's own check mode sees hosts as they are, not as the plan would leave them.
fn past_the_plan(host: &Host, module: &Module) -> Option<bool> {
    let settings = &host.shared.settings;
    let reads = matches!(module.name, "stat" | "slurp" | "find");
    (reads && settings.as_ansible && host.shared.mode == Mode::Plan).then_some(false)
}

/// A content that goes with a task at once where it is small, and on demand where it is not.
fn offer(content: Payload) -> (Option<Blob>, Option<Payload>) {
    const AT_ONCE: usize = 64 << 10;
    let blob = Blob {
        sha256: content.sha256.clone(),
        size: content.size,
        bytes: content.whole(AT_ONCE),
    };
    let later = blob.bytes.is_none().then_some(content);
    (Some(blob), later)
}

/// `changed_when: false` and its like, which need no answer.
pub(super) fn constant(conditions: &[Node]) -> Option<bool> {
    match conditions {
        [one] => one.as_bool().or_else(|| match one.as_str()? {
            "true" | "True" => Some(true),
            "false" | "False" => Some(false),
            _ => None,
        }),
        _ => None,
    }
}
