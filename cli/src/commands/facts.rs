use anyhow::Result;
use fleet_engine::event::HostEnd;
use fleet_wire::Mode;
use tokio::task::JoinSet;

use crate::{
    flags::Target,
    setup::{Setup, run_name},
};

/// Show the facts of hosts as JSON
#[derive(clap::Args)]
pub(crate) struct Facts {
    #[command(flatten)]
    target: Target,
    /// Only facts whose names match this shell pattern (`ansible_mem*`)
    #[arg(long, value_name = "PATTERN")]
    filter: Option<String>,
    /// Which hosts: a pattern
    #[arg(default_value = "all", value_name = "PATTERN")]
    pattern: String,
}

impl Facts {
    pub(crate) async fn run(self) -> Result<u8> {
        let setup = Setup::read(&self.target, None, &[])?;
        let settings = setup.settings(&self.target, None)?;
        let root = settings.r#become;
        let (events, _unread) = tokio::sync::mpsc::channel(1024);
        let errands = setup.run(&run_name(), Mode::Read, settings).errands(events);
        let args = match &self.filter {
            Some(filter) => serde_json::json!({"filter": filter}),
            None => serde_json::json!({}),
        };
        let mut set = JoinSet::new();
        for host in errands.hosts(&self.pattern).map_err(crate::setup::one)? {
            let (errands, args) = (errands.clone(), args.clone());
            set.spawn(async move {
                let facts = async {
                    errands
                        .host(&host, root, Mode::Read)
                        .await?
                        .module("setup", &args)
                        .await
                };
                let facts = facts.await;
                (host, facts)
            });
        }
        let mut all = std::collections::BTreeMap::new();
        let mut code = 0;
        while let Some(joined) = set.join_next().await {
            let (host, facts) = joined?;
            match facts {
                Ok(facts) => {
                    all.insert(
                        host,
                        facts.get("ansible_facts").cloned().unwrap_or_default(),
                    );
                }
                Err(end) => {
                    let message = match &end {
                        HostEnd::Unreachable { message }
                        | HostEnd::Locked { message }
                        | HostEnd::Refused { message, .. }
                        | HostEnd::Lost { message } => message.clone(),
                        other => format!("{other:?}"),
                    };
                    anstream::eprintln!("{host}: {message}");
                    code = if matches!(end, HostEnd::Unreachable { .. }) {
                        4
                    } else {
                        3
                    };
                }
            }
        }
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
        Ok(code)
    }
}
