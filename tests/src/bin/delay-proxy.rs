//! `delay-proxy LISTEN TARGET [--delay-ms N]`: a slow line for programs and people.
//!
//! Prints the address at which it listens, and on SIGINT or SIGTERM, as JSON, what has gone through.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::time::Duration;

use fleet_tests::DelayProxy;
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str =
    "usage: delay-proxy LISTEN TARGET [--delay-ms N]   (addresses as HOST:PORT; 25 ms each way)";

struct Arguments {
    listen: SocketAddr,
    target: SocketAddr,
    delay: Duration,
}

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)).and_then(|arguments| run(&arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            let _ = writeln!(io::stderr(), "delay-proxy: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut addresses = Vec::new();
    let mut delay = Duration::from_millis(25);
    while let Some(word) = words.next() {
        if word == "--delay-ms" {
            let value = words.next().unwrap_or_default();
            let milliseconds = value
                .parse()
                .map_err(|_| format!("'{value}' is no number of milliseconds\n{USAGE}"))?;
            delay = Duration::from_millis(milliseconds);
        } else {
            let address = word.to_socket_addrs().ok().and_then(|mut all| all.next());
            addresses.push(address.ok_or_else(|| format!("'{word}' is no address\n{USAGE}"))?);
        }
    }
    match addresses[..] {
        [listen, target] => Ok(Arguments {
            listen,
            target,
            delay,
        }),
        _ => Err(USAGE.to_owned()),
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let proxy = DelayProxy::start(arguments.listen, arguments.target, arguments.delay)
        .map_err(|error| format!("cannot listen at {}: {error}", arguments.listen))?;
    // Whoever reads neither line does not care about them.
    let _ = writeln!(io::stdout(), "listening at {}", proxy.address());
    wait_for_signal().map_err(|error| format!("cannot wait for a signal: {error}"))?;
    let counts = proxy.counts();
    let report = serde_json::json!({
        "connections": counts.connections,
        "bytes_to_server": counts.bytes_to_server,
        "bytes_to_client": counts.bytes_to_client,
        "turns": counts.turns,
    });
    let _ = writeln!(io::stdout(), "{report}");
    Ok(())
}

/// The standard library knows nothing of signals; tokio is here for nothing else.
fn wait_for_signal() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        Ok(())
    })
}
