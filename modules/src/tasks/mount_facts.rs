use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::facts::mounts;
use crate::args::{Bool, List, Text};
use crate::glob;
use crate::host::{Fault, Host, unescaped};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<MountFacts>();

/// Lists what is mounted, and what the host's files would mount, as the fact `mount_points`: by path, each with its sizes.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct MountFacts {
    /// Patterns of devices; all where none are given.
    devices: Option<List>,
    /// Patterns of types of file systems; all where none are given.
    fstypes: Option<List>,
    /// Where to look: `all`, `static` (fstab), `dynamic` (what is mounted), files, or `mount`.
    sources: Option<List>,
    /// The program `mount`; none where only files are to be read.
    #[serde(default = "mount")]
    mount_binary: Option<Text>,
    /// Seconds to wait for each file system's sizes; those behind a network may hang.
    timeout: Option<Value>,
    /// What a file system is that did not answer in time: a failure, a warning, or nothing.
    #[serde(default)]
    on_timeout: OnTimeout,
    /// Also list, as the fact `aggregate_mounts`, all mounts where there are several on one path.
    include_aggregate_mounts: Option<Bool>,
}

fn mount() -> Option<Text> {
    Some("mount".into())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum OnTimeout {
    #[default]
    Error,
    Warn,
    Ignore,
}

const DYNAMIC: [&str; 3] = ["/etc/mtab", "/proc/mounts", "/etc/mnttab"];
const STATIC: [&str; 2] = ["/etc/fstab", "/etc/vfstab"];

impl Task for MountFacts {
    const NAME: &'static str = "mount_facts";

    fn check(&self) -> Result<(), ArgumentError> {
        self.patience().map(drop)?;
        match self
            .sources
            .iter()
            .flat_map(|list| list.iter())
            .any(|source| source.is_empty())
        {
            true => Err(ArgumentError::of(
                "sources",
                "sources contains an empty string",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let patience = self.patience()?;
        let mut found: Vec<Value> = Vec::new();
        let mut read: Vec<String> = Vec::new();
        for source in self.places() {
            let Some((text, real)) = self.text(host, &source)? else {
                continue;
            };
            // A link to what was read already says nothing new.
            if read.contains(&real) {
                continue;
            }
            read.push(real);
            let lines = text
                .lines()
                .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
            found.extend(lines.filter_map(|line| entry(line, &source)));
        }
        let fits = |patterns: &Option<List>, text: &Value| {
            let text = text.as_str().unwrap_or_default();
            patterns
                .as_ref()
                .is_none_or(|list| list.iter().any(|pattern| glob::matches(pattern, text)))
        };
        found.retain(|mount| {
            fits(&self.devices, &mount["device"]) && fits(&self.fstypes, &mount["fstype"])
        });
        let mut warnings = Vec::new();
        for mount in &mut found {
            self.measure(mount, patience, &mut warnings)?;
        }
        let mut points: Map<String, Value> = Map::new();
        for mount in &found {
            let path = mount["mount"].as_str().unwrap_or_default().to_owned();
            points.entry(path).or_insert_with(|| mount.clone());
        }
        let several = self.include_aggregate_mounts.is_some_and(|yes| *yes);
        let mut fields = json!({
            "ansible_facts": {
                "mount_points": points,
                "aggregate_mounts": if several { found } else { Vec::new() },
            }
        });
        if !warnings.is_empty() {
            fields["warnings"] = warnings.into();
        }
        Ok(Report::of(fields))
    }
}

impl MountFacts {
    fn patience(&self) -> Result<Option<Duration>, ArgumentError> {
        let seconds = match &self.timeout {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_f64(),
            Some(Value::String(text)) => text.trim().parse().ok(),
            Some(_) => None,
        };
        match seconds.filter(|seconds| *seconds > 0.0 && seconds.is_finite()) {
            Some(seconds) => Ok(Some(Duration::from_secs_f64(seconds))),
            None => Err(ArgumentError::of(
                "timeout",
                "expected a number of seconds above 0",
            )),
        }
    }

    /// The files and programs to ask, in order; each once.
    fn places(&self) -> Vec<String> {
        let all = || vec!["all".to_owned()];
        let names = self
            .sources
            .as_ref()
            .map_or_else(all, |list| list.0.clone());
        let mut places: Vec<String> = Vec::new();
        for name in names {
            let more: Vec<&str> = match name.as_str() {
                "all" => DYNAMIC.iter().chain(&STATIC).copied().collect(),
                "dynamic" => DYNAMIC.to_vec(),
                "static" => STATIC.to_vec(),
                name => vec![name],
            };
            for place in more {
                if !places.iter().any(|known| known == place) {
                    places.push(place.to_owned());
                }
            }
        }
        places
    }

    /// A source's text as lines of fstab, and what it really is.
    fn text(&self, host: &Host, source: &str) -> Result<Option<(String, String)>, Fault> {
        if self.mount_binary.as_deref() == Some(source) {
            let output = host.probe(&[source])?;
            return Ok(output
                .ok()
                .then(|| (printed(&output.text()), source.to_owned())));
        }
        let path = host.resolve(std::path::Path::new(source))?;
        let text = host.read(&path)?.filter(|text| !text.is_empty());
        // One's own mounts by any name of the process.
        let real = match path.file_name().is_some_and(|name| name == "mounts")
            && path.starts_with("/proc")
        {
            true => "/proc/mounts".to_owned(),
            false => path.display().to_string(),
        };
        Ok(text.map(|text| (String::from_utf8_lossy(&text).into_owned(), real)))
    }

    fn measure(
        &self,
        mount: &mut Value,
        patience: Option<Duration>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Fault> {
        let path = mount["mount"].as_str().unwrap_or_default().to_owned();
        let size = match patience {
            Some(patience) => mounts::within(patience, path.clone().into()),
            None => mounts::size(std::path::Path::new(&path)),
        };
        let exists = patience.is_none() || std::fs::symlink_metadata(&path).is_ok();
        match size {
            Some(size) => {
                if let Some(mount) = mount.as_object_mut() {
                    mount.extend(size);
                }
            }
            None if exists && patience.is_some() => {
                let text = format!("Timed out getting mount size for {path}");
                match self.on_timeout {
                    OnTimeout::Error => return Err(Fault::new(text)),
                    OnTimeout::Warn => warnings.push(text),
                    OnTimeout::Ignore => {}
                }
            }
            None => {}
        }
        Ok(())
    }
}

/// What `mount` prints, as lines of fstab: `tmpfs on /run type tmpfs (rw,nosuid)`.
fn printed(text: &str) -> String {
    let line = |line: &str| {
        let (source, rest) = line.split_once(" on ")?;
        let (path, rest) = rest.rsplit_once(" type ")?;
        let (kind, options) = rest.split_once(' ')?;
        let field = |text: &str| text.replace(' ', "\\040");
        Some(format!(
            "{} {} {kind} {} 0 0",
            field(source),
            field(path),
            options.trim_matches(['(', ')'])
        ))
    };
    text.lines().filter_map(line).collect::<Vec<_>>().join("\n")
}

fn entry(line: &str, source: &str) -> Option<Value> {
    let mut fields = line.split_whitespace().map(unescaped);
    let (device, path, kind) = (fields.next()?, fields.next()?, fields.next()?);
    let options = fields.next().unwrap_or_else(|| "defaults".to_owned());
    let mut number = || {
        fields
            .next()
            .and_then(|text| text.parse::<u32>().ok())
            .unwrap_or(0)
    };
    let (dump, pass) = (number(), number());
    Some(json!({
        "mount": path,
        "device": device,
        "fstype": kind,
        "options": options,
        "dump": dump,
        "passno": pass,
        "uuid": mounts::uuid(&device),
        "ansible_context": {"source": source, "source_data": line},
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MODULE, printed};
    use crate::host::Host;

    #[test]
    fn mounts_are_told_by_path() {
        let run =
            |args| (MODULE.run)(args, &mut Host::plan()).unwrap().fields["ansible_facts"].clone();
        let facts = run(json!({"sources": "dynamic", "fstypes": "proc"}));
        assert_eq!(facts["mount_points"]["/proc"]["fstype"], "proc");
        assert_eq!(facts["aggregate_mounts"], json!([]));
        let dir = tempfile::tempdir().unwrap();
        let fstab = dir.path().join("fstab");
        std::fs::write(&fstab, "# none\nserver:/x /no/such\\040place nfs ro 0 2\n").unwrap();
        let facts = run(json!({"sources": [fstab, fstab], "include_aggregate_mounts": true}));
        let mount = &facts["mount_points"]["/no/such place"];
        assert_eq!(
            (&mount["device"], &mount["passno"]),
            (&json!("server:/x"), &json!(2))
        );
        assert_eq!(facts["aggregate_mounts"].as_array().unwrap().len(), 1);
        assert_eq!(
            printed("tmpfs on /run type tmpfs (rw,nosuid)\n//s/a b on /m type cifs (ro)\n"),
            "tmpfs /run tmpfs rw,nosuid 0 0\n//s/a\\040b /m cifs ro 0 0"
        );
        assert!((MODULE.check)(&json!({"timeout": 0})).is_err());
    }
}
