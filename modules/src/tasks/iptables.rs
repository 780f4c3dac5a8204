use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::{Value, json};

use super::group::State;
use crate::args::{Bool, List, Text};
use crate::host::{Command, Fault, Host, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Iptables>();

/// Adds a rule to the kernel's packet filter, or takes it out, by the host's own `iptables`. It is gone after a boot, unless
/// something on the host saves it.
///
/// An undo takes the rule out again, or puts it back (at the end of its chain where nobody said where it stood).
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Iptables {
    /// The table.
    #[serde(default = "filter")]
    table: Text,
    /// The chain: `INPUT`, `FORWARD` and so on.
    chain: Option<Text>,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// Whether a new rule goes to the end of the chain or to its beginning.
    #[serde(default)]
    action: Action,
    /// The place of a rule that is inserted.
    rule_num: Option<Text>,
    /// `ipv4`, `ipv6` or `both`.
    #[serde(default)]
    ip_version: Version,
    /// Make the chain where it is missing, or remove it.
    #[serde(default)]
    chain_management: Bool,
    /// The protocol: `tcp`, `udp`, `icmp`, …; `!` before it for all others.
    protocol: Option<Text>,
    /// Where packets come from.
    source: Option<Text>,
    /// Where packets go to.
    destination: Option<Text>,
    /// Modules that match.
    #[serde(default)]
    r#match: List,
    /// Flags of TCP: a mapping of `flags` and `flags_set`.
    tcp_flags: Option<TcpFlags>,
    /// What happens to a packet: `ACCEPT`, `DROP`, another chain and so on.
    jump: Option<Text>,
    /// The address to which `TEE` sends copies.
    gateway: Option<Text>,
    /// What is logged before a packet.
    log_prefix: Option<Text>,
    /// How grave it is to the log.
    log_level: Option<Text>,
    /// Go on in another chain and do not come back.
    goto: Option<Text>,
    /// The interface that packets come in by.
    in_interface: Option<Text>,
    /// The interface that packets go out by.
    out_interface: Option<Text>,
    /// Only second and further fragments.
    fragment: Option<Text>,
    /// The counters of the rule.
    set_counters: Option<Text>,
    /// The port that packets come from.
    source_port: Option<Text>,
    /// The port that packets go to.
    destination_port: Option<Text>,
    /// Several ports that packets go to.
    #[serde(default)]
    destination_ports: List,
    /// The ports to redirect to.
    to_ports: Option<Text>,
    /// The new destination.
    to_destination: Option<Text>,
    /// The new source.
    to_source: Option<Text>,
    /// Whether it must be the first packet of a connection: `match`, `negate` or `ignore`.
    #[serde(default)]
    syn: Syn,
    /// The mark to set.
    set_dscp_mark: Option<Text>,
    /// The class of the mark to set.
    set_dscp_mark_class: Option<Text>,
    /// A comment.
    comment: Option<Text>,
    /// The states of connections: `ESTABLISHED`, `RELATED`, `NEW` and so on.
    #[serde(default)]
    ctstate: List,
    /// A range of sources.
    src_range: Option<Text>,
    /// A range of destinations.
    dst_range: Option<Text>,
    /// A set of ipset(8).
    match_set: Option<Text>,
    /// Which of a packet's addresses must be in the set.
    match_set_flags: Option<Text>,
    /// How often it may match: `2/second`.
    limit: Option<Text>,
    /// How often it may match at once.
    limit_burst: Option<Text>,
    /// The user whose packets they are.
    uid_owner: Option<Text>,
    /// The group whose packets they are.
    gid_owner: Option<Text>,
    /// How a packet is rejected.
    reject_with: Option<Text>,
    /// The type of an ICMP message.
    icmp_type: Option<Text>,
    /// Remove all rules of the chain, or of the table.
    #[serde(default)]
    flush: Bool,
    /// What happens to packets that no rule of the chain takes.
    policy: Option<Text>,
    /// Taken for Ansible's sake: another program's lock is always waited for.
    #[serde(default, rename = "wait")]
    _wait: Option<Value>,
    /// Taken for Ansible's sake: names are never looked up.
    #[serde(default, rename = "numeric")]
    _numeric: Option<Value>,
}

fn filter() -> Text {
    "filter".into()
}

#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct TcpFlags {
    /// The flags to look at.
    #[serde(default)]
    flags: List,
    /// Those that must be set.
    #[serde(default)]
    flags_set: List,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Action {
    #[default]
    Append,
    Insert,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Version {
    #[default]
    Ipv4,
    Ipv6,
    Both,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Syn {
    #[default]
    Ignore,
    Match,
    Negate,
}

impl Task for Iptables {
    const NAME: &'static str = "iptables";

    fn check(&self) -> Result<(), ArgumentError> {
        let tables = ["filter", "nat", "mangle", "raw", "security"];
        if !tables.contains(&&*self.table) {
            return Err(ArgumentError::of(
                "table",
                format!("expected one of {}", tables.join(", ")),
            ));
        }
        if self.chain.is_none() && !*self.flush {
            return Err(ArgumentError::of(
                "chain",
                "either chain or flush parameter must be specified",
            ));
        }
        if *self.flush && self.policy.is_some() {
            return Err(ArgumentError::of("policy", "it does not go with flush"));
        }
        let log = self.log_prefix.is_some() || self.log_level.is_some();
        if log && self.jump.as_deref().is_some_and(|jump| jump != "LOG") {
            return Err(ArgumentError::of(
                "jump",
                "log_prefix and log_level need the jump LOG",
            ));
        }
        let words = self.rule();
        match words
            .iter()
            .chain(self.chain.as_ref().map(|chain| &chain.0))
            .find(|word| word.contains(['\'', '\n', '\0']))
        {
            Some(word) => Err(ArgumentError::of(
                "comment",
                format!("`{word}`: a quote or a line's end cannot be in a rule"),
            )),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let programs: &[&str] = match self.ip_version {
            Version::Ipv4 => &["iptables"],
            Version::Ipv6 => &["ip6tables"],
            Version::Both => &["iptables", "ip6tables"],
        };
        for program in programs {
            let there = host
                .probe(&[program, "--version"])
                .is_ok_and(|output| output.ok());
            match there || host.open() {
                true => self.filter(host, program)?,
                false => {
                    return Err(Fault::new(format!(
                        "this host has no {program}: install the package iptables before this task"
                    )));
                }
            }
        }
        let state = if self.state == State::Absent {
            "absent"
        } else {
            "present"
        };
        Ok(Report::of(json!({
            "chain": self.chain.as_deref(),
            "chain_management": *self.chain_management,
            "flush": *self.flush,
            "ip_version": match self.ip_version {
                Version::Ipv4 => "ipv4",
                Version::Ipv6 => "ipv6",
                Version::Both => "both",
            },
            "rule": self.rule().join(" "),
            "state": state,
            "table": &*self.table,
        })))
    }
}

impl Iptables {
    fn filter(&self, host: &mut Host, program: &str) -> Result<(), Fault> {
        let chain = self.chain.as_deref().unwrap_or_default();
        let table = &*self.table;
        if *self.flush {
            return self.flush(host, program, chain);
        }
        if let Some(policy) = &self.policy {
            host.set(Setting {
                kind: SettingKind::FirewallPolicy,
                name: format!("{program} {table} {chain}"),
                value: policy.to_uppercase(),
            })?;
            return Ok(());
        }
        let rule = self.rule();
        let there = host
            .probe(&[program, "--wait", "-t", table, "-S", chain])
            .is_ok_and(|output| output.ok());
        if *self.chain_management {
            let verb = match self.state {
                State::Present if !there => Some("-N"),
                State::Absent if there && rule.is_empty() => Some("-X"),
                _ => None,
            };
            if let Some(verb) = verb {
                self.tell(host, &[program, "--wait", "-t", table, verb, chain])?;
            }
            if rule.is_empty() {
                return Ok(());
            }
        } else if !there && !host.open() && self.state == State::Present {
            return Err(Fault::new(format!(
                "there is no chain {chain} in the table {table} of {program}: make it by `chain_management: true`"
            )));
        } else if !there && self.state == State::Absent {
            return Ok(());
        }
        let quoted = rule
            .iter()
            .map(|word| match word.contains(' ') || word.is_empty() {
                true => format!("'{word}'"),
                false => word.clone(),
            });
        let words: Vec<String> = quoted.collect();
        let place = match (self.action, &self.rule_num) {
            (Action::Insert, Some(number)) => number.to_string(),
            (Action::Insert, None) => "1".to_owned(),
            (Action::Append, _) => "present".to_owned(),
        };
        host.set(Setting {
            kind: SettingKind::FirewallRule,
            name: format!("{program} {table} {chain} {}", words.join(" "))
                .trim_end()
                .to_owned(),
            value: if self.state == State::Absent {
                String::new()
            } else {
                place
            },
        })?;
        Ok(())
    }

    fn flush(&self, host: &mut Host, program: &str, chain: &str) -> Result<(), Fault> {
        let table = &*self.table;
        let chains: Vec<&str> = if chain.is_empty() {
            Vec::new()
        } else {
            vec![chain]
        };
        let list = [&[program, "--wait", "-t", table, "-S"][..], &chains].concat();
        let output = host.probe(&list)?;
        if output.ok() && !output.text().lines().any(|line| line.starts_with("-A ")) {
            return Ok(());
        }
        self.tell(
            host,
            &[&[program, "--wait", "-t", table, "-F"][..], &chains].concat(),
        )
    }

    fn tell(&self, host: &mut Host, argv: &[&str]) -> Result<(), Fault> {
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        let line = argv.join(" ");
        let output = host.command(Command {
            argv,
            line: line.clone(),
            ..Command::default()
        })?;
        match output.filter(|output| !output.ok()) {
            Some(output) => Err(
                Fault::new(format!("`{line}` failed: {}", output.complaint()))
                    .with("rc", output.rc),
            ),
            None => Ok(()),
        }
    }

    /// The rule's own words, in the order that Ansible gives them.
    fn rule(&self) -> Vec<String> {
        let text = |text: &Option<Text>| text.as_deref().map(str::to_owned);
        let listed = |list: &List| (!list.is_empty()).then(|| list.join(","));
        let mut rule = Rule {
            words: Vec::new(),
            matches: &self.r#match,
        };
        rule.add("-p", text(&self.protocol));
        rule.add("-s", text(&self.source));
        rule.add("-d", text(&self.destination));
        for name in self.r#match.iter() {
            rule.add("-m", Some(name.clone()));
        }
        if let Some(flags) = &self.tcp_flags {
            rule.add("--tcp-flags", Some(flags.flags.join(",")));
            rule.word(&flags.flags_set.join(","));
        }
        let logs = self.log_prefix.is_some() || self.log_level.is_some();
        let jump = text(&self.jump).or_else(|| {
            let implied = [
                (logs, "LOG"),
                (self.set_dscp_mark_class.is_some(), "DSCP"),
                (self.reject_with.is_some(), "REJECT"),
            ];
            let implied = implied.iter().find(|(given, _)| *given);
            implied.map(|(_, target)| (*target).to_owned())
        });
        rule.add("-j", jump.clone());
        if jump.as_deref() == Some("TEE") {
            rule.add("--gateway", text(&self.gateway));
        }
        rule.add("--log-prefix", text(&self.log_prefix));
        rule.add("--log-level", text(&self.log_level));
        rule.add("--to-destination", text(&self.to_destination));
        rule.matching("multiport", "--dports", listed(&self.destination_ports));
        rule.add("--to-source", text(&self.to_source));
        rule.add("-g", text(&self.goto));
        rule.add("-i", text(&self.in_interface));
        rule.add("-o", text(&self.out_interface));
        rule.add("-f", text(&self.fragment));
        rule.add("-c", text(&self.set_counters));
        rule.add("--source-port", text(&self.source_port));
        rule.add("--destination-port", text(&self.destination_port));
        rule.add("--to-ports", text(&self.to_ports));
        rule.add("--set-dscp", text(&self.set_dscp_mark));
        rule.add("--set-dscp-class", text(&self.set_dscp_mark_class));
        match self.syn {
            Syn::Ignore => {}
            Syn::Match => rule.word("--syn"),
            Syn::Negate => ["!", "--syn"].iter().for_each(|word| rule.word(word)),
        }
        match rule.has("state") && !rule.has("conntrack") {
            true => rule.matching("state", "--state", listed(&self.ctstate)),
            false => rule.matching("conntrack", "--ctstate", listed(&self.ctstate)),
        }
        rule.matching("iprange", "--src-range", text(&self.src_range));
        rule.matching("iprange", "--dst-range", text(&self.dst_range));
        if let Some(flags) = &self.match_set_flags {
            rule.matching("set", "--match-set", text(&self.match_set));
            rule.word(flags);
        }
        rule.matching("limit", "--limit", text(&self.limit));
        rule.matching("limit", "--limit-burst", text(&self.limit_burst));
        rule.matching("owner", "--uid-owner", text(&self.uid_owner));
        rule.matching("owner", "--gid-owner", text(&self.gid_owner));
        rule.add("--reject-with", text(&self.reject_with));
        let icmp = match self.ip_version {
            Version::Ipv6 => "--icmpv6-type",
            Version::Ipv4 | Version::Both => "--icmp-type",
        };
        rule.add(icmp, text(&self.icmp_type));
        rule.matching("comment", "--comment", text(&self.comment));
        rule.words
    }
}

/// A rule that is being made.
struct Rule<'a> {
    words: Vec<String>,
    /// The modules that the user named.
    matches: &'a [String],
}

impl Rule<'_> {
    fn has(&self, module: &str) -> bool {
        let named = self
            .words
            .windows(2)
            .any(|pair| pair[0] == "-m" && pair[1] == module);
        named || self.matches.iter().any(|name| name == module)
    }

    fn word(&mut self, word: &str) {
        self.words.push(word.to_owned());
    }

    /// A flag with its value; a `!` before the value goes before the flag.
    fn add(&mut self, flag: &str, value: Option<String>) {
        let Some(value) = value else { return };
        let bare = value.strip_prefix('!');
        if bare.is_some() {
            self.word("!");
        }
        self.word(flag);
        self.word(bare.map_or(value.as_str(), str::trim));
    }

    /// The same for a flag of a module, which is named first where it is not yet.
    fn matching(&mut self, module: &str, flag: &str, value: Option<String>) {
        if value.is_some() && !self.has(module) {
            self.add("-m", Some(module.to_owned()));
        }
        self.add(flag, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Iptables, MODULE};

    #[test]
    fn a_rule_is_made_of_its_parts() {
        let rule = |args| {
            serde_json::from_value::<Iptables>(args)
                .unwrap()
                .rule()
                .join(" ")
        };
        assert_eq!(
            rule(
                json!({"chain": "INPUT", "protocol": "tcp", "destination_port": 22, "ctstate": "NEW,ESTABLISHED", "jump": "ACCEPT", "comment": "ssh"})
            ),
            "-p tcp -j ACCEPT --destination-port 22 -m conntrack --ctstate NEW,ESTABLISHED -m comment --comment ssh"
        );
        assert_eq!(
            rule(
                json!({"chain": "INPUT", "source": "!10.0.0.0/8", "jump": "DROP", "limit": "2/s", "limit_burst": 5})
            ),
            "! -s 10.0.0.0/8 -j DROP -m limit --limit 2/s --limit-burst 5"
        );
        assert_eq!(
            rule(
                json!({"chain": "INPUT", "protocol": "tcp", "tcp_flags": {"flags": "ALL", "flags_set": ["ACK", "RST"]}, "jump": "DROP"})
            ),
            "-p tcp --tcp-flags ALL ACK,RST -j DROP"
        );
        assert_eq!(
            rule(json!({"chain": "F", "syn": "negate", "reject_with": "tcp-reset"})),
            "-j REJECT ! --syn --reject-with tcp-reset"
        );
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(refused(json!({})).contains("either chain or flush"));
        assert!(refused(json!({"chain": "INPUT", "table": "x"})).starts_with("argument `table`"));
        assert!(refused(json!({"chain": "INPUT", "comment": "it's"})).contains("a quote"));
        assert!((MODULE.check)(&json!({"flush": true})).is_ok());
    }
}
