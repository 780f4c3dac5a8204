//! Nodes read into types: what is converted, and where it hurts when it does not fit.

use std::collections::BTreeMap;

use fleet_yaml::{
    Diagnostic, Node, Source,
    de::{OneOrMany, Spanned, from_node},
    load, render,
};
use serde::{Deserialize, de::DeserializeOwned};

fn node(text: &str) -> Node {
    load(Source::new("site.yml", text))
        .expect("it is YAML")
        .documents
        .remove(0)
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, Diagnostic> {
    from_node(&node(text))
}

fn refused<T: DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    render(&read::<T>(text).expect_err("it does not fit"), false)
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Copy {
    dest: String,
    mode: Option<String>,
    #[serde(default)]
    backup: bool,
    #[serde(default)]
    size: u16,
    #[serde(default)]
    state: State,
    #[serde(default)]
    tags: OneOrMany<String>,
    vars: Option<Node>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Present,
    Absent,
    Linked(String),
}

#[test]
fn fields_are_read_with_ansibles_conversions() {
    let copy: Copy = read("dest: 5\nmode: 0644\nbackup: 'yes'\nsize: '12'\nstate: absent\ntags: a\nvars: {x: !vault y}\n").unwrap();
    assert_eq!(
        (
            copy.dest.as_str(),
            copy.mode.as_deref(),
            copy.backup,
            copy.size,
            copy.state
        ),
        ("5", Some("0644"), true, 12, State::Absent)
    );
    assert_eq!(copy.tags.0, ["a"]);
    let vars = copy.vars.unwrap();
    assert_eq!(vars.span.to_string(), "site.yml:7:7");
    assert!(vars.get("x").unwrap().has_tag("vault"));

    let copy: Copy = read("{dest: /x, mode: ~, state: {linked: y}, tags: [1, b]}").unwrap();
    assert_eq!(
        (copy.mode, copy.backup, copy.state),
        (None, false, State::Linked("y".into()))
    );
    assert_eq!(copy.tags.0, ["1", "b"]);
}

#[test]
fn truth_has_many_spellings() {
    for yes in [
        "yes", "on", "true", "True", "'yes'", "\"ON\"", "1", "'1'", "y", "'t'",
    ] {
        assert!(read::<bool>(yes).unwrap(), "{yes}");
    }
    for no in ["no", "off", "false", "'no'", "\"False\"", "0", "n"] {
        assert!(!read::<bool>(no).unwrap(), "{no}");
    }
    for neither in ["2", "maybe", "''", "~", "[true]", "1.0", "yesyes"] {
        assert!(read::<bool>(neither).is_err(), "{neither}");
    }
}

#[test]
fn strings_are_what_was_written() {
    let strings: Vec<String> = read("[0644, 0o644, yes, 1.50, '007', 1_000, 12:30]").unwrap();
    assert_eq!(
        strings,
        ["0644", "0o644", "yes", "1.50", "007", "1_000", "12:30"]
    );
    let computed = Node::from_json(&serde_json::json!([420, true, 1.0, "x"]), &node("x").span);
    assert_eq!(
        from_node::<Vec<String>>(&computed).unwrap(),
        ["420", "True", "1.0", "x"]
    );
}

#[test]
fn numbers_may_be_quoted_and_must_fit() {
    assert_eq!(read::<u64>("'18446744073709551615'").unwrap(), u64::MAX);
    assert_eq!(read::<i8>("-128").unwrap(), -128);
    assert!(read::<f64>("1").unwrap() == 1.0 && read::<f64>("'2.5'").unwrap() == 2.5);
    insta::assert_snapshot!(refused::<u8>("300"), @r"
    error[F0110]: 300 is out of range, 0 to 255 are allowed
     --> site.yml:1:1
      |
    1 | 300
      | ^^^
    ");
    insta::assert_snapshot!(refused::<u32>("1.5"), @r"
    error[F0110]: expected an integer, found a number
     --> site.yml:1:1
      |
    1 | 1.5
      | ^^^
    ");
}

#[test]
fn mappings_keep_their_keys() {
    let map: BTreeMap<String, i64> = read("80: 1\nyes: 2\nx: 3").unwrap();
    assert_eq!(
        map,
        BTreeMap::from([("80".into(), 1), ("x".into(), 3), ("yes".into(), 2)])
    );
    let json: serde_json::Value = read("{a: [1, 2.5, ~, yes], b: {c: d}}").unwrap();
    assert_eq!(
        json,
        serde_json::json!({"a": [1, 2.5, null, true], "b": {"c": "d"}})
    );
}

#[test]
fn a_part_may_keep_its_place() {
    #[derive(Deserialize)]
    struct Play {
        hosts: OneOrMany<Spanned<String>>,
        serial: Option<Spanned<u8>>,
    }
    let play: Play = read("hosts:\n  - web\n  - db\nserial: 5\n").unwrap();
    let places: Vec<_> = play
        .hosts
        .iter()
        .map(|host| format!("{} {}", host.span, host.value))
        .collect();
    assert_eq!(places, ["site.yml:2:5 web", "site.yml:3:5 db"]);
    assert_eq!(play.serial.unwrap().span.to_string(), "site.yml:4:9");
    let error = read::<Play>("hosts: [a, [b]]").map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "site.yml:1:12: expected a string, found a list"
    );
    assert!(serde_json::from_str::<Spanned<u8>>("5").is_err());
}

#[test]
fn an_unknown_key_is_told_at_the_key() {
    insta::assert_snapshot!(refused::<Copy>("dest: /x\nbakcup: yes\n"), @r"
    error[F0111]: unknown key `bakcup`
     --> site.yml:2:1
      |
    2 | bakcup: yes
      | ^^^^^^
      |
      = help: did you mean `backup`? the keys are dest, mode, backup, size, state, tags, vars
    ");
}

#[test]
fn a_missing_key_is_told_at_the_mapping() {
    insta::assert_snapshot!(refused::<Vec<Copy>>("- dest: a\n- backup: yes\n  size: 1\n"), @r"
    error[F0112]: `dest` is missing
     --> site.yml:2:3
      |
    2 | - backup: yes
      |   ^^^^^^^^^^^
    ");
}

#[test]
fn a_value_of_another_type_is_told_at_the_value() {
    insta::assert_snapshot!(refused::<Copy>("dest: [a]"), @r"
    error[F0110]: expected a string, found a list
     --> site.yml:1:7
      |
    1 | dest: [a]
      |       ^^^
    ");
    insta::assert_snapshot!(refused::<Copy>("dest: a\nbackup: maybe"), @r"
    error[F0110]: expected a boolean, found a string
     --> site.yml:2:9
      |
    2 | backup: maybe
      |         ^^^^^
      |
      = help: write true or false
    ");
    insta::assert_snapshot!(refused::<Copy>("just a string"), @r"
    error[F0110]: expected a mapping, found a string
     --> site.yml:1:1
      |
    1 | just a string
      | ^^^^^^^^^^^^^
    ");
    insta::assert_snapshot!(refused::<Vec<Copy>>("dest: a"), @r"
    error[F0110]: expected a list, found a mapping
     --> site.yml:1:1
      |
    1 | dest: a
      | ^^^^^^^
    ");
    insta::assert_snapshot!(refused::<BTreeMap<String, Copy>>("a:\n  dest:\n"), @r"
    error[F0110]: expected a string, found nothing
     --> site.yml:2:8
      |
    2 |   dest:
      |        ^
    ");
    insta::assert_snapshot!(refused::<(u8, u8)>("[1, 2, 3]"), @r"
    error[F0110]: expected 2 items, found 3
     --> site.yml:1:1
      |
    1 | [1, 2, 3]
      | ^^^^^^^^^
    ");
}

#[test]
fn a_word_outside_the_list_is_told_with_the_list() {
    insta::assert_snapshot!(refused::<Copy>("{dest: a, state: abesnt}"), @r"
    error[F0113]: unknown value `abesnt`
     --> site.yml:1:18
      |
    1 | {dest: a, state: abesnt}
      |                  ^^^^^^
      |
      = help: did you mean `absent`? the values are present, absent, linked
    ");
    insta::assert_snapshot!(refused::<Copy>("{dest: a, state: linked}"), @r"
    error[F0110]: `linked` needs a value: write it as a key
     --> site.yml:1:18
      |
    1 | {dest: a, state: linked}
      |                  ^^^^^^
    ");
}

#[test]
fn what_is_encrypted_is_not_taken_for_a_text() {
    insta::assert_snapshot!(refused::<Copy>("dest: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  6162\n"), @r"
    error[F0110]: an encrypted value cannot be used here
     --> site.yml:2:3
      |
    2 |   $ANSIBLE_VAULT;1.1;AES256
      |   ^^^^^^^^^^^^^^^^^^^^^^^^^
    ");
}

#[test]
fn a_types_own_complaint_gets_a_place() {
    #[derive(Debug)]
    struct Even;
    impl<'de> Deserialize<'de> for Even {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            match u8::deserialize(deserializer)? % 2 {
                0 => Ok(Self),
                _ => Err(serde::de::Error::custom("an odd number")),
            }
        }
    }
    let error = read::<BTreeMap<String, Even>>("a: 2\nb: 3").unwrap_err();
    assert_eq!(error.to_string(), "site.yml:2:4: an odd number");
}
