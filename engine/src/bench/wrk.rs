//! wrk: its command line and its output.
//!
//! wrk's exit code says nothing: it is 0 when every request failed. Its text rounds, leaves the
//! line of socket errors out when there are none, and counts an answer slower than its time limit
//! as a timeout while dropping it from the latencies; so the limit is set high, and a Lua script
//! that it is given prints the exact figures. Where that line is missing,
//! the text is read.

use std::time::Duration;

use super::result::{Errors, Latency, Load};
use super::spec::Scenario;

/// The script that prints the exact figures.
const SCRIPT: &str = include_str!("wrk.lua");

/// Open files that wrk needs beyond its connections.
const SPARE_FILES: u32 = 256;

/// wrk's command line for a scenario that runs for `duration`.
pub fn argv(scenario: &Scenario, url: &str, duration: Duration, cpus: u32) -> Vec<String> {
    let connections = scenario.connections.max(1);
    let threads = scenario.threads.unwrap_or(cpus).clamp(1, connections);
    let mut argv = vec![
        "wrk".to_owned(),
        format!("-t{threads}"),
        format!("-c{connections}"),
        format!("-d{}s", duration.as_secs().max(1)),
        "--timeout".to_owned(),
        format!("{}s", scenario.timeout.as_secs().max(1)),
        "--latency".to_owned(),
        "-s".to_owned(),
        "/dev/stdin".to_owned(),
    ];
    if !scenario.keepalive {
        argv.extend(["-H".to_owned(), "Connection: close".to_owned()]);
    }
    argv.push(with_port(url));
    argv
}

/// wrk looks the port up by the scheme's name, which fails where there is no `/etc/services`.
fn with_port(url: &str) -> String {
    let port = match url.split_once("://") {
        Some(("http", _)) => 80,
        Some(("https", _)) => 443,
        _ => return url.to_owned(),
    };
    let start = url.find("://").map_or(0, |at| at + 3);
    let (head, rest) = url.split_at(start);
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // The colons of an IPv6 address stand in brackets.
    if host.rsplit(']').next().is_some_and(|end| end.contains(':')) {
        return url.to_owned();
    }
    let path = if path.is_empty() { "/" } else { path };
    format!("{head}{host}:{port}{path}")
}

/// What is run for a command line of [`argv`]: a shell that pipes the script into it. The script is
/// small enough for an argument, and no file is left on the load generator.
pub fn piped(argv: &[String]) -> Vec<String> {
    let shell = [
        "sh",
        "-c",
        r#"script=$1; shift; printf %s "$script" | "$@""#,
        "sh",
        SCRIPT,
    ];
    shell
        .into_iter()
        .map(str::to_owned)
        .chain(argv.iter().cloned())
        .collect()
}

/// Open files that a scenario needs: with a login's soft limit of 1024, connections beyond it fail.
pub fn open_files(scenario: &Scenario) -> u32 {
    scenario.connections.saturating_add(SPARE_FILES)
}

/// The command line that makes wrk say its version (it then exits 1).
pub fn version_argv() -> Vec<String> {
    vec!["wrk".to_owned(), "-v".to_owned()]
}

/// The version in the output of [`version_argv`]: `debian/4.1.0-3+b2`.
pub fn version(output: &str) -> Option<&str> {
    let rest = output
        .lines()
        .find_map(|line| line.trim().strip_prefix("wrk "))?;
    rest.split_whitespace().next()
}

/// Why an output holds no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrkError {
    /// Not one connection could be made.
    #[error("{0}")]
    Unreachable(String),
    /// The output is not wrk's, or wrk gave up.
    #[error("wrk gave no result: {0}")]
    NoResult(String),
}

/// Reads what wrk printed. The exit code is of no use and not asked for.
pub fn parse(stdout: &str, stderr: &str) -> Result<Load, WrkError> {
    let exact = stdout
        .lines()
        .find_map(|line| line.strip_prefix("fleetctl "));
    if let Some(json) = exact {
        return exact_load(json);
    }
    if let Some(load) = text_load(stdout) {
        return Ok(load);
    }
    let lines = || {
        stdout
            .lines()
            .chain(stderr.lines())
            .map(str::trim)
            .filter(|line| !line.is_empty())
    };
    if let Some(line) = lines().find(|line| line.starts_with("unable to connect")) {
        return Err(WrkError::Unreachable(line.to_owned()));
    }
    let last = stderr
        .lines()
        .chain(stdout.lines())
        .map(str::trim)
        .rfind(|line| !line.is_empty());
    Err(WrkError::NoResult(
        last.unwrap_or("it printed nothing").to_owned(),
    ))
}

fn exact_load(json: &str) -> Result<Load, WrkError> {
    let mut load: Load =
        serde_json::from_str(json).map_err(|error| WrkError::NoResult(error.to_string()))?;
    if load.answers == 0 {
        load.latency = None;
    }
    Ok(load)
}

fn text_load(stdout: &str) -> Option<Load> {
    let mut load = Load {
        answers: 0,
        duration_us: 0,
        bytes: 0,
        latency: None,
        errors: Errors::default(),
    };
    let mut latency = Latency {
        mean_us: 0.0,
        p50_us: 0,
        p75_us: 0,
        p90_us: 0,
        p99_us: 0,
        p999_us: None,
        max_us: 0,
    };
    let mut complete = false;
    for line in stdout.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Latency", mean, _, max, _] => {
                latency.mean_us = micros(mean)?;
                latency.max_us = micros(max)?.round() as u64;
            }
            [percent, value] if percent.ends_with('%') => {
                let value = micros(value)?.round() as u64;
                match *percent {
                    "50%" => latency.p50_us = value,
                    "75%" => latency.p75_us = value,
                    "90%" => latency.p90_us = value,
                    "99%" => latency.p99_us = value,
                    _ => {}
                }
            }
            [answers, "requests", "in", time, bytes, "read"] => {
                load.answers = answers.parse().ok()?;
                load.duration_us = micros(time.trim_end_matches(','))?.round() as u64;
                load.bytes = binary(bytes)?;
                complete = true;
            }
            [
                "Socket",
                "errors:",
                "connect",
                connect,
                "read",
                read,
                "write",
                write,
                "timeout",
                timeout,
            ] => {
                load.errors.connect = count(connect)?;
                load.errors.read = count(read)?;
                load.errors.write = count(write)?;
                load.errors.timeout = count(timeout)?;
            }
            ["Non-2xx", "or", "3xx", "responses:", status] => load.errors.status = count(status)?,
            _ => {}
        }
    }
    if load.answers > 0 {
        load.latency = Some(latency);
    }
    complete.then_some(load)
}

fn count(word: &str) -> Option<u64> {
    word.trim_end_matches(',').parse().ok()
}

/// wrk's times: `152.00us`, `16.64ms`, `1.99s`, `1.20m`, `0.50h`.
fn micros(word: &str) -> Option<f64> {
    let (number, unit) = split_unit(word)?;
    let scale = match unit {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3600e6,
        _ => return None,
    };
    Some(number * scale)
}

/// wrk's sizes, of 1024: `0.00B`, `9.30MB`, `1.20GB`.
fn binary(word: &str) -> Option<u64> {
    let (number, unit) = split_unit(word)?;
    let power = ["B", "KB", "MB", "GB", "TB", "PB"]
        .iter()
        .position(|name| *name == unit)?;
    Some((number * 1024_f64.powi(i32::try_from(power).ok()?)).round() as u64)
}

fn split_unit(word: &str) -> Option<(f64, &str)> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = word.split_at(end);
    Some((number.parse().ok()?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! sample {
        ($name:literal) => {
            include_str!(concat!("../../tests/data/wrk-", $name, ".txt"))
        };
    }

    fn read(stdout: &str) -> Load {
        parse(stdout, "").unwrap()
    }

    fn mib(size: f64) -> u64 {
        (size * 1048576.0).round() as u64
    }

    #[test]
    fn a_good_run() {
        assert_eq!(
            read(sample!("ok")),
            Load {
                answers: 96_020,
                duration_us: 5_090_000,
                bytes: mib(78.11),
                latency: Some(Latency {
                    mean_us: 5_470.0,
                    p50_us: 4_940,
                    p75_us: 7_570,
                    p90_us: 10_570,
                    p99_us: 16_920,
                    p999_us: None,
                    max_us: 27_350,
                }),
                errors: Errors::default(),
            }
        );
    }

    #[test]
    fn https_reads_alike() {
        let load = read(sample!("https"));
        assert_eq!(
            (load.answers, load.duration_us, load.bytes),
            (33_822, 2_000_000, mib(27.51))
        );
        assert_eq!(load.latency.unwrap().p50_us, 174);
    }

    #[test]
    fn socket_errors_by_kind() {
        let load = read(sample!("default-c2000-r0"));
        assert_eq!(
            load.errors,
            Errors {
                read: 60_096,
                timeout: 144,
                ..Errors::default()
            }
        );
        let latency = load.latency.unwrap();
        assert_eq!((latency.p99_us, latency.max_us), (370_120, 1_990_000));
        assert_eq!(load.requests_per_second().round(), 21_014.0);
    }

    #[test]
    fn no_line_of_socket_errors_means_none() {
        let load = read(sample!("tuned-c2000-r0"));
        assert_eq!((load.answers, load.errors), (376_138, Errors::default()));
        assert_eq!(load.latency.unwrap().max_us, 165_570);
    }

    #[test]
    fn a_collapse_has_no_latency() {
        let load = read(sample!("default-c8000-r1"));
        assert_eq!(
            (load.answers, load.duration_us, load.bytes),
            (0, 10_750_000, 0)
        );
        assert_eq!(load.latency, None);
        assert_eq!(
            load.errors,
            Errors {
                read: 121_635,
                ..Errors::default()
            }
        );
        assert_eq!(load.requests_per_second(), 0.0);
    }

    #[test]
    fn bad_statuses_are_no_successes() {
        let load = read(sample!("404"));
        assert_eq!(
            (load.answers, load.errors.status, load.successes()),
            (31_666, 31_666, 0)
        );
    }

    #[test]
    fn seconds_with_a_blank_behind_them() {
        let latency = read(sample!("stall-1.5s")).latency.unwrap();
        assert_eq!(
            (latency.p90_us, latency.p99_us, latency.max_us),
            (26_920, 1_350_000, 1_500_000)
        );
    }

    #[test]
    fn a_stall_beyond_the_time_limit_shows_as_timeouts_only() {
        let load = read(sample!("stall-3s"));
        assert_eq!(load.errors.timeout, 10);
        assert_eq!(load.latency.unwrap().max_us, 17_660);
    }

    #[test]
    fn refused_is_an_error_that_names_the_address() {
        assert_eq!(
            parse("", sample!("refused")),
            Err(WrkError::Unreachable(
                "unable to connect to 127.0.0.1:8999 Connection refused".to_owned()
            ))
        );
    }

    #[test]
    fn something_else_is_no_result() {
        assert_eq!(
            parse("", "sh: 1: wrk: not found\n"),
            Err(WrkError::NoResult("sh: 1: wrk: not found".to_owned()))
        );
        assert_eq!(
            parse("", ""),
            Err(WrkError::NoResult("it printed nothing".to_owned()))
        );
    }

    #[test]
    fn an_address_that_cannot_be_resolved_is_no_server_that_refuses() {
        let said = "unable to resolve web1:http Name or service not known\n";
        assert_eq!(
            parse("", said),
            Err(WrkError::NoResult(said.trim().to_owned()))
        );
    }

    #[test]
    fn the_port_is_always_said() {
        let cases = [
            ("http://10.0.0.1/", "http://10.0.0.1:80/"),
            ("https://web1/a?b=c:d", "https://web1:443/a?b=c:d"),
            ("http://web1", "http://web1:80/"),
            ("http://web1:8080/", "http://web1:8080/"),
            ("http://[2001:db8::1]/", "http://[2001:db8::1]:80/"),
            ("http://[2001:db8::1]:81/", "http://[2001:db8::1]:81/"),
        ];
        for (url, told) in cases {
            assert_eq!(with_port(url), told);
        }
    }

    #[test]
    fn the_script_s_line_wins_over_the_text() {
        let load = read(sample!("exact"));
        assert_eq!(load.errors, Errors::default());
        assert_eq!(
            (load.answers, load.duration_us, load.bytes),
            (2_416, 1_000_661, 1_019_707)
        );
        let latency = load.latency.unwrap();
        assert_eq!(
            (latency.mean_us, latency.p50_us, latency.p999_us),
            (2_433.2, 2_357, Some(5_127))
        );
    }

    #[test]
    fn the_version_as_wrk_says_it() {
        assert_eq!(
            version("wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\n"),
            Some("debian/4.1.0-3+b2")
        );
        assert_eq!(version("sh: wrk: not found\n"), None);
    }

    #[test]
    fn a_command_line() {
        let scenario = Scenario {
            name: "c2000".to_owned(),
            connections: 2000,
            duration: Duration::from_secs(15),
            threads: None,
            keepalive: false,
            path: None,
            timeout: Duration::from_secs(30),
        };
        let argv = argv(&scenario, "http://10.0.0.1/", scenario.duration, 2);
        assert_eq!(
            argv.join(" "),
            "wrk -t2 -c2000 -d15s --timeout 30s --latency -s /dev/stdin \
             -H Connection: close http://10.0.0.1:80/"
        );
        assert_eq!(open_files(&scenario), 2_256);
    }
}
