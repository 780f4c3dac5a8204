//! What is not there.

use super::*;

#[test]
fn an_undefined_name_is_named_with_its_place_and_the_nearest() {
    let world = World::new("nginx:\n  workers: 4\n");
    insta::assert_snapshot!(world.error("worker_processes: '{{ nginx.worker }};'"), @r"
    error[F0301]: `nginx.worker` is undefined: object of type 'dict' has no attribute 'worker'
     --> site.yml:1:23
      |
    1 | worker_processes: '{{ nginx.worker }};'
      |                       ^^^^^^^^^^^^
      |
      = help: did you mean `nginx.workers`?
              `nginx` comes from site.yml:2:3
    ");
    assert!(
        world
            .error("'{{ ngnix.workers }}'")
            .contains("did you mean `nginx`?")
    );
}

#[test]
fn every_use_of_something_undefined_is_an_error() {
    let world = World::new("{d: {}}");
    for template in [
        "{{ gone }}",
        "a {{ d.gone }}",
        "{{ gone == 1 }}",
        "{{ 1 if gone else 2 }}",
        "{{ gone ~ 'x' }}",
        "{{ gone | upper }}",
        "{{ [gone] }}",
        "{{ 'a' in gone }}",
        "{{ gone and true }}",
        "{% for x in gone %}{% endfor %}",
        "{{ gone.split() }}",
        "{{ gone + 1 }}",
        "{{ [d.gone] | join }}",
    ] {
        let error = world
            .templar
            .value(
                &node(&serde_json::to_string(template).unwrap()),
                &world.scope,
            )
            .unwrap_err();
        assert!(error.is_undefined(), "{template}: {error}");
    }
}

#[test]
fn a_variable_made_of_something_undefined_leads_to_it() {
    let world = World::new("a: '{{ b.c }}'\nb: {d: 1}\n");
    insta::assert_snapshot!(world.error("x: '{{ a }}'"), @r"
    error[F0301]: `b.c` is undefined: object of type 'dict' has no attribute 'c'
     --> site.yml:1:8
      |
    1 | a: '{{ b.c }}'
      |        ^^^
      |
     ::: site.yml:1:8
      |
    1 | x: '{{ a }}'
      |        - `a` is used here
      |
      = help: did you mean `b.d`?
              `b` comes from site.yml:2:4
    ");
}

#[test]
fn a_template_made_of_itself_is_found() {
    let world = World::new("{a: '{{ b }}', b: '{{ c.d }}', c: {d: '{{ a }}'}}");
    assert!(
        world
            .error("'{{ a }}'")
            .contains("Recursive loop detected in template: `a` → `b` → `c.d` → `a`")
    );
}

#[test]
fn what_is_undefined_stays_so_through_filters_and_methods() {
    let world = World::new("{d: {}}");
    assert_eq!(world.text("{{ gone | upper | default('x') }}"), "x");
    assert_eq!(world.text("{{ gone.split() | default('x') }}"), "x");
    assert_eq!(world.text("{{ d.gone.split(',') | default('x') }}"), "x");
    assert_eq!(
        world.text("{{ lookup('items', gone) | default('x') }}"),
        "x"
    );
    assert_eq!(world.text("{{ undef(hint='why') | default('x') }}"), "x");
}

#[test]
fn messages_have_ansibles_words() {
    let world = World::new("{d: {a: 1}, l: [1]}");
    for (template, words) in [
        ("{{ gone }}", "'gone' is undefined"),
        ("{{ d.b }}", "object of type 'dict' has no attribute 'b'"),
        ("{{ l[3] }}", "list object has no element 3"),
        (
            "{{ gone | mandatory }}",
            "Mandatory variable 'gone' not defined.",
        ),
        ("{{ gone | mandatory('Say it') }}", "Say it"),
        ("{{ undef(hint='Why not') }}", "Why not"),
        ("{{ 1 / 0 }}", "division by zero"),
        (
            "{{ 1 < 'a' }}",
            "'<' not supported between instances of 'int' and 'str'",
        ),
        (
            "{{ lookup('pipe', 'exit 3') }}",
            "The lookup plugin 'pipe' failed",
        ),
    ] {
        let error = world.error(&serde_json::to_string(template).unwrap());
        assert!(error.contains(words), "{template}: {error}");
    }
}
