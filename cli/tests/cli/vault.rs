//! `fleetctl vault`, and what becomes of encrypted values in a run. The vaults are ansible-vault's.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::desk::Desk;

/// `greeting: correct horse`, with the password `secretpw` and the id `dev`.
const VARIABLES: &str = "$ANSIBLE_VAULT;1.2;AES256;dev
32613463613139326336383963323764646530636164623539356466653132313361663839353964
3165396462316531353066313231393837363539356666640a366561643264323638353133373438
39646231353737356164626566623337376661303936343361373166663139663234623233636461
3635653333343232320a326361393238333962376330663630313533363461623034383762653235
35313362636139633939333431626136623331353461343133323238363131396165
";

fn desk() -> Desk {
    let desk = Desk::new();
    desk.file("pw", "secretpw\n").file("other", "another\n");
    desk.file("vars.yml", VARIABLES);
    desk.file("plain.yml", "a: 1\n");
    desk
}

#[test]
fn what_ansible_made_is_shown_and_decrypted() {
    let desk = desk();
    insta::assert_snapshot!(desk.run("vault view --vault-id dev@pw vars.yml"), @r"
    greeting: correct horse
    --- exit 0
    ");
    insta::assert_snapshot!(desk.run("vault decrypt --vault-password-file pw vars.yml --output -"), @r"
    greeting: correct horse
    --- exit 0
    ");
    desk.run("vault decrypt --vault-id pw vars.yml");
    assert_eq!(desk.read("vars.yml"), "greeting: correct horse\n");
}

#[test]
fn what_is_encrypted_decrypts_to_the_same_and_only_its_owner_may_read_it_then() {
    let desk = desk();
    let path = desk.path().join("plain.yml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    insta::assert_snapshot!(desk.run("vault encrypt --vault-id dev@pw plain.yml"), @"--- exit 0");
    assert!(
        desk.read("plain.yml")
            .starts_with("$ANSIBLE_VAULT;1.2;AES256;dev\n")
    );
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o644);
    insta::assert_snapshot!(desk.run("vault rekey --vault-id dev@pw --new-vault-password-file other plain.yml"), @r"
    --- stderr
    rekeyed
    --- exit 0
    ");
    assert!(
        desk.read("plain.yml")
            .starts_with("$ANSIBLE_VAULT;1.1;AES256\n")
    );
    insta::assert_snapshot!(desk.run("vault decrypt --vault-id other plain.yml"), @"--- exit 0");
    assert_eq!(desk.read("plain.yml"), "a: 1\n");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
}

#[test]
fn values_are_made_for_yaml() {
    let desk = desk();
    let said = desk.run("vault encrypt_string --vault-id pw swordfish -n password");
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[..2],
        ["password: !vault |", "          $ANSIBLE_VAULT;1.1;AES256"]
    );
    desk.file("value.yml", said.split("---").next().unwrap());
    desk.file("site.yml", "- hosts: localhost\n  connection: local\n  gather_facts: false\n  vars_files: [value.yml]\n  tasks:\n    - assert: {that: password == 'swordfish'}\n");
    let ran = desk.output("play -i localhost, --vault-id pw site.yml");
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
}

#[test]
fn an_editor_that_changes_nothing_or_fails_leaves_the_file_alone() {
    let desk = desk();
    let editor = |does: &str| format!("[defaults]\neditor = sh -c '{does}'\n");
    desk.file("ansible.cfg", &editor("grep -q greeting \"$0\""));
    insta::assert_snapshot!(desk.run("vault edit --vault-id pw vars.yml"), @"--- exit 0");
    desk.file("ansible.cfg", &editor("echo more: 1 >> \"$0\"; exit 3"));
    insta::assert_snapshot!(desk.run("vault edit --vault-id pw vars.yml"), @r#"
    --- stderr
    error: the editor `sh -c 'echo more: 1 >> "$0"; exit 3'` failed (exit status: 3): nothing was changed
    --- exit 1
    "#);
    assert_eq!(desk.read("vars.yml"), VARIABLES);
    desk.file("ansible.cfg", &editor("echo more: 1 >> \"$0\""));
    insta::assert_snapshot!(desk.run("vault edit --vault-id pw vars.yml"), @"--- exit 0");
    insta::assert_snapshot!(desk.run("vault view --vault-id pw vars.yml"), @r"
    greeting: correct horse
    more: 1
    --- exit 0
    ");
    assert!(
        desk.read("vars.yml")
            .starts_with("$ANSIBLE_VAULT;1.2;AES256;dev\n")
    );
}

#[test]
fn mistakes_are_told() {
    let desk = desk();
    desk.file("bad.yml", "$ANSIBLE_VAULT;1.1;AES256\n6162zz\n");
    insta::assert_snapshot!(desk.run("vault view --vault-id dev@other vars.yml"), @r"
    --- stderr
    error[F0801]: none of the vault secrets (dev) opens this, whose id is `dev`
     --> vars.yml:1:1
      |
    1 | $ANSIBLE_VAULT;1.2;AES256;dev
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: is the password right, and the id the one it was encrypted with?
    --- exit 1
    ");
    insta::assert_snapshot!(desk.run("vault view --vault-id pw bad.yml"), @r"
    --- stderr
    error[F0802]: the vault is damaged: `z` is no hex digit
     --> bad.yml:2:1
      |
    2 | 6162zz
      | ^^^^^^
    --- exit 1
    ");
    insta::assert_snapshot!(desk.run("vault view --vault-id pw plain.yml"), @r"
    --- stderr
    error: plain.yml is not encrypted by vault
    --- exit 1
    ");
    insta::assert_snapshot!(desk.run("vault encrypt --vault-id pw vars.yml"), @r"
    --- stderr
    error: vars.yml is encrypted already
    --- exit 1
    ");
    insta::assert_snapshot!(desk.run("vault encrypt --vault-id a@pw --vault-id b@other plain.yml"), @r"
    --- stderr
    error: there are several vault secrets to encrypt with (a, b): choose one by `--encrypt-vault-id`
    --- exit 5
    ");
}

#[test]
fn a_run_uses_secrets_and_shows_none() {
    let desk = Desk::local(
        "  vars_files: [vars.yml]
  tasks:
    - name: says {{ greeting }}
      debug: {msg: \"{{ greeting | upper }} {{ greeting }}\"}
    - copy: {dest: $DESK/out, content: \"x\\n{{ greeting }}\\n\", mode: '0600'}
    - command: \"test '{{ greeting }}' = 'correct horse'\"
",
    );
    desk.file("pw", "secretpw\n").file("vars.yml", VARIABLES);
    let plan = desk.run("plan -i here.yml --vault-id pw site.yml");
    assert!(plan.contains("+********\n"), "{plan}");
    assert!(!plan.contains("correct horse"), "{plan}");
    let applied = desk.run("apply --yes -i here.yml --vault-id pw --json site.yml");
    assert!(applied.ends_with("--- exit 0"), "{applied}");
    assert!(!applied.contains("correct horse"), "{applied}");
    assert_eq!(desk.read("out"), "x\ncorrect horse\n");
}
