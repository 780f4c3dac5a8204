//! The `bench:` block of a play: what it may say, and how it is read.

use std::time::Duration;

use fleet_yaml::{Diagnostic, Map, Node, nearest};

use super::gate::Gate;
use super::result::Metric;

/// What a play's `bench:` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Where the load comes from.
    pub from: From,
    /// The address under load: a template, rendered for each host.
    pub url: String,
    /// The load tool.
    pub tool: Tool,
    /// The unit under load, whose CPU time and memory are measured.
    pub unit: String,
    /// What is run, in this order.
    pub scenarios: Vec<Scenario>,
    /// Runs of each scenario before the play, and as many after it.
    pub pairs: u32,
    /// How long each scenario is run before its first run that counts; zero for not at all.
    pub warm_up: Duration,
    /// Hosts under load at the same time; a load generator never serves two.
    pub at_once: u32,
    /// What must be reached after the play.
    pub gates: Vec<Gate>,
}

/// Where the load comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// The host under load itself.
    Itself,
    /// The hosts of a group, or one host.
    Hosts(String),
}

/// A load tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// wrk: closed loop, HTTP/1.1.
    Wrk,
}

impl Tool {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Wrk => "wrk",
        }
    }
}

/// One way of putting a host under load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Concurrent connections.
    pub connections: u32,
    /// How long a run lasts; whole seconds.
    pub duration: Duration,
    /// The tool's threads; none for one a CPU of the machine that runs it.
    pub threads: Option<u32>,
    /// Connections are kept for the next request; else each request makes its own.
    pub keepalive: bool,
    /// A path in place of the one in [`Spec::url`].
    pub path: Option<String>,
    /// An answer later than this counts as a timeout, and not in the latencies; whole seconds.
    pub timeout: Duration,
}

impl Scenario {
    /// The address that the scenario asks for, on a host whose [`Spec::url`] was rendered to `base`.
    pub fn url(&self, base: &str) -> String {
        let Some(path) = &self.path else {
            return base.to_owned();
        };
        let host = base.find("://").map_or(0, |at| at + 3);
        let end = base
            .get(host..)
            .and_then(|rest| rest.find('/'))
            .map_or(base.len(), |at| host + at);
        format!(
            "{}/{}",
            base.get(..end).unwrap_or(base),
            path.trim_start_matches('/')
        )
    }
}

/// Renders a template with the play's variables.
pub type Render<'a> = &'a dyn Fn(&Node) -> Result<String, Diagnostic>;

const BLOCK: &[&str] = &[
    "from",
    "url",
    "tool",
    "unit",
    "scenarios",
    "pairs",
    "warm_up",
    "at_once",
    "gates",
];
const SCENARIO: &[&str] = &[
    "name",
    "connections",
    "duration",
    "threads",
    "keepalive",
    "path",
    "timeout",
];

/// Of the same meaning one day; a bench that left them out in silence would prove something else.
const LATER: &[&str] = &[
    "rate", "ramp", "requests", "every", "method", "body", "headers", "rounds",
];
const OTHER_TOOLS: &[&str] = &["fleetctl", "wrk2", "ab", "h2load", "vegeta", "oha", "hey"];

impl Spec {
    /// Reads a `bench:` block. Every scalar but `url` may be a template, and is rendered at once;
    /// `url` is kept, for it differs from host to host.
    ///
    /// # Errors
    /// All mistakes, each at its place.
    pub fn read(node: &Node, render: Render<'_>) -> Result<Self, Vec<Diagnostic>> {
        let mut reader = Reader {
            render,
            problems: Vec::new(),
        };
        let spec = reader.block(node);
        match spec {
            Some(spec) if reader.problems.is_empty() => Ok(spec),
            _ => Err(reader.problems),
        }
    }

    /// How long one side of one host takes at least.
    pub fn lasts(&self) -> Duration {
        self.scenarios
            .iter()
            .map(|scenario| self.warm_up + scenario.duration * self.pairs)
            .sum()
    }
}

struct Reader<'a> {
    render: Render<'a>,
    problems: Vec<Diagnostic>,
}

impl Reader<'_> {
    fn block(&mut self, node: &Node) -> Option<Spec> {
        let map = self.map(node, "`bench:`")?;
        self.keys(map, BLOCK, "`bench:`");
        let from = match map.get("from") {
            None => Some(From::Itself),
            Some(from) => self.text(from).map(|text| match text.as_str() {
                "self" => From::Itself,
                _ => From::Hosts(text),
            }),
        };
        let url = match map.get("url") {
            Some(url) if url.as_str().is_some() => url.as_str().map(str::to_owned),
            Some(url) => self.wrong(url, "an address such as `\"http://{{ ansible_host }}/\"`"),
            None => self.missing(
                node,
                "url",
                "name what is asked for: `url: \"http://{{ ansible_host }}/\"`",
            ),
        };
        let tool = map
            .get("tool")
            .map_or(Some(Tool::Wrk), |tool| self.tool(tool));
        let unit = match map.get("unit") {
            Some(unit) => self.text(unit),
            None => Some("nginx.service".to_owned()),
        };
        let scenarios = match map.get("scenarios") {
            Some(list) => self.scenarios(list),
            None => self.missing(
                node,
                "scenarios",
                "write at least one: `- {name: c200, connections: 200, duration: 15s}`",
            ),
        };
        let pairs = self.count(map, "pairs", 6, 1, 100);
        let at_once = self.count(map, "at_once", 4, 1, 1_000);
        let warm_up = map
            .get("warm_up")
            .map_or(Some(Duration::from_secs(2)), |it| self.duration(it, 0));
        let gates = map
            .get("gates")
            .map_or(Some(Vec::new()), |list| self.gates(list));
        Some(Spec {
            from: from?,
            url: url?,
            tool: tool?,
            unit: unit?,
            scenarios: scenarios?,
            pairs: pairs?,
            warm_up: warm_up?,
            at_once: at_once?,
            gates: gates?,
        })
    }

    fn scenarios(&mut self, node: &Node) -> Option<Vec<Scenario>> {
        let Some(list) = node.as_seq().filter(|list| !list.is_empty()) else {
            return self.wrong(node, "a list of scenarios");
        };
        let mut scenarios: Vec<Scenario> = Vec::new();
        for item in list {
            let Some(scenario) = self.scenario(item) else {
                continue;
            };
            if scenarios.iter().any(|known| known.name == scenario.name) {
                self.problem(item, format!("there are two scenarios `{}`", scenario.name));
            }
            scenarios.push(scenario);
        }
        Some(scenarios)
    }

    fn scenario(&mut self, node: &Node) -> Option<Scenario> {
        let map = self.map(node, "a scenario")?;
        self.keys(map, SCENARIO, "a scenario");
        let name = match map.get("name") {
            Some(name) => self.text(name),
            None => self.missing(
                node,
                "name",
                "name it, `name: c200`: results are kept under it",
            ),
        };
        let connections = match map.get("connections") {
            Some(_) => self.count(map, "connections", 0, 1, 1_000_000),
            None => self.missing(node, "connections", "say how many: `connections: 200`"),
        };
        let duration = match map.get("duration") {
            Some(duration) => self.duration(duration, 1),
            None => self.missing(node, "duration", "say how long: `duration: 15s`"),
        };
        let threads = match map.get("threads") {
            Some(_) => self.count(map, "threads", 0, 1, 1_024).map(Some),
            None => Some(None),
        };
        let keepalive = map
            .get("keepalive")
            .map_or(Some(true), |node| match node.as_bool() {
                Some(keepalive) => Some(keepalive),
                None => self.wrong(node, "true or false"),
            });
        let path = match map.get("path") {
            Some(path) => self.text(path).map(Some),
            None => Some(None),
        };
        // Under wrk's own 2 s a slower answer would be missing in the latencies.
        let timeout = map
            .get("timeout")
            .map_or(Some(Duration::from_secs(30)), |it| self.duration(it, 1));
        Some(Scenario {
            name: name?,
            connections: connections?,
            duration: duration?,
            threads: threads?,
            keepalive: keepalive?,
            path: path?,
            timeout: timeout?,
        })
    }

    fn tool(&mut self, node: &Node) -> Option<Tool> {
        let name = self.text(node)?;
        if name == Tool::Wrk.name() {
            return Some(Tool::Wrk);
        }
        let message = if OTHER_TOOLS.contains(&name.as_str()) {
            format!("the load tool `{name}` is not supported yet")
        } else {
            format!("`{name}` is no load tool that fleetctl knows")
        };
        self.advise(node, message, "write `tool: wrk`");
        None
    }

    /// A list of mappings with one metric each, or one mapping.
    fn gates(&mut self, node: &Node) -> Option<Vec<Gate>> {
        let maps = node
            .as_seq()
            .map_or_else(|| vec![node.clone()], <[Node]>::to_vec);
        let mut gates = Vec::new();
        for item in &maps {
            let Some(map) = self.map(item, "a gate such as `errors: 0`") else {
                continue;
            };
            for (key, bound) in map.iter() {
                let Some(metric) = self.metric(key) else {
                    continue;
                };
                let Some(text) = self.text(bound) else {
                    continue;
                };
                match Gate::parse(metric, &text) {
                    Ok(gate) => gates.push(gate),
                    Err(message) => self.problem(bound, message),
                }
            }
        }
        Some(gates)
    }

    fn metric(&mut self, key: &Node) -> Option<Metric> {
        let name = self.text(key)?;
        let found = Metric::ALL.into_iter().find(|metric| metric.name() == name);
        if found.is_none() {
            let names = Metric::ALL.map(Metric::name);
            self.advise(
                key,
                format!("`{name}` is nothing that a bench measures"),
                near(&name, &names),
            );
        }
        found
    }

    fn keys(&mut self, map: &Map, known: &[&'static str], whole: &str) {
        for (key, _) in map.iter() {
            match key.as_str() {
                Some(name) if known.contains(&name) => {}
                Some(name) if LATER.contains(&name) => self.advise(
                    key,
                    format!("`{name}` in {whole} is not supported yet"),
                    "write scenarios with `connections` and `duration`",
                ),
                Some(name) => {
                    self.advise(key, format!("{whole} has no `{name}`"), near(name, known))
                }
                None => {
                    self.wrong::<()>(key, "a keyword");
                }
            }
        }
    }

    fn map<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n Map> {
        let map = node.as_map();
        if map.is_none() {
            self.problem(
                node,
                format!("expected {what} as a mapping, not {}", node.kind_name()),
            );
        }
        map
    }

    /// A scalar's text, rendered where it is a template.
    fn text(&mut self, node: &Node) -> Option<String> {
        if node.as_str().is_some_and(|text| text.contains("{{")) {
            return (self.render)(node)
                .map_err(|problem| self.problems.push(problem))
                .ok();
        }
        if node.is_null() || node.as_map().is_some() || node.as_seq().is_some() {
            return self.wrong(node, "one value");
        }
        // Numbers and the like by their spelling.
        Some(node.as_str().unwrap_or_else(|| node.raw()).to_owned())
    }

    fn count(&mut self, map: &Map, key: &str, default: u32, least: u32, most: u32) -> Option<u32> {
        let Some(node) = map.get(key) else {
            return Some(default);
        };
        let text = self.text(node)?;
        let number = text.trim().replace('_', "").parse::<u32>().ok();
        if number.is_none_or(|number| !(least..=most).contains(&number)) {
            self.problem(
                node,
                format!(
                    "`{key}` is a whole number from {least} to {most}, not `{}`",
                    text.trim()
                ),
            );
            return None;
        }
        number
    }

    fn duration(&mut self, node: &Node, least: u64) -> Option<Duration> {
        let text = self.text(node)?;
        let seconds = seconds(text.trim()).filter(|seconds| *seconds >= least);
        if seconds.is_none() {
            self.problem(
                node,
                format!("`{text}` is no time in whole seconds: write `15s`, `2m` or `1h`"),
            );
        }
        seconds.map(Duration::from_secs)
    }

    fn missing<T>(&mut self, node: &Node, key: &str, help: &str) -> Option<T> {
        self.advise(node, format!("`{key}` is missing"), help);
        None
    }

    fn wrong<T>(&mut self, node: &Node, expected: &str) -> Option<T> {
        self.problem(
            node,
            format!("expected {expected}, not {}", node.kind_name()),
        );
        None
    }

    fn advise(&mut self, node: &Node, message: String, help: impl Into<String>) {
        self.problems
            .push(Diagnostic::error(node.span.clone(), message).with_help(help));
    }

    fn problem(&mut self, node: &Node, message: impl Into<String>) {
        self.problems
            .push(Diagnostic::error(node.span.clone(), message));
    }
}

fn near(name: &str, known: &[&'static str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", known.join(", ")),
    }
}

/// `15s`, `2m`, `1h`, or a bare number of seconds.
fn seconds(text: &str) -> Option<u64> {
    let (number, scale) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) if text.ends_with('m') => (number, 60),
        Some(number) if text.ends_with('h') => (number, 3_600),
        Some(number) => (number, 1),
        None => (text, 1),
    };
    number.trim().parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use fleet_yaml::Source;

    use super::*;

    fn read(text: &str) -> Result<Spec, Vec<Diagnostic>> {
        let loaded = fleet_yaml::load(Source::new("play.yml", text)).unwrap();
        let render = |node: &Node| {
            let text = node.as_str().unwrap_or_default();
            match text.replace("{{ pairs }}", "5").replace("{{ s }}", "7") {
                text if text.contains("{{") => {
                    Err(Diagnostic::error(node.span.clone(), "undefined"))
                }
                text => Ok(text),
            }
        };
        Spec::read(&loaded.documents[0], &render)
    }

    /// Each problem as `line:column message [help]`.
    fn problems(text: &str) -> Vec<String> {
        let problems = read(text).unwrap_err();
        let show = |problem: &Diagnostic| {
            let help = problem
                .help
                .as_ref()
                .map_or(String::new(), |help| format!(" [{help}]"));
            let (line, column) = problem.span.as_ref().unwrap().line_col();
            format!("{line}:{column}: {}{help}", problem.message)
        };
        problems.iter().map(show).collect()
    }

    #[test]
    fn a_whole_block() {
        let spec = read(
            "from: loadgen
url: \"http://{{ ansible_host }}/\"
scenarios:
  - {name: c200, connections: 200, duration: 15s}
  - {name: churn, connections: 50, duration: \"{{ s }}s\", keepalive: false, threads: 2, path: /a, timeout: 2s}
pairs: \"{{ pairs }}\"
warm_up: 0
gates: [{errors: 0}, {p99: \"<= before * 1.05\"}, {requests_per_second: \">= before\"}]
",
        )
        .unwrap();
        assert_eq!(spec.from, From::Hosts("loadgen".to_owned()));
        assert_eq!(spec.url, "http://{{ ansible_host }}/");
        assert_eq!(
            (spec.pairs, spec.at_once, spec.warm_up),
            (5, 4, Duration::ZERO)
        );
        assert_eq!(spec.lasts(), Duration::from_secs(5 * 15 + 5 * 7));
        assert_eq!(
            spec.scenarios[1],
            Scenario {
                name: "churn".to_owned(),
                connections: 50,
                duration: Duration::from_secs(7),
                threads: Some(2),
                keepalive: false,
                path: Some("/a".to_owned()),
                timeout: Duration::from_secs(2),
            }
        );
        let gates: Vec<_> = spec.gates.iter().map(ToString::to_string).collect();
        assert_eq!(
            gates,
            [
                "errors <= 0",
                "p99 <= before * 1.05",
                "requests_per_second >= before"
            ]
        );
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let spec =
            read("url: http://a/\nscenarios: [{name: a, connections: 1, duration: 1m}]").unwrap();
        assert_eq!(
            (spec.from, spec.tool, spec.pairs),
            (From::Itself, Tool::Wrk, 6)
        );
        assert_eq!(spec.scenarios[0].duration, Duration::from_secs(60));
        assert_eq!(
            (spec.scenarios[0].timeout, spec.scenarios[0].keepalive),
            (Duration::from_secs(30), true)
        );
        assert_eq!(spec.gates, []);
    }

    #[test]
    fn every_mistake_is_told_at_its_place() {
        assert_eq!(
            problems(
                "form: self
url: http://a/
tool: vegeta
pairs: 0
scenarios:
  - {name: rate, rate: 2000/s, connections: 5, duration: 1.5s}
  - {connections: many, duration: 5s}
gates: [{p98: 0}, {p99: fast}]
"
            ),
            [
                "1:1: `bench:` has no `form` [did you mean `from`?]",
                "3:7: the load tool `vegeta` is not supported yet [write `tool: wrk`]",
                "6:18: `rate` in a scenario is not supported yet \
                 [write scenarios with `connections` and `duration`]",
                "6:58: `1.5s` is no time in whole seconds: write `15s`, `2m` or `1h`",
                "7:5: `name` is missing [name it, `name: c200`: results are kept under it]",
                "7:19: `connections` is a whole number from 1 to 1000000, not `many`",
                "4:8: `pairs` is a whole number from 1 to 100, not `0`",
                "8:10: `p98` is nothing that a bench measures [did you mean `p90`?]",
                "8:25: `fast` is no bound: write `0`, `< 50ms`, `>= before` or `<= before * 1.05`",
            ]
        );
    }

    #[test]
    fn what_must_be_there() {
        assert_eq!(
            problems("pairs: 3"),
            [
                "1:1: `url` is missing [name what is asked for: `url: \"http://{{ ansible_host }}/\"`]",
                "1:1: `scenarios` is missing \
                 [write at least one: `- {name: c200, connections: 200, duration: 15s}`]",
            ]
        );
        assert_eq!(
            problems("[]"),
            ["1:1: expected `bench:` as a mapping, not a list"]
        );
        assert_eq!(
            problems(
                "url: a\npairs: \"{{ nope }}\"\nscenarios: [{name: a, connections: 1, duration: 1}]"
            ),
            ["2:8: undefined"]
        );
    }

    #[test]
    fn names_of_scenarios_are_unique() {
        assert_eq!(
            problems(
                "url: a\nscenarios: [{name: a, connections: 1, duration: 1}, {name: a, connections: 2, duration: 1}]"
            ),
            ["2:53: there are two scenarios `a`"]
        );
    }

    #[test]
    fn a_path_takes_the_place_of_the_one_in_the_address() {
        let mut scenario = Scenario {
            name: "c".to_owned(),
            connections: 1,
            duration: Duration::from_secs(1),
            threads: None,
            keepalive: true,
            path: Some("/bench/small.html".to_owned()),
            timeout: Duration::from_secs(2),
        };
        assert_eq!(
            scenario.url("http://10.0.0.1/"),
            "http://10.0.0.1/bench/small.html"
        );
        assert_eq!(
            scenario.url("http://10.0.0.1:81/a/b?c"),
            "http://10.0.0.1:81/bench/small.html"
        );
        assert_eq!(
            scenario.url("http://10.0.0.1"),
            "http://10.0.0.1/bench/small.html"
        );
        scenario.path = None;
        assert_eq!(scenario.url("http://10.0.0.1/x"), "http://10.0.0.1/x");
    }
}
