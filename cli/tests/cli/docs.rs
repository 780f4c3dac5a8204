//! Pages that are made of the code.

use crate::desk::Desk;

/// To make it anew: `fleetctl doc --markdown > docs/modules.md`.
#[test]
fn the_page_of_the_modules_is_what_the_program_prints() {
    let made = Desk::new().output("doc --markdown");
    let made = String::from_utf8(made.stdout).unwrap();
    let kept = include_str!("../../../docs/modules.md");
    let differs = made
        .lines()
        .zip(kept.lines())
        .find(|(made, kept)| made != kept);
    assert_eq!(
        differs, None,
        "run `fleetctl doc --markdown > docs/modules.md`"
    );
    assert_eq!(
        made, kept,
        "run `fleetctl doc --markdown > docs/modules.md`"
    );
}

/// To make it anew: `fleetctl doc --settings > docs/ansible-cfg.md`.
#[test]
fn the_page_of_the_settings_is_what_the_program_prints() {
    let made = Desk::new().output("doc --settings");
    let made = String::from_utf8(made.stdout).unwrap();
    let kept = include_str!("../../../docs/ansible-cfg.md");
    let differs = made
        .lines()
        .zip(kept.lines())
        .find(|(made, kept)| made != kept);
    assert_eq!(
        differs, None,
        "run `fleetctl doc --settings > docs/ansible-cfg.md`"
    );
    assert_eq!(made.len(), kept.len());
}

#[test]
fn one_module_is_shown_with_its_arguments() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.run("doc include_vars"), @"
    include_vars

    Takes in the variables of a file of the controller.

    `include_vars: text` is short for its argument `file`.

      file  text
          The file, beside the playbook or in its `vars/`.

      dir  text
          A directory, all files of which are taken, in order.

      name  text
          Put the variables into one mapping of this name.

      depth  number; 0 where it is not given
          How deep to go into a directory; 0 for all of it.

      extensions  list; json, yaml, yml where it is not given
          The endings of files that are taken from a directory.

      files_matching  pattern
          Only files of a directory that this matches.

      hash_behaviour  `replace` or `merge`
          Whether mappings are merged with those that are there.

      ignore_files  list
          Files of a directory that are left out.

      ignore_unknown_extensions  yes or no; false where it is not given
          Files of a directory with other endings are no mistake.
    --- exit 0
    ");
    insta::assert_snapshot!(desk.run("doc tempalte"), @"
    --- stderr
    error: there is no module `tempalte`; did you mean `template`?
    --- exit 11
    ");
    assert_eq!(desk.run("doc ansible.posix.sysctl"), desk.run("doc sysctl"));
    let list = desk.run("doc");
    assert!(
        list.contains("lineinfile") && list.contains("template") && !list.contains("_load"),
        "{list}"
    );
}
