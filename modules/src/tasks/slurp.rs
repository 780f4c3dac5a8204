use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use crate::args::{Bool, Text};
use crate::base64;
use crate::host::{Entry, Fault, Host};
use crate::module::{Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Slurp>();

/// The largest file that a result can carry, in bytes.
const LIMIT: usize = 4 << 20;

/// Reads a file of the host into its result, base 64 in the field `content`. Changes nothing.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Slurp {
    /// The file, at most 4 MiB; `fetch` takes larger ones.
    src: Text,
    /// Give the content in base 64; without it as text, which it must be.
    #[serde(default = "yes")]
    armor: Bool,
}

fn yes() -> Bool {
    Bool(true)
}

impl Task for Slurp {
    const NAME: &'static str = "slurp";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("path", "src")];

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let path = &host.expand(&self.src);
        let content = read(host, path)?;
        if content.len() > LIMIT {
            return Err(Fault::new(format!(
                "Unable to slurp file: {} is larger than 4 MiB: use `fetch`",
                path.display()
            )));
        }
        let source = host.resolve(path)?;
        let source = source.to_string_lossy();
        Ok(Report::of(if *self.armor {
            json!({"content": base64::encode(&content), "encoding": "base64", "source": source})
        } else {
            let text = String::from_utf8(content).map_err(|_| {
                Fault::new(format!(
                    "Unable to slurp file: {} is not UTF-8 text: leave `armor` on",
                    path.display()
                ))
            })?;
            json!({"content": text, "encoding": "utf-8", "source": source})
        }))
    }
}

/// A file's whole content, with Ansible's words where there is none.
pub(super) fn read(host: &Host, path: &Path) -> Result<Vec<u8>, Fault> {
    let shown = path.display();
    let end = host.resolve(path)?;
    let denied = |fault: Fault| match fault.message.contains("permission denied") {
        true => Fault::new(format!("File is not readable: {shown}")),
        false => Fault::new(format!("Unable to slurp file: {fault}")),
    };
    match host.entry(&end) {
        Ok(Entry::Absent) => {}
        Ok(Entry::Dir(_)) => {
            // Who may not look into it is told that, as Ansible does.
            host.list(&end).map_err(denied)?;
            return Err(Fault::new(format!(
                "Source is a directory and must be a file: {shown}"
            )));
        }
        Ok(_) => return Ok(host.read(&end).map_err(denied)?.unwrap_or_default()),
        Err(fault) => return Err(denied(fault)),
    }
    let above = end.parent().unwrap_or(&end);
    Err(Fault::new(match host.entry(above)? {
        Entry::Absent | Entry::Dir(_) => format!("File not found: {shown}"),
        _ => format!(
            "Unable to slurp file: {} is not a directory",
            above.display()
        ),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_file_comes_in_base_64_or_as_text() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        std::fs::write(&file, "We are at the café").unwrap();
        let mut host = Host::plan();
        let slurped = (MODULE.run)(json!({"path": file}), &mut host).unwrap();
        assert_eq!(slurped.fields["content"], "V2UgYXJlIGF0IHRoZSBjYWbDqQ==");
        assert_eq!(slurped.fields["encoding"], "base64");
        let plain = (MODULE.run)(json!({"src": file, "armor": "no"}), &mut host).unwrap();
        assert_eq!(plain.fields["content"], "We are at the café");
        assert!(host.end().is_empty());
    }

    #[test]
    fn what_is_no_file_is_told_in_ansibles_words() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let fault = |path: &str| {
            let src = dir.path().join(path);
            let fault = (MODULE.run)(json!({"src": src}), &mut Host::plan()).unwrap_err();
            fault
                .message
                .replace(&dir.path().display().to_string(), "DIR")
        };
        assert_eq!(fault("no"), "File not found: DIR/no");
        assert_eq!(fault(""), "Source is a directory and must be a file: DIR/");
        assert_eq!(
            fault("f/x"),
            "Unable to slurp file: DIR/f is not a directory"
        );
    }
}
