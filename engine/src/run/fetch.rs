//! `fetch`: a file of the host, asked for part by part and put in place here.

use std::{
    fs,
    io::Write,
    path::{Component, Path, PathBuf},
};

use fleet_modules::{base64, checksum::Algorithm};
use fleet_wire::{Json, Outcome, Status};
use serde_json::{Map, Value, json};

use super::{
    content::is_true,
    dispatch::{Call, Unfit, Work, done},
};

/// The module's name.
pub(super) const MODULE: &str = "fetch";

/// A file on its way.
pub(super) struct Fetch {
    args: Map<String, Value>,
    src: String,
    /// Where it goes.
    dest: PathBuf,
    content: Vec<u8>,
    /// SHA-1 as the host sees it.
    sum: Option<String>,
}

impl Fetch {
    /// What a task fetches; none where it does something else.
    ///
    /// # Errors
    /// When its arguments do not say where the file goes.
    pub(super) fn of(work: &Work, host: &str, dir: &Path) -> Result<Option<Self>, Unfit> {
        let Work::Calls(calls) = work else {
            return Ok(None);
        };
        let Some(call) = calls.iter().find(|call| call.module.name == MODULE) else {
            return Ok(None);
        };
        let text = |name: &str| {
            call.args
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let (src, dest) = (text("src"), text("dest"));
        if src.is_empty() || dest.is_empty() {
            return Err(Unfit::Problem("src and dest are required".to_owned()));
        }
        let dest = place(src, dest, is_true(call.args.get("flat")), host, dir)?;
        Ok(Some(Self {
            args: call.args.clone(),
            src: src.to_owned(),
            dest,
            content: Vec::new(),
            sum: None,
        }))
    }

    /// Takes a part in; the call for the next one, where there is one.
    pub(super) fn take(
        &mut self,
        outcome: &Outcome,
        call: &dyn Fn(Map<String, Value>) -> Option<Call>,
    ) -> Option<Call> {
        if outcome.status != Status::Ok {
            return None;
        }
        let part: Value = serde_json::from_str(&outcome.result.0).unwrap_or_default();
        let text = |name: &str| part.get(name).and_then(Value::as_str);
        if let Some(sum) = text("checksum") {
            self.sum = Some(sum.to_owned());
        }
        let bytes = text("content").and_then(base64::decode)?;
        self.content.extend_from_slice(&bytes);
        let size = part.get("size").and_then(Value::as_u64).unwrap_or(0);
        if bytes.is_empty() || self.content.len() as u64 >= size {
            return None;
        }
        let mut args = self.args.clone();
        args.insert("_from".to_owned(), self.content.len().into());
        call(args)
    }

    /// Puts the file in place, where it is another one.
    pub(super) fn finish(self, outcome: Outcome) -> Outcome {
        let result: Value = serde_json::from_str(&outcome.result.0).unwrap_or_default();
        match outcome.status {
            Status::Failed => return self.failed(outcome, &result),
            Status::Ok => {}
            // What was not done has nothing to be put in place.
            _ => return outcome,
        }
        let sum = Algorithm::Sha1.sum(&self.content);
        if self.sum.as_ref().is_some_and(|told| *told != sum) {
            let message = "checksum mismatch: the file was changed while it was read";
            let told = json!({
                "msg": message, "file": self.src, "dest": self.dest, "checksum": sum, "remote_checksum": self.sum,
                "failed": true, "changed": false,
            });
            return done(Status::Failed, &told);
        }
        let there = fs::read(&self.dest)
            .ok()
            .map(|bytes| Algorithm::Sha1.sum(&bytes));
        let changed = there.as_ref() != Some(&sum);
        if changed && let Err(problem) = write(&self.dest, &self.content) {
            let message = format!("{}: cannot be written: {problem}", self.dest.display());
            return done(
                Status::Failed,
                &json!({"msg": message, "failed": true, "changed": false}),
            );
        }
        let mut told = json!({
            "changed": changed, "file": self.src, "dest": self.dest, "checksum": sum,
            "md5sum": Algorithm::Md5.sum(&self.content),
        });
        if changed {
            told["remote_checksum"] = sum.into();
            told["remote_md5sum"] = Value::Null;
        }
        let status = if changed { Status::Changed } else { Status::Ok };
        Outcome {
            status,
            result: Json(told.to_string()),
            ..outcome
        }
    }

    /// A file that is not there is no failure where the task says so.
    fn failed(&self, outcome: Outcome, result: &Value) -> Outcome {
        let must = self
            .args
            .get("fail_on_missing")
            .is_none_or(|must| is_true(Some(must)));
        if must || result.get("file").is_none() {
            return outcome;
        }
        let message = result
            .get("msg")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let message = format!("{message}, not transferring, ignored");
        done(
            Status::Ok,
            &json!({"changed": false, "file": self.src, "msg": message}),
        )
    }
}

/// Where a file goes: under the host's name, or as `flat` says.
fn place(src: &str, dest: &str, flat: bool, host: &str, dir: &Path) -> Result<PathBuf, Unfit> {
    let base = match dest.starts_with('~') {
        // The one who runs this, as the host here knows them.
        true => fleet_modules::host::Host::plan().expand(dest),
        false => dir.join(dest),
    };
    // A path of the host never leads out of where it goes.
    let inner: PathBuf = Path::new(src)
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .collect();
    if !flat {
        return Ok(base.join(host).join(inner));
    }
    if dest.ends_with('/') {
        let file = base.join(inner.file_name().unwrap_or_default());
        return match file.is_dir() {
            false => Ok(file),
            true => Err(Unfit::Problem(format!(
                "calculated dest '{}' is an existing directory, use another path that does not point to an existing directory",
                file.display()
            ))),
        };
    }
    if base.is_dir() {
        return Err(Unfit::Problem(
            "dest is an existing directory, use a trailing slash if you want to fetch src into that directory".to_owned(),
        ));
    }
    Ok(base)
}

/// Whole or not at all.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    // As any new file of this user: the temporary one is closed to others.
    let plain = fs::metadata(path).map(|meta| meta.permissions());
    let usual = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    file.as_file().set_permissions(plain.unwrap_or(usual))?;
    file.persist(path)
        .map(drop)
        .map_err(|problem| problem.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_under_its_hosts_name() {
        let at = |src: &str, dest: &str, flat: bool| {
            place(src, dest, flat, "web1", Path::new("/play"))
                .map(|path| path.display().to_string())
                .ok()
        };
        assert_eq!(
            at("/etc/motd", "got", false).as_deref(),
            Some("/play/got/web1/etc/motd")
        );
        assert_eq!(
            at("/etc/../../x", "/got", false).as_deref(),
            Some("/got/web1/etc/x")
        );
        assert_eq!(at("/etc/motd", "/got/", true).as_deref(), Some("/got/motd"));
        assert_eq!(at("/etc/motd", "/got", true).as_deref(), Some("/got"));
        assert_eq!(at("/etc/motd", "/tmp", true), None);
    }

    #[test]
    fn parts_become_a_file_once() {
        let dir = tempfile::tempdir().unwrap();
        let fetch = || Fetch {
            args: Map::new(),
            src: "/x".to_owned(),
            dest: dir.path().join("a/b"),
            content: Vec::new(),
            sum: None,
        };
        let sum = Algorithm::Sha1.sum(b"hello world");
        let part = |text: &str| {
            done(
                Status::Ok,
                &json!({"content": base64::encode(text.as_bytes()), "size": 11, "checksum": sum}),
            )
        };
        let run = || {
            let mut fetch = fetch();
            let asked = std::cell::RefCell::new(Vec::new());
            let call = |args: Map<String, Value>| {
                asked.borrow_mut().push(args["_from"].clone());
                None
            };
            assert!(fetch.take(&part("hello "), &call).is_none());
            assert!(fetch.take(&part("world"), &call).is_none());
            assert_eq!(*asked.borrow(), [json!(6)]);
            fetch.finish(part("world")).status
        };
        assert_eq!((run(), run()), (Status::Changed, Status::Ok));
        assert_eq!(fs::read(dir.path().join("a/b")).unwrap(), b"hello world");
        let missing = done(
            Status::Failed,
            &json!({"msg": "the remote file does not exist", "file": "/x"}),
        );
        let mut lenient = fetch();
        lenient
            .args
            .insert("fail_on_missing".to_owned(), false.into());
        assert_eq!(lenient.finish(missing.clone()).status, Status::Ok);
        assert_eq!(fetch().finish(missing).status, Status::Failed);
    }
}
