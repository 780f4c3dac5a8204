//! What people get wrong in YAML, and what they are told.

use std::path::Path;

use fleet_yaml::{Diagnostic, Source, load, render};

fn mistake(text: &str) -> String {
    render(
        &load(Source::new("site.yml", text)).expect_err("it is a mistake"),
        false,
    )
}

fn warnings(text: &str) -> String {
    let loaded = load(Source::new("site.yml", text)).expect("it is YAML");
    loaded
        .warnings
        .iter()
        .map(|warning| render(warning, false) + "\n")
        .collect()
}

#[test]
fn a_template_without_quotes() {
    insta::assert_snapshot!(mistake("msg: {{ foo }}\n"), @r#"
    error[F0103]: unquoted template
     --> site.yml:1:6
      |
    1 | msg: {{ foo }}
      |      ^^^^^^^^^ YAML takes this for a mapping
      |
      = help: write "{{ foo }}"
    "#);
    insta::assert_snapshot!(mistake("path: {{ base }}/bin # where\n"), @r#"
    error[F0103]: unquoted template
     --> site.yml:1:7
      |
    1 | path: {{ base }}/bin # where
      |       ^^^^^^^^^^^^^^ YAML takes this for a mapping
      |
      = help: write "{{ base }}/bin"
    "#);
    insta::assert_snapshot!(mistake("- {{ foo }}\n"), @r#"
    error[F0103]: unquoted template
     --> site.yml:1:3
      |
    1 | - {{ foo }}
      |   ^^^^^^^^^ YAML takes this for a mapping
      |
      = help: write "{{ foo }}"
    "#);
    insta::assert_snapshot!(mistake("x: [a, {{ b }}]\n"), @r#"
    error[F0103]: unquoted template
     --> site.yml:1:8
      |
    1 | x: [a, {{ b }}]
      |        ^^^^^^^ YAML takes this for a mapping
      |
      = help: write "{{ b }}"
    "#);
    insta::assert_snapshot!(mistake("{{ name }}: 1\n"), @r#"
    error[F0103]: unquoted template
     --> site.yml:1:1
      |
    1 | {{ name }}: 1
      | ^^^^^^^^^^ YAML takes this for a mapping
      |
      = help: write "{{ name }}"
    "#);
    insta::assert_snapshot!(mistake("when: {{ \"a\" if b else 'c' }}\n"), @r#"
    error[F0103]: unquoted template
     --> site.yml:1:7
      |
    1 | when: {{ "a" if b else 'c' }}
      |       ^^^^^^^^^^^^^^^^^^^^^^^ YAML takes this for a mapping
      |
      = help: write '{{ "a" if b else ''c'' }}'
    "#);
    insta::assert_snapshot!(mistake("x: {% if a %}b{% endif %}\n"), @r#"
    error[F0103]: unquoted template
     --> site.yml:1:4
      |
    1 | x: {% if a %}b{% endif %}
      |    ^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write "{% if a %}b{% endif %}"
    "#);
}

#[test]
fn a_colon_in_a_value() {
    insta::assert_snapshot!(mistake("msg: hello: world\n"), @r#"
    error[F0101]: the value of `msg` has a `: ` in it and no quotes
     --> site.yml:1:6
      |
    1 | msg: hello: world
      |      ^^^^^^^^^^^^
      |
      = help: write "hello: world"
    "#);
    insta::assert_snapshot!(mistake("- name: it's \"odd\": yes\n"), @r#"
    error[F0101]: the value of `name` has a `: ` in it and no quotes
     --> site.yml:1:9
      |
    1 | - name: it's "odd": yes
      |         ^^^^^^^^^^^^^^^
      |
      = help: write 'it''s "odd": yes'
    "#);
}

#[test]
fn text_behind_a_closing_quote() {
    insta::assert_snapshot!(mistake("when: \"foo\" in bar\n"), @r#"
    error[F0101]: there is text behind the closing quote
     --> site.yml:1:13
      |
    1 | when: "foo" in bar
      |             ^^^^^^
      |
      = help: quote the whole value: '"foo" in bar'
    "#);
    insta::assert_snapshot!(mistake("msg: 'it's'\n"), @r"
    error[F0101]: there is text behind the closing quote
     --> site.yml:1:10
      |
    1 | msg: 'it's'
      |          ^^
      |
      = help: within single quotes write `''` for a quote
    ");
    insta::assert_snapshot!(mistake("a: \"{{ x }}\"{{ y }}\n"), @r#"
    error[F0101]: there is text behind the closing quote
     --> site.yml:1:13
      |
    1 | a: "{{ x }}"{{ y }}
      |             ^^^^^^^
      |
      = help: quote the whole value: '"{{ x }}"{{ y }}'
    "#);
}

#[test]
fn quotes_and_brackets_that_stay_open() {
    insta::assert_snapshot!(mistake("a: \"abc\nb: 1\n"), @r#"
    error[F0101]: this quote is never closed
     --> site.yml:1:4
      |
    1 | a: "abc
      |    ^
      |
      = help: put a " where the text ends
    "#);
    insta::assert_snapshot!(mistake("a:\n  - 'x\n"), @r"
    error[F0101]: this quote is never closed
     --> site.yml:2:5
      |
    2 |   - 'x
      |     ^
      |
      = help: put a ' where the text ends
    ");
    insta::assert_snapshot!(mistake("a: [1, 2\nb: 3\n"), @r"
    error[F0101]: this `[` is never closed
     --> site.yml:1:4
      |
    1 | a: [1, 2
      |    ^
    2 | b: 3
      |  - here it can no longer go on
    ");
    insta::assert_snapshot!(mistake("a: {x: 1\n"), @r"
    error[F0101]: this `{` is never closed
     --> site.yml:1:4
      |
    1 | a: {x: 1
      |    ^
    ");
    insta::assert_snapshot!(mistake("a: [1, 2}\n"), @r"
    error[F0101]: this `[` is closed by a `}`
     --> site.yml:1:4
      |
    1 | a: [1, 2}
      |    ^
    ");
    insta::assert_snapshot!(mistake("a: ]\n"), @r"
    error[F0101]: this `]` closes nothing
     --> site.yml:1:4
      |
    1 | a: ]
      |    ^
    ");
    insta::assert_snapshot!(mistake("a: {x: 1 y: 2}\n"), @r"
    error[F0101]: this does not fit in a mapping in brackets
     --> site.yml:1:11
      |
    1 | a: {x: 1 y: 2}
      |    -      ^
      |    |
      |    the mapping starts here
      |
      = help: separate what is in it with `, `, and quote strings with `,`, `: `, brackets or braces
    ");
}

#[test]
fn tabs() {
    insta::assert_snapshot!(mistake("a:\n\t- b\n"), @r"
    error[F0101]: a tab cannot indent in YAML
     --> site.yml:2:1
      |
    2 |     - b
      | ^^^^
      |
      = help: indent with spaces
    ");
    insta::assert_snapshot!(mistake("a:\n  b: 1\n\tc: 2\n"), @r"
    error[F0101]: a tab cannot indent in YAML
     --> site.yml:3:1
      |
    3 |     c: 2
      | ^^^^
      |
      = help: indent with spaces
    ");
    insta::assert_snapshot!(mistake("a:\n  - x\n \t- y\n"), @r"
    error[F0101]: a tab cannot indent in YAML
     --> site.yml:3:2
      |
    3 |      - y
      |  ^^^^
      |
      = help: indent with spaces
    ");
}

#[test]
fn wrong_indentation() {
    insta::assert_snapshot!(mistake("- name: x\n   copy:\n    src: y\n"), @r"
    error[F0101]: `copy` is indented too far: `name` has a value already
     --> site.yml:2:4
      |
    1 | - name: x
      |         - the value of `name`
    2 |    copy:
      |    ^^^^
      |
      = help: start `copy` in column 3, below `name`
    ");
    insta::assert_snapshot!(mistake("a:\n  - b\n - c\n"), @r"
    error[F0101]: this list item lines up with nothing above it
     --> site.yml:3:2
      |
    3 |  - c
      |  ^^^
      |
      = help: the list item in line 2 starts in column 3
    ");
    insta::assert_snapshot!(mistake("- hosts: all\n  tasks:\n  - name: x\n    command: y\n   - name: z\n     command: q\n"), @r"
    error[F0101]: this list item lines up with nothing above it
     --> site.yml:5:4
      |
    5 |    - name: z
      |    ^^^^^^^^^
      |
      = help: the list item in line 3 starts in column 3
    ");
    insta::assert_snapshot!(mistake("a:\n    b: 1\n  c: 2\n"), @r"
    error[F0101]: this key lines up with nothing above it
     --> site.yml:3:3
      |
    3 |   c: 2
      |   ^^^^
      |
      = help: the key in line 2 starts in column 5
    ");
    insta::assert_snapshot!(mistake("a: b\n- c\n"), @r"
    error[F0101]: a list item where a key is expected
     --> site.yml:2:1
      |
    2 | - c
      | ^^^
      |
      = help: put the list below a key of its own
    ");
    insta::assert_snapshot!(mistake("- a\nb: c\n"), @r"
    error[F0101]: a key where the next item of a list is expected
     --> site.yml:2:1
      |
    2 | b: c
      | ^^^^
      |
      = help: start it with `- `, or indent it to the key of the item above
    ");
    insta::assert_snapshot!(mistake("a: |\n    x\n  y\n"), @r"
    error[F0101]: this key lines up with nothing above it
     --> site.yml:3:3
      |
    3 |   y
      |   ^
      |
      = help: the key in line 1 starts in column 1
    ");
}

#[test]
fn keys_that_are_none() {
    insta::assert_snapshot!(mistake("a: b\nc\n"), @r"
    error[F0101]: this is no `key: value`
     --> site.yml:2:1
      |
    2 | c
      | ^
      |
      = help: end a key with `:`, or indent a text that goes on further than its key
    ");
    insta::assert_snapshot!(mistake("key:value\nother: x\n"), @r"
    error[F0101]: there is no space behind `key:`
     --> site.yml:1:1
      |
    1 | key:value
      | ^^^^^^^^^
      |
      = help: write `key: value`
    ");
    insta::assert_snapshot!(mistake("a: 1\nb:2\n"), @r"
    error[F0101]: there is no space behind `b:`
     --> site.yml:2:1
      |
    2 | b:2
      | ^^^
      |
      = help: write `b: 2`
    ");
    insta::assert_snapshot!(mistake("a: - b\n"), @r"
    error[F0101]: a list cannot start in the line of its key
     --> site.yml:1:4
      |
    1 | a: - b
      |    ^
      |
      = help: put each `-` in a line of its own below the key
    ");
}

#[test]
fn values_that_start_wrong() {
    insta::assert_snapshot!(mistake("a: @foo\n"), @r#"
    error[F0101]: a value cannot start with `@`
     --> site.yml:1:4
      |
    1 | a: @foo
      |    ^
      |
      = help: quote it: "@foo"
    "#);
    insta::assert_snapshot!(mistake("a: `foo`\n"), @r#"
    error[F0101]: a value cannot start with ```
     --> site.yml:1:4
      |
    1 | a: `foo`
      |    ^
      |
      = help: quote it: "`foo`"
    "#);
    insta::assert_snapshot!(mistake("a: %x\n"), @r#"
    error[F0101]: a value cannot start with `%`
     --> site.yml:1:4
      |
    1 | a: %x
      |    ^
      |
      = help: quote it: "%x"
    "#);
    insta::assert_snapshot!(mistake("a: ,\n"), @r#"
    error[F0101]: a value cannot start with `,`
     --> site.yml:1:4
      |
    1 | a: ,
      |    ^
      |
      = help: quote it: ","
    "#);
    insta::assert_snapshot!(mistake("a: *.txt\n"), @r"
    error[F0106]: the alias `*.txt` stands for nothing
     --> site.yml:1:4
      |
    1 | a: *.txt
      |    ^^^^^
      |
      = help: a string that starts with `*` needs quotes; an alias needs its anchor `&.txt` before it
    ");
    insta::assert_snapshot!(mistake("a: !foo!bar x\n"), @r"
    error[F0101]: this tag is not known
     --> site.yml:1:4
      |
    1 | a: !foo!bar x
      |    ^
      |
      = help: quote a string that starts with `!`
    ");
}

#[test]
fn escapes() {
    insta::assert_snapshot!(mistake("path: \"C:\\Users\"\n"), @r#"
    error[F0101]: `\U` is no escape that YAML knows
     --> site.yml:1:10
      |
    1 | path: "C:\Users"
      |          ^^
      |
      = help: in double quotes write `\\` for a backslash, or use single quotes
    "#);
    insta::assert_snapshot!(mistake("a: \"\\d+\"\n"), @r#"
    error[F0101]: `\d` is no escape that YAML knows
     --> site.yml:1:5
      |
    1 | a: "\d+"
      |     ^^
      |
      = help: in double quotes write `\\` for a backslash, or use single quotes
    "#);
    insta::assert_snapshot!(mistake("a: \"\\ud800\"\n"), @r#"
    error[F0101]: `\ud800` is no escape that YAML knows
     --> site.yml:1:5
      |
    1 | a: "\ud800"
      |     ^^^^^^
      |
      = help: in double quotes write `\\` for a backslash, or use single quotes
    "#);
}

#[test]
fn aliases_merges_and_keys() {
    insta::assert_snapshot!(mistake("a: &foo 1\nb: *fo\n"), @r"
    error[F0106]: the alias `*fo` stands for nothing
     --> site.yml:2:4
      |
    2 | b: *fo
      |    ^^^
      |
      = help: did you mean `*foo`?
    ");
    insta::assert_snapshot!(mistake("a: &x\n  b: *x\n"), @r"
    error[F0106]: this alias stands within what it stands for
     --> site.yml:2:6
      |
    2 |   b: *x
      |   -  ^^
      |   |
      |   its anchor
    ");
    insta::assert_snapshot!(mistake("<<: 5\n"), @r"
    error[F0109]: `<<` takes a mapping or a list of them, not a number
     --> site.yml:1:5
      |
    1 | <<: 5
      |     ^
    ");
    insta::assert_snapshot!(mistake("a:\n  <<: [{b: 1}, c]\n"), @r"
    error[F0109]: `<<` takes a mapping or a list of them, not a string
     --> site.yml:2:16
      |
    2 |   <<: [{b: 1}, c]
      |                ^
    ");
    insta::assert_snapshot!(mistake("? [a]\n: b\n"), @r"
    error[F0108]: a list cannot be a key
     --> site.yml:1:3
      |
    1 | ? [a]
      |   ^^^
      |
      = help: put quotes around it where a string is meant
    ");
}

#[test]
fn characters() {
    insta::assert_snapshot!(mistake("a: b\u{1b}[31mred\n"), @r"
    error[F0107]: the control character U+001B cannot stand in YAML
     --> site.yml:1:5
      |
    1 | a: b␛[31mred
      |     ^
      |
      = help: remove it, or write it as `\x1b` in double quotes
    ");
}

#[test]
fn what_is_taken_but_may_not_be_meant() {
    insta::assert_snapshot!(warnings("a: 1\nb: 2\na: 3\n"), @r"
    warning[F0102]: the key `a` is here twice; the last one counts
     --> site.yml:3:1
      |
    1 | a: 1
      | - this one does not
    2 | b: 2
    3 | a: 3
      | ^ this one counts
    ");
    insta::assert_snapshot!(warnings("at: 12:30\nfor: '12:30'\nnot: 8080:80\n"), @r#"
    warning[F0104]: `12:30` is a number to base 60 for Ansible; here it is a string
     --> site.yml:1:5
      |
    1 | at: 12:30
      |     ^^^^^
      |
      = help: write "12:30"
    "#);
}

#[test]
fn bytes_that_are_no_text() {
    let unreadable = |bytes: &[u8]| -> Diagnostic {
        Source::from_bytes(Path::new("x.yml"), bytes.to_vec()).unwrap_err()
    };
    insta::assert_snapshot!(render(&unreadable(b"a: 1\nb: caf\xe9\n"), false), @r"
    error[F0107]: this is not UTF-8
     --> x.yml:2:7
      |
    2 | b: caf�
      |       ^ the byte 0xe9 cannot stand here
      |
      = help: save the file as UTF-8
    ");
    assert_eq!(
        unreadable(b"\xff\xfea\0:\0").to_string(),
        "x.yml:1:1: this is not UTF-8 (this looks like UTF-16: save the file as UTF-8)"
    );
    assert_eq!(
        unreadable(b"\x7fELF\0\0\xf0").to_string(),
        "x.yml:1:7: this is not UTF-8 (this looks like a binary file, not like a text)"
    );
    let missing = Source::read(Path::new("/nonexistent/a.yml")).unwrap_err();
    assert_eq!(missing.to_string(), "there is no file /nonexistent/a.yml");
}
