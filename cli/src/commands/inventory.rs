use anyhow::Result;
use fleet_engine::inventory::{Limit, show};

use crate::{error::Invalid, flags::Target, setup::Setup};

/// Show an inventory: as JSON, as YAML, as a graph, or one host's variables
#[derive(clap::Args)]
pub(crate) struct Inventory {
    #[command(flatten)]
    target: Target,
    /// All groups, hosts and variables
    #[arg(long)]
    list: bool,
    /// One host's variables
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// The groups as a tree
    #[arg(long)]
    graph: bool,
    /// With `--graph`: show variables, too
    #[arg(long)]
    vars: bool,
    /// With `--list`: variables at their groups instead of at each host
    #[arg(long)]
    export: bool,
    /// YAML instead of JSON
    #[arg(short, long)]
    yaml: bool,
}

impl Inventory {
    pub(crate) fn run(self) -> Result<u8> {
        let asked =
            usize::from(self.list) + usize::from(self.host.is_some()) + usize::from(self.graph);
        if asked != 1 {
            return Err(
                Invalid("say one of `--list`, `--host HOST` and `--graph`".to_owned()).into(),
            );
        }
        let setup = Setup::read(&self.target, None, &[])?;
        let limit = self
            .target
            .limit
            .as_deref()
            .map(Limit::parse)
            .transpose()
            .map_err(crate::setup::one)?;
        let text = if self.graph {
            show::graph(&setup.inventory, "all", self.vars).map_err(crate::setup::one)?
        } else {
            let value = match &self.host {
                Some(host) => show::host(&setup.inventory, host).map_err(crate::setup::one)?,
                None if self.yaml => show::yaml(&setup.inventory, self.export, limit.as_ref())
                    .map_err(crate::setup::one)?,
                None => show::list(&setup.inventory, self.export, limit.as_ref())
                    .map_err(crate::setup::one)?,
            };
            if self.yaml {
                serde_yaml::to_string(&value)?
            } else {
                serde_json::to_string_pretty(&value)?
            }
        };
        anstream::println!("{}", text.trim_end());
        Ok(0)
    }
}
