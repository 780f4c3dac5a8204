use std::path::PathBuf;

use anyhow::Result;

use crate::{place::Places, runs};

/// List past runs, oldest first
#[derive(clap::Args)]
pub(crate) struct Runs {
    /// Where the runs are kept
    #[arg(long, value_name = "DIR")]
    log_dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Runs {
    pub(crate) fn run(self) -> Result<u8> {
        let folder = self.log_dir.unwrap_or_else(|| Places::of_this_user().runs);
        let all = runs::all(&folder)?;
        if self.json {
            anstream::println!("{}", serde_json::to_string_pretty(&all)?);
            return Ok(0);
        }
        for about in all {
            let end = about
                .exit_code
                .map_or_else(|| "unfinished".to_owned(), |code| format!("exit {code}"));
            let playbooks: Vec<_> = about
                .playbooks
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| name.to_string_lossy())
                .collect();
            anstream::println!(
                "{}  {:<6} {:<10} {} hosts  {}",
                about.run,
                about.verb,
                end,
                about.hosts.len(),
                playbooks.join(" ")
            );
        }
        Ok(0)
    }
}
