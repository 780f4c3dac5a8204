//! A task as it goes over the wire.

use fleet_wire::{Blob, Json, OnlyIf};
use fleet_yaml::Node;

use super::{dispatch::Call, flight::Flight, host::Host, payload::Payload, terms::Terms};
use crate::{event::TaskInfo, playbook::Task};

impl Host {
    #[expect(
        clippy::too_many_arguments,
        reason = "one frame is made of all of a task's rendered parts"
    )]
    pub(super) fn frame(
        &mut self,
        group: u32,
        call: Call,
        info: &TaskInfo,
        terms: &Terms,
        task: &Task,
        only_if: Option<&OnlyIf>,
        flight: &Flight,
    ) -> fleet_wire::Task {
        let blob = call.content.map(|content| self.offer(content));
        let item = flight.items.len();
        fleet_wire::Task {
            id: self.next_task,
            epoch: 0,
            group,
            name: info.name.clone(),
            place: info.place.clone(),
            module: call.module.name.to_owned(),
            args: Json(serde_json::Value::Object(call.args).to_string()),
            blob,
            user: terms.user.clone(),
            environment: terms.environment.clone(),
            check: terms.check,
            // With `failed_when` only the controller knows what a failure is.
            ignore_errors: terms.ignore_errors || !task.failed_when.is_empty(),
            changed: constant(&task.changed_when),
            no_log: terms.secret,
            notify: if flight.judged {
                Vec::new()
            } else {
                terms.notify.clone()
            },
            only_if: only_if.cloned(),
            planned: self
                .planned
                .as_ref()
                .and_then(|planned| planned.of(&self.name, task.id, item)),
            timeout_s: terms.timeout_s,
        }
    }

    /// A content that goes with a task at once where it is small, and on demand where it is not.
    fn offer(&mut self, content: Payload) -> Blob {
        const AT_ONCE: usize = 64 << 10;
        let blob = Blob {
            sha256: content.sha256.clone(),
            size: content.size,
            bytes: content.whole(AT_ONCE),
        };
        if blob.bytes.is_none() {
            self.contents.insert(blob.sha256.clone(), content);
        }
        blob
    }
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
