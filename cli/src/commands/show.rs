use std::path::PathBuf;

use anyhow::Result;

use crate::{
    paint::{QUIET, paint},
    saved, view,
};

/// Show a saved plan, from its file alone
#[derive(clap::Args)]
pub(crate) struct Show {
    /// Leave the diffs out
    #[arg(long)]
    no_diff: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The plan
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
}

impl Show {
    pub(crate) fn run(self) -> Result<u8> {
        let (saved, _) = saved::read(&self.plan)?;
        let header = &saved.header;
        if self.json {
            anstream::println!("{}", view::json(&header.run, &saved.plan));
            return Ok(0);
        }
        let about = format!("{}  made {} by {}", header.hash, header.made, header.who);
        anstream::println!("{}", paint(QUIET, about));
        anstream::println!("{}", view::plan(&saved.plan, !self.no_diff));
        Ok(0)
    }
}
