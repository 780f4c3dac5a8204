//! Changes that lock the controller out, undone by the host itself: a firewall that drops everything, or only what is new.

use std::sync::LazyLock;
use std::time::Instant;

use fleet_tests::{Fleet, Fleetctl, eventually};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up_with(3, &["--variant", "firewall"]));

/// A play that loads a firewall with these rules for what comes in.
fn firewall(ctl: &Fleetctl, rules: &str) -> std::path::PathBuf {
    ctl.play(&format!(
        r#"
  tasks:
    - copy:
        dest: /etc/nftables.conf
        content: |
          #!/usr/sbin/nft -f
          flush ruleset
          table inet filter {{
            chain input {{
              type filter hook input priority 0; policy drop;
              {rules}
            }}
          }}
      notify: load the firewall
  handlers:
    - name: load the firewall
      service: {{name: nftables, state: restarted, enabled: true}}
"#
    ))
}

fn is_open(host: &str) {
    assert!(
        !FLEET
            .sh_inside(host, "nft list ruleset")
            .text()
            .contains("policy drop"),
        "{host}"
    );
    FLEET.sh(host, "true").ended(0);
    assert!(
        !FLEET
            .read(host, "/etc/nftables.conf")
            .contains("policy drop")
    );
}

#[test]
fn a_firewall_that_lets_nothing_new_in_is_taken_back_by_the_host() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    FLEET.sh("web1", "systemctl enable --now nftables").ended(0);
    let play = firewall(&ctl, "ct state established,related accept");
    ctl.apply(&play, &["--confirm-timeout", "5s"])
        .ended(3)
        .says("rolled_back")
        .says("nobody confirmed the run within 5 s");
    is_open("web1");
}

#[test]
fn a_firewall_that_lets_nothing_in_is_taken_back_by_the_host() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    let play = firewall(&ctl, "");
    let began = Instant::now();
    ctl.apply(&play, &["--confirm-timeout", "5s"])
        .ended(3)
        .says("rolled_back");
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
    is_open("web2");
}

#[test]
fn a_firewall_that_lets_nothing_in_is_taken_back_by_the_next_boot() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let play = firewall(&ctl, "");
    let mut running = ctl.start_apply(&play, &["--confirm-timeout", "600s"]);
    running.until("the host is locked", || {
        FLEET
            .sh_inside("web3", "nft list ruleset")
            .text()
            .contains("policy drop")
    });
    FLEET.power_off("web3");
    FLEET.power_on("web3");
    eventually("the boot opens it", || {
        !FLEET
            .sh_inside("web3", "nft list ruleset")
            .text()
            .contains("policy drop")
    });
    running.wait().ended(3).says("rolled_back");
    is_open("web3");
}
