//! Lookups.

use super::*;

#[test]
fn lookups_see_the_controller() {
    let world = World::new("{n: 1}");
    world.write("motd", "hello\n\n");
    world.write("t.j2", "n is {{ n }}\n");
    world.write("a.conf", "");
    world.write("settings.ini", "[db]\nhost = db1\nport: 5432\n");
    world.write("list.csv", "x,1\ny,\"2,5\"\n");
    assert_eq!(world.text("{{ lookup('file', 'motd') }}"), "hello");
    assert_eq!(world.text("{{ lookup('template', 't.j2') }}"), "n is 1\n");
    assert_eq!(
        world.text("{{ lookup('env', 'HOME') }}{{ lookup('env', 'NONE') }}"),
        "/home/ops"
    );
    assert_eq!(world.text("{{ lookup('pipe', 'echo $((1+1))') }}"), "2");
    assert_eq!(
        world.text("{{ query('fileglob', '*.conf') | map('basename') }}"),
        serde_json::json!(["a.conf"])
    );
    assert_eq!(
        world.text("{{ lookup('first_found', ['no', 'motd']) | basename }}"),
        "motd"
    );
    assert_eq!(
        world.text("{{ query('first_found', {'files': ['no'], 'skip': true}) }}"),
        serde_json::json!([])
    );
    assert_eq!(
        world.text("{{ lookup('ini', 'host', section='db', file='settings.ini') }}"),
        "db1"
    );
    assert_eq!(
        world.text("{{ lookup('csvfile', 'y', file='list.csv', delimiter=',') }}"),
        "2,5"
    );
    assert_eq!(
        world.text("{{ lookup('file', 'gone', errors='ignore') }}"),
        serde_json::Value::Null
    );
    assert!(
        world
            .error("\"{{ lookup('file', 'gone') }}\"")
            .contains("Unable to access the file 'gone'")
    );
    let kept = world.text("{{ lookup('password', 'secret length=8 chars=digits') }}");
    assert_eq!(kept.as_str().unwrap().len(), 8);
    assert_eq!(
        world.text("{{ lookup('password', 'secret length=8 chars=digits') }}"),
        kept
    );
}

#[test]
fn sequences_count_as_they_are_told() {
    let world = World::new("{}");
    let counted = |term: &str| {
        world.text(&format!(
            "{{{{ query('sequence', '{term}') | join(',') }}}}"
        ))
    };
    assert_eq!(counted("start=0 end=6 stride=3"), "0,3,6");
    assert_eq!(counted("count=3 format=host%02d"), "host01,host02,host03");
    assert_eq!(counted("5-8/2:n%d"), "n5,n7");
    assert_eq!(counted("count=0"), "");
}

#[test]
fn a_lookup_that_finds_nothing_gives_an_empty_list() {
    let world = World::new("{}");
    let empty = serde_json::json!([]);
    assert_eq!(world.text("{{ lookup('fileglob', '/nowhere/*') }}"), empty);
    assert_eq!(
        world.text("{{ lookup('first_found', ['/nowhere'], skip=true) }}"),
        empty
    );
    assert_eq!(
        world.text("{{ query('file', '/nowhere', errors='ignore') }}"),
        empty
    );
}

#[test]
fn terms_of_first_found_may_be_undefined() {
    let world = World::new("{}");
    world.write("there", "");
    let terms = node("['{{ gone }}x', {files: ['{{ gone }}', there]}]");
    let found = world
        .templar
        .with("first_found", &terms, &world.scope)
        .unwrap()
        .known()
        .unwrap();
    assert!(found[0].as_str().unwrap().ends_with("/there"));
}

#[test]
fn templates_in_what_a_lookup_looks_for_are_rendered() {
    let world = World::new("{who: me}");
    assert_eq!(world.text("{{ lookup('pipe', 'echo {{ who }}') }}"), "me");
    // What comes from a host is data here, too.
    assert_eq!(
        world.text("{{ lookup('items', [from_host]) }}"),
        "{{ never }}"
    );
}

#[test]
fn options_may_stand_in_the_term() {
    let world = World::new("{}");
    world.write("users.ini", "[db]\nuser = ada\nhome = /h/%(user)s\n");
    world.write("people.csv", "a b,1\n\"c, d\",2\n");
    assert_eq!(
        world.text("{{ lookup('ini', 'home section=db file=users.ini') }}"),
        "/h/ada"
    );
    assert_eq!(
        world.text("{{ lookup('csvfile', 'a b file=people.csv delimiter=, col=1') }}"),
        "1"
    );
    assert_eq!(
        world.text("{{ lookup('csvfile', 'c, d', file='people.csv', delimiter=',') }}"),
        "2"
    );
}
