use serde::Deserialize;
use serde_json::json;

use crate::args::Text;
use crate::host::{Fault, Host};
use crate::module::{Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Ping>();

/// Answers, and does nothing else: the host can be reached and its helper works.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Ping {
    /// What to answer with. `crash` fails, to try how failures look.
    #[serde(default = "pong")]
    data: Text,
}

fn pong() -> Text {
    "pong".into()
}

impl Task for Ping {
    const NAME: &'static str = "ping";

    fn run(self, _: &mut Host) -> Result<Report, Fault> {
        if &*self.data == "crash" {
            return Err(Fault::new("Task failed: Module failed: boom"));
        }
        Ok(Report::of(json!({ "ping": self.data.0 })))
    }
}
