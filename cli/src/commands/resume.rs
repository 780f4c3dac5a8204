use std::time::Duration;

use anyhow::Result;

use super::apply::Apply;
use crate::{
    error::Invalid,
    flags::{self, Output, Target},
    place::Places,
    runs::{self, PLAN},
    saved::{self, Terms},
};

/// Go on with a run of a saved plan that was cut off
///
/// Each host is asked what it has done already, and does the rest. A command that was under way is not repeated: nobody can say what came of it. A host that has undone the run meanwhile says so.
#[derive(clap::Args)]
pub(crate) struct Resume {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    output: Output,
    /// How long to wait for a host that another run holds: `30s`, `5m`
    #[arg(long, value_parser = flags::duration, default_value = "10s", value_name = "TIME")]
    lock_timeout: Duration,
    /// How long a host waits for its change to be confirmed
    #[arg(long, value_parser = flags::duration, default_value = "60s", value_name = "TIME")]
    confirm_timeout: Duration,
    /// The run, or `last` for the last apply
    run: String,
}

impl Resume {
    pub(crate) async fn run(self) -> Result<u8> {
        let places = Places::of_this_user();
        let folder = self.output.log_dir.as_ref().unwrap_or(&places.runs);
        let about = runs::find(folder, &self.run)?;
        let path = folder.join(&about.run).join(PLAN);
        if about.plan.is_none() || !path.exists() {
            return Err(Invalid(format!(
                "run {} applied no saved plan, so there is nothing to go on with: its hosts have undone what was cut off, and `fleetctl apply` begins anew",
                about.run
            ))
            .into());
        }
        let opened = saved::open(&path, &Terms::default(), &self.target, false)?;
        let mut apply = Apply::of(self.target, self.output);
        apply.lock_timeout = self.lock_timeout;
        apply.confirm_timeout = self.confirm_timeout;
        apply.opened(opened, &about.run, &path, true).await
    }
}
