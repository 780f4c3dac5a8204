//! The process that works on a run, and its end from outside.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};

/// Starts a helper that goes on by itself, in a process group of its own and with nothing of this one's streams.
pub(super) fn leave_behind<'a>(
    helper: &Path,
    words: impl IntoIterator<Item = &'a OsStr>,
) -> io::Result<()> {
    Command::new(helper)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}

/// Ends the process of this number that was started then and no other, and the commands that it has running: who undoes its
/// run must be the only one at work. Its jobs, which go on by themselves, are left.
pub(super) fn end_process(number: i32, since: &str) {
    if !lives(number, since) {
        return;
    }
    // A child that loses its parent gets another, so they are found before.
    let commands = commands_of(number);
    end(number, since);
    for (number, since) in commands {
        end(number, &since);
    }
}

fn lives(number: i32, since: &str) -> bool {
    started(number).is_some_and(|started| started == since)
}

fn end(number: i32, since: &str) {
    let Some(pid) = Pid::from_raw(number) else {
        return;
    };
    for signal in [Signal::TERM, Signal::KILL] {
        if !lives(number, since) {
            return;
        }
        let _ = kill_process(pid, signal);
        for _ in 0..20 {
            if !lives(number, since) {
                return;
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// When a process was started, in the kernel's own ticks.
pub(super) fn started(pid: i32) -> Option<String> {
    Some(Stat::of(pid)?.started)
}

/// What is known of a process: proc(5), `stat`.
struct Stat {
    parent: i32,
    started: String,
}

impl Stat {
    /// None where it has ended: one that was not waited for works no more.
    fn of(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, behind) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = behind.split_whitespace().collect();
        match fields[..] {
            ["Z" | "X", ..] => None,
            [_, parent, ..] => Some(Self {
                parent: parent.parse().ok()?,
                started: (*fields.get(19)?).to_owned(),
            }),
            _ => None,
        }
    }
}

/// The processes below one, without helpers that have errands of their own, and all below those.
fn commands_of(top: i32) -> Vec<(i32, String)> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = names.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let all: Vec<(i32, Stat)> = numbers
        .filter_map(|pid| Some((pid, Stat::of(pid)?)))
        .collect();
    let mut found = Vec::new();
    let mut above = vec![top];
    while let Some(parent) = above.pop() {
        for (pid, stat) in all.iter().filter(|(_, stat)| stat.parent == parent) {
            if !has_an_errand(*pid) {
                found.push((*pid, stat.started.clone()));
                above.push(*pid);
            }
        }
    }
    found
}

/// Whether it is a helper that runs a job or looks after a run.
fn has_an_errand(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let errand = line.split(|byte| *byte == 0).nth(1);
    errand.is_some_and(|word| matches!(word, b"job" | b"look-after"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_is_known_by_when_it_was_started() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert!(started(own).unwrap().parse::<u64>().is_ok());
        assert_eq!(started(i32::MAX), None);
    }

    #[test]
    fn with_a_process_go_the_commands_that_it_has_running() {
        let mut shell = Command::new("sh")
            .args(["-c", "timeout 600 sleep 600 & wait"])
            .spawn()
            .unwrap();
        let number = i32::try_from(shell.id()).unwrap();
        let mut below = Vec::new();
        while below.len() < 2 {
            below = commands_of(number);
        }
        end_process(number, "another time");
        assert!(below.iter().all(|(pid, since)| lives(*pid, since)));
        end_process(number, &started(number).unwrap());
        assert!(!below.iter().any(|(pid, since)| lives(*pid, since)));
        shell.wait().unwrap();
    }
}
