//! What `fleetctl` takes, as ratios to what `ssh` alone takes to the same hosts in the same run. `tests/bench/run` runs it.

#![expect(
    clippy::unwrap_used,
    reason = "what cannot be measured is a panic that says why"
)]

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fleet_tests::{Fleet, Fleetctl, SlowLine};

/// How long hosts are left alone after their boot.
const SETTLE: std::time::Duration = std::time::Duration::from_secs(3);

/// Each number is the median of so many.
const TIMES: usize = 5;

/// A benchmark and its name on the command line.
type Benchmark = (&'static str, fn(&mut Table));

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let mut table = Table::default();
    let benchmarks: [Benchmark; 5] = [
        ("many", many),
        ("slow", slow),
        ("first", first),
        ("memory", memory),
        ("inventory", inventory),
    ];
    for (name, benchmark) in benchmarks {
        if wanted.is_empty() || wanted.iter().any(|wish| wish == name) {
            benchmark(&mut table);
        }
    }
    if table.kept {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Ten hosts and twelve tasks that change nothing, with connections to be made and with kept ones.
fn many(table: &mut Table) {
    let fleet = Fleet::up(10);
    let user = everywhere(&fleet);
    let twelve = playbook("tests/bench/twelve.yml");
    user.apply(&twelve, &[]).ended(0);
    let (mut floors, mut cold, mut warm) = (vec![], vec![], vec![]);
    for _ in 0..TIMES {
        floors.push(floor(&fleet));
        disconnect(&user);
        cold.push(timed(|| unchanged(&user, &twelve)));
        warm.push(timed(|| unchanged(&user, &twelve)));
    }
    let floor = median(floors);
    table.ratio(
        "10 hosts, 12 tasks, nothing to change",
        median(cold),
        floor,
        1.5,
    );
    table.ratio("the same over kept connections", median(warm), floor, 0.5);
}

/// One host, 50 ms there and back.
fn slow(table: &mut Table) {
    let fleet = Fleet::up(1);
    let line = SlowLine::to(&fleet, "web1", Duration::from_millis(25));
    let user = everywhere(&fleet).with_inventory(line.inventory().to_owned());
    let twelve = playbook("tests/bench/twelve.yml");
    user.apply(&twelve, &[]).ended(0);
    let (mut floors, mut times, mut ssh_turns, mut turns) = (vec![], vec![], vec![], vec![]);
    for _ in 0..TIMES {
        let before = line.turns();
        floors.push(timed(|| all_end(vec![line.ssh()])));
        ssh_turns.push(line.turns() - before);
        disconnect(&user);
        let before = line.turns();
        times.push(timed(|| unchanged(&user, &twelve)));
        turns.push(line.turns() - before);
    }
    table.ratio(
        "1 host 50 ms away, 12 tasks",
        median(times),
        median(floors),
        2.0,
    );
    // Of one host alone: several would share the processors of this machine.
    let facts = (0..TIMES).map(|_| facts_took(&user, &twelve)).collect();
    table.bound(
        "facts on the host",
        median(facts).as_secs_f64() * 1e3,
        "ms",
        10.0,
    );
    let (turns, ssh_turns) = (median(turns), median(ssh_turns));
    let more = turns.saturating_sub(ssh_turns);
    let title = format!("turns beyond ssh's own ({turns} and {ssh_turns})");
    table.bound(&title, f64::from(u32::try_from(more).unwrap()), "", 6.0);
}

/// The first tuning of hosts that fleetctl has never seen: its helper has to be sent as well.
fn first(table: &mut Table) {
    let (mut floors, mut times) = (vec![], vec![]);
    for _ in 0..TIMES {
        let fleet = Fleet::up(10);
        let user = everywhere(&fleet);
        // A host's very first login is slower than any other, for whoever makes it, and ten hosts that have just
        // booted are busy with themselves.
        floor(&fleet);
        std::thread::sleep(SETTLE);
        floors.push(floor(&fleet));
        let tuning = playbook("playbooks/nginx-static.yml");
        times.push(timed(|| {
            user.apply(&tuning, &["--no-bench"]).ended(0);
        }));
    }
    table.ratio(
        "first tuning of 10 hosts, with its upload",
        median(times),
        median(floors),
        2.5,
    );
}

/// What fleetctl itself holds for a hundred hosts.
fn memory(table: &mut Table) {
    let fleet = Fleet::up(100);
    let user = everywhere(&fleet);
    let twelve = playbook("tests/bench/twelve.yml");
    let arguments = ["apply", "--yes", "-i"].map(PathBuf::from);
    let arguments = arguments.into_iter().chain([fleet.inventory(), twelve]);
    let mut running = user.start(arguments);
    let status = format!("/proc/{}/status", running.id());
    let mut peak = 0.0;
    // The last reading before its end is the peak of its whole life.
    while !running.has_ended() {
        peak = fs::read_to_string(&status)
            .ok()
            .and_then(|text| high_water(&text))
            .unwrap_or(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    running.wait().ended(0);
    table.bound("memory of fleetctl for 100 hosts", peak, "MB", 60.0);
}

/// An inventory of ten thousand hosts.
fn inventory(table: &mut Table) {
    let folder = PathBuf::from(format!("/tmp/ratios-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (mut ini, mut yaml) = ("[web]\n".to_owned(), "web:\n  hosts:\n".to_owned());
    for number in 0..10_000 {
        let address = format!("10.{}.{}.7", number / 256, number % 256);
        writeln!(
            ini,
            "web{number} ansible_host={address} rack={}",
            number % 40
        )
        .unwrap();
        writeln!(
            yaml,
            "    web{number}: {{ansible_host: {address}, rack: {}}}",
            number % 40
        )
        .unwrap();
    }
    let fleetctl = std::env::current_exe().unwrap().with_file_name("fleetctl");
    for (name, text) in [("hosts.ini", ini), ("hosts.yml", yaml)] {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        let list = || {
            let mut command = Command::new(&fleetctl);
            command.args(["inventory", "--list", "-i"]).arg(&path);
            timed(|| all_end_with(vec![command]))
        };
        let time = median((0..TIMES).map(|_| list()).collect());
        table.bound(
            &format!("10000 hosts in {name}"),
            time.as_secs_f64(),
            "s",
            1.0,
        );
    }
    fs::remove_dir_all(&folder).unwrap();
}

fn everywhere(fleet: &Fleet) -> Fleetctl {
    Fleetctl::on(fleet, &["web"])
}

fn playbook(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path)
}

fn disconnect(user: &Fleetctl) {
    user.run(["host", "disconnect", "--all"]).ended(0);
}

fn unchanged(user: &Fleetctl, playbook: &std::path::Path) {
    user.apply(playbook, &[]).ended(0).says("changed=0");
}

/// `ssh HOST true` to all hosts of a fleet at once.
fn floor(fleet: &Fleet) -> Duration {
    let ssh = |host: &String| {
        let mut command = Command::new("ssh");
        for option in fleet.ssh_options() {
            command.args(["-o", &option]);
        }
        command
            .arg("-i")
            .arg(fleet.key())
            .args(["-l", "ops", &fleet.address(host)]);
        command
    };
    let commands = fleet.hosts().iter().map(ssh).collect();
    timed(|| all_end(commands))
}

/// Runs `true` by all of these commands at once.
fn all_end(mut commands: Vec<Command>) {
    for command in &mut commands {
        command.arg("true");
    }
    all_end_with(commands);
}

fn all_end_with(commands: Vec<Command>) {
    let start = |mut command: Command| {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children: Vec<Child> = commands.into_iter().map(start).collect();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
}

/// How long the host took to gather its facts, by its own account.
fn facts_took(user: &Fleetctl, playbook: &std::path::Path) -> Duration {
    let said = user.apply(playbook, &["--json"]);
    let events = said
        .ended(0)
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let mut ends =
        events.filter(|event| event["event"] == "task_ended" && event["task"]["module"] == "setup");
    let took = &ends.next().unwrap()["took"];
    let part = |name: &str| took[name].as_u64().unwrap();
    Duration::from_secs(part("secs")) + Duration::from_nanos(part("nanos"))
}

/// `VmHWM` of a process's `status`, in MB.
fn high_water(status: &str) -> Option<f64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u32 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(f64::from(kilobytes) / 1024.0)
}

fn timed(run: impl FnOnce()) -> Duration {
    let began = Instant::now();
    run();
    began.elapsed()
}

fn median<T: Ord + Copy>(mut values: Vec<T>) -> T {
    values.sort_unstable();
    values[values.len() / 2]
}

/// What was measured, printed as it comes.
struct Table {
    kept: bool,
    begun: bool,
}

impl Default for Table {
    fn default() -> Table {
        Table {
            kept: true,
            begun: false,
        }
    }
}

impl Table {
    fn ratio(&mut self, title: &str, taken: Duration, floor: Duration, bound: f64) {
        let ratio = taken.as_secs_f64() / floor.as_secs_f64();
        let [taken, floor] =
            [taken, floor].map(|time| format!("{:.0} ms", time.as_secs_f64() * 1e3));
        self.row(
            title,
            &taken,
            &floor,
            ratio,
            &format!("{ratio:.2} x"),
            &format!("{bound:.1} x"),
            bound,
        );
    }

    fn bound(&mut self, title: &str, value: f64, unit: &str, bound: f64) {
        let [shown, limit] = [value, bound].map(|number| format!("{number:.3}"));
        let [shown, limit] = [shown, limit].map(|number| {
            format!(
                "{} {unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            )
            .trim_end()
            .to_owned()
        });
        self.row(title, &shown, "", value, "", &limit, bound);
    }

    #[expect(clippy::too_many_arguments, reason = "a row is made of its cells")]
    fn row(
        &mut self,
        title: &str,
        taken: &str,
        floor: &str,
        value: f64,
        ratio: &str,
        limit: &str,
        bound: f64,
    ) {
        let mut out = io::stdout();
        if !std::mem::replace(&mut self.begun, true) {
            writeln!(
                out,
                "{:42} {:>10} {:>10} {:>8} {:>8}",
                "median of five", "fleetctl", "ssh true", "ratio", "bound"
            )
            .unwrap();
        }
        let kept = value <= bound;
        self.kept &= kept;
        let verdict = if kept { "" } else { "  BEYOND" };
        writeln!(
            out,
            "{title:42} {taken:>10} {floor:>10} {ratio:>8} {limit:>8}{verdict}"
        )
        .unwrap();
    }
}
