//! What templates expect of Python.

use super::*;

#[test]
fn tuples_are_lists_only_in_the_end() {
    let world = World::new("{d: {a: 1}}");
    assert_eq!(world.text("{{ d.items() | list | string }}"), "[('a', 1)]");
    assert_eq!(
        world.text("{{ [1] | zip([2]) | list }}"),
        serde_json::json!([[1, 2]])
    );
    assert_eq!(world.text("{{ (1, 2) == [1, 2] }}"), false);
    assert_eq!(world.text("x{{ (1, 2) }}"), "x[1, 2]");
    assert_eq!(world.text("{{ '%s' % (1,) }}"), "1");
}

#[test]
fn groups_have_names_for_their_halves() {
    let world = World::new("{l: [{k: a, v: 1}, {k: b, v: 2}]}");
    assert_eq!(
        world.text(
            "{% for g in l | groupby('k') %}{{ g.grouper }}{{ g.list | length }}{% endfor %}"
        ),
        "a1b1"
    );
}

#[test]
fn seeds_give_what_they_gave_in_ansible() {
    let world = World::new("{}");
    assert_eq!(world.text("{{ 60 | random(seed='web1') }}"), 52);
    assert_eq!(
        world.text("{{ [1, 2, 3, 4, 5] | shuffle(seed='a') }}"),
        serde_json::json!([2, 4, 5, 1, 3])
    );
    assert_eq!(
        world.text("{{ lookup('password', '/dev/null', seed='foo') }}"),
        "6JUEsF6-,RiuGZDEWF4r"
    );
}

#[test]
fn patterns_look_around_and_back() {
    let world = World::new("{}");
    for (template, made) in [
        ("{{ 'foobar' | regex_replace('(?<=foo)bar', 'X') }}", "fooX"),
        ("{{ 'abab' | regex_replace('(ab)\\1', 'X') }}", "X"),
        ("{{ 'abc' | regex_replace('x*', '-') }}", "-a-b-c-"),
        ("{{ 'end\n' | regex_replace('d$', 'D') }}", "enD\n"),
    ] {
        let template = node(&serde_json::to_string(template).unwrap());
        let value = world.templar.value(&template, &world.scope).unwrap();
        assert_eq!(value.known().unwrap().as_str(), Some(made));
    }
}

#[test]
fn json_is_queried() {
    let world = World::new("{l: [{n: a, v: 1}, {n: b, v: 2}]}");
    assert_eq!(
        world.text("{{ l | json_query('[?v > `1`].n') }}"),
        serde_json::json!(["b"])
    );
}

#[test]
fn times_have_a_difference() {
    let world = World::new("{}");
    assert_eq!(
        world.text("{{ (('2024-03-01' | to_datetime('%Y-%m-%d')) - ('2024-02-01' | to_datetime('%Y-%m-%d'))).days }}"),
        29
    );
    assert_eq!(world.text("{{ '%z' | strftime(0, utc=true) }}"), "+0000");
}

#[test]
fn addresses_in_a_text_become_links() {
    let world = World::new("{}");
    assert_eq!(
        world.text("{{ '(www.test.org).' | urlize }}"),
        "(<a href=\"https://www.test.org\" rel=\"noopener\">www.test.org</a>)."
    );
}
