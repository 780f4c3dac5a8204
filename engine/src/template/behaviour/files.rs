//! Template files.

use super::*;

#[test]
fn template_files_are_read_as_by_the_template_module() {
    let world = World::new("{items: [a, b], n: 1}");
    assert_eq!(
        world.rendered("{% for i in items %}\n{{ i }}\n{% endfor %}\nend\n"),
        "a\nb\nend\n"
    );
    assert_eq!(
        world.rendered("  {% if n %}\nx\n  {% endif %}\n"),
        "  x\n  \n"
    );
    // One value alone has no newline of its template, and nothing printed is nothing.
    assert_eq!(world.rendered("{{ n }}\n"), "1");
    assert_eq!(world.rendered("{% for i in [] %}\n{% endfor %}\n"), "");
    assert_eq!(
        world.rendered(
            "#jinja2: lstrip_blocks: True, trim_blocks: False\n  {% if n %}\nx\n  {% endif %}\n"
        ),
        "\nx\n"
    );
    assert_eq!(
        world.rendered(
            "#jinja2: variable_start_string: '[[', variable_end_string: ']]'\n[[ n ]] {{ n }}\n"
        ),
        "1 {{ n }}\n"
    );
    assert_eq!(world.rendered("{{ 'a\\nb' }}"), "a\nb");
    assert_eq!(world.rendered("no end"), "no end");
    assert_eq!(
        world.rendered("none: {{ none }} true: {{ true }}\n"),
        "none:  true: True\n"
    );
}

#[test]
fn templates_include_import_and_extend_others() {
    let world = World::new("{n: 1}");
    world.write("part.j2", "part {{ n }} {{ a.b | default('-') }}\n");
    world.write("macros.j2", "{% macro line(x) %}<{{ x }}>{% endmacro %}");
    world.write("base.j2", "head\n{% block body %}{% endblock %}tail\n");
    assert_eq!(world.rendered("{% include 'part.j2' %}\n"), "part 1 -\n");
    assert_eq!(
        world.rendered("{% import 'macros.j2' as m %}{{ m.line(n) }}"),
        "<1>"
    );
    assert_eq!(
        world.rendered("{% from 'macros.j2' import line with context %}{{ line(2) }}"),
        "<2>"
    );
    assert_eq!(
        world.rendered("{% extends 'base.j2' %}{% block body %}x\n{% endblock %}"),
        "head\nx\ntail"
    );
    world.write("broken.j2", "one\ntwo {{ gone }}\n");
    let error = world
        .file("test.j2", "{% include 'broken.j2' %}")
        .unwrap_err();
    assert_eq!(error.diagnostic().message, "'gone' is undefined");
    let span = error.diagnostic().span.clone().unwrap();
    assert_eq!(
        (
            span.source.name.file_name().unwrap().to_str().unwrap(),
            span.line_col()
        ),
        ("broken.j2", (2, 8))
    );
}

#[test]
fn an_error_in_a_file_stands_at_its_line() {
    let world = World::new("{}");
    let error = world
        .file(
            "nginx.conf.j2",
            "#jinja2: trim_blocks: True\nworker {{ gone }};\n",
        )
        .unwrap_err();
    assert_eq!(error.diagnostic().span.clone().unwrap().line_col(), (2, 11));
}

#[test]
fn a_file_ends_as_in_ansible() {
    let world = World::new("{n: 1, l: [1, 2], text: \"a\\nb\\n\"}");
    world.write("part.j2", "part\n");
    for (template, rendered) in [
        ("{{ text }}\n", "a\nb\n"),
        ("{{ l }}\n", "[1, 2]"),
        ("{% for x in l %}{{ x }}{% endfor %}\n", "12\n"),
        ("{% include 'part.j2' %}!\n", "part!\n"),
        ("{% raw %}\n{{ x }}\n{% endraw %}\n", "\n{{ x }}\n"),
        ("a\r\nb\r\n", "a\r\nb\r\n"),
        (
            "#jinja2: line_statement_prefix: '%'\n% if n\nx\n% endif\n",
            "x\n",
        ),
    ] {
        assert_eq!(world.rendered(template), rendered, "{template:?}");
    }
}
