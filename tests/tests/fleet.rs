//! The test fleet itself: what the other end-to-end tests take for granted.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the message")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use fleet_tests::{DelayProxy, Fleet};

/// The status line of the page that a host's nginx serves.
fn front_page(address: &str) -> String {
    let mut stream = TcpStream::connect((address, 80)).unwrap();
    stream
        .write_all(b"GET / HTTP/1.0\r\nHost: web\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page.lines().next().unwrap().to_owned()
}

#[test]
fn hosts_are_real_servers() {
    let fleet = Fleet::up_with(1, &["--loadgen"]);
    assert_eq!(fleet.hosts(), ["web1", "load1"]);
    let web = fleet.host(0);

    assert_eq!(front_page(&fleet.address(web)), "HTTP/1.1 200 OK");
    assert_eq!(fleet.sh(web, "hostname").text(), "web1");
    assert_eq!(
        fleet.sh(web, "systemctl is-system-running").text(),
        "running"
    );
    assert_eq!(fleet.sh(web, "nginx -t").code, 0);
    let load = fleet.sh("load1", "wrk -c1 -t1 -d1s http://web1/");
    assert!(load.text().contains("Requests/sec:"), "{load:?}");

    // `ops` needs no password, `ada` does, and it is this one.
    assert_eq!(fleet.sh_as("ops", web, "sudo -n id -un").text(), "root");
    assert_eq!(fleet.sh_as("ada", web, "sudo -n id -un").code, 1);
    let typed = fleet.sh_as("ada", web, "echo 'correct horse' | sudo -S id -un");
    assert_eq!(typed.text(), "root");

    let machine_ids: Vec<_> = fleet
        .hosts()
        .iter()
        .map(|host| fleet.read(host, "/etc/machine-id"))
        .collect();
    assert_ne!(machine_ids[0], machine_ids[1]);

    // The inventory alone is enough to reach a host, and its key is known without asking.
    let inventory = std::fs::read_to_string(fleet.inventory()).unwrap();
    assert!(inventory.contains("ansible_user: ops"), "{inventory}");
    let said = Command::new("ssh")
        .args(["-F", "/dev/null", "-o", "BatchMode=yes", "-i"])
        .arg(fleet.key())
        .arg("-o")
        .arg(format!(
            "UserKnownHostsFile={}",
            fleet.known_hosts().display()
        ))
        .arg(format!("ops@{}", fleet.address(web)))
        .arg("id -un")
        .output()
        .unwrap();
    assert_eq!(said.stdout, b"ops\n", "{said:?}");
}

#[test]
fn a_cable_can_be_cut_and_a_power_cut_keeps_the_disk() {
    let fleet = Fleet::up(2);
    let (first, second) = (fleet.host(0), fleet.host(1));
    fleet.write(first, "/etc/it's kept", "on the disk\n");
    fleet.write(first, "/run/lost", "in memory\n");

    fleet.cut(first);
    assert_eq!(fleet.sh(first, "true").code, 255);
    assert!(fleet.sh(second, "true").success());
    assert_eq!(fleet.sh_inside(first, "hostname").text(), "web1");
    fleet.mend(first);
    assert!(fleet.sh(first, "true").success());

    fleet.power_off(first);
    assert_eq!(fleet.sh(first, "true").code, 255);
    assert!(fleet.root(first).join("etc/it's kept").exists());
    fleet.power_on(first);
    assert_eq!(fleet.read(first, "/etc/it's kept"), "on the disk\n");
    assert!(!fleet.sh(first, "test -e /run/lost").success());
    assert_eq!(front_page(&fleet.address(first)), "HTTP/1.1 200 OK");
}

#[test]
fn a_fleet_leaves_nothing_behind() {
    let fleet = Fleet::up(1);
    let root = fleet.root("web1");
    let address = fleet.address("web1");
    let name = fleet.name().to_owned();
    drop(fleet);
    assert!(!root.exists());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains(&name), "{mounts}");
    let routes = Command::new("ip").arg("route").output().unwrap();
    let subnet = address.rsplit_once('.').unwrap().0;
    assert!(!String::from_utf8_lossy(&routes.stdout).contains(subnet));
}

/// A test that is killed cannot clean up; the fleet notices by itself.
#[test]
fn a_fleet_goes_with_its_owner() {
    let mut owner = Command::new("sleep").arg("1000").spawn().unwrap();
    let id = owner.id().to_string();
    let fleet = Fleet::up_with(1, &["--owner", &id]);
    let root = fleet.root("web1");
    owner.kill().unwrap();
    owner.wait().unwrap();
    for _ in 0..300 {
        if !root.exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the fleet {} outlives its owner", fleet.name());
}

#[test]
fn ssh_goes_through_the_slow_line() {
    let fleet = Fleet::up(1);
    let target = format!("{}:22", fleet.address("web1"));
    let proxy = DelayProxy::start("127.0.0.1:0", target, Duration::from_millis(25)).unwrap();
    let run = |command: &str| {
        let before = proxy.counts();
        let said = Command::new("ssh")
            .args(["-F", "/dev/null", "-o", "BatchMode=yes", "-i"])
            .arg(fleet.key())
            .arg("-o")
            .arg(format!(
                "UserKnownHostsFile={}",
                fleet.known_hosts().display()
            ))
            .arg("-o")
            .arg(format!("HostKeyAlias={}", fleet.address("web1")))
            .args(["-p", &proxy.address().port().to_string(), "root@127.0.0.1"])
            .arg(command)
            .output()
            .unwrap();
        assert!(said.status.success(), "{said:?}");
        let after = proxy.counts();
        assert_eq!(after.connections, before.connections + 1);
        (
            after.turns - before.turns,
            after.bytes_to_client - before.bytes_to_client,
        )
    };
    let (turns, _) = run("true");
    assert!(
        (5..=15).contains(&turns),
        "{turns} turns for `ssh HOST true`"
    );
    // Much to read is many bytes but no more waiting.
    let (more_turns, bytes) = run("head -c 1000000 /dev/zero");
    assert!(bytes > 1_000_000);
    assert!(more_turns <= turns + 3, "{more_turns} turns for 1 MB");
}
