//! The facts of a host under Ansible's names, one file a family. They are read from the kernel and from
//! files; a program is started only where its answer is in no file, so that all of them take a few milliseconds.

use serde_json::{Map, Value};

pub(super) mod date_time;
pub(super) mod netlink;
pub(super) mod source;
pub(super) mod tuning;

mod devices;
mod distribution;
mod local;
mod memory;
pub(super) mod mounts;
mod network;
mod nginx;
mod platform;
mod processor;
mod storage;
mod system;
mod user;
mod virtualization;

use crate::glob;
use source::Source;

/// Facts without their prefix `ansible_`.
#[derive(Debug, Default)]
pub(super) struct Facts(Map<String, Value>);

impl Facts {
    fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    #[cfg(test)]
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }
}

/// Facts that are read together.
struct Family {
    /// Names in `gather_subset` that ask for it: its own first, then wider and narrower ones of Ansible.
    names: &'static [&'static str],
    /// Read even where only a minimum is asked for.
    minimal: bool,
    gather: fn(&Source<'_>, &mut Facts),
}

type Names = &'static [&'static str];
type Gather = fn(&Source<'_>, &mut Facts);

const fn minimal(names: Names, gather: Gather) -> Family {
    Family {
        names,
        minimal: true,
        gather,
    }
}

const fn full(names: Names, gather: Gather) -> Family {
    Family {
        names,
        minimal: false,
        gather,
    }
}

/// The names of a family of the hardware: its own, then those that ask for all of it.
macro_rules! hardware {
    ($own:literal) => {
        &[
            $own,
            "hardware",
            "devices",
            "mounts",
            "processor",
            "processor_cores",
            "processor_count",
        ]
    };
}

const FAMILIES: &[Family] = &[
    minimal(
        &[
            "platform",
            "system",
            "kernel",
            "kernel_version",
            "machine",
            "machine_id",
            "architecture",
            "python",
            "python_version",
        ],
        platform::gather,
    ),
    minimal(
        &[
            "distribution",
            "distribution_version",
            "distribution_release",
            "distribution_major_version",
            "os_family",
        ],
        distribution::gather,
    ),
    minimal(&["lsb"], distribution::lsb),
    minimal(&["service_mgr", "systemd"], system::service_manager),
    minimal(&["pkg_mgr"], system::package_manager),
    minimal(&["selinux", "apparmor", "fips"], system::security),
    full(&["chroot", "is_chroot"], system::chroot),
    minimal(&["cmdline"], system::command_lines),
    full(&["loadavg"], system::load),
    minimal(
        &[
            "caps",
            "system_capabilities",
            "system_capabilities_enforced",
        ],
        storage::capabilities,
    ),
    minimal(&["dns"], system::dns),
    minimal(&["ssh_pub_keys", "ssh_host_pub_keys"], system::ssh_keys),
    minimal(&["date_time"], date_time::gather),
    minimal(
        &[
            "user",
            "user_id",
            "user_dir",
            "user_gecos",
            "user_gid",
            "user_shell",
            "user_uid",
            "real_user_id",
            "effective_user_id",
        ],
        user::gather,
    ),
    minimal(&["env"], user::environment),
    // Ansible reads all of the hardware where any of it is asked for.
    full(hardware!["processor"], processor::gather),
    full(hardware!["memory"], memory::gather),
    full(hardware!["mounts"], mounts::gather),
    full(hardware!["devices"], devices::gather),
    full(hardware!["firmware"], platform::firmware),
    full(hardware!["uptime"], system::uptime),
    full(hardware!["lvm"], storage::volumes),
    full(&["iscsi"], storage::iscsi),
    full(&["nvme"], storage::nvme),
    full(&["fibre_channel_wwn"], storage::fibre_channel),
    full(
        &[
            "network",
            "interfaces",
            "default_ipv4",
            "default_ipv6",
            "all_ipv4_addresses",
            "all_ipv6_addresses",
        ],
        network::gather,
    ),
    full(
        &[
            "virtual",
            "virtualization_type",
            "virtualization_role",
            "virtualization_tech_guest",
            "virtualization_tech_host",
        ],
        virtualization::gather,
    ),
    full(&["fleetctl"], tuning::gather),
    full(&["sysctl", "fleetctl"], tuning::sysctls),
];

/// Names of families that Ansible has and this program has no facts for: asking for one is no mistake.
const EMPTY: &[&str] = &["facter", "ohai", "effective_group_ids"];

/// Families that others bring with them: those that are asked for, and what comes along.
const ALONG: &[(&str, &[&str])] = &[
    ("network", &["platform", "distribution"]),
    ("processor", &["platform"]),
    ("pkg_mgr", &["distribution"]),
    ("service_mgr", &["platform", "distribution"]),
];

/// Which facts are wanted.
pub(super) struct Wanted {
    families: Vec<&'static Family>,
    local: bool,
    subset: Vec<String>,
}

/// What asks for all of the hardware.
const HARDWARE: &[&str] = hardware!["memory"];

impl Wanted {
    /// Reads `gather_subset`: `all`, `min`, names, and each of them with `!` before it.
    pub(super) fn parse(subset: &[String]) -> Result<Self, String> {
        let (without, with): (Vec<&str>, Vec<&str>) = subset
            .iter()
            .map(|word| word.trim())
            .partition(|word| word.starts_with('!'));
        let without: Vec<&str> = without.iter().map(|word| word[1..].trim()).collect();
        // To leave out what nobody knows is no mistake.
        if let Some(unknown) = with.iter().find(|word| !is_known(word)) {
            return Err(unknown.to_owned().to_owned());
        }
        let no_minimum = without.contains(&"min");
        let everything = with.contains(&"all") || subset.is_empty();
        let chosen = |names: &[&str], minimal: bool| {
            let named = |list: &[&str]| names.iter().any(|name| list.contains(name));
            let own_out = names.first().is_some_and(|own| without.contains(own));
            if own_out || named(&without) && !named(&with) {
                return false;
            }
            let brought = ALONG.iter().any(|(by, what)| {
                let asked = with.contains(by)
                    || *by == "processor" && with.iter().any(|word| HARDWARE.contains(word));
                asked && what.iter().any(|name| names.first() == Some(name))
            });
            let usual = if minimal { !no_minimum } else { everything };
            named(&with) || brought || usual
        };
        let families = FAMILIES
            .iter()
            .filter(|family| chosen(family.names, family.minimal));
        Ok(Self {
            families: families.collect(),
            local: chosen(&["local"], true),
            subset: match subset.is_empty() {
                true => vec!["all".to_owned()],
                false => subset.to_vec(),
            },
        })
    }

    /// Reads the wanted facts; names without prefix.
    pub(super) fn gather(&self, source: &Source<'_>, fact_path: &str) -> Facts {
        let mut facts = Facts::default();
        for family in &self.families {
            (family.gather)(source, &mut facts);
        }
        if self.local {
            local::gather(source, fact_path, &mut facts);
        }
        facts.put("gather_subset", self.subset.clone());
        facts.put("module_setup", true);
        facts
    }
}

fn is_known(word: &str) -> bool {
    matches!(word, "all" | "min" | "local")
        || EMPTY.contains(&word)
        || FAMILIES.iter().any(|family| family.names.contains(&word))
}

/// The names that `gather_subset` takes, for a message.
pub(super) fn subsets() -> String {
    let families = FAMILIES.iter().flat_map(|family| family.names);
    let mut names: Vec<&str> = families
        .chain(EMPTY)
        .chain(&["all", "min", "local"])
        .copied()
        .collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// What is told of the gathering itself, without the prefix of facts.
const BARE: [&str; 2] = ["gather_subset", "module_setup"];

impl Facts {
    /// The facts under their full names, those only that a pattern matches; all where there is none.
    pub(super) fn named(self, patterns: &[String]) -> Map<String, Value> {
        let all = self
            .0
            .into_iter()
            .map(|(name, value)| match BARE.contains(&name.as_str()) {
                true => (name, value),
                false => (format!("ansible_{name}"), value),
            });
        let wanted = |name: &str| {
            patterns.is_empty()
                || patterns.iter().any(|pattern| {
                    let bare = name.strip_prefix("ansible_").unwrap_or(name);
                    glob::matches(pattern, name) || glob::matches(pattern, bare)
                })
        };
        all.filter(|(name, _)| wanted(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Facts, Wanted, source::Source};

    /// Paths and contents.
    pub(super) type Files<'a> = &'a [(&'a str, &'a str)];

    /// A source of these files and no programs.
    pub(super) fn with_source<T>(files: Files<'_>, look: impl FnOnce(&Source<'_>) -> T) -> T {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        look(&Source::new(root.path(), (1000, 1001), &[], &|_| None))
    }

    /// The facts that a family finds in these files.
    pub(super) fn gathered(family: fn(&Source<'_>, &mut Facts), files: Files<'_>) -> Facts {
        with_source(files, |source| {
            let mut facts = Facts::default();
            family(source, &mut facts);
            facts
        })
    }

    #[test]
    fn a_subset_is_chosen_as_ansible_chooses_it() {
        let has = |subset: &[&str]| {
            let subset: Vec<String> = subset.iter().map(|word| (*word).to_owned()).collect();
            let wanted = Wanted::parse(&subset).unwrap();
            let family = |name: &str| wanted.families.iter().any(|family| family.names[0] == name);
            [
                family("distribution"),
                family("memory"),
                family("network"),
                wanted.local,
            ]
        };
        assert_eq!(has(&["all"]), [true, true, true, true]);
        assert_eq!(has(&[]), [true, true, true, true]);
        assert_eq!(has(&["min"]), [true, false, false, true]);
        assert_eq!(has(&["!all"]), [true, false, false, true]);
        assert_eq!(has(&["!all", "!min"]), [false, false, false, false]);
        assert_eq!(has(&["network"]), [true, false, true, true]);
        assert_eq!(
            has(&["!all", "!min", "hardware"]),
            [false, true, false, false]
        );
        assert_eq!(
            has(&["!all", "!min", "mounts"]),
            [false, true, false, false]
        );
        // What is only left out leaves the minimum.
        assert_eq!(has(&["!hardware"]), [true, false, false, true]);
        assert_eq!(has(&["!facter", "!ohai"]), [true, false, false, true]);
        assert_eq!(has(&["all", "!hardware"]), [true, false, true, true]);
        assert_eq!(has(&["!min", "pkg_mgr"]), [true, false, false, false]);
        assert_eq!(
            has(&["all", "!network", "!local"]),
            [true, true, false, false]
        );
        assert_eq!(
            Wanted::parse(&["netwrk".to_owned()]).err(),
            Some("netwrk".to_owned())
        );
    }

    #[test]
    fn a_filter_is_a_shell_pattern_of_either_name() {
        let mut facts = Facts::default();
        facts.put("os_family", "Debian");
        facts.put("eth0", 1);
        let keys = |patterns: &[&str]| -> Vec<String> {
            let same = Facts(facts.0.clone());
            let patterns: Vec<String> = patterns.iter().map(|word| (*word).to_owned()).collect();
            same.named(&patterns).keys().cloned().collect()
        };
        assert_eq!(keys(&[]), ["ansible_os_family", "ansible_eth0"]);
        assert_eq!(keys(&["ansible_eth[0-2]"]), ["ansible_eth0"]);
        assert_eq!(keys(&["os_*"]), ["ansible_os_family"]);
    }
}
