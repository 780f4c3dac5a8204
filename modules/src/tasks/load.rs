use std::fs;
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, getrlimit, kill_process_group, setrlimit,
    waitid,
};
use serde::Deserialize;
use serde_json::json;

use super::counters::{microseconds, monotonic_us, spent};
use crate::args::{Number, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Load>();

/// Runs a load generator and says what it printed and how much CPU time it took. It runs in a plan, too: it changes nothing on its host.
/// For fleetctl's own use.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Load {
    /// The program and its arguments.
    argv: Vec<Text>,
    /// Seconds after which it is stopped.
    #[serde(default = "ten_minutes")]
    timeout_s: Number,
    /// How many open files it needs; the soft limit is always raised to the hard one.
    nofile: Option<Number>,
}

fn ten_minutes() -> Number {
    Number(600)
}

/// What is kept of each of its two streams.
const KEPT: u64 = 8 << 20;

impl Task for Load {
    const NAME: &'static str = "_load";

    fn check(&self) -> Result<(), ArgumentError> {
        match self.argv.is_empty() {
            true => Err(ArgumentError::of("argv", "no command is given")),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let limit = raised(self.nofile.map(|number| *number));
        let start = monotonic_us();
        let mut child = self.spawn(host, limit)?;
        let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
        let patience = Duration::from_secs(u64::try_from(*self.timeout_s).unwrap_or(0));
        let times = ended(&child, patience);
        let end = monotonic_us();
        // What it may have started is over, too.
        if let Some(group) = pid(&child) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let status = child
            .wait()
            .map_err(|error| Fault::new(format!("cannot wait for {}: {error}", self.argv[0])))?;
        let text = |thread: JoinHandle<Vec<u8>>| {
            String::from_utf8_lossy(&thread.join().unwrap_or_default()).into_owned()
        };
        let (stdout, stderr) = (text(stdout), text(stderr));
        let Some((user, system)) = times else {
            return Err(Fault::new(format!(
                "{} was not done after {} s and was stopped",
                self.argv[0], *self.timeout_s
            ))
            .with("stdout", stdout)
            .with("stderr", stderr));
        };
        let rc = status
            .code()
            .unwrap_or_else(|| -status.signal().unwrap_or(0));
        Ok(Report::of(json!({
            "rc": rc,
            "stdout": stdout,
            "stderr": stderr,
            "user_us": microseconds(user),
            "system_us": microseconds(system),
            "start_us": start,
            "end_us": end,
            "nofile": limit.current,
        })))
    }
}

impl Load {
    /// Starts it with the raised limit, which the helper itself does not keep.
    fn spawn(&self, host: &Host, limit: Rlimit) -> Result<Child, Fault> {
        let mut command = Command::new(&*self.argv[0]);
        command
            .args(self.argv[1..].iter().map(|word| &**word))
            .envs(host.environment().iter().map(|(name, value)| (name, value)))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let user = host.user();
        if rustix::process::geteuid().is_root() && user.uid != 0 {
            command.uid(user.uid).gid(user.gid);
        }
        let own = getrlimit(Resource::Nofile);
        let raised = setrlimit(Resource::Nofile, limit);
        let child = command.spawn();
        if raised.is_ok() {
            // Only its own soft limit: going back down is always allowed.
            let _ = setrlimit(Resource::Nofile, own);
        }
        child.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Fault::new(format!(
                "there is no load generator {} on this host: install it",
                self.argv[0]
            )),
            _ => Fault::io("run", Path::new(&*self.argv[0]), error),
        })
    }
}

/// The limit of open files: the soft one as high as the hard one, and both higher where more is needed and allowed.
fn raised(wanted: Option<i64>) -> Rlimit {
    let own = getrlimit(Resource::Nofile);
    let wanted = wanted
        .and_then(|number| u64::try_from(number).ok())
        .unwrap_or(0);
    let higher = Rlimit {
        current: Some(wanted),
        maximum: Some(wanted),
    };
    // Only who may raise the hard limit can: asked by trying, and put back.
    if own.maximum.is_some_and(|hard| hard < wanted) && setrlimit(Resource::Nofile, higher).is_ok()
    {
        let _ = setrlimit(Resource::Nofile, own);
        return higher;
    }
    Rlimit {
        current: own.maximum,
        maximum: own.maximum,
    }
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

/// Waits for the end without taking the process away, so that its times can still be read; none where it is too late.
fn ended(child: &Child, patience: Duration) -> Option<(u64, u64)> {
    let pid = pid(child)?;
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let deadline = Instant::now() + patience;
    loop {
        match waitid(WaitId::Pid(pid), options) {
            Ok(Some(_)) => break,
            Ok(None) | Err(rustix::io::Errno::INTR) if Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(5))
            }
            _ => return None,
        }
    }
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    spent(&stat)
}

fn drain(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut kept = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.by_ref().take(KEPT).read_to_end(&mut kept);
            let _ = io::copy(&mut stream, &mut io::sink());
        }
        kept
    })
}

#[cfg(test)]
mod tests {
    use rustix::process::{Resource, getrlimit};
    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::{Fault, Host};
    use crate::module::Report;

    fn load(args: Value) -> Result<Report, Fault> {
        (MODULE.run)(args, &mut Host::plan())
    }

    #[test]
    fn a_generator_runs_in_a_plan_and_its_cpu_time_is_known() {
        let work =
            "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; ulimit -n; echo err >&2; exit 3";
        let fields = load(json!({"argv": ["sh", "-c", work]})).unwrap().fields;
        assert_eq!(
            (&fields["rc"], &fields["stderr"]),
            (&json!(3), &json!("err\n"))
        );
        assert!(fields["user_us"].as_u64().unwrap() > 0, "{fields:?}");
        assert!(fields["end_us"].as_i64() > fields["start_us"].as_i64());
        let hard = getrlimit(Resource::Nofile).maximum.unwrap();
        assert_eq!(fields["stdout"].as_str().unwrap().trim().parse(), Ok(hard));
    }

    #[test]
    fn what_does_not_end_is_stopped() {
        let fault = load(json!({"argv": ["sh", "-c", "echo early; sleep 60"], "timeout_s": 0}))
            .unwrap_err();
        assert!(fault.message.contains("was not done after 0 s"), "{fault}");
        let missing = load(json!({"argv": ["/no/such/wrk"]})).unwrap_err();
        assert_eq!(
            missing.message,
            "there is no load generator /no/such/wrk on this host: install it"
        );
    }
}
