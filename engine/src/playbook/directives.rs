//! Keywords that are inherited: from plays to roles and blocks, and from there to tasks.

use fleet_yaml::{Kind, Map, Node};

use super::{
    Connection, Directives,
    check::{is_literal, is_templated},
    keywords::{self, Place},
    reader::Reader,
};

/// Tags that mean something on a command line.
const RESERVED: [&str; 3] = ["all", "tagged", "untagged"];

impl Reader<'_> {
    /// Looks at the keywords of a play, a block or their like; `also` tells what else may stand there.
    pub(super) fn keywords(&mut self, place: Place, map: &Map, also: impl Fn(&str) -> bool) {
        for (key, _) in map.iter() {
            match key.as_str() {
                Some(name) if place.takes(name) || also(name) => {}
                Some(name) => {
                    let refusal = keywords::refusal(place, name, &super::call::module_names());
                    self.problem(&key.span, refusal.message).help = refusal.help;
                }
                None => {
                    self.wrong_kind(key, "a keyword");
                }
            }
        }
        self.debugger(place, map);
    }

    /// `debugger:` waits for somebody at the keyboard, which fleetctl never does.
    pub(super) fn debugger(&mut self, place: Place, map: &Map) {
        let Some((key, value)) = map.entry("debugger") else {
            return;
        };
        if value.is_null() || value.as_str() == Some("never") {
            return;
        }
        self.problem(
            &key.span,
            format!("`debugger` on {} is not supported", place.noun()),
        )
        .help = Some("take it out; `fleetctl plan` shows what a task would do".to_owned());
    }

    /// Reads the inherited keywords of `map` into `directives`, which hold those of what is around it. An inner one
    /// takes the place of an outer one, but for those that add up: conditions, environments, tags, defaults of modules.
    /// `vars` are not among them: they have a rank of their own.
    pub(super) fn directives(&mut self, map: &Map, directives: &mut Directives) {
        let replace = |found: Option<Node>, slot: &mut Option<Node>| {
            if found.is_some() {
                *slot = found;
            }
        };
        let d = directives;
        replace(self.flag(map, "any_errors_fatal"), &mut d.any_errors_fatal);
        replace(self.flag(map, "become"), &mut d.r#become);
        replace(self.text(map, "become_exe"), &mut d.become_exe);
        replace(self.text(map, "become_flags"), &mut d.become_flags);
        replace(self.become_method(map), &mut d.become_method);
        replace(self.text(map, "become_user"), &mut d.become_user);
        replace(self.flag(map, "check_mode"), &mut d.check_mode);
        replace(self.flag(map, "delegate_facts"), &mut d.delegate_facts);
        replace(self.text(map, "delegate_to"), &mut d.delegate_to);
        replace(self.flag(map, "diff"), &mut d.diff);
        replace(self.flag(map, "ignore_errors"), &mut d.ignore_errors);
        let unreachable = self.flag(map, "ignore_unreachable");
        replace(unreachable, &mut d.ignore_unreachable);
        replace(self.flag(map, "no_log"), &mut d.no_log);
        replace(self.flag(map, "run_once"), &mut d.run_once);
        replace(self.number(map, "throttle", 0, i64::MAX), &mut d.throttle);
        replace(self.number(map, "timeout", 0, i64::MAX), &mut d.timeout);
        let own = self.connection(map);
        replace(own.kind, &mut d.connection.kind);
        replace(own.port, &mut d.connection.port);
        replace(own.user, &mut d.connection.user);
        d.environment.extend(self.environment(map));
        d.module_defaults.extend(self.module_defaults(map));
        if let Some(node) = map.get("collections").filter(|node| !node.is_null()) {
            d.collections = self.strings(node);
        }
        if let Some(node) = map.get("tags").filter(|node| !node.is_null()) {
            d.tags.extend(self.tags(node));
        }
        if let Some(node) = map.get("when").filter(|node| !node.is_null()) {
            d.when.extend(self.conditions(node));
        }
    }

    /// `connection:`, `port:` and `remote_user:`.
    fn connection(&mut self, map: &Map) -> Connection {
        Connection {
            kind: self.connection_kind(map),
            port: self.number(map, "port", 1, 65_535),
            // `user` is a module on a task, and an old name of this on a play.
            user: match map.get("hosts").is_some() && map.get("remote_user").is_none() {
                true => self.text(map, "user"),
                false => self.text(map, "remote_user"),
            },
        }
    }

    /// `connection:`
    fn connection_kind(&mut self, map: &Map) -> Option<Node> {
        let (key, node) = map.entry("connection")?;
        let kind = node.as_str().unwrap_or_default();
        let short = kind.rsplit('.').next().unwrap_or(kind);
        let instead = match short {
            "winrm" | "psrp" => "fleetctl reaches Linux hosts, by ssh",
            "paramiko" | "paramiko_ssh" => "use `ssh`: it does what `paramiko` did",
            _ => "",
        };
        if !instead.is_empty() {
            self.problem(&key.span, format!("`connection: {kind}` is not supported"))
                .help = Some(instead.to_owned());
            return None;
        }
        let known = |_: &Node| matches!(short, "ssh" | "smart" | "openssh" | "local");
        self.keyword_value(map, "connection", "`ssh` or `local`", known)
    }

    /// `become_method:`
    fn become_method(&mut self, map: &Map) -> Option<Node> {
        let known = |node: &Node| {
            let method = node.as_str().unwrap_or_default();
            let method = method.strip_prefix("ansible.builtin.").unwrap_or(method);
            matches!(method, "sudo" | "su")
        };
        self.keyword_value(map, "become_method", "`sudo` or `su`", known)
    }

    /// `environment:`: a mapping, or a list of them.
    fn environment(&mut self, map: &Map) -> Option<Node> {
        let is_map = |node: &Node| node.as_map().is_some() || !is_literal(node) || node.is_null();
        let fits = |node: &Node| match &node.kind {
            Kind::Seq(items) => items.iter().all(is_map),
            Kind::Map(_) => true,
            _ => false,
        };
        self.keyword_value(map, "environment", "a mapping of variables", fits)
    }

    /// `module_defaults:`: arguments by module, or a list of such mappings.
    fn module_defaults(&mut self, map: &Map) -> Option<Node> {
        let is_map = |node: &Node| node.as_map().is_some() || !is_literal(node);
        let fits = |node: &Node| match &node.kind {
            Kind::Seq(items) => items.iter().all(is_map),
            Kind::Map(map) => map
                .iter()
                .all(|(_, value)| is_map(value) || value.is_null()),
            _ => false,
        };
        self.keyword_value(
            map,
            "module_defaults",
            "a mapping of arguments by module",
            fits,
        )
    }

    /// `tags:`, a list or a text with commas. What a template makes is taken apart when it is rendered.
    pub(super) fn tags(&mut self, node: &Node) -> Vec<Node> {
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        let mut tags = Vec::new();
        for item in items {
            let part = |text: &str| Node::string(text, &item.span);
            match item.as_str() {
                Some(text) if is_templated(text) => tags.push(self.value(item)),
                Some(text) => tags.extend(
                    text.split(',')
                        .map(str::trim)
                        .filter(|tag| !tag.is_empty())
                        .map(part),
                ),
                // A tag may be a number; its spelling is its name.
                None if item.is_scalar() && !item.is_null() => tags.push(part(item.raw())),
                None if item.is_null() => {}
                None => {
                    self.wrong_kind(item, "a tag");
                }
            }
        }
        for tag in &tags {
            self.reserved_tag(tag);
        }
        tags
    }

    fn reserved_tag(&mut self, tag: &Node) {
        let reserved = tag.as_str().filter(|name| RESERVED.contains(name));
        if let Some(name) = reserved
            && self.reserved.insert(name.to_owned())
        {
            let message = format!(
                "Found reserved tagnames in tags: [{name:?}], they have a meaning of their own"
            );
            self.warning(&tag.span, message);
        }
    }

    /// `notify:` and `listen:`: one name, or a list of them.
    pub(super) fn names(&mut self, map: &Map, key: &str) -> Vec<Node> {
        let Some(node) = map.get(key).filter(|node| !node.is_null()) else {
            return Vec::new();
        };
        let items = node.as_seq().unwrap_or(std::slice::from_ref(node));
        let mut names = Vec::new();
        for item in items {
            match item.as_seq() {
                // Lists in lists are what merged lists look like.
                Some(inner) => names.extend(inner.iter().cloned()),
                None => names.push(item.clone()),
            }
        }
        for name in &names {
            if name.is_scalar() && !name.is_null() {
                self.look(name);
            } else {
                self.wrong_kind(name, "a handler's name");
            }
        }
        names.retain(|name| name.is_scalar() && !name.is_null());
        names
    }
}
