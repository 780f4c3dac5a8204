//! `fleetctl`: plans, applies and proves what is to be true on a fleet of hosts.

mod ansible_cfg;
mod approvals;
mod audit;
mod called;
mod commands;
mod controller;
mod count;
mod digest_key;
mod error;
mod flags;
mod follow;
mod load_tests;
mod paint;
mod place;
mod questions;
mod reporter;
mod runs;
mod saved;
mod setup;
mod tags;
mod view;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Declarative provisioning for fleets of Linux servers
///
/// Reads Ansible inventories and playbooks; plans exactly, applies as a transaction, proves by load tests, undoes what fails.
#[derive(Parser)]
#[command(
    name = "fleetctl",
    version,
    max_term_width = 110,
    arg_required_else_help = true,
    args_override_self = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Plan(commands::plan::Plan),
    Show(commands::show::Show),
    Diff(commands::diff::Diff),
    Approve(commands::approve::Approve),
    Verify(commands::verify::Verify),
    Apply(commands::apply::Apply),
    Play(commands::play::Play),
    Exec(commands::exec::Exec),
    Validate(commands::validate::Validate),
    Resume(commands::resume::Resume),
    Confirm(commands::confirm::Confirm),
    Rollback(commands::rollback::Rollback),
    Bench(commands::bench::Bench),
    Facts(commands::facts::Facts),
    Host(commands::host::Host),
    Inventory(commands::inventory::Inventory),
    Vault(commands::vault::Vault),
    Runs(commands::runs::Runs),
    Drift(commands::drift::Drift),
    Audit(commands::audit::Audit),
    Doc(commands::doc::Doc),
    Schema(commands::schema::Schema),
}

/// Open files that are enough for thousands of hosts, each of which takes some six.
const OPEN_FILES: u64 = 65_536;

/// Asks for more open files than the 1,024 that a session usually starts with. No more than [`OPEN_FILES`]: programs
/// started from here inherit it, and some go through every number below.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit
        .maximum
        .map_or(OPEN_FILES, |most| most.min(OPEN_FILES));
    if limit.current.is_some_and(|current| current < wanted) {
        // Where it is refused, fleetctl runs as far as it gets.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(wanted),
                ..limit
            },
        );
    }
}

fn main() -> ExitCode {
    let call = called::Call::new(std::env::args_os().collect());
    if let Some(text) = call.version() {
        anstream::println!("{text}");
        return ExitCode::SUCCESS;
    }
    let misused = |problem: clap::Error| {
        // Help and version go to standard output and are no failure.
        let usage = problem.use_stderr();
        let _ = problem.print();
        ExitCode::from(if usage { call.misuse() } else { 0 })
    };
    if call.is_galaxy() {
        return match commands::galaxy::Galaxy::try_parse_from(&call.words) {
            Ok(galaxy) => ExitCode::from(
                galaxy
                    .run()
                    .unwrap_or_else(|problem| error::report(&problem)),
            ),
            Err(problem) => misused(problem),
        };
    }
    let cli = match Cli::try_parse_from(&call.words) {
        Ok(cli) => cli,
        Err(problem) => return misused(problem),
    };
    raise_open_files();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(problem) => {
            return ExitCode::from(error::report(
                &anyhow::Error::new(problem).context("cannot start"),
            ));
        }
    };
    let code = runtime.block_on(async {
        match cli.command {
            Command::Plan(plan) => plan.run().await,
            Command::Show(show) => show.run(),
            Command::Diff(diff) => diff.run(),
            Command::Approve(approve) => approve.run(),
            Command::Verify(verify) => verify.run(),
            Command::Audit(audit) => audit.run(),
            Command::Drift(drift) => drift.run().await,
            Command::Apply(apply) => apply.run().await,
            Command::Play(play) => play.run().await,
            Command::Exec(exec) => exec.run().await,
            Command::Validate(validate) => validate.run(),
            Command::Resume(resume) => resume.run().await,
            Command::Confirm(confirm) => confirm.run().await,
            Command::Rollback(rollback) => rollback.run().await,
            Command::Bench(bench) => bench.run().await,
            Command::Facts(facts) => facts.run().await,
            Command::Host(host) => host.run().await,
            Command::Inventory(inventory) => inventory.run(),
            Command::Vault(vault) => vault.run().await,
            Command::Runs(runs) => runs.run(),
            Command::Doc(doc) => doc.run(),
            Command::Schema(schema) => schema.run(),
        }
    });
    runtime.shutdown_background();
    ExitCode::from(code.unwrap_or_else(|problem| error::report(&problem)))
}
