use std::path::PathBuf;

use anyhow::Result;

use crate::{
    count::count,
    flags::{Target, Tasks},
    load_tests,
    setup::Setup,
};

/// Check inventories and playbooks without connecting to anything
///
/// Syntax, keywords, modules, arguments, templates, handler names and host patterns; all mistakes in one go. Exits with 0 or 11.
#[derive(clap::Args)]
pub(crate) struct Validate {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    tasks: Tasks,
    /// The playbooks
    #[arg(required = true, value_name = "PLAYBOOK")]
    playbooks: Vec<PathBuf>,
}

impl Validate {
    pub(crate) fn run(self) -> Result<u8> {
        let setup = Setup::read(&self.target, Some(&self.tasks), &self.playbooks)?;
        let settings = setup.settings(&self.target, Some(&self.tasks))?;
        load_tests::check(&setup, settings.clone())?;
        let run = setup.run("validate", fleet_wire::Mode::Plan, settings);
        run.plays().map_err(crate::error::Mistakes)?;
        let tasks: usize = setup
            .playbooks
            .iter()
            .flat_map(|book| &book.plays)
            .map(|play| play.all_tasks().count())
            .sum();
        let hosts = count(setup.inventory.hosts().count(), "host");
        anstream::println!(
            "valid: {hosts}, {}, {}",
            count(self.playbooks.len(), "playbook"),
            count(tasks, "task")
        );
        Ok(0)
    }
}
