use serde_json::{Map, Value, json};

use super::{Facts, source::Source};

/// The program that manages services, in Ansible's words.
pub(super) fn service_manager(source: &Source<'_>, facts: &mut Facts) {
    let first = source
        .line("/proc/1/comm")
        .filter(|name| name != "init" && !name.ends_with("sh"));
    let manager = match first.as_deref() {
        Some("procd") => "openwrt_init",
        Some("runit-init") => "runit",
        Some("svscan") => "svc",
        Some("openrc-init") => "openrc",
        Some(other) => other,
        None if source.exists("/run/systemd/system") => "systemd",
        None if source.exists("/sbin/openrc") => "openrc",
        None if source.link_name("/sbin/init").as_deref() == Some("systemd") => "systemd",
        None if source.exists("/etc/init.d") => "sysvinit",
        None => "service",
    };
    facts.put("service_mgr", manager);
    if let Some(version) = systemd_version(source) {
        facts.put("systemd", json!({"version": version}));
    }
}

/// The version is in the name of systemd's own library; only where it is not found is `systemctl` asked.
pub(super) fn systemd_version(source: &Source<'_>) -> Option<u32> {
    if !source.exists("/usr/bin/systemctl") {
        return None;
    }
    let digits = |text: &str| {
        text.split(|c: char| !c.is_ascii_digit())
            .next()?
            .parse()
            .ok()
    };
    let triplet = format!("/usr/lib/{}-linux-gnu/systemd", std::env::consts::ARCH);
    [triplet.as_str(), "/usr/lib/systemd", "/usr/lib64/systemd"]
        .into_iter()
        .flat_map(|dir| source.names(dir))
        .find_map(|name| digits(name.strip_prefix("libsystemd-shared-")?))
        .or_else(|| {
            let answer = source.probe(&["/usr/bin/systemctl", "--version"])?;
            digits(answer.stdout.strip_prefix("systemd ")?)
        })
}

/// The package manager.
pub(super) fn package_manager(source: &Source<'_>, facts: &mut Facts) {
    let managers = [
        ("/usr/bin/apt-get", "apt"),
        ("/usr/bin/dnf5", "dnf5"),
        ("/usr/bin/dnf-3", "dnf"),
        ("/usr/bin/dnf", "dnf"),
        ("/usr/bin/yum", "yum"),
        ("/usr/bin/zypper", "zypper"),
        ("/usr/bin/pacman", "pacman"),
        ("/sbin/apk", "apk"),
        ("/usr/bin/emerge", "portage"),
        ("/usr/bin/xbps-install", "xbps"),
        ("/bin/opkg", "opkg"),
    ];
    // An RPM distribution may carry apt as a tool for its images, and the other way round.
    let debian = source.exists("/etc/debian_version");
    let found = managers
        .iter()
        .filter(|(path, name)| source.exists(path) && (debian || *name != "apt"))
        .chain(managers.iter().filter(|(path, _)| source.exists(path)))
        .map(|(_, name)| *name)
        .next();
    facts.put("pkg_mgr", found.unwrap_or("unknown"));
}

/// SELinux, AppArmor and FIPS.
pub(super) fn security(source: &Source<'_>, facts: &mut Facts) {
    facts.put("selinux", selinux(source));
    facts.put("selinux_python_present", true);
    let apparmor = source.exists("/sys/kernel/security/apparmor");
    facts.put(
        "apparmor",
        json!({"status": if apparmor { "enabled" } else { "disabled" }}),
    );
    let fips = source.line("/proc/sys/crypto/fips_enabled");
    facts.put("fips", fips.as_deref() == Some("1"));
}

fn selinux(source: &Source<'_>) -> Value {
    let file = |name: &str| source.line(&format!("/sys/fs/selinux/{name}"));
    let Some(enforcing) = file("enforce") else {
        return json!({"status": "disabled"});
    };
    let config = source.text("/etc/selinux/config").unwrap_or_default();
    let set = |key: &str| {
        let pairs = super::source::assignments(&config);
        let found = pairs
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| *value);
        found.unwrap_or("unknown").to_owned()
    };
    json!({
        "status": "enabled",
        "mode": if enforcing == "1" { "enforcing" } else { "permissive" },
        "config_mode": set("SELINUX"),
        "type": set("SELINUXTYPE"),
        "policyvers": file("policyvers").and_then(|version| version.parse::<u32>().ok()),
    })
}

/// Whether this process sees another root than the first process of the machine.
pub(super) fn chroot(source: &Source<'_>, facts: &mut Facts) {
    use std::os::unix::fs::MetadataExt;
    let place = |path: &str| {
        let meta = std::fs::metadata(source.at(path)).ok()?;
        Some((meta.dev(), meta.ino()))
    };
    let differs = place("/proc/1/root/.").is_some_and(|first| place("/") != Some(first));
    facts.put("is_chroot", differs);
}

/// The kernel's command line, and that of the first process.
pub(super) fn command_lines(source: &Source<'_>, facts: &mut Facts) {
    let text = source.text("/proc/cmdline").unwrap_or_default();
    facts.put("cmdline", command_line(&text, false));
    facts.put("proc_cmdline", command_line(&text, true));
}

/// How loaded the machine is.
pub(super) fn load(source: &Source<'_>, facts: &mut Facts) {
    let loads = source.text("/proc/loadavg").unwrap_or_default();
    let load = |index: usize| loads.split(' ').nth(index)?.parse::<f64>().ok();
    facts.put(
        "loadavg",
        json!({"1m": load(0), "5m": load(1), "15m": load(2)}),
    );
}

/// How long the kernel has run.
pub(super) fn uptime(source: &Source<'_>, facts: &mut Facts) {
    let text = source.text("/proc/uptime").unwrap_or_default();
    let seconds = text
        .split('.')
        .next()
        .and_then(|text| text.parse::<u64>().ok());
    facts.put("uptime_seconds", seconds);
}

/// A parameter given twice is its last value in `cmdline`, and a list of all in `proc_cmdline`.
fn command_line(text: &str, all: bool) -> Map<String, Value> {
    let mut words: Map<String, Value> = Map::new();
    for word in text.split_whitespace() {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key, Value::from(value)),
            None => (word, Value::Bool(true)),
        };
        match words.get_mut(key) {
            Some(Value::Array(values)) if all => values.push(value),
            Some(first) if all && value.is_string() => {
                *first = Value::Array(vec![first.take(), value]);
            }
            _ => {
                words.insert(key.to_owned(), value);
            }
        }
    }
    words
}

/// The resolver's settings.
pub(super) fn dns(source: &Source<'_>, facts: &mut Facts) {
    facts.put(
        "dns",
        resolver(&source.text("/etc/resolv.conf").unwrap_or_default()),
    );
}

fn resolver(text: &str) -> Map<String, Value> {
    let mut dns = Map::new();
    let mut servers: Vec<&str> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => servers.extend(words),
            Some("domain") => {
                if let Some(domain) = words.next() {
                    dns.insert("domain".to_owned(), domain.into());
                }
            }
            Some(list @ ("search" | "sortlist")) => {
                dns.insert(list.to_owned(), words.collect());
            }
            Some("options") => {
                let options = words.map(|word| match word.split_once(':') {
                    Some((key, value)) => (key.to_owned(), value.into()),
                    None => (word.to_owned(), true.into()),
                });
                dns.insert("options".to_owned(), options.collect::<Map<_, _>>().into());
            }
            _ => {}
        }
    }
    if !servers.is_empty() {
        dns.insert("nameservers".to_owned(), servers.into());
    }
    dns
}

/// The host's public SSH keys, as `known_hosts` would have them.
pub(super) fn ssh_keys(source: &Source<'_>, facts: &mut Facts) {
    for algorithm in ["dsa", "rsa", "ecdsa", "ed25519"] {
        let text = ["/etc/ssh", "/etc/openssh", "/etc"]
            .into_iter()
            .find_map(|dir| source.line(&format!("{dir}/ssh_host_{algorithm}_key.pub")));
        let Some(text) = text else { continue };
        let mut words = text.split(' ');
        if let (Some(kind), Some(key)) = (words.next(), words.next()) {
            facts.put(&format!("ssh_host_key_{algorithm}_public"), key);
            facts.put(&format!("ssh_host_key_{algorithm}_public_keytype"), kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::gathered;

    #[test]
    fn the_first_process_names_the_service_manager() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("/proc/1/comm", "systemd\n")], "systemd"),
            (&[("/proc/1/comm", "runit-init\n")], "runit"),
            (
                &[("/proc/1/comm", "bash\n"), ("/etc/init.d/x", "")],
                "sysvinit",
            ),
            (
                &[("/proc/1/comm", "init\n"), ("/run/systemd/system/x", "")],
                "systemd",
            ),
        ];
        for (files, manager) in cases {
            let facts = gathered(super::service_manager, files);
            assert_eq!(
                facts.get("service_mgr"),
                Some(&(*manager).into()),
                "{files:?}"
            );
        }
    }

    #[test]
    fn systemd_says_its_version_by_the_name_of_its_library() {
        let facts = gathered(
            super::service_manager,
            &[
                ("/usr/bin/systemctl", ""),
                ("/usr/lib/systemd/libsystemd-shared-256.11-1.fc41.so", ""),
            ],
        );
        assert_eq!(facts.get("systemd"), Some(&json!({"version": 256})));
    }

    #[test]
    fn the_package_manager_is_the_distributions_own() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (
                &[
                    ("/usr/bin/apt-get", ""),
                    ("/usr/bin/dnf", ""),
                    ("/etc/debian_version", "12.1"),
                ],
                "apt",
            ),
            (&[("/usr/bin/apt-get", ""), ("/usr/bin/dnf", "")], "dnf"),
            (&[("/usr/bin/apt-get", "")], "apt"),
            (&[], "unknown"),
        ];
        for (files, manager) in cases {
            let facts = gathered(super::package_manager, files);
            assert_eq!(facts.get("pkg_mgr"), Some(&(*manager).into()), "{files:?}");
        }
    }

    #[test]
    fn a_repeated_kernel_parameter_keeps_its_last_value_and_lists_all() {
        let text = "quiet console=tty0 console=ttyS0 root=/dev/sda1\n";
        let facts = gathered(super::command_lines, &[("/proc/cmdline", text)]);
        assert_eq!(
            facts.get("cmdline"),
            Some(&json!({"quiet": true, "console": "ttyS0", "root": "/dev/sda1"}))
        );
        assert_eq!(
            facts.get("proc_cmdline").unwrap()["console"],
            json!(["tty0", "ttyS0"])
        );
        let facts = gathered(super::uptime, &[("/proc/uptime", "1132.55 2000.1\n")]);
        assert_eq!(facts.get("uptime_seconds"), Some(&json!(1132)));
    }

    #[test]
    fn the_resolver_file_is_read() {
        let text = "# local\nnameserver 10.0.0.1\nnameserver 10.0.0.2\nsearch a.example b.example\noptions ndots:2 rotate\n";
        assert_eq!(
            json!(super::resolver(text)),
            json!({"nameservers": ["10.0.0.1", "10.0.0.2"], "search": ["a.example", "b.example"], "options": {"ndots": "2", "rotate": true}})
        );
        assert_eq!(json!(super::resolver("")), json!({}));
    }

    #[test]
    fn selinux_is_off_where_its_file_system_is_absent() {
        let facts = gathered(super::security, &[]);
        assert_eq!(facts.get("selinux"), Some(&json!({"status": "disabled"})));
        let facts = gathered(
            super::security,
            &[
                ("/sys/fs/selinux/enforce", "1"),
                ("/sys/fs/selinux/policyvers", "33"),
                (
                    "/etc/selinux/config",
                    "SELINUX=enforcing\nSELINUXTYPE=targeted\n",
                ),
            ],
        );
        assert_eq!(
            facts.get("selinux"),
            Some(
                &json!({"status": "enabled", "mode": "enforcing", "config_mode": "enforcing", "type": "targeted", "policyvers": 33})
            )
        );
    }
}
