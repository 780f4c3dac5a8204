use anyhow::Result;
use fleet_engine::playbook::schema::{self, File};

use crate::error::Invalid;

/// Print the JSON Schema of playbooks, of files of tasks, or of a module's arguments
///
/// Editors check and complete with it: `fleetctl schema > playbook.json`, and above a playbook the line
/// `# yaml-language-server: $schema=playbook.json`. `fleetctl schema tasks` is for files of tasks.
#[derive(clap::Args)]
pub(crate) struct Schema {
    /// `playbook`, `tasks`, or the name of a module
    #[arg(default_value = "playbook", value_name = "WHAT")]
    what: String,
}

impl Schema {
    pub(crate) fn run(self) -> Result<u8> {
        let schema = match self.what.as_str() {
            "playbook" => schema::of_file(File::Playbook),
            "tasks" => schema::of_file(File::Tasks),
            module => schema::of_module(module).ok_or_else(|| {
                Invalid(format!(
                    "there is no module `{module}`; `fleetctl doc` lists them"
                ))
            })?,
        };
        anstream::println!("{}", serde_json::to_string_pretty(&schema)?);
        Ok(0)
    }
}
