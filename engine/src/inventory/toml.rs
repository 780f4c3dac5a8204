//! TOML inventories: a table a group, in it `vars`, `hosts` and the names of `children`.

use std::sync::Arc;

use fleet_yaml::{Kind, Map, Node, Source, Span};
use toml_edit::{Document, Item, TableLike, Value};

use super::{
    build::Build,
    graph::Mention,
    mistake::{code, mistake},
    yaml,
};

/// Reads a whole file into the inventory.
pub(super) fn read(build: &mut Build, source: &Arc<Source>, mention: &Arc<Mention>) {
    let document = match Document::parse(source.text.to_string()) {
        Ok(document) => document,
        Err(error) => {
            let at = error.span().unwrap_or(0..0);
            let message = error
                .message()
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned();
            build.errors.push(mistake(
                code::SOURCE,
                &source.span(at.start, at.end),
                format!("this is no TOML: {message}"),
            ));
            return;
        }
    };
    let reader = Reader { source };
    let whole = source.span(0, 0);
    let groups = document.as_table().iter().map(|(name, group)| {
        let key = reader.key(document.as_table(), name, &whole);
        let node = reader.item(group, &key.span);
        (key, with_children(node))
    });
    yaml::read(build, &Map::new(groups.collect()), mention);
}

/// A group whose list of children is the mapping that YAML inventories have.
fn with_children(group: Node) -> Node {
    let Some(map) = group.as_map() else {
        return group;
    };
    let entries = map.iter().map(|(key, value)| {
        let names = value.as_seq().filter(|_| key.as_str() == Some("children"));
        let value = match names {
            Some(names) => {
                let empty = |name: &Node| Node::from_json(&serde_json::Value::Null, &name.span);
                let names = names.iter().map(|name| (name.clone(), empty(name)));
                Node::mapping(names, &value.span)
            }
            None => value.clone(),
        };
        (key.clone(), value)
    });
    Node::mapping(entries, &group.span)
}

/// Turns TOML into nodes.
struct Reader<'a> {
    source: &'a Arc<Source>,
}

impl Reader<'_> {
    fn key(&self, table: &dyn TableLike, name: &str, around: &Span) -> Node {
        let span = table.key(name).and_then(toml_edit::Key::span);
        let span = span.map_or_else(|| around.clone(), |at| self.source.span(at.start, at.end));
        Node::string(name, &span)
    }

    fn item(&self, item: &Item, around: &Span) -> Node {
        let span = match item.span() {
            Some(at) => self.source.span(at.start, at.end),
            None => around.clone(),
        };
        if let Some(value) = item.as_value() {
            return self.value(value, &span);
        }
        if let Some(tables) = item.as_array_of_tables() {
            let tables = tables.iter().map(|table| self.table(table, &span));
            return Node::sequence(tables.collect::<Vec<_>>(), &span);
        }
        match item.as_table_like() {
            Some(table) => self.table(table, &span),
            None => Node::from_json(&serde_json::Value::Null, &span),
        }
    }

    fn table(&self, table: &dyn TableLike, span: &Span) -> Node {
        let entries = table.iter().map(|(name, item)| {
            let key = self.key(table, name, span);
            let value = self.item(item, &key.span);
            (key, value)
        });
        Node::mapping(entries.collect::<Vec<_>>(), span)
    }

    fn value(&self, value: &Value, around: &Span) -> Node {
        let span = match value.span() {
            Some(at) => self.source.span(at.start, at.end),
            None => around.clone(),
        };
        let mut node = Node::string("", &span);
        node.kind = match value {
            Value::String(text) => return Node::string(text.value(), &span),
            Value::Integer(number) => Kind::Int(*number.value()),
            Value::Float(number) => Kind::Float(*number.value()),
            Value::Boolean(value) => Kind::Bool(*value.value()),
            Value::Datetime(time) => {
                let mut node = Node::string(&time.value().to_string(), &span);
                node.tag = Some("timestamp".into());
                return node;
            }
            Value::Array(items) => {
                let items = items.iter().map(|item| self.value(item, &span));
                return Node::sequence(items.collect::<Vec<_>>(), &span);
            }
            Value::InlineTable(table) => return self.table(table, &span),
        };
        node
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lab::{errors, hosts, load, members, var};

    const TEXT: &str = "[all.vars]\nhas_java = false\n\n[web]\nchildren = [\"apache\", \"nginx\"]\nvars = { http_port = 8080, ratio = 0.5, ports = [1, 2] }\n\n[web.hosts]\nhost1 = {}\nhost2 = { ansible_port = 222 }\n\n[apache.hosts.tomcat1]\nmyvar = 34\nmysecret = \"03#pa33w0rd\"\n\n[nginx.hosts]\n\"jen[1:2]\" = {}\n\n[nginx.vars]\nhas_java = true\n";

    #[test]
    fn tables_are_groups() {
        let inventory = load("i.toml", TEXT);
        assert_eq!(
            hosts(&inventory),
            ["host1", "host2", "tomcat1", "jen1", "jen2"]
        );
        assert_eq!(members(&inventory, "nginx"), ["jen1", "jen2"]);
        assert_eq!(var(&inventory, "jen1", "has_java"), json!(true));
        assert_eq!(var(&inventory, "jen1", "ports"), json!([1, 2]));
        assert_eq!(var(&inventory, "host1", "has_java"), json!(false));
        assert_eq!(var(&inventory, "host2", "ansible_port"), json!(222));
        assert_eq!(var(&inventory, "tomcat1", "myvar"), json!(34));
        assert_eq!(var(&inventory, "tomcat1", "ratio"), json!(0.5));
    }

    #[test]
    fn mistakes_have_their_places() {
        insta::assert_snapshot!(errors("i.toml", "[web]\nhosts = [\n"), @"
        error[F0201]: this is no TOML: unclosed array, expected `]`
         --> i.toml:2:10
          |
        2 | hosts = [
          |          ^
        ");
        insta::assert_snapshot!(errors("i.toml", "[web]\nvars = 5\n[web.hosts.\"a:b\"]\n"), @r#"
        error[F0205]: `vars` of group `web` holds a number
         --> i.toml:2:8
          |
        2 | vars = 5
          |        ^ expected `name: value` a line, without a dash

        error[F0204]: `b` is not a port
         --> i.toml:3:12
          |
        3 | [web.hosts."a:b"]
          |            ^^^^^ expected a number from 0 to 65535 after the colon
        "#);
    }
}
