//! Two runs never work on a host at once.

use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(2));

const SLOW: &str = "  tasks:\n    - command: sleep 5\n    - shell: echo first >> /srv/order\n";
const QUICK: &str = "  tasks:\n    - shell: echo second >> /srv/order\n";

fn busy(host: &str) -> bool {
    FLEET.sh(host, "pgrep -x sleep").success()
}

#[test]
fn the_second_run_is_told_who_holds_the_host() {
    let (first, second) = (
        Fleetctl::on(&FLEET, &["web1"]),
        Fleetctl::on(&FLEET, &["web1"]),
    );
    let mut running = first.start_apply(&first.play(SLOW), &[]);
    running.until("the first run sleeps", || busy("web1"));

    let refused = second.apply(&second.play(QUICK), &[]);
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    refused
        .ended(6)
        .says(&format!("@{} has held this host since 20", hostname.trim()));
    refused.says("wait for it with `--lock-timeout 5m`");
    // A plan changes nothing, so it waits for nobody.
    second.plan(&second.play(QUICK), &[]).ended(0);

    let said = running.wait();
    let run = said
        .ended(0)
        .stdout
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned();
    // The message named the very run: the last line of a run is its name.
    refused.says(&format!("{run} of "));
    assert_eq!(FLEET.read("web1", "/srv/order"), "first\n");
}

#[test]
fn the_second_run_can_wait() {
    let (first, second) = (
        Fleetctl::on(&FLEET, &["web2"]),
        Fleetctl::on(&FLEET, &["web2"]),
    );
    let mut running = first.start_apply(&first.play(SLOW), &[]);
    running.until("the first run sleeps", || busy("web2"));
    second
        .apply(&second.play(QUICK), &["--lock-timeout", "60s"])
        .ended(0);
    running.wait().ended(0);
    assert_eq!(FLEET.read("web2", "/srv/order"), "first\nsecond\n");
}
