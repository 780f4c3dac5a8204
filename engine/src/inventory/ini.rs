//! INI inventories: sections of hosts, of children and of variables.

use std::sync::Arc;

use fleet_yaml::{Diagnostic, Kind, Node, Source, Span};
use indexmap::IndexMap;

use super::{
    build::Build,
    graph::{Mention, UNGROUPED},
    literal::{self, Literal},
    mistake::{code, meant, mistake, oddity},
    words::{self, SplitError, Word},
};

/// What the lines under a heading are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Hosts,
    Children,
    Vars,
    /// The heading was wrong: its lines are passed over, so that it is reported once.
    Unknown,
}

/// Reads a whole file into the inventory. Mistakes are gathered; reading goes on behind them.
pub(super) fn read(build: &mut Build, source: &Arc<Source>, mention: &Arc<Mention>) {
    let mut reader = Reader {
        source,
        mention,
        section: Section::Hosts,
        group: UNGROUPED.to_owned(),
        promised: IndexMap::new(),
    };
    let mut offset = 0;
    for line in source.text.split_inclusive('\n') {
        let trimmed = line.trim();
        if !trimmed.is_empty() && !trimmed.starts_with(['#', ';']) {
            let start = offset + (line.len() - line.trim_start().len());
            if let Err(mistake) = reader.line(build, trimmed, start) {
                build.errors.push(mistake);
            }
        }
        offset += line.len();
    }
    for (name, promise) in reader.promised {
        let label =
            format!("expected a section `[{name}]` or `[{name}:children]` in the inventory");
        let mistake = mistake(
            code::GROUP,
            &promise.span,
            format!("group `{name}` is not defined"),
        )
        .with_label(label);
        let known = build.graph.groups.keys().map(String::as_str);
        build.errors.push(meant(mistake, &name, known));
    }
}

/// Whether a text has a heading, and so is meant as INI.
pub(super) fn has_heading(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim();
        line.strip_prefix('[')
            .and_then(|rest| rest.split_once(']'))
            .is_some_and(|(name, after)| {
                let after = after.trim_start();
                !name.is_empty()
                    && !name.contains([',', '"', '\'', ' '])
                    && (after.is_empty() || after.starts_with(['#', ';']))
            })
    })
}

struct Reader<'a> {
    source: &'a Arc<Source>,
    mention: &'a Arc<Mention>,
    section: Section,
    group: String,
    /// Groups that were used and are not yet defined.
    promised: IndexMap<String, Promise>,
}

/// What waits for a group to be defined.
struct Promise {
    /// The first use.
    span: Span,
    /// Groups that list it among their children.
    parents: Vec<(usize, Span)>,
    /// Its variables.
    vars: Vec<(String, Node)>,
}

impl Reader<'_> {
    fn span(&self, start: usize, end: usize) -> Span {
        self.source.span(start, end)
    }

    fn line(&mut self, build: &mut Build, line: &str, start: usize) -> Result<(), Diagnostic> {
        if let Some(rest) = line.strip_prefix('[')
            && let Some((name, after)) = rest.split_once(']')
            && matches!(after.trim_start().chars().next(), None | Some('#' | ';'))
        {
            return self.heading(build, name, start + 1);
        }
        if line.starts_with('[') && !line.contains(']') {
            self.section = Section::Unknown;
            let span = self.span(start, start + line.len());
            return Err(
                mistake(code::SECTION, &span, "a heading that is never closed")
                    .with_label("expected a `]` at the end"),
            );
        }
        match self.section {
            Section::Hosts => self.host(build, line, start),
            Section::Children => self.child(build, line, start),
            Section::Vars => self.variable(build, line, start),
            Section::Unknown => Ok(()),
        }
    }

    fn heading(&mut self, build: &mut Build, name: &str, start: usize) -> Result<(), Diagnostic> {
        let (group, kind) = name.split_once(':').unwrap_or((name, "hosts"));
        self.section = Section::Unknown;
        if group.is_empty() || group.contains(char::is_whitespace) {
            let span = self.span(start, start + name.len());
            return Err(mistake(
                code::SECTION,
                &span,
                format!("`{group}` is not a group name"),
            )
            .with_label(
                "expected `[group]`, `[group:children]` or `[group:vars]`, without blanks",
            ));
        }
        self.section = match kind {
            "hosts" => Section::Hosts,
            "children" => Section::Children,
            "vars" => Section::Vars,
            _ => {
                let span = self.span(start + group.len() + 1, start + name.len());
                let mistake = mistake(
                    code::SECTION,
                    &span,
                    format!("unknown kind of section `{kind}`"),
                )
                .with_label("expected `hosts`, `children` or `vars`");
                return Err(meant(mistake, kind, ["hosts", "children", "vars"]));
            }
        };
        let group = &build.group_name(group);
        self.group = group.clone();
        match self.section {
            Section::Vars if !build.graph.groups.contains_key(group) => {
                self.promise(group, self.span(start, start + group.len()));
            }
            Section::Vars => {}
            _ => self.define(build, group)?,
        }
        Ok(())
    }

    fn promise(&mut self, group: &str, span: Span) -> &mut Promise {
        let promise = Promise {
            span,
            parents: Vec::new(),
            vars: Vec::new(),
        };
        self.promised.entry(group.to_owned()).or_insert(promise)
    }

    /// Makes a group, and gives it what waited for it.
    fn define(&mut self, build: &mut Build, name: &str) -> Result<(), Diagnostic> {
        let group = build.graph.group(name);
        if let Some(promise) = self.promised.shift_remove(name) {
            for (parent, span) in promise.parents {
                build.graph.contain(parent, group, Some(&span));
            }
            for (name, value) in promise.vars {
                build.group_var(group, &name, value)?;
            }
        }
        Ok(())
    }

    fn host(&mut self, build: &mut Build, line: &str, start: usize) -> Result<(), Diagnostic> {
        let split = words::split(line).map_err(|error| match error {
            SplitError::OpenQuote(at) => {
                let span = self.span(start + at, start + line.len());
                mistake(code::LINE, &span, "a quote that is never closed")
                    .with_label("expected the same quote at the end of the value")
            }
            SplitError::LoneBackslash(at) => {
                let span = self.span(start + at, start + at + 1);
                mistake(code::LINE, &span, "a backslash with nothing behind it")
                    .with_label("expected a character to escape; `\\\\` is a backslash")
            }
        })?;
        if let Some(at) = split.cut {
            let span = self.span(start + at, start + line.len());
            build.warnings.push(
                oddity(code::LINE, &span, "from this `#` on the line is a comment")
                    .with_help("quote a value that holds a `#`"),
            );
        }
        let Some((name, vars)) = split.words.split_first() else {
            return Ok(());
        };
        let name_span = self.span(start + name.start, start + name.end);
        let hosts = build.hosts(&name.text, &name_span, self.mention)?;
        let group = build.graph.group(&self.group);
        for host in &hosts {
            build.graph.join(*host, group);
        }
        for word in vars {
            let span = self.span(start + word.start, start + word.end);
            let Some((key, value)) = word.text.split_once('=') else {
                return Err(mistake(
                    code::LINE,
                    &span,
                    format!("`{}` sets no variable", word.text),
                )
                .with_label(format!(
                    "expected `name=value` behind the host `{}`",
                    name.text
                ))
                .with_help("a host stands on a line of its own; quote a value that holds blanks"));
            };
            let node = value_node(value, &self.value_span(word, key, value, start));
            for host in &hosts {
                build.graph.set_host_var(*host, key, node.clone());
            }
        }
        Ok(())
    }

    /// The place of a value within its word: exact where quotes did not shift it.
    fn value_span(&self, word: &Word, key: &str, value: &str, start: usize) -> Span {
        let written = &self.source.text[start + word.start..start + word.end];
        let behind = if written.starts_with(key) {
            key.len() + 1
        } else {
            0
        };
        let quote = written[behind..].starts_with(['"', '\'']) as usize;
        let exact = written[behind + quote..].starts_with(value);
        let (from, to) = if exact {
            (behind + quote, behind + quote + value.len())
        } else {
            (behind, written.len())
        };
        self.span(start + word.start + from, start + word.start + to)
    }

    fn child(&mut self, build: &mut Build, line: &str, start: usize) -> Result<(), Diagnostic> {
        let name = line.split(['#', ';']).next().unwrap_or(line).trim_end();
        let span = self.span(start, start + name.len());
        if name.contains([':', ']', '=']) || name.contains(char::is_whitespace) {
            return Err(
                mistake(code::GROUP, &span, format!("`{name}` is not a group name")).with_label(
                    format!(
                        "expected one group a line under `[{}:children]`",
                        self.group
                    ),
                ),
            );
        }
        let parent = build.graph.group(&self.group);
        let name = &build.group_name(name);
        match build.graph.groups.get_index_of(name) {
            Some(child) => build.contain(parent, child, &span),
            None => {
                self.promise(name, span.clone())
                    .parents
                    .push((parent, span));
                Ok(())
            }
        }
    }

    fn variable(&mut self, build: &mut Build, line: &str, start: usize) -> Result<(), Diagnostic> {
        let Some((key, value)) = line.split_once('=') else {
            let span = self.span(start, start + line.len());
            return Err(
                mistake(code::LINE, &span, format!("`{line}` sets no variable")).with_label(
                    format!("expected `name=value` under `[{}:vars]`", self.group),
                ),
            );
        };
        let (name, text) = (key.trim(), value.trim());
        let from = start + key.len() + 1 + (value.len() - value.trim_start().len());
        let node = value_node(text, &self.span(from, from + text.len()));
        match build.graph.groups.get_index_of(self.group.as_str()) {
            Some(group) => build.group_var(group, name, node),
            None => {
                let span = node.span.clone();
                let group = self.group.clone();
                self.promise(&group, span)
                    .vars
                    .push((name.to_owned(), node));
                Ok(())
            }
        }
    }
}

/// A value as the INI format reads it: a Python literal, or else a string.
fn value_node(text: &str, span: &Span) -> Node {
    literal::parse(text).map_or_else(|| Node::string(text, span), |literal| node(literal, span))
}

fn node(literal: Literal, span: &Span) -> Node {
    match literal {
        Literal::None => Node::from_json(&serde_json::Value::Null, span),
        Literal::Bool(value) => Node::from_json(&value.into(), span),
        Literal::Int(value) => Node::from_json(&value.into(), span),
        Literal::Float(value) => {
            let mut node = Node::from_json(&value.into(), span);
            node.kind = Kind::Float(value);
            node
        }
        Literal::Bytes(text) => {
            let mut node = Node::string(&text, span);
            node.tag = Some("unsafe".into());
            node
        }
        // As in YAML, what is too large stays a text.
        Literal::Big(text) | Literal::Str(text) => Node::string(&text, span),
        Literal::List(items) => {
            Node::sequence(items.into_iter().map(|item| node(item, span)), span)
        }
        Literal::Dict(pairs) => {
            let pairs = pairs
                .into_iter()
                .map(|(key, value)| (node(key, span), node(value, span)));
            Node::mapping(pairs, span)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lab::{Lab, errors, hosts, load, members, var, warnings};

    #[test]
    fn hosts_stand_under_their_group_and_before_any_heading_in_none() {
        let inventory = load(
            "i.ini",
            "lone\n\n; comment\n[web] # comment\nw1\nw2:2222\n# end\n",
        );
        assert_eq!(hosts(&inventory), ["lone", "w1", "w2"]);
        assert_eq!(members(&inventory, "ungrouped"), ["lone"]);
        assert_eq!(members(&inventory, "web"), ["w1", "w2"]);
        assert_eq!(inventory.host("w2").unwrap().port, Some(2222));
        assert_eq!(var(&inventory, "w2", "ansible_port"), json!(2222));
        assert_eq!(var(&inventory, "w1", "ansible_port"), json!(null));
    }

    #[test]
    fn a_range_gives_every_host_the_variables_of_its_line() {
        let inventory = load("i.ini", "[web]\nw[01:03].ex:2222 rack=5\nw02.ex rack=6\n");
        assert_eq!(hosts(&inventory), ["w01.ex", "w02.ex", "w03.ex"]);
        assert_eq!(var(&inventory, "w01.ex", "rack"), json!(5));
        assert_eq!(var(&inventory, "w02.ex", "rack"), json!(6));
        assert_eq!(var(&inventory, "w03.ex", "ansible_port"), json!(2222));
    }

    #[test]
    fn values_on_host_lines_are_unquoted_and_then_literals() {
        let line = r#"h flag=False low=false num=5 zero=012 word=no quoted='"5"' list="[1, 2]" ports=80,443 dict="{'a': None}" url=http://x/?a=b empty= sp="a b""#;
        let inventory = load("i.ini", line);
        for (name, value) in [
            ("flag", json!(false)),
            ("low", json!("false")),
            ("num", json!(5)),
            ("zero", json!("012")),
            ("word", json!("no")),
            ("quoted", json!("5")),
            ("list", json!([1, 2])),
            ("ports", json!([80, 443])),
            ("dict", json!({"a": null})),
            ("url", json!("http://x/?a=b")),
            ("empty", json!("")),
            ("sp", json!("a b")),
        ] {
            assert_eq!(var(&inventory, "h", name), value, "{name}");
        }
    }

    #[test]
    fn values_under_vars_reach_to_the_end_of_the_line_and_are_literals_too() {
        let text =
            "[g]\nh\n[g:vars]\na=b=c\nsp = two words \nn=5 # five\nw=five # 5\nq=\"x\"\nf=False\n";
        let inventory = load("i.ini", text);
        for (name, value) in [
            ("a", json!("b=c")),
            ("sp", json!("two words")),
            ("n", json!(5)),
            ("w", json!("five # 5")),
            ("q", json!("x")),
            ("f", json!(false)),
        ] {
            assert_eq!(var(&inventory, "h", name), value, "{name}");
        }
    }

    #[test]
    fn a_variable_knows_where_it_was_written() {
        let inventory = load("i.ini", "[g]\nh rack=\"r 1\" n=5\n[g:vars]\nx =  7\n");
        let host = inventory.host("h").unwrap();
        let place = |vars: &crate::inventory::VarMap, name: &str| {
            let span = &vars[name].value.span;
            (span.line_col(), span.text().to_owned())
        };
        assert_eq!(place(host.vars(), "rack"), ((2, 9), "r 1".to_owned()));
        assert_eq!(place(host.vars(), "n"), ((2, 16), "5".to_owned()));
        assert_eq!(
            place(inventory.group("g").unwrap().vars(), "x"),
            ((4, 6), "7".to_owned())
        );
        assert_eq!(host.vars()["n"].origin.to_string(), "host `h`");
    }

    #[test]
    fn groups_may_be_used_before_they_are_defined() {
        let inventory = load(
            "i.ini",
            "[c:vars]\nx=1\n[p:children]\nc\nb\n[b]\nh2\n[c]\nh1\n",
        );
        assert_eq!(var(&inventory, "h1", "x"), json!(1));
        // As in Ansible, a child counts from where it is defined.
        assert_eq!(members(&inventory, "p"), ["h2", "h1"]);
    }

    #[test]
    fn a_group_of_another_source_is_defined() {
        let lab = Lab::new(&[
            ("a.ini", "[web]\nh\n"),
            ("b.ini", "[web:vars]\nx=1\n[p:children]\nweb\n"),
        ]);
        let inventory = lab.load(&["a.ini", "b.ini"]);
        assert_eq!(var(&inventory, "h", "x"), json!(1));
        assert_eq!(members(&inventory, "p"), ["h"]);
    }

    #[test]
    fn a_hash_within_a_word_is_warned_of() {
        insta::assert_snapshot!(warnings("i.ini", "h pass=ab#cd\n"), @"
        warning[F0202]: from this `#` on the line is a comment
         --> i.ini:1:10
          |
        1 | h pass=ab#cd
          |          ^^^
          |
          = help: quote a value that holds a `#`
        ");
    }

    #[test]
    fn every_mistake_is_told_at_its_place() {
        let text = "[a:children]\nweb\n[wbe]\nh1 x\nb:\nw[1:]:22\nh:99999\nh2 a='x\n[x:vrs]\nskipped\n[wbe:vars]\nfoo\nansible_group_priority=high\n[a:children]\nb c\nall\n[q r]\n[open\n[undefined:vars]\nk=1\n";
        insta::assert_snapshot!(errors("i.ini", text), @"
        error[F0202]: `x` sets no variable
         --> i.ini:4:4
          |
        4 | h1 x
          |    ^ expected `name=value` behind the host `h1`
          |
          = help: a host stands on a line of its own; quote a value that holds blanks

        error[F0204]: the host name `b:` ends with `:`
         --> i.ini:5:1
          |
        5 | b:
          | ^^ expected a host name, or a name and a port (`web1:2222`)

        error[F0204]: a range of hosts needs an end
         --> i.ini:6:2
          |
        6 | w[1:]:22
          |  ^^^^

        error[F0204]: `99999` is not a port
         --> i.ini:7:1
          |
        7 | h:99999
          | ^^^^^^^ expected a number from 0 to 65535 after the colon

        error[F0202]: a quote that is never closed
         --> i.ini:8:6
          |
        8 | h2 a='x
          |      ^^ expected the same quote at the end of the value

        error[F0203]: unknown kind of section `vrs`
         --> i.ini:9:4
          |
        9 | [x:vrs]
          |    ^^^ expected `hosts`, `children` or `vars`
          |
          = help: did you mean `vars`?

        error[F0202]: `foo` sets no variable
          --> i.ini:12:1
           |
        12 | foo
           | ^^^ expected `name=value` under `[wbe:vars]`

        error[F0207]: `ansible_group_priority` is not a whole number
          --> i.ini:13:24
           |
        13 | ansible_group_priority=high
           |                        ^^^^ expected a number such as 10, found a string

        error[F0205]: `b c` is not a group name
          --> i.ini:15:1
           |
        15 | b c
           | ^^^ expected one group a line under `[a:children]`

        error[F0206]: `all` cannot be in another group
          --> i.ini:16:1
           |
        16 | all
           | ^^^ `all` holds every host and every group already

        error[F0203]: `q r` is not a group name
          --> i.ini:17:2
           |
        17 | [q r]
           |  ^^^ expected `[group]`, `[group:children]` or `[group:vars]`, without blanks

        error[F0203]: a heading that is never closed
          --> i.ini:18:1
           |
        18 | [open
           | ^^^^^ expected a `]` at the end

        error[F0205]: group `web` is not defined
         --> i.ini:2:1
          |
        2 | web
          | ^^^ expected a section `[web]` or `[web:children]` in the inventory
          |
          = help: did you mean `wbe`?

        error[F0205]: group `undefined` is not defined
          --> i.ini:19:2
           |
        19 | [undefined:vars]
           |  ^^^^^^^^^ expected a section `[undefined]` or `[undefined:children]` in the inventory
        ");
    }

    #[test]
    fn groups_that_hold_each_other_are_told_with_the_way() {
        insta::assert_snapshot!(errors("i.ini", "[a:children]\nb\n[b:children]\nc\n[c:children]\na\n"), @"
        error[F0206]: groups hold each other: b > c > a > b
         --> i.ini:6:1
          |
        2 | b
          | - `b` is put into `a` here
        3 | [b:children]
        4 | c
          | - `c` is put into `b` here
        5 | [c:children]
        6 | a
          | ^ `a` is put into `c` here
        ");
    }
}
