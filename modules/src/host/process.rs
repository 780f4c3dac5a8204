use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::Fault;

/// What is kept of each of a process's two streams; the rest is read and dropped.
const KEPT: usize = 2 << 20;
/// How long a process that has ended may leave its output open in the hands of its children.
const GRACE: Duration = Duration::from_millis(300);
/// How long a command that only reads may take.
pub(super) const READ_ONLY: Duration = Duration::from_secs(120);
/// Where programs are looked for: what a login as root has.
pub(super) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the login has in its PATH, and what it lacks of the usual directories behind that: `sysctl` and its like are in
/// `/usr/sbin`, which a plain user's has not.
pub(crate) fn search_path(own: &str) -> String {
    let lacks = |dir: &&str| !own.split(':').any(|known| known == *dir);
    let own = (!own.is_empty()).then_some(own);
    let dirs: Vec<&str> = own
        .into_iter()
        .chain(PATH.split(':').filter(lacks))
        .collect();
    dirs.join(":")
}

/// A command for the host to run, without a shell unless the words name one.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The directory to run in; none for the acting user's home.
    pub chdir: Option<PathBuf>,
    /// What the command reads; none for nothing.
    pub stdin: Option<Vec<u8>>,
    /// The command as a person would type it, for the plan and the journal.
    pub line: String,
}

/// What a process answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The exit status; minus the signal's number where one ended it.
    pub rc: i32,
    /// Standard output, at most 2 MiB.
    pub stdout: Vec<u8>,
    /// Standard error, at most 2 MiB.
    pub stderr: Vec<u8>,
    /// There was more than is kept.
    pub cut: bool,
}

impl Output {
    /// Whether the exit status is 0.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.rc == 0
    }

    /// Standard output as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    #[must_use]
    pub fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// What a person should read of a failure: standard error, or standard output where that is empty.
    #[must_use]
    pub fn complaint(&self) -> String {
        let (stderr, stdout) = (self.error_text(), self.text());
        let said = [stderr.trim(), stdout.trim()]
            .into_iter()
            .find(|text| !text.is_empty());
        said.map_or_else(|| format!("exit status {}", self.rc), str::to_owned)
    }
}

/// A process to be run, with all that it inherits.
#[derive(Default)]
pub(super) struct Process<'a> {
    pub(super) argv: &'a [String],
    pub(super) chdir: Option<PathBuf>,
    pub(super) stdin: Option<&'a [u8]>,
    pub(super) environment: Vec<(String, String)>,
    /// Over this the whole process group is killed.
    pub(super) timeout: Option<Duration>,
    /// What the thread that starts it does before: becoming another user, entering a name space.
    pub(super) prepare: Option<Box<dyn FnOnce() -> Result<(), Fault> + Send + 'a>>,
    /// Whether children that outlive it are left alone (a command may start a daemon).
    pub(super) leave_children: bool,
}

/// Runs a command that changes nothing, in the C locale.
pub(super) fn read_only(argv: &[&str]) -> Result<Output, Fault> {
    let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
    Process {
        argv: &argv,
        timeout: Some(READ_ONLY),
        ..Process::default()
    }
    .in_c_locale()
    .run()
}

impl Process<'_> {
    /// With messages that this code can read.
    pub(super) fn in_c_locale(mut self) -> Self {
        self.environment.push(("LC_ALL".to_owned(), "C".to_owned()));
        self
    }

    /// Runs it to its end, in a process group of its own.
    pub(super) fn run(self) -> Result<Output, Fault> {
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(Fault::new("the command is empty"));
        };
        let mut command = std::process::Command::new(program);
        command
            .args(arguments)
            .env(
                "PATH",
                search_path(&std::env::var("PATH").unwrap_or_default()),
            )
            .envs(self.environment)
            .process_group(0);
        command.stdin(if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(dir) = &self.chdir {
            command.current_dir(dir);
        }
        let prepare = self.prepare;
        let mut spawn = || command.spawn();
        let spawned = match prepare {
            None => spawn(),
            Some(prepare) => thread::scope(|scope| {
                let started = scope.spawn(move || prepare().map(|()| spawn())).join();
                started.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?,
        };
        let child = spawned.map_err(|error| {
            let place = self
                .chdir
                .as_ref()
                .map(|dir| format!(" in {}", dir.display()))
                .unwrap_or_default();
            Fault::io("run", &PathBuf::from(format!("{program}{place}")), error)
        })?;
        let group = child.id();
        let collected = collect(child, self.stdin, self.timeout, program);
        if !self.leave_children || collected.is_err() {
            kill_group(group);
        }
        collected
    }
}

fn collect(
    mut child: Child,
    stdin: Option<&[u8]>,
    timeout: Option<Duration>,
    program: &str,
) -> Result<Output, Fault> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let group = child.id();
    let stdout = Drain::start(child.stdout.take());
    let stderr = Drain::start(child.stderr.take());
    if let (Some(mut pipe), Some(bytes)) = (child.stdin.take(), stdin) {
        let bytes = bytes.to_vec();
        // A process need not read what it is given: a broken pipe is no failure.
        thread::spawn(move || pipe.write_all(&bytes).is_ok());
    }
    let (ended, end) = channel();
    thread::spawn(move || ended.send(child.wait()));
    let status = match deadline {
        None => end.recv().map_err(|_| RecvTimeoutError::Disconnected),
        Some(deadline) => end.recv_timeout(deadline.saturating_duration_since(Instant::now())),
    };
    let status = match status {
        Ok(status) => {
            status.map_err(|error| Fault::new(format!("cannot wait for `{program}`: {error}")))?
        }
        Err(_) => {
            kill_group(group);
            let after = timeout.unwrap_or_default().as_secs();
            let (stdout, stderr) = (stdout.take(), stderr.take());
            return Err(Fault::new(format!(
                "Timed out after {after} second(s): `{program}` was not done, and was killed"
            ))
            .with("timedout", serde_json::json!({"period": after}))
            .with("stdout", String::from_utf8_lossy(&stdout))
            .with("stderr", String::from_utf8_lossy(&stderr)));
        }
    };
    let rc = status
        .code()
        .unwrap_or_else(|| -status.signal().unwrap_or_default());
    let (stdout, stderr) = (stdout.take(), stderr.take());
    Ok(Output {
        rc,
        cut: stdout.len() == KEPT || stderr.len() == KEPT,
        stdout,
        stderr,
    })
}

/// Ends whatever is left of a process group.
fn kill_group(group: u32) {
    if let Some(group) = i32::try_from(group).ok().and_then(Pid::from_raw) {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A stream that is read to its end by a thread of its own.
struct Drain {
    kept: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Drain {
    fn start(stream: Option<impl Read + Send + 'static>) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (ended, end) = channel();
        if let Some(mut stream) = stream {
            let kept = kept.clone();
            thread::spawn(move || {
                let mut buffer = vec![0; 32 << 10];
                loop {
                    match stream.read(&mut buffer) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Ok(0) | Err(_) => break,
                        Ok(count) => {
                            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                            let room = (KEPT - kept.len()).min(count);
                            kept.extend_from_slice(&buffer[..room]);
                        }
                    }
                }
                ended.send(())
            });
        }
        Self { kept, end }
    }

    /// What came; waits a moment for the end.
    fn take(self) -> Vec<u8> {
        // Whether it ended or not, what has come is all that there is.
        let _ = self.end.recv_timeout(GRACE);
        std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Splits a command line into words as a POSIX shell does: quotes and backslashes, nothing else.
///
/// # Errors
/// When a quote is not closed.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('\'') => break,
                        Some(letter) => word.push(letter),
                        None => return Err(format!("a ' is not closed in `{line}`")),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match letters.next() {
                        Some('"') => break,
                        Some('\\') => match letters.next() {
                            Some(escaped @ ('"' | '\\' | '$' | '`')) => word.push(escaped),
                            Some(other) => word.extend(['\\', other]),
                            None => return Err(format!("a \" is not closed in `{line}`")),
                        },
                        Some(letter) => word.push(letter),
                        None => return Err(format!("a \" is not closed in `{line}`")),
                    }
                }
            }
            '\\' => match letters.next() {
                Some('\n') => {}
                Some(escaped) => word.get_or_insert_default().push(escaped),
                None => return Err(format!("nothing follows the last \\ in `{line}`")),
            },
            letter if letter.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str, timeout_ms: u64) -> Result<Output, Fault> {
        let argv = words(line).unwrap();
        Process {
            argv: &argv,
            timeout: Some(Duration::from_millis(timeout_ms)),
            ..Process::default()
        }
        .run()
    }

    #[test]
    fn a_process_answers_with_its_streams_and_status() {
        let output = run("sh -c 'echo out; echo err >&2; exit 3'", 5000).unwrap();
        assert_eq!(
            (output.rc, output.text(), output.error_text()),
            (3, "out\n".to_owned(), "err\n".to_owned())
        );
        assert_eq!(run("sh -c 'kill -9 $$'", 5000).unwrap().rc, -9);
        assert_eq!(
            run("/no/such", 5000).unwrap_err().message,
            "cannot run /no/such: no such file or directory"
        );
    }

    #[test]
    fn a_timeout_ends_the_whole_group() {
        let started = Instant::now();
        let fault = run("sh -c 'echo early; sleep 60 & sleep 60'", 200).unwrap_err();
        assert!(started.elapsed() < Duration::from_secs(5));
        assert_eq!(fault.fields["stdout"], "early\n");
    }

    #[test]
    fn what_a_process_leaves_behind_is_ended() {
        let output = run("sh -c 'sleep 60 >/dev/null 2>&1 & echo $!'", 5000).unwrap();
        let left = PathBuf::from(format!("/proc/{}/stat", output.text().trim()));
        let gone = (0..100).any(|_| {
            thread::sleep(Duration::from_millis(10));
            std::fs::read_to_string(&left).map_or(true, |stat| stat.contains(") Z "))
        });
        assert!(gone);
    }

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(
            words(r#"a 'b c' "d \" e" f\ g ''"#).unwrap(),
            ["a", "b c", "d \" e", "f g", ""]
        );
        assert!(words("a 'b").is_err());
    }
}
