use std::{io::IsTerminal, time::Duration};

use anyhow::Result;
use clap::Subcommand;
use fleet_engine::transport::{enroll, masters};
use fleet_wire::Mode;

use crate::{
    count::count,
    error::Invalid,
    flags::Target,
    paint::{BAD, GOOD, HEADING, paint},
    place::Places,
    reporter,
    setup::{Setup, run_name},
};

/// Look after single hosts: their keys, their connections, their journals
#[derive(clap::Args)]
pub(crate) struct Host {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Record the keys of hosts, after showing their fingerprints
    Enroll {
        #[command(flatten)]
        target: Target,
        /// Record without asking
        #[arg(short, long)]
        yes: bool,
        /// Which hosts: a pattern
        pattern: String,
    },
    /// Close the ssh connections that are kept for the next run
    Disconnect {
        #[command(flatten)]
        target: Target,
        /// Those to all hosts
        #[arg(long, conflicts_with = "pattern")]
        all: bool,
        /// Which hosts: a pattern
        #[arg(required_unless_present = "all")]
        pattern: Option<String>,
    },
    /// Show the runs in the hosts' own journals
    Journal {
        #[command(flatten)]
        target: Target,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Which hosts: a pattern
        pattern: String,
    },
}

impl Host {
    pub(crate) async fn run(self) -> Result<u8> {
        match self.verb {
            Verb::Enroll {
                target,
                yes,
                pattern,
            } => enroll_hosts(&target, yes, &pattern).await,
            Verb::Disconnect {
                target,
                all,
                pattern,
            } => disconnect(&target, all, pattern.as_deref()).await,
            Verb::Journal {
                target,
                json,
                pattern,
            } => journal(&target, json, &pattern).await,
        }
    }
}

/// Seconds to wait for a host's keys, where nobody says.
const TIMEOUT: u64 = 10;

fn errands(target: &Target, mode: Mode) -> Result<fleet_engine::run::Errands> {
    let setup = Setup::read(target, None, &[])?;
    let settings = setup.settings(target, None)?;
    let (events, _unread) = tokio::sync::mpsc::channel(1024);
    Ok(setup.run(&run_name(), mode, settings).errands(events))
}

async fn enroll_hosts(target: &Target, yes: bool, pattern: &str) -> Result<u8> {
    let errands = errands(target, Mode::Read)?;
    let known_hosts = Places::of_this_user()
        .home
        .map(|home| home.join(".ssh/known_hosts"))
        .ok_or_else(|| {
            Invalid("there is no HOME, so it is not known where to record keys".to_owned())
        })?;
    let mut code = 0;
    for name in errands.hosts(pattern).map_err(crate::setup::one)? {
        let address = errands.address(&name).map_err(Invalid)?;
        let scan = match enroll::scan(
            &address,
            &known_hosts,
            Duration::from_secs(target.timeout.map_or(TIMEOUT, |own| own as u64)),
        )
        .await
        {
            Ok(scan) => scan,
            Err(problem) => {
                anstream::eprintln!("{} {problem}", paint(BAD, &name));
                code = 4;
                continue;
            }
        };
        for fingerprint in scan.fingerprints() {
            anstream::println!("{} {fingerprint}", paint(HEADING, &name));
        }
        if let Some(changed) = scan.changed() {
            anstream::eprintln!("{} {changed}", paint(BAD, &name));
            code = 4;
            continue;
        }
        if scan.is_known() {
            anstream::println!(
                "{} {}",
                paint(HEADING, &name),
                paint(GOOD, "is known already")
            );
            continue;
        }
        if !yes && !agreed(&name)? {
            anstream::println!("{name} not recorded");
            continue;
        }
        let file = scan.record()?;
        anstream::println!("{} recorded in {}", paint(HEADING, &name), file.display());
    }
    Ok(code)
}

fn agreed(name: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Invalid(
            "there is no terminal to ask on: say `--yes` after comparing the fingerprints"
                .to_owned(),
        )
        .into());
    }
    anstream::eprint!("are these the keys of {name}? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

async fn disconnect(target: &Target, all: bool, pattern: Option<&str>) -> Result<u8> {
    let control = Places::of_this_user().control;
    if all {
        let closed = masters::disconnect_all(&control).await;
        anstream::println!("{} closed", count(closed, "connection"));
        return Ok(0);
    }
    let errands = errands(target, Mode::Read)?;
    for name in errands
        .hosts(pattern.unwrap_or("all"))
        .map_err(crate::setup::one)?
    {
        let address = errands.address(&name).map_err(Invalid)?;
        let closed = masters::disconnect(&address, &control).await;
        anstream::println!(
            "{name} {}",
            if closed {
                "closed"
            } else {
                "had no connection"
            }
        );
    }
    Ok(0)
}

async fn journal(target: &Target, json: bool, pattern: &str) -> Result<u8> {
    let errands = errands(target, Mode::Read)?;
    let mut code = 0;
    let mut all = serde_json::Map::new();
    for name in errands.hosts(pattern).map_err(crate::setup::one)? {
        let runs = async { errands.host(&name, true, Mode::Read).await?.journal().await };
        match runs.await {
            Ok(runs) if json => {
                all.insert(name, serde_json::to_value(runs)?);
            }
            Ok(runs) => {
                for run in runs {
                    anstream::println!(
                        "{} {}  {:<17} {:>3} effects  {}  by {}",
                        paint(HEADING, &name),
                        run.run,
                        run.state,
                        run.effects,
                        run.began,
                        run.who
                    );
                }
            }
            Err(end) => {
                anstream::eprintln!("{} {}", paint(BAD, &name), reporter::end_text(&end));
                code = 4;
            }
        }
    }
    if json {
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
    }
    Ok(code)
}
