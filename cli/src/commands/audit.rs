use std::path::PathBuf;

use anyhow::Result;
use clap::Subcommand;

use crate::{
    audit,
    count::count,
    error::{INTERNAL, Invalid},
    paint::{BAD, GOOD, paint},
    place::Places,
};

/// The log of who changed what: each line is bound to the one before it
#[derive(clap::Args)]
pub(crate) struct Audit {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Show the log
    Show {
        /// Another log, as that of a host (`/var/log/fleetctl/audit.jsonl` there)
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Check that no line was altered, taken out or put in
    Verify {
        /// Another log, as that of a host (`/var/log/fleetctl/audit.jsonl` there)
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

impl Audit {
    pub(crate) fn run(self) -> Result<u8> {
        let own = audit::path(&Places::of_this_user());
        match self.verb {
            Verb::Show { file } => {
                let path = file.unwrap_or(own);
                let text = std::fs::read_to_string(&path).map_err(|problem| {
                    Invalid(format!("cannot read {}: {problem}", path.display()))
                })?;
                anstream::print!("{text}");
                Ok(0)
            }
            Verb::Verify { file } => {
                let path = file.unwrap_or(own);
                match audit::verify(&path)? {
                    Ok(lines) => {
                        let lines = count(usize::try_from(lines).unwrap_or(usize::MAX), "line");
                        anstream::println!(
                            "{} {}",
                            path.display(),
                            paint(GOOD, format!("{lines}, all as they were written"))
                        );
                        Ok(0)
                    }
                    Err((line, why)) => {
                        anstream::println!("{}:{line}: {}", path.display(), paint(BAD, why));
                        Ok(INTERNAL)
                    }
                }
            }
        }
    }
}
