//! What `tests/faults` asks: the tests of a row, and the page of all rows.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is what it is for"
)]

use std::process::ExitCode;

use fleet_tests::faults::{FAULTS, page};

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("--page") => print!("{}", page()),
        None => {
            for fault in FAULTS {
                println!("{:>3}  {}", fault.number, fault.fault);
            }
        }
        Some(number) => {
            let wanted = FAULTS
                .iter()
                .find(|fault| fault.number.to_string() == number);
            let Some(fault) = wanted else {
                eprintln!("there is no row {number}: `tests/faults` lists them");
                return ExitCode::from(64);
            };
            for test in fault.tests {
                println!("{test}");
            }
        }
    }
    ExitCode::SUCCESS
}
