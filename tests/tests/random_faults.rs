//! Random faults against a saved plan on six hosts, and a checker that knows nothing of fleetctl's code: it reads the plan's
//! file and the hosts' disks. `FLEETCTL_SEEDS=200` runs so many, `FLEETCTL_SEEDS=17..18` the one that failed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;
use std::time::Duration;

use fleet_tests::{Fleet, Fleetctl, eventually};

const HOSTS: usize = 6;
/// Files that the plan makes or changes on each host; with a command behind every fifth.
const FILES: usize = 16;

/// One more, on which the checker itself is checked.
static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(HOSTS + 1));

/// A small generator of its own: the same numbers for the same seed, everywhere (Marsaglia's xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn seed(text: &str) -> u64 {
    text.parse()
        .expect("FLEETCTL_SEEDS is a number, or two with `..` between")
}

fn seeds() -> Range<u64> {
    let said = std::env::var("FLEETCTL_SEEDS").unwrap_or_else(|_| "5".to_owned());
    match said.split_once("..") {
        Some((from, to)) => seed(from)..seed(to),
        None => 0..seed(&said),
    }
}

fn name(number: usize) -> String {
    format!("web{}", number + 1)
}

/// What a file is: its content and its mode; none where there is none.
type State = Option<(String, u32)>;

fn state(host: &str, path: &str) -> State {
    use std::os::unix::fs::PermissionsExt;
    let path = FLEET.root(host).join(path);
    let content = std::fs::read_to_string(&path).ok()?;
    let mode = path.metadata().ok()?.permissions().mode() & 0o7777;
    Some((content, mode))
}

/// The file with this number, before and after.
fn file(seed: u64, number: usize) -> (String, State, State) {
    let path = format!("srv/s{seed}/f{number}");
    let before = (number.is_multiple_of(2)).then(|| {
        (
            format!("old {number}\n"),
            if number.is_multiple_of(4) {
                0o600
            } else {
                0o644
            },
        )
    });
    (
        path,
        before,
        Some((format!("new {seed} {number}\n").repeat(200), 0o640)),
    )
}

fn play(seed: u64) -> String {
    let mut tasks = String::from("\n  tasks:\n");
    for number in 0..FILES {
        let (path, _, after) = file(seed, number);
        let (content, mode) = after.expect("the test's own files");
        tasks +=
            &format!("    - copy: {{dest: /{path}, content: {content:?}, mode: \"{mode:04o}\"}}\n");
        if number % 5 == 4 {
            tasks += &format!("    - shell: echo {number} >> /srv/s{seed}/order; sleep 0.3\n");
        }
    }
    tasks
}

fn prepare(seed: u64, host: &str) {
    use std::os::unix::fs::PermissionsExt;
    let dir = FLEET.root(host).join(format!("srv/s{seed}"));
    std::fs::create_dir_all(&dir).expect("the test's own files");
    for number in 0..FILES {
        let (path, before, _) = file(seed, number);
        if let Some((content, mode)) = before {
            let path = FLEET.root(host).join(path);
            std::fs::write(&path, content).expect("the test's own files");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode))
                .expect("the test's own files");
        }
    }
}

/// How the host's own journal says that the run ended: the last line of it that is an end.
fn journaled(host: &str, run: &str) -> Option<String> {
    let dir = FLEET.root(host).join("var/lib/fleetctl/txn");
    let text = std::fs::read_to_string(dir.join(run).join("journal")).ok()?;
    let line: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
    Some(line["record"]["end"]["state"].as_str()?.to_owned())
}

/// Whether a run has written something on a host, and its journal has no end.
fn is_open(host: &str, run: &str) -> bool {
    let dir = FLEET.root(host).join("var/lib/fleetctl/txn");
    let text = std::fs::read_to_string(dir.join(run).join("journal")).unwrap_or_default();
    text.contains("{\"intent\":") && journaled(host, run).is_none()
}

/// Whether a helper lives: what was sent to it may be done though its controller is gone.
fn is_at_work(host: &str) -> bool {
    FLEET
        .sh_inside(host, "pgrep -f 'helper-[0-9a-f]* serve'")
        .success()
}

/// Checks what a host is against what its journal says that it is.
fn check(seed: u64, fault: &str, host: &str, run: &str) {
    let end = journaled(host, run);
    let about = || format!("seed {seed} ({fault}), {host}, run {run}, journal {end:?}");
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for number in 0..FILES {
        let (path, before, after) = file(seed, number);
        let now = state(host, &path);
        let which = match &now {
            now if *now == after => "after",
            now if *now == before => "before",
            // P1: never half written, and no other mode than one of the two.
            _ => panic!(
                "{}: {path} is neither as before nor as after: {now:?}",
                about()
            ),
        };
        *found.entry(which).or_default() += 1;
    }
    match end.as_deref() {
        Some("kept") => assert_eq!(found.get("before"), None, "{}", about()),
        Some("rolled_back") => assert_eq!(found.get("after"), None, "{}", about()),
        // Nothing was begun there.
        None => assert_eq!(found.get("after"), None, "{}", about()),
        // P3: what cannot be undone is told, and that is the commands' part here.
        Some(other) => panic!("{}: {other}", about()),
    }
    // P2: no step runs twice.
    let order =
        state(host, &format!("srv/s{seed}/order")).map_or_else(String::new, |(text, _)| text);
    let mut lines: Vec<&str> = order.lines().collect();
    let all = lines.len();
    lines.dedup();
    assert_eq!(
        lines.len(),
        all,
        "{}: a command ran twice: {order}",
        about()
    );
    // Nothing is left of what was staged.
    for entry in std::fs::read_dir(FLEET.root(host).join(format!("srv/s{seed}")))
        .expect("the test's own files")
    {
        let name = entry
            .expect("the test's own files")
            .file_name()
            .into_string()
            .expect("the test's own files");
        assert!(!name.starts_with('.'), "{}: {name} is left", about());
    }
}

fn one(seed: u64) {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let hosts: Vec<String> = (0..HOSTS).map(name).collect();
    let names: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let ctl = Fleetctl::on(&FLEET, &names);
    for host in &hosts {
        prepare(seed, host);
    }
    let plan = ctl.home().join("a.plan").display().to_string();
    ctl.plan(&ctl.play(&play(seed)), &["--out", &plan]).ended(0);
    let victim = &hosts[random.below(HOSTS as u64) as usize];
    let running = ctl.start(["apply", &plan, "--confirm-timeout", "6s"]);
    std::thread::sleep(Duration::from_millis(150 + random.below(1800)));
    let fault = [
        "killed controller",
        "killed helper",
        "cut cable",
        "power off",
    ][random.below(4) as usize];
    match fault {
        "killed controller" => running.signal("KILL"),
        "killed helper" => drop(FLEET.sh_inside(victim, "pkill -9 -f 'helper-.* serve'; true")),
        "cut cable" => {
            FLEET.cut(victim);
            running.signal("KILL");
        }
        _ => {
            FLEET.power_off(victim);
            running.signal("KILL");
        }
    }
    let goes_on = random.below(2) == 0;
    if fault == "power off" {
        FLEET.power_on(victim);
    }
    running.wait();
    if goes_on {
        ctl.run([
            "resume",
            "last",
            "--confirm-timeout",
            "6s",
            "--lock-timeout",
            "20s",
        ]);
    }
    if fault == "cut cable" {
        FLEET.mend(victim);
    }
    let runs = ctl.run(["runs", "--json"]);
    let runs: serde_json::Value = serde_json::from_str(&runs.stdout).expect("the test's own files");
    let run = runs
        .as_array()
        .expect("the test's own files")
        .iter()
        .rfind(|run| run["verb"] == "apply");
    // It may have been killed before it began.
    let Some(run) = run.and_then(|run| run["run"].as_str()) else {
        return;
    };
    // P7: whatever was begun is ended by the hosts themselves. Before the first intent nothing was written.
    let what = format!("seed {seed} ({fault}), run {run}: every host has ended it");
    eventually(&what, || {
        !hosts
            .iter()
            .any(|host| is_open(host, run) || is_at_work(host))
    });
    for host in &hosts {
        check(seed, fault, host, run);
    }
}

#[test]
fn whatever_fails_a_host_is_as_before_or_as_after_and_its_journal_says_which() {
    for seed in seeds() {
        one(seed);
    }
}

/// What a bug would leave behind is put there by hand, and the checker has to find it.
#[test]
fn the_checker_finds_what_bugs_leave_behind() {
    let seed = 4711;
    let host = name(HOSTS);
    let ctl = Fleetctl::on(&FLEET, &[&host]);
    prepare(seed, &host);
    let plan = ctl.home().join("a.plan").display().to_string();
    ctl.plan(&ctl.play(&play(seed)), &["--out", &plan]).ended(0);
    ctl.run(["apply", &plan]).ended(0);
    let runs: serde_json::Value =
        serde_json::from_str(&ctl.run(["runs", "--json"]).stdout).unwrap();
    let run = runs.as_array().unwrap().last().unwrap()["run"]
        .as_str()
        .unwrap()
        .to_owned();
    check(seed, "none", &host, &run);
    let finds = |harm: &str, mend: &str| {
        FLEET
            .sh(&host, &format!("cd /srv/s{seed} && {harm}"))
            .ended(0);
        let found = std::panic::catch_unwind(|| check(seed, harm, &host, &run));
        assert!(found.is_err(), "`{harm}` was not found");
        FLEET
            .sh(&host, &format!("cd /srv/s{seed} && {mend}"))
            .ended(0);
        check(seed, "none", &host, &run);
    };
    // An undo or a write that forgets the mode; half a file; a step that ran twice; what was staged and left.
    finds("chmod 0600 f3", "chmod 0640 f3");
    finds("cp -p f5 /srv/f5 && truncate -s 100 f5", "cp -p /srv/f5 f5");
    finds(
        "cp -p order /srv/order && echo 14 >> order",
        "cp -p /srv/order order",
    );
    finds("touch .fleetctl-x", "rm .fleetctl-x");
}
