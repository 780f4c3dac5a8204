use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::args::Text;
use crate::host::{Fault, Host, Put};
use crate::module::{Module, Report, Task};
use fleet_wire::Status;

pub(super) static MODULE: Module = Module::of::<AsyncStatus>();

/// What a task came to that was left running (`async` with `poll: 0`): `finished` says whether it is over, and then all
/// that the task returned is in the result. A task that failed fails this one.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct AsyncStatus {
    /// The job: `ansible_job_id` of what the task registered.
    jid: Text,
    /// `cleanup` removes the file with the result instead.
    #[serde(default)]
    mode: Mode,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Status,
    Cleanup,
}

impl Task for AsyncStatus {
    const NAME: &'static str = "async_status";

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if self.jid.is_empty() || self.jid.contains('/') {
            return Err(Fault::new(format!("`{}` is no job", &*self.jid)));
        }
        let file = host.job_results().join(&*self.jid);
        let about = |fields: Value| {
            let mut all: Map<String, Value> = [
                ("ansible_job_id", json!(&*self.jid)),
                ("results_file", json!(file)),
                ("stdout", json!("")),
                ("stderr", json!("")),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect();
            all.extend(fields.as_object().cloned().unwrap_or_default());
            all
        };
        let Some(text) = host.read(&file)? else {
            let mut fault = Fault::new("could not find job");
            fault.fields = about(json!({"started": true, "finished": true}));
            return Err(fault);
        };
        if self.mode == Mode::Cleanup {
            host.put(Put::absent(&file))?;
            return Ok(Report {
                fields: about(json!({"started": false, "finished": false, "erased": file})),
                status: Some(Status::Ok),
            });
        }
        let result: Value = serde_json::from_slice(&text).unwrap_or(Value::Null);
        let Some(mut fields) = result.as_object().cloned() else {
            let mut fault = Fault::new(format!(
                "Could not parse job output: {}",
                String::from_utf8_lossy(&text)
            ));
            fault.fields = about(json!({"started": true, "finished": true}));
            return Err(fault);
        };
        if fields.contains_key("started") {
            return Ok(Report {
                fields: about(json!({"started": true, "finished": false})),
                status: Some(Status::Ok),
            });
        }
        let changed = fields.remove("changed") == Some(true.into());
        fields.insert("started".to_owned(), true.into());
        fields.insert("finished".to_owned(), true.into());
        let failed = fields.remove("failed") == Some(true.into());
        if failed {
            let message = fields
                .remove("msg")
                .and_then(|said| said.as_str().map(str::to_owned));
            let mut fault = Fault::new(message.unwrap_or_else(|| "the job failed".to_owned()));
            fault.fields = about(fields.into());
            return Err(fault);
        }
        Ok(Report {
            fields: about(fields.into()),
            status: Some(if changed { Status::Changed } else { Status::Ok }),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_job_that_nobody_started_is_not_found() {
        let fault = (MODULE.run)(json!({"jid": "j1.2"}), &mut Host::plan()).unwrap_err();
        assert_eq!(fault.message, "could not find job");
        let fault = (MODULE.run)(json!({"jid": "../passwd"}), &mut Host::plan()).unwrap_err();
        assert_eq!(fault.message, "`../passwd` is no job");
    }
}
