use std::path::PathBuf;

use anyhow::Result;

use crate::{
    error::Invalid,
    flags::{Output, Target, Tasks},
    load_tests::LoadTests,
    runs::Folder,
    setup::{Setup, run_name},
};

/// Run the load tests of a playbook alone, and change nothing
#[derive(clap::Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tasks: Tasks,
    #[command(flatten)]
    output: Output,
    /// The playbooks
    #[arg(required = true, value_name = "PLAYBOOK")]
    playbooks: Vec<PathBuf>,
}

impl Bench {
    pub(crate) async fn run(self) -> Result<u8> {
        let setup = Setup::read(&self.target, Some(&self.tasks), &self.playbooks)?;
        let name = run_name();
        let settings = setup.settings(&self.target, Some(&self.tasks))?;
        let mut tests = LoadTests::new(&setup, &name, settings, None, self.output.json)?;
        if tests.is_empty() {
            return Err(Invalid("no play of these has a `bench:` block".to_owned()).into());
        }
        let runs = self.output.log_dir.as_ref().unwrap_or(&setup.places.runs);
        let folder = Folder::create(runs, &name, "bench", &self.target, &self.playbooks)?;
        tests.baseline().await?;
        let report = tests.write(&folder, None, "measured, nothing changed")?;
        folder.end(0)?;
        if self.output.json {
            anstream::println!("{}", tests.json()?);
            return Ok(0);
        }
        anstream::println!("{}", tests.table());
        if let Some(report) = report {
            anstream::println!("report {}", report.display());
        }
        Ok(0)
    }
}
