//! `loop:`, `with_…:` and `loop_control:`.

use fleet_yaml::{Map, Node, nearest};

use super::{Loop, check::is_templated, reader::Reader};
use crate::template::Templar;

const CONTROL: [&str; 7] = [
    "break_when",
    "extended",
    "extended_allitems",
    "index_var",
    "label",
    "loop_var",
    "pause",
];

impl Reader<'_> {
    pub(super) fn r#loop(&mut self, map: &Map) -> Option<Loop> {
        let loops = |key: &str| key == "loop" || key.starts_with("with_");
        let mut found = map
            .iter()
            .filter(|(key, _)| key.as_str().is_some_and(loops));
        let Some((key, items)) = found.next() else {
            if let Some((key, control)) = map.entry("loop_control")
                && !control.is_null()
            {
                self.warning(&key.span, "`loop_control` without a loop");
            }
            return None;
        };
        let first = key.span.clone();
        for (other, _) in found {
            self.problem(&other.span, "a task has one loop, and this is its second")
                .related
                .push((first.clone(), "the first".to_owned()));
        }
        let lookup = key.as_str()?.strip_prefix("with_").map(plain);
        if let Some(name) = lookup {
            self.lookup(key, name);
        }
        if items.is_null() {
            let name = key.as_str().unwrap_or_default();
            self.problem(&key.span, format!("`{name}` has no value"))
                .help = Some("give it a list".to_owned());
            return None;
        }
        let items = match lookup {
            Some(_) => self.value(items),
            None => self.keyword_value(map, "loop", "a list", |node| node.as_seq().is_some())?,
        };
        let mut made = Loop {
            items,
            lookup: lookup.map(str::to_owned),
            variable: "item".to_owned(),
            index_variable: None,
            label: None,
            pause: None,
            extended: None,
            extended_allitems: None,
            break_when: Vec::new(),
        };
        if let Some(control) = map.get("loop_control").filter(|node| !node.is_null())
            && let Some(control) = self.require_map(control, "a mapping")
        {
            self.loop_control(control, &mut made);
        }
        Some(made)
    }

    fn loop_control(&mut self, control: &Map, made: &mut Loop) {
        for (key, value) in control.iter().filter(|(_, value)| !value.is_null()) {
            match key.as_str().unwrap_or_default() {
                "loop_var" => {
                    if let Some(name) = self.loop_variable(value) {
                        made.variable = name;
                    }
                }
                "index_var" => made.index_variable = self.loop_variable(value),
                "label" => made.label = Some(self.value(value)),
                "pause" => {
                    let seconds = |node: &Node| node.as_f64().is_some() || number(node);
                    made.pause =
                        self.keyword_value(control, "pause", "a number of seconds", seconds);
                }
                "extended" => made.extended = self.flag(control, "extended"),
                "extended_allitems" => {
                    made.extended_allitems = self.flag(control, "extended_allitems");
                }
                "break_when" => made.break_when = self.conditions(value),
                other => {
                    let help = match nearest(other, CONTROL) {
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("it takes `{}`", CONTROL.join("`, `")),
                    };
                    self.problem(&key.span, format!("`{other}` in `loop_control`"))
                        .help = Some(help);
                }
            }
        }
    }

    /// A name that may be a template.
    fn loop_variable(&mut self, node: &Node) -> Option<String> {
        match node.as_str() {
            Some(name) if is_templated(name) => {
                self.look(node);
                Some(name.to_owned())
            }
            _ => self.variable_name(node),
        }
    }

    fn lookup(&mut self, key: &Node, name: &str) {
        if Templar::has_lookup(name) {
            return;
        }
        self.problem(&key.span, format!("there is no lookup `{name}`"))
            .help = Some("docs/language.md lists every lookup there is".to_owned());
    }
}

fn number(node: &Node) -> bool {
    node.as_str()
        .is_some_and(|text| text.trim().parse::<f64>().is_ok())
}

/// A lookup's name without Ansible's own collections.
fn plain(name: &str) -> &str {
    name.strip_prefix("ansible.builtin.")
        .or_else(|| name.strip_prefix("ansible.legacy."))
        .unwrap_or(name)
}
