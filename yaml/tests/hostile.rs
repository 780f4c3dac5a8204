//! No input makes `load` or `render` panic, or take long.

use std::path::Path;

use fleet_yaml::{Loaded, Node, Source, de::from_node, load, render};
use proptest::prelude::*;

/// Something of everything that YAML has.
const CORPUS: &[&str] = &[
    "a: &x {b: [1, 'zwei', \"drei\\n\\u00e9\"], <<: {c: ü}}\n? k\n: |\n  é\n  text\nd: *x\n# end\n--- !t\n- {{ y }}\n",
    "- hosts: web:!db\n  become: yes\n  vars: {a: !vault |\n    x\n  }\n  tasks:\n  - name: \"x\"\n    copy: src=a dest=b mode=0644\n    when: a == 'b'\n",
    "%YAML 1.1\n%TAG !e! tag:e.com,2000:\n---\na: !e!x 1\nb: !<tag:yaml.org,2002:int> \"5\"\n...\n---\n>-\n folded\n\n text\n",
    "\u{feff}a: >2\n    x\n   y\n\nb: |+\n  z\n\n\nc: ? \nd: - \n",
    "a:\n\tb: 1\n  c: \"x\\\n   y\"\r\n'q': [a, {b: c}, *z]\rk:v\n",
    "base: &b\n  x: 1\nm:\n  <<: [*b, {y: 2}]\n  x: 12:30\n  x: 0x1f\n",
];

/// Loads and looks at everything; whatever is wrong is rendered.
fn exercise(bytes: &[u8]) {
    let loaded = Source::from_bytes(Path::new("t.yml"), bytes.to_vec()).and_then(load);
    match loaded {
        Ok(Loaded {
            documents,
            warnings,
        }) => {
            for document in &documents {
                let _ = document.to_json();
                visit(document);
                let _ = from_node::<Vec<String>>(document);
                let _ =
                    from_node::<serde_json::Value>(document).map_err(|error| render(&error, true));
            }
            warnings
                .iter()
                .for_each(|warning| drop(render(warning, false)));
        }
        Err(error) => {
            assert!(error.span.is_some(), "{error} has no place");
            assert!(!render(&error, false).contains('\u{1b}'));
        }
    }
}

/// Every span is within the text, on whole characters, and the right way round.
fn visit(node: &Node) {
    let span = &node.span;
    assert!(
        span.source.text.get(span.start..span.end).is_some(),
        "{span:?}"
    );
    assert!(node.is_scalar() || !node.raw().is_empty(), "{node:?}");
    for item in node.as_seq().unwrap_or_default() {
        visit(item);
    }
    for (key, value) in node.as_map().iter().flat_map(|map| map.iter()) {
        visit(key);
        visit(value);
    }
}

#[test]
fn every_piece_and_every_small_change_of_a_file() {
    for text in CORPUS {
        let bytes = text.as_bytes();
        for at in 0..bytes.len() {
            exercise(&bytes[..at]);
            exercise(&bytes[at..]);
            let mut less = bytes.to_vec();
            less.remove(at);
            exercise(&less);
            for byte in *b"\n\t :-\"{[&*" {
                let mut more = bytes.to_vec();
                more.insert(at, byte);
                exercise(&more);
            }
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        exercise(&bytes);
    }

    #[test]
    fn any_text_of_yaml_signs(text in "([a-c0-9é\u{feff} \\t\\n\\r:,\\-?\\[\\]{}#&*!|>'\"%@`\\\\<.~]|: |- |\\n  |<<: |\\{\\{|&a|\\*a|---\n){0,60}") {
        exercise(text.as_bytes());
    }

    /// What is written as JSON is read as it was, since JSON is YAML.
    #[test]
    fn json_is_read_as_it_is(text in "[ -~äß€😀]{0,40}", number in any::<i64>(), list in prop::collection::vec(any::<bool>(), 0..5)) {
        let json = serde_json::json!({ "text": text, "number": number, "list": list, "none": null });
        let loaded = load(Source::new("t.json", json.to_string())).unwrap();
        prop_assert_eq!(loaded.documents[0].to_json(), json);
    }
}

fn refused(text: impl Into<std::sync::Arc<str>>) -> String {
    load(Source::new("t.yml", text))
        .expect_err("it is refused")
        .message
        .clone()
}

#[test]
fn what_expands_beyond_measure_is_refused() {
    let mut laughs = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let items = vec![format!("*a{}", level - 1); 10].join(",");
        laughs.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert_eq!(
        refused(laughs),
        "this file comes to more than 8000000 values"
    );

    let big: String = (0..2000).map(|key| format!("  k{key}: v\n")).collect();
    let merges: String = (0..2000)
        .map(|key| format!("m{key}: {{<<: *b}}\n"))
        .collect();
    assert_eq!(
        refused(format!("b: &b\n{big}{merges}")),
        "merge keys come to more than 1000000 entries"
    );
}

#[test]
fn what_is_too_deep_is_refused_through_aliases_too() {
    let deep = "lists and mappings stand more than 128 deep in one another";
    assert_eq!(refused("- ".repeat(129) + "x"), deep);
    assert!(load(Source::new("t.yml", "- ".repeat(128) + "x")).is_ok());
    assert!(load(Source::new("t.yml", "[".repeat(200_000))).is_err());
    assert!(load(Source::new("t.yml", "{a: ".repeat(200_000))).is_err());

    let mut chain = String::from("- &a0 x\n");
    for level in 1..200 {
        chain.push_str(&format!("- &a{level} [*a{}]\n", level - 1));
    }
    assert_eq!(refused(chain), deep);
}

#[test]
fn a_large_inventory_is_no_bomb() {
    let hosts: String = (0..20_000)
        .map(|n| format!("    web{n}: {{ansible_host: 10.0.0.1, port: 22}}\n"))
        .collect();
    let loaded = load(Source::new("hosts.yml", format!("all:\n  hosts:\n{hosts}"))).unwrap();
    let hosts = loaded.documents[0]
        .get("all")
        .and_then(|all| all.get("hosts"))
        .unwrap();
    assert_eq!(hosts.as_map().unwrap().len(), 20_000);
    assert_eq!(
        hosts
            .get("web19999")
            .and_then(|host| host.get("port"))
            .unwrap()
            .as_i64(),
        Some(22)
    );
}
