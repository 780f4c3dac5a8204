//! The help of every verb: the first thing that a newcomer reads.

use crate::desk::Desk;

fn help(verb: &str) -> String {
    Desk::new().run(&format!("{verb} --help"))
}

#[test]
fn of_the_program() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.run("--help"), @"
    Declarative provisioning for fleets of Linux servers

    Reads Ansible inventories and playbooks; plans exactly, applies as a transaction, proves by load
    tests, undoes what fails.

    Usage: fleetctl <COMMAND>

    Commands:
      plan       Show what an apply would change, and change nothing
      show       Show a saved plan, from its file alone
      diff       What is different between two saved plans
      approve    Sign a saved plan with an ssh key, so that it may be applied
      verify     Check that a saved plan is whole, and who has approved it
      apply      Make it true: plan, show, ask, apply, prove
      play       Run playbooks as ansible-playbook does
      exec       Run one module on hosts as ansible does
      validate   Check inventories and playbooks without connecting to anything
      resume     Go on with a run of a saved plan that was cut off
      confirm    Keep a change that its hosts would undo by themselves
      rollback   Undo a past run, from the hosts' own journals
      bench      Run the load tests of a playbook alone, and change nothing
      facts      Show the facts of hosts as JSON
      host       Look after single hosts: their keys, their connections, their journals
      inventory  Show an inventory: as JSON, YAML or TOML, as a graph, or one host's variables
      vault      Encrypt and decrypt files and values, as ansible-vault does
      runs       List past runs, oldest first
      drift      Show where hosts are not as the playbooks want them, and change nothing
      audit      The log of who changed what: each line is bound to the one before it
      doc        Show the modules there are, or one with its arguments
      schema     Print the JSON Schema of playbooks, of files of tasks, or of a module's arguments
      help       Print this message or the help of the given subcommand(s)

    Options:
      -h, --help
              Print help (see a summary with '-h')

      -V, --version
              Print version
    --- exit 0
    ");
    assert!(
        desk.run("").contains("Usage: fleetctl <COMMAND>"),
        "without anything, too"
    );
    assert!(desk.run("--version").starts_with("fleetctl 0."));
}

#[test]
fn a_wrong_command_line_is_told_and_ends_with_64() {
    let desk = Desk::new();
    insta::assert_snapshot!(desk.run("aply"), @"
    --- stderr
    error: unrecognized subcommand 'aply'

      tip: some similar subcommands exist: 'play', 'apply'

    Usage: fleetctl <COMMAND>

    For more information, try '--help'.
    --- exit 64
    ");
    insta::assert_snapshot!(desk.run("plan"), @"
    --- stderr
    error: the following required arguments were not provided:
      <PLAYBOOK>...

    Usage: fleetctl plan <PLAYBOOK>...

    For more information, try '--help'.
    --- exit 64
    ");
    insta::assert_snapshot!(desk.run("plan --inventry x site.yml"), @"
    --- stderr
    error: unexpected argument '--inventry' found

      tip: a similar argument exists: '--inventory'

    Usage: fleetctl plan --inventory <INVENTORY> <PLAYBOOK>...

    For more information, try '--help'.
    --- exit 64
    ");
    insta::assert_snapshot!(desk.run("plan --forks many site.yml"), @"
    --- stderr
    error: invalid value 'many' for '--forks <N>': expected a whole number from 1 on

    For more information, try '--help'.
    --- exit 64
    ");
}

/// The commands of the README, as far as they can be tried without hosts.
#[test]
fn the_commands_of_the_readme_exist() {
    let readme = include_str!("../../../README.md");
    let mut tried = 0;
    for line in readme
        .lines()
        .filter_map(|line| line.strip_prefix("    fleetctl "))
    {
        let verbs = line.split_whitespace().take_while(|word| {
            word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains('/')
        });
        let verbs: Vec<_> = verbs
            .take(if line.starts_with("host") { 2 } else { 1 })
            .collect();
        let said = Desk::new().run(&format!("{} --help", verbs.join(" ")));
        assert!(said.ends_with("--- exit 0"), "{line}: {said}");
        for flag in line.split_whitespace().filter(|word| word.starts_with('-')) {
            assert!(said.contains(flag), "{line}: no {flag} in {said}");
        }
        tried += 1;
    }
    assert!(tried >= 5, "only {tried} commands were found in the README");
}

#[test]
fn of_plan() {
    insta::assert_snapshot!(help("plan"), @"
    Show what an apply would change, and change nothing

    Runs the very code that an apply runs, over what earlier tasks would have done. Hosts with the same
    effects are shown once.

    Usage: fleetctl plan [OPTIONS] <PLAYBOOK>...

    Arguments:
      <PLAYBOOK>...
              The playbooks

    Options:
      -v, --verbose...
              Say more (`-vv` for still more)

      -o, --out <FILE>
              Save the plan in a file, which `fleetctl apply` takes

          --detailed-exitcode
              Exit with 2 when there is something to change

          --no-diff
              Leave the diffs out

      -h, --help
              Print help (see a summary with '-h')

    Hosts:
      -i, --inventory <INVENTORY>
              An inventory: a file, a directory, a script, or `host1,host2,` (repeatable)

      -l, --limit <PATTERN>
              Only these of the play's hosts: a pattern, or `@file`

      -f, --forks <N>
              How many hosts to work on at the same time [default: 50]

          --allow-no-hosts
              Pass over a play whose pattern matches no host

    Connection:
      -u, --user <USER>
              Log in as this user where the inventory names none

          --private-key <FILE>
              A private key to log in with

      -c, --connection <KIND>
              `ssh` or `local`, where the inventory says nothing

      -T, --timeout <SECONDS>
              Seconds to wait for a connection [default: 10]

          --ssh-common-args <ARGS>
              More arguments for every ssh command

          --ssh-extra-args <ARGS>
              More arguments for ssh, after those

      -b, --become
              Become another user for every task

          --become-method <METHOD>
              How to become another user [default: sudo]

          --become-user <USER>
              The user to become [default: root]

      -K, --ask-become-pass
              Ask for the password to become another user with

          --become-password-file <FILE>
              Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>
              A variable `name=value`, JSON, YAML, or `@file`; wins over every other (repeatable)

      -M, --module-path <PATH>
              Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>
              A vault secret as `LABEL@SOURCE`: a file, a program that prints it, or `prompt`
              (repeatable)

          --vault-password-file <FILE>
              A file with a vault's password, or a program that prints it (repeatable)

      -J, --ask-vault-password
              Ask for the vault's password

              [alias: --ask-vault-pass]

    Tasks:
      -t, --tags <TAGS>
              Only tasks with one of these tags (repeatable)

          --skip-tags <TAGS>
              No task with one of these tags (repeatable)

          --start-at-task <NAME>
              Begin with the task of this name

          --step
              Ask before each task

          --force-handlers
              Run handlers even on hosts that failed

          --flush-cache
              Forget the facts that are kept from earlier runs

          --list-hosts
              List the hosts of each play, and do nothing

          --list-tasks
              List the tasks, and do nothing

          --list-tags
              List the tags, and do nothing

    Output:
          --json
              Print JSON

          --log-dir <DIR>
              Keep the run's folder here
    --- exit 0
    ");
}

#[test]
fn of_apply() {
    insta::assert_snapshot!(help("apply"), @"
    Make it true: plan, show, ask, apply, prove

    With `--yes` every task is checked and performed in one pass. A host on which something fails is put
    back to what it was before the run.

    Usage: fleetctl apply [OPTIONS] <PLAYBOOK|PLAN>...

    Arguments:
      <PLAYBOOK|PLAN>...
              The playbooks, or one saved plan

    Options:
      -v, --verbose...
              Say more (`-vv` for still more)

      -y, --yes
              Do not ask

      -C, --check
              Only plan, as with Ansible

      -D, --diff
              Show the diffs

          --on-failure <WHAT>
              What becomes of a failed host's changes

              Possible values:
              - rollback-host: All that this run changed on the host is undone
              - keep:          They stay, as with Ansible

              [default: rollback-host]

          --confirm <HOW>
              How a change is confirmed that the host would undo by itself: one that may cut it off, and
              any of a saved plan

              Possible values:
              - auto:   Over a fresh connection, at the end of the run
              - manual: By `fleetctl confirm`
              - never:  Not at all: the host does not look after the run

              [default: auto]

          --confirm-timeout <TIME>
              How long the host waits for that: `30s`, `5m`

              [default: 60s]

          --lock-timeout <TIME>
              How long to wait for a host that another run holds: `30s`, `5m`

              [default: 0s]

          --strict
              Refuse a plan with effects that cannot be undone

          --allow-irreversible
              With `--strict`: effects that cannot be undone are fine

          --no-bench
              Leave the load tests out

      -h, --help
              Print help (see a summary with '-h')

    Hosts:
      -i, --inventory <INVENTORY>
              An inventory: a file, a directory, a script, or `host1,host2,` (repeatable)

      -l, --limit <PATTERN>
              Only these of the play's hosts: a pattern, or `@file`

      -f, --forks <N>
              How many hosts to work on at the same time [default: 50]

          --allow-no-hosts
              Pass over a play whose pattern matches no host

    Connection:
      -u, --user <USER>
              Log in as this user where the inventory names none

          --private-key <FILE>
              A private key to log in with

      -c, --connection <KIND>
              `ssh` or `local`, where the inventory says nothing

      -T, --timeout <SECONDS>
              Seconds to wait for a connection [default: 10]

          --ssh-common-args <ARGS>
              More arguments for every ssh command

          --ssh-extra-args <ARGS>
              More arguments for ssh, after those

      -b, --become
              Become another user for every task

          --become-method <METHOD>
              How to become another user [default: sudo]

          --become-user <USER>
              The user to become [default: root]

      -K, --ask-become-pass
              Ask for the password to become another user with

          --become-password-file <FILE>
              Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>
              A variable `name=value`, JSON, YAML, or `@file`; wins over every other (repeatable)

      -M, --module-path <PATH>
              Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>
              A vault secret as `LABEL@SOURCE`: a file, a program that prints it, or `prompt`
              (repeatable)

          --vault-password-file <FILE>
              A file with a vault's password, or a program that prints it (repeatable)

      -J, --ask-vault-password
              Ask for the vault's password

              [alias: --ask-vault-pass]

    Tasks:
      -t, --tags <TAGS>
              Only tasks with one of these tags (repeatable)

          --skip-tags <TAGS>
              No task with one of these tags (repeatable)

          --start-at-task <NAME>
              Begin with the task of this name

          --step
              Ask before each task

          --force-handlers
              Run handlers even on hosts that failed

          --flush-cache
              Forget the facts that are kept from earlier runs

          --list-hosts
              List the hosts of each play, and do nothing

          --list-tasks
              List the tasks, and do nothing

          --list-tags
              List the tags, and do nothing

    Output:
          --json
              Print JSON

          --log-dir <DIR>
              Keep the run's folder here

    Saved plan:
          --expect <HASH>
              Only the saved plan with this hash

          --max-age <TIME>
              Only a saved plan that is no older: `30m`, `24h`

          --approvals <N>
              Only a saved plan that so many people have approved (`fleetctl approve`)

          --allowed-signers <FILE>
              Who may approve, in the form of ssh-keygen(1) [default: ~/.ssh/allowed_signers]

          --allow-unknown
              Read what the saved plan could not know to be needed from the files as they are now
    --- exit 0
    ");
}

#[test]
fn of_validate() {
    insta::assert_snapshot!(help("validate"), @"
    Check inventories and playbooks without connecting to anything

    Syntax, keywords, modules, arguments, templates, handler names and host patterns; all mistakes in
    one go. Exits with 0 or 11.

    Usage: fleetctl validate [OPTIONS] <PLAYBOOK>...

    Arguments:
      <PLAYBOOK>...
              The playbooks

    Options:
      -v, --verbose...
              Say more (`-vv` for still more)

      -h, --help
              Print help (see a summary with '-h')

    Hosts:
      -i, --inventory <INVENTORY>
              An inventory: a file, a directory, a script, or `host1,host2,` (repeatable)

      -l, --limit <PATTERN>
              Only these of the play's hosts: a pattern, or `@file`

      -f, --forks <N>
              How many hosts to work on at the same time [default: 50]

          --allow-no-hosts
              Pass over a play whose pattern matches no host

    Connection:
      -u, --user <USER>
              Log in as this user where the inventory names none

          --private-key <FILE>
              A private key to log in with

      -c, --connection <KIND>
              `ssh` or `local`, where the inventory says nothing

      -T, --timeout <SECONDS>
              Seconds to wait for a connection [default: 10]

          --ssh-common-args <ARGS>
              More arguments for every ssh command

          --ssh-extra-args <ARGS>
              More arguments for ssh, after those

      -b, --become
              Become another user for every task

          --become-method <METHOD>
              How to become another user [default: sudo]

          --become-user <USER>
              The user to become [default: root]

      -K, --ask-become-pass
              Ask for the password to become another user with

          --become-password-file <FILE>
              Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>
              A variable `name=value`, JSON, YAML, or `@file`; wins over every other (repeatable)

      -M, --module-path <PATH>
              Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>
              A vault secret as `LABEL@SOURCE`: a file, a program that prints it, or `prompt`
              (repeatable)

          --vault-password-file <FILE>
              A file with a vault's password, or a program that prints it (repeatable)

      -J, --ask-vault-password
              Ask for the vault's password

              [alias: --ask-vault-pass]

    Tasks:
      -t, --tags <TAGS>
              Only tasks with one of these tags (repeatable)

          --skip-tags <TAGS>
              No task with one of these tags (repeatable)

          --start-at-task <NAME>
              Begin with the task of this name

          --step
              Ask before each task

          --force-handlers
              Run handlers even on hosts that failed

          --flush-cache
              Forget the facts that are kept from earlier runs

          --list-hosts
              List the hosts of each play, and do nothing

          --list-tasks
              List the tasks, and do nothing

          --list-tags
              List the tags, and do nothing
    --- exit 0
    ");
}

#[test]
fn of_rollback() {
    insta::assert_snapshot!(help("rollback"), @"
    Undo a past run, from the hosts' own journals

    Effects are taken back in reverse order, services are brought to the old configuration, and what
    somebody else has changed since is left as found.

    Usage: fleetctl rollback [OPTIONS] <RUN>

    Arguments:
      <RUN>
              The run, or `last` for the last apply

    Options:
      -v, --verbose...
              Say more (`-vv` for still more)

      -h, --help
              Print help (see a summary with '-h')

    Hosts:
      -i, --inventory <INVENTORY>
              An inventory: a file, a directory, a script, or `host1,host2,` (repeatable)

      -l, --limit <PATTERN>
              Only these of the play's hosts: a pattern, or `@file`

      -f, --forks <N>
              How many hosts to work on at the same time [default: 50]

    Connection:
      -u, --user <USER>
              Log in as this user where the inventory names none

          --private-key <FILE>
              A private key to log in with

      -c, --connection <KIND>
              `ssh` or `local`, where the inventory says nothing

      -T, --timeout <SECONDS>
              Seconds to wait for a connection [default: 10]

          --ssh-common-args <ARGS>
              More arguments for every ssh command

          --ssh-extra-args <ARGS>
              More arguments for ssh, after those

      -b, --become
              Become another user for every task

          --become-method <METHOD>
              How to become another user [default: sudo]

          --become-user <USER>
              The user to become [default: root]

      -K, --ask-become-pass
              Ask for the password to become another user with

          --become-password-file <FILE>
              Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>
              A variable `name=value`, JSON, YAML, or `@file`; wins over every other (repeatable)

      -M, --module-path <PATH>
              Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>
              A vault secret as `LABEL@SOURCE`: a file, a program that prints it, or `prompt`
              (repeatable)

          --vault-password-file <FILE>
              A file with a vault's password, or a program that prints it (repeatable)

      -J, --ask-vault-password
              Ask for the vault's password

              [alias: --ask-vault-pass]

    Output:
          --json
              Print JSON

          --log-dir <DIR>
              Keep the run's folder here
    --- exit 0
    ");
}

#[test]
fn of_bench() {
    insta::assert_snapshot!(help("bench"), @"
    Run the load tests of a playbook alone, and change nothing

    Usage: fleetctl bench [OPTIONS] <PLAYBOOK>...

    Arguments:
      <PLAYBOOK>...  The playbooks

    Options:
      -v, --verbose...  Say more (`-vv` for still more)
      -h, --help        Print help

    Hosts:
      -i, --inventory <INVENTORY>  An inventory: a file, a directory, a script, or `host1,host2,`
                                   (repeatable)
      -l, --limit <PATTERN>        Only these of the play's hosts: a pattern, or `@file`
      -f, --forks <N>              How many hosts to work on at the same time [default: 50]
          --allow-no-hosts         Pass over a play whose pattern matches no host

    Connection:
      -u, --user <USER>                  Log in as this user where the inventory names none
          --private-key <FILE>           A private key to log in with
      -c, --connection <KIND>            `ssh` or `local`, where the inventory says nothing
      -T, --timeout <SECONDS>            Seconds to wait for a connection [default: 10]
          --ssh-common-args <ARGS>       More arguments for every ssh command
          --ssh-extra-args <ARGS>        More arguments for ssh, after those
      -b, --become                       Become another user for every task
          --become-method <METHOD>       How to become another user [default: sudo]
          --become-user <USER>           The user to become [default: root]
      -K, --ask-become-pass              Ask for the password to become another user with
          --become-password-file <FILE>  Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>   A variable `name=value`, JSON, YAML, or `@file`; wins over every other
                                (repeatable)
      -M, --module-path <PATH>  Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>               A vault secret as `LABEL@SOURCE`: a file, a program that prints
                                        it, or `prompt` (repeatable)
          --vault-password-file <FILE>  A file with a vault's password, or a program that prints it
                                        (repeatable)
      -J, --ask-vault-password          Ask for the vault's password [alias: --ask-vault-pass]

    Tasks:
      -t, --tags <TAGS>           Only tasks with one of these tags (repeatable)
          --skip-tags <TAGS>      No task with one of these tags (repeatable)
          --start-at-task <NAME>  Begin with the task of this name
          --step                  Ask before each task
          --force-handlers        Run handlers even on hosts that failed
          --flush-cache           Forget the facts that are kept from earlier runs
          --list-hosts            List the hosts of each play, and do nothing
          --list-tasks            List the tasks, and do nothing
          --list-tags             List the tags, and do nothing

    Output:
          --json           Print JSON
          --log-dir <DIR>  Keep the run's folder here
    --- exit 0
    ");
}

#[test]
fn of_facts() {
    insta::assert_snapshot!(help("facts"), @"
    Show the facts of hosts as JSON

    Usage: fleetctl facts [OPTIONS] [PATTERN]

    Arguments:
      [PATTERN]  Which hosts: a pattern [default: all]

    Options:
      -v, --verbose...        Say more (`-vv` for still more)
          --filter <PATTERN>  Only facts whose names match this shell pattern (`ansible_mem*`)
      -h, --help              Print help

    Hosts:
      -i, --inventory <INVENTORY>  An inventory: a file, a directory, a script, or `host1,host2,`
                                   (repeatable)
      -l, --limit <PATTERN>        Only these of the play's hosts: a pattern, or `@file`
      -f, --forks <N>              How many hosts to work on at the same time [default: 50]

    Connection:
      -u, --user <USER>                  Log in as this user where the inventory names none
          --private-key <FILE>           A private key to log in with
      -c, --connection <KIND>            `ssh` or `local`, where the inventory says nothing
      -T, --timeout <SECONDS>            Seconds to wait for a connection [default: 10]
          --ssh-common-args <ARGS>       More arguments for every ssh command
          --ssh-extra-args <ARGS>        More arguments for ssh, after those
      -b, --become                       Become another user for every task
          --become-method <METHOD>       How to become another user [default: sudo]
          --become-user <USER>           The user to become [default: root]
      -K, --ask-become-pass              Ask for the password to become another user with
          --become-password-file <FILE>  Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>   A variable `name=value`, JSON, YAML, or `@file`; wins over every other
                                (repeatable)
      -M, --module-path <PATH>  Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>               A vault secret as `LABEL@SOURCE`: a file, a program that prints
                                        it, or `prompt` (repeatable)
          --vault-password-file <FILE>  A file with a vault's password, or a program that prints it
                                        (repeatable)
      -J, --ask-vault-password          Ask for the vault's password [alias: --ask-vault-pass]
    --- exit 0
    ");
}

#[test]
fn of_host() {
    insta::assert_snapshot!(help("host"), @"
    Look after single hosts: their keys, their connections, their journals

    Usage: fleetctl host <COMMAND>

    Commands:
      enroll      Record the keys of hosts, after showing their fingerprints
      disconnect  Close the ssh connections that are kept for the next run
      status      Show how things stand with what fleetctl keeps on hosts: locks, open runs, damaged
                  journals
      repair      Set damaged journals aside, so that runs can begin again
      unlock      End the helper that holds a host's lock
      journal     Show the runs in the hosts' own journals
      help        Print this message or the help of the given subcommand(s)

    Options:
      -h, --help  Print help
    --- exit 0
    ");
}

#[test]
fn of_host_enroll() {
    insta::assert_snapshot!(help("host enroll"), @"
    Record the keys of hosts, after showing their fingerprints

    Usage: fleetctl host enroll [OPTIONS] <PATTERN>

    Arguments:
      <PATTERN>  Which hosts: a pattern

    Options:
      -v, --verbose...  Say more (`-vv` for still more)
      -y, --yes         Record without asking
      -h, --help        Print help

    Hosts:
      -i, --inventory <INVENTORY>  An inventory: a file, a directory, a script, or `host1,host2,`
                                   (repeatable)
      -l, --limit <PATTERN>        Only these of the play's hosts: a pattern, or `@file`
      -f, --forks <N>              How many hosts to work on at the same time [default: 50]

    Connection:
      -u, --user <USER>                  Log in as this user where the inventory names none
          --private-key <FILE>           A private key to log in with
      -c, --connection <KIND>            `ssh` or `local`, where the inventory says nothing
      -T, --timeout <SECONDS>            Seconds to wait for a connection [default: 10]
          --ssh-common-args <ARGS>       More arguments for every ssh command
          --ssh-extra-args <ARGS>        More arguments for ssh, after those
      -b, --become                       Become another user for every task
          --become-method <METHOD>       How to become another user [default: sudo]
          --become-user <USER>           The user to become [default: root]
      -K, --ask-become-pass              Ask for the password to become another user with
          --become-password-file <FILE>  Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>   A variable `name=value`, JSON, YAML, or `@file`; wins over every other
                                (repeatable)
      -M, --module-path <PATH>  Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>               A vault secret as `LABEL@SOURCE`: a file, a program that prints
                                        it, or `prompt` (repeatable)
          --vault-password-file <FILE>  A file with a vault's password, or a program that prints it
                                        (repeatable)
      -J, --ask-vault-password          Ask for the vault's password [alias: --ask-vault-pass]
    --- exit 0
    ");
}

#[test]
fn of_host_disconnect() {
    insta::assert_snapshot!(help("host disconnect"), @"
    Close the ssh connections that are kept for the next run

    Usage: fleetctl host disconnect [OPTIONS] [PATTERN]

    Arguments:
      [PATTERN]  Which hosts: a pattern

    Options:
      -v, --verbose...  Say more (`-vv` for still more)
          --all         Those to all hosts
      -h, --help        Print help

    Hosts:
      -i, --inventory <INVENTORY>  An inventory: a file, a directory, a script, or `host1,host2,`
                                   (repeatable)
      -l, --limit <PATTERN>        Only these of the play's hosts: a pattern, or `@file`
      -f, --forks <N>              How many hosts to work on at the same time [default: 50]

    Connection:
      -u, --user <USER>                  Log in as this user where the inventory names none
          --private-key <FILE>           A private key to log in with
      -c, --connection <KIND>            `ssh` or `local`, where the inventory says nothing
      -T, --timeout <SECONDS>            Seconds to wait for a connection [default: 10]
          --ssh-common-args <ARGS>       More arguments for every ssh command
          --ssh-extra-args <ARGS>        More arguments for ssh, after those
      -b, --become                       Become another user for every task
          --become-method <METHOD>       How to become another user [default: sudo]
          --become-user <USER>           The user to become [default: root]
      -K, --ask-become-pass              Ask for the password to become another user with
          --become-password-file <FILE>  Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>   A variable `name=value`, JSON, YAML, or `@file`; wins over every other
                                (repeatable)
      -M, --module-path <PATH>  Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>               A vault secret as `LABEL@SOURCE`: a file, a program that prints
                                        it, or `prompt` (repeatable)
          --vault-password-file <FILE>  A file with a vault's password, or a program that prints it
                                        (repeatable)
      -J, --ask-vault-password          Ask for the vault's password [alias: --ask-vault-pass]
    --- exit 0
    ");
}

#[test]
fn of_host_journal() {
    insta::assert_snapshot!(help("host journal"), @"
    Show the runs in the hosts' own journals

    Usage: fleetctl host journal [OPTIONS] <PATTERN>

    Arguments:
      <PATTERN>  Which hosts: a pattern

    Options:
      -v, --verbose...  Say more (`-vv` for still more)
          --json        Print JSON
      -h, --help        Print help

    Hosts:
      -i, --inventory <INVENTORY>  An inventory: a file, a directory, a script, or `host1,host2,`
                                   (repeatable)
      -l, --limit <PATTERN>        Only these of the play's hosts: a pattern, or `@file`
      -f, --forks <N>              How many hosts to work on at the same time [default: 50]

    Connection:
      -u, --user <USER>                  Log in as this user where the inventory names none
          --private-key <FILE>           A private key to log in with
      -c, --connection <KIND>            `ssh` or `local`, where the inventory says nothing
      -T, --timeout <SECONDS>            Seconds to wait for a connection [default: 10]
          --ssh-common-args <ARGS>       More arguments for every ssh command
          --ssh-extra-args <ARGS>        More arguments for ssh, after those
      -b, --become                       Become another user for every task
          --become-method <METHOD>       How to become another user [default: sudo]
          --become-user <USER>           The user to become [default: root]
      -K, --ask-become-pass              Ask for the password to become another user with
          --become-password-file <FILE>  Read the password to become another user with from a file

    Variables:
      -e, --extra-vars <VARS>   A variable `name=value`, JSON, YAML, or `@file`; wins over every other
                                (repeatable)
      -M, --module-path <PATH>  Where modules of your own are, separated by colons (repeatable)

    Vault:
          --vault-id <ID>               A vault secret as `LABEL@SOURCE`: a file, a program that prints
                                        it, or `prompt` (repeatable)
          --vault-password-file <FILE>  A file with a vault's password, or a program that prints it
                                        (repeatable)
      -J, --ask-vault-password          Ask for the vault's password [alias: --ask-vault-pass]
    --- exit 0
    ");
}

#[test]
fn of_inventory() {
    insta::assert_snapshot!(help("inventory"), @"
    Show an inventory: as JSON, YAML or TOML, as a graph, or one host's variables

    Usage: fleetctl inventory [OPTIONS] [GROUP]

    Arguments:
      [GROUP]  With `--graph`: the group to begin with

    Options:
          --list           All groups, hosts and variables
          --host <HOST>    One host's variables
          --graph          The groups as a tree
          --vars           With `--graph`: show variables, too
          --export         With `--list`: variables at their groups instead of at each host
      -y, --yaml           YAML instead of JSON
          --toml           TOML instead of JSON
          --output <FILE>  With `--list`: write it to this file
      -v...                Say more
      -h, --help           Print help

    Hosts:
      -i, --inventory <INVENTORY>  An inventory: a file, a directory, a script, or `host1,host2,`
                                   (repeatable) [alias: --inventory-file]
      -l, --limit <PATTERN>        Only these hosts: a pattern, or `@file`

    Variables:
          --playbook-dir <DIR>  A directory whose `group_vars` and `host_vars` count as those beside a
                                playbook
      -e, --extra-vars <VARS>   A variable `name=value`, JSON, YAML, or `@file`, for constructed
                                inventories (repeatable)

    Vault:
          --vault-id <ID>               A vault secret as `LABEL@SOURCE`: a file, a program that prints
                                        it, or `prompt` (repeatable)
          --vault-password-file <FILE>  A file with a vault's password, or a program that prints it
                                        (repeatable)
      -J, --ask-vault-password          Ask for the vault's password [alias: --ask-vault-pass]
    --- exit 0
    ");
}

#[test]
fn of_runs() {
    insta::assert_snapshot!(help("runs"), @"
    List past runs, oldest first

    Usage: fleetctl runs [OPTIONS]

    Options:
          --log-dir <DIR>  Where the runs are kept
          --json           Print JSON
      -h, --help           Print help
    --- exit 0
    ");
}

#[test]
fn of_doc() {
    insta::assert_snapshot!(help("doc"), @"
    Show the modules there are, or one with its arguments

    Usage: fleetctl doc [OPTIONS] [MODULE]

    Arguments:
      [MODULE]  The module

    Options:
          --markdown  Print the manual of all modules as Markdown
          --settings  Print the manual of `ansible.cfg` as Markdown
      -h, --help      Print help
    --- exit 0
    ");
}
