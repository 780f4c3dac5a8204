use std::{io::IsTerminal, time::Duration};

use anyhow::Result;
use clap::Subcommand;
use fleet_engine::{
    event::HostEnd,
    transport::{enroll, masters},
};
use fleet_wire::{Mode, Standing, ToHost};

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
    /// Show how things stand with what fleetctl keeps on hosts: locks, open runs, damaged journals
    Status {
        #[command(flatten)]
        target: Target,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Which hosts: a pattern
        pattern: String,
    },
    /// Set damaged journals aside, so that runs can begin again
    ///
    /// Nothing is thrown away: the journals and the old contents that they kept lie in `damaged/` in the state directory. What those runs did is not undone.
    Repair {
        #[command(flatten)]
        target: Target,
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
        /// Which hosts: a pattern
        pattern: String,
    },
    /// End the helper that holds a host's lock
    ///
    /// What its run has changed is undone when the next run begins. Where a controller still works with that helper, it loses the host.
    Unlock {
        #[command(flatten)]
        target: Target,
        /// The host
        host: String,
        /// The run that holds the lock, as `fleetctl host status` tells it
        run: String,
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
            Verb::Status {
                target,
                json,
                pattern,
            } => status(&target, json, &pattern).await,
            Verb::Repair {
                target,
                yes,
                pattern,
            } => repair(&target, yes, &pattern).await,
            Verb::Unlock { target, host, run } => unlock(&target, &host, run).await,
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
    agreed_to(&format!("are these the keys of {name}?"))
}

fn agreed_to(question: &str) -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Invalid(
            "there is no terminal to ask on: say `--yes` after having a look".to_owned(),
        )
        .into());
    }
    anstream::eprint!("{question} [y/N] ");
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

/// Asks a host how things stand, after `what`.
async fn standing(
    errands: &fleet_engine::run::Errands,
    name: &str,
    what: &ToHost,
) -> std::result::Result<Standing, HostEnd> {
    let mut errand = errands.host(name, true, Mode::Care).await?;
    errand.standing(what).await
}

async fn status(target: &Target, json: bool, pattern: &str) -> Result<u8> {
    let errands = errands(target, Mode::Care)?;
    let mut code = 0;
    let mut all = serde_json::Map::new();
    for name in errands.hosts(pattern).map_err(crate::setup::one)? {
        match standing(&errands, &name, &ToHost::Standing).await {
            Ok(standing) => {
                if !standing.damaged.is_empty() {
                    code = 7;
                }
                if json {
                    all.insert(name, serde_json::to_value(standing)?);
                } else {
                    anstream::println!("{}{}", paint(HEADING, &name), stands(&standing));
                }
            }
            Err(end) => {
                anstream::eprintln!("{} {}", paint(BAD, &name), reporter::end_text(&end));
                code = code.max(4);
            }
        }
    }
    if json {
        anstream::println!("{}", serde_json::to_string_pretty(&all)?);
    }
    Ok(code)
}

/// How things stand, a line each.
fn stands(standing: &Standing) -> String {
    let mut lines = Vec::new();
    if let Some(locked) = &standing.locked {
        lines.push(format!(
            "locked by run {} of {} since {}",
            locked.run, locked.who, locked.since
        ));
    }
    for run in &standing.open {
        let waits = run.waits_s.map_or_else(String::new, |seconds| {
            format!(", undone in {seconds} s unless it is confirmed or goes on")
        });
        lines.push(format!(
            "run {} of {} is {}{waits}",
            run.run, run.who, run.state
        ));
    }
    for handler in &standing.pending {
        lines.push(format!("the handler `{handler}` is left over"));
    }
    for (run, why) in &standing.damaged {
        lines.push(paint(BAD, format!("{run}: {why}")));
    }
    for path in &standing.aside {
        lines.push(format!("set aside: {path}"));
    }
    let sum = format!(
        "{} ({} kB in {})",
        if lines.is_empty() {
            paint(GOOD, "nothing is open")
        } else {
            String::new()
        },
        standing.bytes / 1000,
        standing.state_dir
    );
    match lines.is_empty() {
        true => format!(" {sum}"),
        false => format!("\n  {}\n {sum}", lines.join("\n  ")),
    }
}

async fn repair(target: &Target, yes: bool, pattern: &str) -> Result<u8> {
    let errands = errands(target, Mode::Care)?;
    let mut code = 0;
    for name in errands.hosts(pattern).map_err(crate::setup::one)? {
        let before = match standing(&errands, &name, &ToHost::Standing).await {
            Ok(standing) => standing,
            Err(end) => {
                anstream::eprintln!("{} {}", paint(BAD, &name), reporter::end_text(&end));
                code = 4;
                continue;
            }
        };
        if before.damaged.is_empty() {
            anstream::println!(
                "{} {}",
                paint(HEADING, &name),
                paint(GOOD, "has nothing to repair")
            );
            continue;
        }
        anstream::println!("{}{}", paint(HEADING, &name), stands(&before));
        if !yes && !agreed_to("set these journals aside? what their runs did stays as it is")? {
            continue;
        }
        let more = serde_json::json!({"host": name});
        crate::audit::note(&Places::of_this_user(), "repair", "", more)?;
        match standing(&errands, &name, &ToHost::Repair).await {
            Ok(after) => anstream::println!("{}{}", paint(HEADING, &name), stands(&after)),
            Err(end) => {
                anstream::eprintln!("{} {}", paint(BAD, &name), reporter::end_text(&end));
                code = 7;
            }
        }
    }
    Ok(code)
}

async fn unlock(target: &Target, host: &str, run: String) -> Result<u8> {
    let errands = errands(target, Mode::Care)?;
    let names = errands.hosts(host).map_err(crate::setup::one)?;
    let [name] = &names[..] else {
        return Err(Invalid(format!(
            "`{host}` is not one host, and a lock is broken one at a time"
        ))
        .into());
    };
    let more = serde_json::json!({"host": name});
    crate::audit::note(&Places::of_this_user(), "unlock", &run, more)?;
    match standing(&errands, name, &ToHost::Unlock { run }).await {
        Ok(after) => {
            anstream::println!("{}{}", paint(HEADING, name), stands(&after));
            Ok(0)
        }
        Err(end) => {
            anstream::eprintln!("{} {}", paint(BAD, name), reporter::end_text(&end));
            Ok(6)
        }
    }
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
