//! Events without what came out of vaults: they are hidden where events leave the run, so that no reader can forget to.

use std::{borrow::Cow, sync::Arc};

use fleet_wire::{Content, Effect, Entry, Undone, What};

use super::{MASK, Vault};
use crate::event::{Event, HostEnd, TaskEnded, TaskInfo};

impl Vault {
    /// Hides secrets in all that an event shows.
    pub(crate) fn hide_in(&self, event: &mut Event) {
        if self.masks_nothing() {
            return;
        }
        match event {
            Event::PlayStarted { play, .. } => self.hide_text(play),
            Event::PlaySkipped { play, reason } => {
                self.hide_text(play);
                self.hide_text(reason);
            }
            Event::Connected {
                recovered, pending, ..
            } => {
                recovered
                    .iter_mut()
                    .for_each(|undone| self.hide_undone(undone));
                pending.iter_mut().for_each(|name| self.hide_text(name));
            }
            Event::TaskStarted { task, .. } => self.hide_info(task),
            Event::TaskEnded(ended) => self.hide_task(ended),
            Event::Retrying {
                task, item, result, ..
            } => {
                self.hide_info(task);
                item.iter_mut().for_each(|item| self.hide_text(item));
                self.mask_json(result);
            }
            Event::Included {
                task, file, item, ..
            } => {
                self.hide_info(task);
                self.hide_text(file);
                item.iter_mut().for_each(|item| self.hide_text(item));
            }
            Event::HostEnded { end, .. } => self.hide_end(end),
            Event::Warning { text, .. } => self.hide_text(text),
            Event::RunStarted { .. }
            | Event::FactsUsed { .. }
            | Event::NoHostsLeft
            | Event::PlayEnded { .. }
            | Event::RunEnded { .. } => {}
        }
    }

    /// Hides secrets in how a host ended.
    pub(crate) fn hide_end(&self, end: &mut HostEnd) {
        match end {
            HostEnd::Unreachable { message }
            | HostEnd::Locked { message }
            | HostEnd::Refused { message, .. }
            | HostEnd::Lost { message } => self.hide_text(message),
            HostEnd::Stale { message, undone } => {
                self.hide_text(message);
                undone
                    .iter_mut()
                    .for_each(|undone| self.hide_undone(undone));
            }
            HostEnd::Failed { undone } | HostEnd::Interrupted { undone } => {
                undone
                    .iter_mut()
                    .for_each(|undone| self.hide_undone(undone));
            }
            HostEnd::Done => {}
        }
    }

    /// Whether a value holds a secret.
    pub(crate) fn hides(&self, value: &serde_json::Value) -> bool {
        if self.masks_nothing() {
            return false;
        }
        let mut masked = value.clone();
        self.mask_json(&mut masked);
        masked != *value
    }

    fn hide_text(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.mask(text) {
            *text = masked;
        }
    }

    fn hide_undone(&self, undone: &mut Undone) {
        for effect in &mut undone.effects {
            self.hide_text(&mut effect.effect);
            effect
                .problem
                .iter_mut()
                .for_each(|text| self.hide_text(text));
        }
    }

    fn hide_info(&self, info: &mut Arc<TaskInfo>) {
        if let Cow::Owned(name) = self.mask(&info.name) {
            *info = Arc::new(TaskInfo {
                name,
                ..TaskInfo::clone(info)
            });
        }
    }

    fn hide_task(&self, ended: &mut TaskEnded) {
        self.hide_info(&mut ended.task);
        ended.item.iter_mut().for_each(|item| self.hide_text(item));
        self.mask_json(&mut ended.result);
        if !ended.effects.is_empty() {
            ended.effects = ended
                .effects
                .iter()
                .map(|effect| self.hidden(effect))
                .collect();
        }
    }

    fn hidden(&self, effect: &Effect) -> Effect {
        let mut effect = effect.clone();
        match &mut effect.what {
            What::File {
                path,
                before,
                after,
            } => {
                self.hide_text(path);
                self.hide_file(before, after);
            }
            What::Sysctl { before, after, .. } => self.hide_change(before, after),
            What::Command { line } => self.hide_text(line),
            What::Account { lines, .. } => {
                for line in lines {
                    line.before.iter_mut().for_each(|text| self.hide_text(text));
                    line.after.iter_mut().for_each(|text| self.hide_text(text));
                }
            }
            What::Setting {
                name,
                before,
                after,
                ..
            } => {
                self.hide_text(name);
                self.hide_change(before, after);
            }
            What::Unit { .. } | What::Package { .. } => {}
        }
        effect
    }

    /// Where the new value is a secret the old one was, too.
    fn hide_change(&self, before: &mut String, after: &mut String) {
        if let Cow::Owned(masked) = self.mask(after) {
            *after = masked;
            if !before.is_empty() {
                MASK.clone_into(before);
            }
        }
        self.hide_text(before);
    }

    fn hide_file(&self, before: &mut Entry, after: &mut Entry) {
        for entry in [&mut *before, &mut *after] {
            if let Entry::Link(target) = entry {
                self.hide_text(target);
            }
        }
        let (mut lines, mut kept) = (Vec::new(), None);
        if let Some((bytes, text)) = text(after)
            && let Cow::Owned(masked) = self.mask(&text)
        {
            lines = masked
                .lines()
                .filter(|line| line.contains(MASK))
                .map(str::to_owned)
                .collect();
            // A secret that stands alone says nothing of where it stood before: whatever else was there may have been one.
            let alone = |line: &String| line.replace(MASK, "").trim().is_empty();
            if lines.iter().any(alone) {
                kept = Some(masked.lines().map(str::to_owned).collect::<Vec<_>>());
            }
            *bytes = masked.into_bytes();
        }
        if let Some((bytes, text)) = text(before) {
            let masked = as_after(&self.mask(&text), &lines);
            *bytes = match kept {
                Some(kept) => only(&masked, &kept),
                None => masked,
            }
            .into_bytes();
        }
    }
}

/// A content that travelled, where it is text.
fn text(entry: &mut Entry) -> Option<(&mut Vec<u8>, String)> {
    let Entry::File(_, Content { bytes, .. }) = entry else {
        return None;
    };
    let bytes = bytes.as_mut()?;
    let text = std::str::from_utf8(bytes).ok()?.to_owned();
    Some((bytes, text))
}

/// The old text with only those lines shown that stay.
fn only(text: &str, kept: &[String]) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            let bare = line.trim_end_matches('\n');
            match kept.iter().any(|kept| kept == bare) {
                true => line.to_owned(),
                false => MASK.to_owned() + &line[bare.len()..],
            }
        })
        .collect()
}

/// The old text, with what stood where secrets stand now hidden, too: a password that is replaced is still one to
/// somebody. `lines` are the new lines with secrets hidden.
fn as_after(text: &str, lines: &[String]) -> String {
    let around: Vec<(&str, &str)> = lines
        .iter()
        .filter_map(|line| Some((line.split_once(MASK)?.0, line.rsplit_once(MASK)?.1)))
        .filter(|(ahead, _)| !ahead.trim().is_empty())
        .collect();
    text.split_inclusive('\n')
        .map(|line| {
            let bare = line.trim_end_matches('\n');
            let same = around.iter().find_map(|(ahead, behind)| {
                let rest = bare.strip_prefix(ahead)?;
                let old = rest.strip_suffix(behind)?;
                (!old.is_empty()).then(|| format!("{ahead}{MASK}{behind}"))
            });
            match same {
                Some(masked) => masked + &line[bare.len()..],
                None => line.to_owned(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use fleet_wire::{Content, Effect, Entry, Meta, Status, UndoClass, What};
    use fleet_yaml::Source;
    use serde_json::json;

    use super::Vault;
    use crate::event::{Event, TaskEnded, TaskInfo};

    fn file(text: &str) -> Entry {
        let meta = Meta {
            mode: 0o600,
            owner: "root".to_owned(),
            group: "root".to_owned(),
        };
        let content = Content {
            sha256: format!("{text:?}"),
            size: text.len() as u64,
            bytes: Some(text.as_bytes().to_vec()),
        };
        Entry::File(meta, content)
    }

    fn ended(what: What) -> Event {
        let effect = Effect {
            what,
            undo: UndoClass::Exact,
            assumed: false,
            secret: false,
        };
        let task = TaskInfo {
            id: 0,
            name: "set hunter2".to_owned(),
            module: "copy".to_owned(),
            place: "site.yml:1".to_owned(),
            handler: false,
            role: None,
            position: Default::default(),
            span: Source::new("site.yml", "").span(0, 0),
            check: false,
        };
        Event::TaskEnded(Box::new(TaskEnded {
            host: "web1".to_owned(),
            task: Arc::new(task),
            item: Some("hunter2".to_owned()),
            index: 0,
            last: true,
            status: Status::Changed,
            result: json!({"changed": true, "msg": "it is hunter2", "by": {"hunter2": 1}}),
            digests: vec![effect.digest()].into(),
            effects: vec![effect].into(),
            took: Duration::ZERO,
            ignored: false,
            rescued: false,
            unreachable: false,
            delegated: None,
            secret: false,
        }))
    }

    fn hidden(what: What) -> Box<TaskEnded> {
        let vault = Vault::default();
        vault.hide("hunter2");
        let mut event = ended(what);
        vault.hide_in(&mut event);
        assert!(!serde_json::to_string(&event).unwrap().contains("hunter2"));
        match event {
            Event::TaskEnded(ended) => ended,
            other => panic!("another event: {other:?}"),
        }
    }

    fn diff(before: &str, after: &str) -> String {
        let ended = hidden(What::File {
            path: "/etc/x".to_owned(),
            before: file(before),
            after: file(after),
        });
        let lines = crate::plan::draw(&ended.effects[0]);
        lines.iter().map(|line| line.marked() + "\n").collect()
    }

    #[test]
    fn a_task_shows_no_secret_anywhere() {
        let ended = hidden(What::Command {
            line: "mysql -phunter2".to_owned(),
        });
        assert_eq!(ended.task.name, "set ********");
        assert_eq!(ended.item.as_deref(), Some("********"));
        assert_eq!(
            ended.result,
            json!({"changed": true, "msg": "it is ********", "by": {"********": 1}})
        );
        assert_eq!(ended.effects[0].summary(), "command mysql -p********");
        // What an apply compares is what is done, not what is shown.
        assert_ne!(ended.digests[0], ended.effects[0].digest());
    }

    #[test]
    fn a_diff_shows_what_changes_around_a_secret() {
        insta::assert_snapshot!(diff("user=a\n", "user=b\npassword=hunter2\n"), @r"
        @@ -1 +1,2 @@
        -user=a
        +user=b
        +password=********
        ");
    }

    #[test]
    fn a_secret_that_is_replaced_is_hidden_too() {
        insta::assert_snapshot!(diff("a=1\npassword=swordfish;\n", "a=2\npassword=hunter2;\n"), @r"
        @@ -1,2 +1,2 @@
        -a=1
        +a=2
         password=********;
        ");
        insta::assert_snapshot!(diff("password=swordfish\n", "password=hunter2\n"), @"what differs is hidden");
    }

    #[test]
    fn a_setting_that_becomes_a_secret_was_one() {
        let ended = hidden(What::Sysctl {
            key: "x".to_owned(),
            before: "swordfish".to_owned(),
            after: "hunter2".to_owned(),
        });
        let lines: Vec<String> = crate::plan::draw(&ended.effects[0])
            .iter()
            .map(|line| line.text())
            .collect();
        assert!(!lines.join(" ").contains("swordfish"), "{lines:?}");
    }
}
