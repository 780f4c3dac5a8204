use std::io::Read;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{List, Number, Text};
use crate::host::{Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Status, Task};
use crate::pattern::{Pattern, latin1};

pub(super) static MODULE: Module = Module::of::<WaitFor>();

/// Waits on the host for a port, a file, a text in either, or just for a time.
///
/// A plan does not wait: it looks once, and what is not so yet is unknown.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct WaitFor {
    /// The host to connect to, a name or an address.
    #[serde(default = "here")]
    host: Text,
    /// The port to connect to.
    port: Option<Number>,
    /// The file or directory that must be there, or not.
    path: Option<Text>,
    /// A regular expression that must be found in the file, or in what the port says.
    search_regex: Option<Text>,
    /// `started` and `present` wait until it is there, `stopped` and `absent` until it is not, `drained` until no connection to the port is left.
    #[serde(default)]
    state: State,
    /// Seconds after which it has failed.
    #[serde(default = "five_minutes")]
    timeout: Number,
    /// Seconds for one attempt to connect.
    #[serde(default = "five")]
    connect_timeout: Number,
    /// Seconds to wait before the first look.
    #[serde(default)]
    delay: Number,
    /// Seconds between looks.
    #[serde(default = "one")]
    sleep: Number,
    /// The states of connections that `drained` waits for.
    #[serde(default = "active")]
    active_connection_states: List,
    /// Hosts whose connections `drained` does not wait for.
    exclude_hosts: Option<List>,
    /// What to say instead of the usual message when it has failed.
    msg: Option<Text>,
}

fn here() -> Text {
    "127.0.0.1".into()
}
fn five_minutes() -> Number {
    Number(300)
}
fn five() -> Number {
    Number(5)
}
fn one() -> Number {
    Number(1)
}
fn active() -> List {
    let states = [
        "ESTABLISHED",
        "FIN_WAIT1",
        "FIN_WAIT2",
        "SYN_RECV",
        "SYN_SENT",
        "TIME_WAIT",
    ];
    List(states.map(str::to_owned).to_vec())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Started,
    Present,
    Stopped,
    Absent,
    Drained,
}

/// The kernel's numbers of a connection's states.
const STATES: [&str; 12] = [
    "",
    "ESTABLISHED",
    "SYN_SENT",
    "SYN_RECV",
    "FIN_WAIT1",
    "FIN_WAIT2",
    "TIME_WAIT",
    "CLOSE",
    "CLOSE_WAIT",
    "LAST_ACK",
    "LISTEN",
    "CLOSING",
];

/// What was found where something was waited for.
#[derive(Default)]
struct Found {
    groups: Vec<Value>,
    named: serde_json::Map<String, Value>,
}

impl Task for WaitFor {
    const NAME: &'static str = "wait_for";

    fn check(&self) -> Result<(), ArgumentError> {
        if self.port.is_some() && self.path.is_some() {
            return Err(ArgumentError::of(
                "path",
                "port and path parameter can not both be passed to wait_for",
            ));
        }
        if self.path.is_some() && matches!(self.state, State::Stopped | State::Drained) {
            let state = self.state.word();
            return Err(ArgumentError::of(
                "state",
                format!(
                    "state={state} should only be used for checking a port in the wait_for module"
                ),
            ));
        }
        if self.exclude_hosts.is_some() && self.state != State::Drained {
            return Err(ArgumentError::of(
                "exclude_hosts",
                "exclude_hosts should only be with state=drained",
            ));
        }
        let unknown = self
            .active_connection_states
            .iter()
            .find(|state| !STATES.contains(&state.as_str()));
        if let Some(unknown) = unknown {
            return Err(ArgumentError::of(
                "active_connection_states",
                format!("unknown active_connection_state ({unknown}) in active_connection_states"),
            ));
        }
        if self.port.is_some_and(|port| u16::try_from(*port).is_err()) {
            return Err(ArgumentError::of("port", "it is not the number of a port"));
        }
        self.pattern().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let begun = Instant::now();
        let pattern = self.pattern()?;
        let planning = host.planning();
        let seconds = |number: Number| Duration::from_secs(u64::try_from(*number).unwrap_or(0));
        if !planning {
            sleep(seconds(self.delay));
        }
        let waiting = Instant::now();
        let mut found = None;
        if self.port.is_none() && self.path.is_none() {
            if self.state == State::Drained {
                return Err(Fault::new("state=drained needs a port"));
            }
            if !planning {
                sleep(seconds(self.timeout));
            }
            found = Some(Found::default());
        }
        while found.is_none() {
            found = self.look(host, pattern.as_ref())?;
            if found.is_some() || planning || waiting.elapsed() >= seconds(self.timeout) {
                break;
            }
            let left = seconds(self.timeout).saturating_sub(waiting.elapsed());
            sleep(
                seconds(self.sleep)
                    .max(Duration::from_millis(100))
                    .min(left),
            );
        }
        let elapsed = begun.elapsed().as_secs();
        let Some(found) = found else {
            if planning {
                return Ok(self
                    .report(elapsed, Found::default(), host)
                    .with_status(Status::Unknown));
            }
            let message = self
                .msg
                .as_ref()
                .map_or_else(|| self.complaint(), ToString::to_string);
            return Err(Fault::new(message).with("elapsed", elapsed));
        };
        Ok(self.report(elapsed, found, host))
    }
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Present => "present",
            Self::Stopped => "stopped",
            Self::Absent => "absent",
            Self::Drained => "drained",
        }
    }

    fn gone(self) -> bool {
        matches!(self, Self::Stopped | Self::Absent)
    }
}

impl WaitFor {
    fn pattern(&self) -> Result<Option<Pattern>, ArgumentError> {
        self.search_regex
            .as_ref()
            .map(|text| {
                Pattern::over_lines(text)
                    .map_err(|problem| ArgumentError::of("search_regex", problem))
            })
            .transpose()
    }

    /// The port; checked before.
    fn number(&self) -> Option<u16> {
        u16::try_from(*self.port?).ok()
    }

    fn report(&self, elapsed: u64, found: Found, host: &Host) -> Report {
        let path = self.path.as_ref().map(|path| {
            let path = Path::new(&**path);
            // `~` as the user's home, links as they are.
            match path.strip_prefix("~") {
                Ok(rest) => host.user().home.join(rest).display().to_string(),
                Err(_) => path.display().to_string(),
            }
        });
        Report::of(json!({
            "state": self.state.word(),
            "port": self.port.map(|port| *port),
            "path": path,
            "search_regex": self.search_regex.as_deref(),
            "elapsed": elapsed,
            "match_groups": found.groups,
            "match_groupdict": found.named,
        }))
    }

    fn complaint(&self) -> String {
        let place = match (&self.path, self.port) {
            (Some(path), _) => path.to_string(),
            (None, Some(port)) => format!("{}:{}", self.host, *port),
            (None, None) => String::new(),
        };
        let what = match (&self.search_regex, &self.path) {
            (Some(text), _) => format!("search string {text} in {place}"),
            (None, Some(_)) => format!("file {place}"),
            (None, None) => place,
        };
        match self.state {
            State::Drained => format!("Timeout when waiting for {what} to drain"),
            State::Stopped => format!("Timeout when waiting for {what} to stop."),
            State::Absent => format!("Timeout when waiting for {what} to be absent."),
            State::Started | State::Present => format!("Timeout when waiting for {what}"),
        }
    }

    /// What was waited for, where it is so now.
    fn look(&self, host: &Host, pattern: Option<&Pattern>) -> Result<Option<Found>, Fault> {
        let there = match (&self.path, self.number()) {
            (Some(path), _) => look_at_file(host, Path::new(&**path), pattern)?,
            (None, Some(port)) if self.state == State::Drained => {
                return Ok((!self.is_busy(host, port)?).then(Found::default));
            }
            (None, Some(port)) => {
                self.look_at_port(host, port, pattern.filter(|_| !self.state.gone()))?
            }
            (None, None) => None,
        };
        Ok(match (self.state.gone(), there) {
            (false, there) => there,
            (true, None) => Some(Found::default()),
            (true, Some(_)) => None,
        })
    }

    fn look_at_port(
        &self,
        host: &Host,
        port: u16,
        pattern: Option<&Pattern>,
    ) -> Result<Option<Found>, Fault> {
        let timeout = Duration::from_secs(u64::try_from(*self.connect_timeout).unwrap_or(0).max(1));
        let connect = |address: &IpAddr| {
            TcpStream::connect_timeout(&SocketAddr::new(*address, port), timeout).ok()
        };
        let Some(mut stream) = addresses(host, &self.host)?.iter().find_map(connect) else {
            return Ok(None);
        };
        let Some(pattern) = pattern else {
            return Ok(Some(Found::default()));
        };
        let until = Instant::now() + timeout;
        let mut said = Vec::new();
        let mut buffer = [0; 4096];
        while let Some(left) = until
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
        {
            let read = stream
                .set_read_timeout(Some(left))
                .and_then(|()| stream.read(&mut buffer));
            match read {
                Ok(0) | Err(_) => break,
                Ok(count) => said.extend_from_slice(&buffer[..count]),
            }
            if let Some(found) = search(pattern, &said) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Whether a connection to the port is left that counts.
    fn is_busy(&self, host: &Host, port: u16) -> Result<bool, Fault> {
        let all = &*self.host == "0.0.0.0" || &*self.host == "::";
        let own = addresses(host, &self.host)?;
        let mut without = Vec::new();
        for name in self.exclude_hosts.iter().flat_map(|names| names.iter()) {
            without.extend(addresses(host, name)?);
        }
        let counts = |connection: &Connection| {
            connection.port == port
                && (all || connection.local.is_unspecified() || own.contains(&connection.local))
                && !without.contains(&connection.remote)
                && self
                    .active_connection_states
                    .iter()
                    .any(|state| state == connection.state)
        };
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
            .map(|table| std::fs::read_to_string(table).unwrap_or_default());
        Ok(tables
            .iter()
            .flat_map(|table| table.lines().filter_map(connection))
            .any(|connection| counts(&connection)))
    }
}

struct Connection {
    local: IpAddr,
    port: u16,
    remote: IpAddr,
    state: &'static str,
}

/// A line of the kernel's table of connections.
fn connection(line: &str) -> Option<Connection> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, port) = fields.next()?.split_once(':')?;
    let (remote, _) = fields.next()?.split_once(':')?;
    let state = usize::from_str_radix(fields.next()?, 16).ok()?;
    Some(Connection {
        local: address(local)?,
        port: u16::from_str_radix(port, 16).ok()?,
        remote: address(remote)?,
        state: STATES.get(state)?,
    })
}

/// An address as the kernel prints it: words of four bytes in the machine's own order.
fn address(hex: &str) -> Option<IpAddr> {
    let words = hex
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok());
    let bytes: Vec<u8> = words
        .collect::<Option<Vec<u32>>>()?
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    Some(match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => four.into(),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?).to_canonical(),
    })
}

/// The addresses of a host by its name.
fn addresses(host: &Host, name: &str) -> Result<Vec<IpAddr>, Fault> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    if name.starts_with('-') {
        return Ok(Vec::new());
    }
    let output = host.probe(&["getent", "ahosts", name])?;
    let text = output.text();
    let mut found: Vec<IpAddr> = text
        .lines()
        .filter_map(|line| line.split(' ').next()?.parse().ok())
        .collect();
    found.dedup();
    Ok(found)
}

fn look_at_file(
    host: &Host,
    path: &Path,
    pattern: Option<&Pattern>,
) -> Result<Option<Found>, Fault> {
    let Ok(path) = host.resolve(path) else {
        return Ok(None);
    };
    match (there(host, &path)?, pattern) {
        (false, _) => Ok(None),
        (true, None) => Ok(Some(Found::default())),
        // It may go in this very moment.
        (true, Some(pattern)) => Ok(host
            .read(&path)
            .ok()
            .flatten()
            .and_then(|text| search(pattern, &text))),
    }
}

/// Whether something is there. Without reading it: a file that is waited for may be large.
fn there(host: &Host, path: &PathBuf) -> Result<bool, Fault> {
    if host.planning() {
        return Ok(host.entry(path)? != Entry::Absent);
    }
    Ok(std::fs::symlink_metadata(path).is_ok())
}

fn search(pattern: &Pattern, text: &[u8]) -> Option<Found> {
    let text = latin1(text);
    let found = pattern.find(&text)?;
    let groups: Vec<Value> = found.groups().iter().map(|group| json!(group)).collect();
    let names = pattern.group_names();
    let named = names
        .iter()
        .zip(&groups)
        .filter_map(|(name, group)| Some(((*name)?.to_owned(), group.clone())));
    Some(Found {
        named: named.collect(),
        groups: groups.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;

    use serde_json::json;

    use super::{MODULE, address, connection};
    use crate::host::{Host, State};

    #[test]
    fn a_port_and_what_it_says_are_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Host::apply(State::at(dir.path().to_str()), "r1", "test");
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                listener
                    .accept()
                    .unwrap()
                    .0
                    .write_all(b"SSH-2.0-x\r\n")
                    .unwrap();
            }
        });
        (MODULE.run)(json!({"port": port}), &mut host).unwrap();
        let report = (MODULE.run)(
            json!({"port": port, "search_regex": "^SSH-(?P<major>\\d)\\.(\\d)"}),
            &mut host,
        )
        .unwrap();
        server.join().unwrap();
        assert_eq!(report.fields["match_groups"], json!(["2", "0"]));
        assert_eq!(report.fields["match_groupdict"], json!({"major": "2"}));
        (MODULE.run)(json!({"port": port, "state": "stopped"}), &mut host).unwrap();
        let fault = (MODULE.run)(json!({"port": port, "timeout": 1}), &mut host).unwrap_err();
        assert_eq!(
            fault.message,
            format!("Timeout when waiting for 127.0.0.1:{port}")
        );
        assert_eq!(fault.fields["elapsed"], 1);
    }

    #[test]
    fn a_file_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let mut host = Host::apply(State::at(dir.path().join("state").to_str()), "r1", "test");
        let path = dir.path().join("x");
        std::fs::write(&path, "one\ncompleted data 123\n").unwrap();
        let args = json!({"path": path, "search_regex": "^completed (\\w+)"});
        assert_eq!(
            (MODULE.run)(args, &mut host).unwrap().fields["match_groups"],
            json!(["data"])
        );
        let fault = (MODULE.run)(
            json!({"path": path, "state": "absent", "timeout": 0, "msg": "still"}),
            &mut host,
        );
        assert_eq!(fault.unwrap_err().message, "still");
        let later = path.with_extension("later");
        let maker = later.clone();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            std::fs::write(maker, "").unwrap();
        });
        (MODULE.run)(json!({"path": later}), &mut host).unwrap();
        let mut plan = Host::plan();
        let report = (MODULE.run)(json!({"path": dir.path().join("never")}), &mut plan).unwrap();
        assert_eq!(report.status, Some(fleet_wire::Status::Unknown));
    }

    #[test]
    fn the_kernels_table_is_read() {
        let line =
            "   1: 0100007F:1F90 0200007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 1 1";
        let found = connection(line).unwrap();
        assert_eq!((found.local, found.port), ([127, 0, 0, 1].into(), 8080));
        assert_eq!(
            (found.remote, found.state),
            ([127, 0, 0, 2].into(), "ESTABLISHED")
        );
        let mapped = address("0000000000000000FFFF00000100007F").unwrap();
        assert_eq!(mapped, std::net::IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().message;
        assert!(refused(json!({"port": 1, "path": "/x"})).contains("can not both be passed"));
        assert!(
            refused(json!({"path": "/x", "state": "drained"}))
                .contains("only be used for checking a port")
        );
        assert!(refused(json!({"port": 1, "active_connection_states": "OPEN"})).contains("(OPEN)"));
        assert!(refused(json!({"port": 70000})).contains("not the number of a port"));
    }
}
