//! `fleet-helper`: what fleetctl sends to a host. It speaks frames over its standard input and output, and nothing else.

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

/// Who logged in, where that is another than this helper's user.
fn login() -> Option<String> {
    let set = ["SUDO_USER", "FLEETCTL_LOGIN"];
    set.iter().find_map(|name| env::var(name).ok())
}

fn main() -> ExitCode {
    // A panic is told to the controller as a failed task; a line on standard error would only confuse it.
    std::panic::set_hook(Box::new(|_| {}));
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["serve"] => {
            if let Ok(own) = env::current_exe() {
                fleet_modules::versions::sweep(&own);
            }
            fleet_modules::serve::serve(io::stdin(), io::stdout(), login())
        }
        ["job", dir] => fleet_modules::serve::job(dir.as_ref()),
        ["look-after", dir, run] => {
            fleet_modules::host::State::at(Some(dir)).look_after(run, false);
            Ok(())
        }
        ["look-after", "--stay", dir, run] => {
            fleet_modules::host::State::at(Some(dir)).look_after(run, true);
            Ok(())
        }
        ["--version"] => writeln!(
            io::stdout(),
            "fleet-helper {} (protocol {})",
            env!("CARGO_PKG_VERSION"),
            fleet_wire::PROTOCOL
        ),
        _ => {
            // Nobody is left to tell where standard error is closed.
            let _ = writeln!(
                io::stderr(),
                "usage: fleet-helper serve | --version\nfleetctl starts it on a host; it is not for people"
            );
            return ExitCode::from(64);
        }
    };
    if done.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
