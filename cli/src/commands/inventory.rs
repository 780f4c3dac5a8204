use std::{io::Write, path::PathBuf};

use anyhow::{Context, Result};
use fleet_engine::{
    Diagnostic,
    config::Config,
    inventory::{self, Limit, LoadOptions, show},
    playbook::Vars,
    vault::Vault,
};

use crate::{
    ansible_cfg,
    commands::vault::VaultFlags,
    error::{self, Invalid, Mistakes},
};

/// What Ansible's programs end with when they are called wrongly.
const WRONG_CALL: u8 = 5;
/// What they end with at any other mistake.
const FAILED: u8 = 1;

/// Show an inventory: as JSON, YAML or TOML, as a graph, or one host's variables
#[derive(clap::Args)]
pub(crate) struct Inventory {
    /// With `--graph`: the group to begin with
    #[arg(value_name = "GROUP")]
    group: Option<String>,
    /// An inventory: a file, a directory, a script, or `host1,host2,` (repeatable)
    #[arg(
        short,
        long,
        visible_alias = "inventory-file",
        value_name = "INVENTORY",
        help_heading = "Hosts"
    )]
    inventory: Vec<String>,
    /// Only these hosts: a pattern, or `@file`
    #[arg(short, long, value_name = "PATTERN", help_heading = "Hosts")]
    limit: Option<String>,
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
    /// TOML instead of JSON
    #[arg(long)]
    toml: bool,
    /// With `--list`: write it to this file
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A directory whose `group_vars` and `host_vars` count as those beside a playbook
    #[arg(
        long,
        alias = "basedir",
        value_name = "DIR",
        help_heading = "Variables"
    )]
    playbook_dir: Option<PathBuf>,
    /// A variable `name=value`, JSON, YAML, or `@file`, for constructed inventories (repeatable)
    #[arg(short, long, value_name = "VARS", help_heading = "Variables")]
    extra_vars: Vec<String>,
    #[command(flatten)]
    vault: VaultFlags,
    /// Say more
    #[arg(short, action = clap::ArgAction::Count)]
    verbose: u8,
}

impl Inventory {
    pub(crate) fn run(self) -> Result<u8> {
        let problem = match self.shown() {
            Ok(()) => return Ok(0),
            Err(problem) => problem,
        };
        error::report(&problem);
        Ok(match problem.downcast_ref::<Invalid>() {
            Some(_) => WRONG_CALL,
            None => FAILED,
        })
    }

    /// Shows what is asked for.
    fn shown(&self) -> Result<()> {
        let asked = [self.list, self.host.is_some(), self.graph];
        match asked.into_iter().filter(|asked| *asked).count() {
            0 => {
                return Err(wrong_call(
                    "No action selected, at least one of --host, --graph or --list needs to be specified.",
                ));
            }
            1 => {}
            _ => {
                return Err(wrong_call(
                    "Conflicting options used, only one of --host, --graph or --list can be used at the same time.",
                ));
            }
        }
        let text = self.text(&ansible_cfg::load()?)?;
        if let Some(path) = self.output.as_ref().filter(|_| self.list) {
            return std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()));
        }
        // What is in values is shown as it is, colours and all: it may be read by a program.
        match writeln!(std::io::stdout(), "{text}") {
            Err(problem) if problem.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            written => written.context("cannot write to the standard output"),
        }
    }

    fn text(&self, config: &Config) -> Result<String> {
        let vault = self.vault.vault(config)?;
        let extra_vars = fleet_engine::extra_vars::read(&self.extra_vars, &vault).map_err(one)?;
        let (inventory, warnings) = self.load(config, &extra_vars, &vault)?;
        for warning in &warnings {
            anstream::eprintln!(
                "{}\n",
                fleet_engine::render(warning, crate::reporter::colored())
            );
        }
        let limit = self.limit.as_deref().map(Limit::parse).transpose();
        let limit = limit.map_err(one)?;
        let choice = show::Choice {
            form: match (self.yaml, self.toml) {
                (true, _) => show::Form::Yaml,
                (_, true) => show::Form::Toml,
                _ => show::Form::Json,
            },
            export: self.export || config.inventory_export(),
            limit: limit.as_ref(),
            extra_vars: Some(&extra_vars),
        };
        let text = if let Some(name) = &self.host {
            let known = inventory.host(name).is_some();
            show::host(&inventory, name, choice).map_err(|problem| match known {
                true => one(problem),
                false => wrong_call(&format!(
                    "You must pass a single valid host to --host parameter. Could not match supplied host pattern, ignoring: {name}: {problem}"
                )),
            })
        } else if self.graph {
            let group = self.group.as_deref().unwrap_or(inventory::ALL);
            show::graph(&inventory, group, self.vars).map_err(|problem| {
                wrong_call(&format!(
                    "Pattern must be valid group name when using --graph: {problem}"
                ))
            })
        } else {
            show::list(&inventory, choice).map_err(one)
        };
        Ok(text?.trim_end().to_owned())
    }

    fn load(
        &self,
        config: &Config,
        extra_vars: &Vars,
        vault: &Vault,
    ) -> Result<(inventory::Inventory, Vec<Diagnostic>)> {
        let playbook_dir = self.playbook_dir.as_deref().or(config.playbook_dir());
        let here = std::env::current_dir().context("cannot tell the working directory")?;
        let options = LoadOptions {
            playbook_dirs: vec![playbook_dir.map_or_else(|| here.clone(), |dir| here.join(dir))],
            extra_vars: extra_vars.clone(),
            ..LoadOptions::as_ansible(config).with_vault(vault)
        };
        let named = &self.inventory;
        let loaded = if named.is_empty() {
            inventory::Inventory::load(&inventory::sources(config), &options)
        } else {
            inventory::Inventory::load(named, &options)
        };
        loaded.map_err(|mistakes| Mistakes(mistakes).into())
    }
}

/// A call that cannot be understood, told in Ansible's words.
fn wrong_call(why: &str) -> anyhow::Error {
    Invalid(why.to_owned()).into()
}

fn one(mistake: Diagnostic) -> anyhow::Error {
    Mistakes(vec![mistake]).into()
}
