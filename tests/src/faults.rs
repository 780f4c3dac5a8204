//! The faults that fleetctl is tested against: docs/faults.md is made of this list, and `tests/faults N` runs a row of it.

/// One fault.
#[derive(Debug)]
pub struct Fault {
    /// Its number, which stays.
    pub number: u32,
    /// What goes wrong.
    pub fault: &'static str,
    /// How a test makes it go wrong.
    pub injection: &'static str,
    /// What happens then.
    pub behaviour: &'static str,
    /// The tests that show it: `PACKAGE/FILE::NAME`.
    pub tests: &'static [&'static str],
}

const fn fault(
    number: u32,
    fault: &'static str,
    injection: &'static str,
    behaviour: &'static str,
    tests: &'static [&'static str],
) -> Fault {
    Fault {
        number,
        fault,
        injection,
        behaviour,
        tests,
    }
}

/// Every fault that there is a test for, in order.
pub const FAULTS: &[Fault] = &[
    fault(
        1,
        "fleetctl is killed in the middle of an apply",
        "kill -9 after step 3 of 7",
        "The host does what it was sent and holds the run open. `fleetctl resume` goes on; no step runs twice. A direct run is undone by its host.",
        &[
            "tests/transaction::a_run_that_was_killed_goes_on_where_it_was_and_does_nothing_twice",
            "tests/recovery::a_killed_fleetctl_leaves_hosts_that_undo_by_themselves",
        ],
    ),
    fault(
        4,
        "the link is cut after a write, before the confirmation",
        "the host's network cable is unplugged",
        "The host is `lost` (7) for the controller, and undoes the run by itself within the confirm timeout; its journal tells so when it is reached again.",
        &[
            "tests/transaction::a_run_that_nobody_goes_on_with_is_undone_by_its_host",
            "tests/recovery::a_cut_cable_leaves_a_host_that_undoes_by_itself",
        ],
    ),
    fault(
        5,
        "the link is cut before any write",
        "the host's network cable is unplugged",
        "`unreachable` (4), nothing was changed; other hosts go on.",
        &["tests/apply::a_host_that_does_not_answer_stops_nobody_else"],
    ),
    fault(
        6,
        "a change breaks sshd",
        "a wrong `Port`, which `sshd -t` takes",
        "The fresh connection that is to confirm the change cannot be made; the host puts the file back and restarts sshd; `rolled_back` (3).",
        &["tests/transaction::a_port_that_locks_the_controller_out_is_taken_back_by_the_host"],
    ),
    fault(
        7,
        "a change cuts the host off the network",
        "another address in the host's network configuration; a firewall that drops all, or all that is new",
        "As with sshd: undone by the host, with or without a boot; the controller comes back and asks: `rolled_back` (3).",
        &[
            "tests/faults::an_address_that_cuts_the_host_off_is_taken_back_by_the_host",
            "tests/deadman::a_firewall_that_lets_nothing_new_in_is_taken_back_by_the_host",
            "tests/deadman::a_firewall_that_lets_nothing_in_is_taken_back_by_the_host",
            "tests/deadman::a_firewall_that_lets_nothing_in_is_taken_back_by_the_next_boot",
        ],
    ),
    fault(
        8,
        "the power fails between a write and its confirmation",
        "every process of the host is killed at once; it boots from the same disk",
        "A timer on the disk undoes the run with the next boot; a run that was confirmed stays.",
        &["tests/transaction::a_power_cut_before_the_confirmation_is_undone_by_the_next_boot"],
    ),
    fault(
        9,
        "the host stops in the middle of a file write",
        "the helper is killed at any moment of a run, again and again (nearest to a crash of the file system)",
        "No file is ever half written; the next run undoes what was under way before anything else.",
        &[
            "tests/recovery::a_helper_may_be_killed_at_any_moment",
            "tests/recovery::a_power_cut_leaves_what_the_next_run_puts_right",
        ],
    ),
    fault(
        10,
        "the confirmation and the host's own undo come at the same moment",
        "both are let go at once, a thousand times",
        "Exactly one wins: the rename of one file decides.",
        &[
            "modules/host::deadman::tests::of_confirm_and_undo_one_wins_a_thousand_times",
            "modules/deadman::a_run_that_was_confirmed_stays_though_the_host_went_down_before_it_said_so",
            "modules/deadman::an_undo_that_the_host_has_begun_is_done_by_whoever_holds_the_lock",
        ],
    ),
    fault(
        11,
        "the disk is full before the first write",
        "a small file system",
        "Refused before any write, with the bytes that are needed.",
        &["modules/faults::what_a_full_disk_cannot_hold_is_refused_with_the_bytes_needed"],
    ),
    fault(
        12,
        "the disk fills up in the middle of a run",
        "a file that grows until the disk is full",
        "The task fails, and the steps before it are undone: their room in the journal was set aside.",
        &[
            "tests/recovery::a_full_disk_stops_no_undo",
            "modules/faults::an_undo_is_journaled_though_the_journals_disk_is_full",
        ],
    ),
    fault(
        13,
        "the file system has no inodes left",
        "a file system with few inodes",
        "The task fails and says so, and the run is undone.",
        &["tests/faults::a_file_system_without_inodes_undoes_the_run"],
    ),
    fault(
        14,
        "the file system becomes read-only in the middle of a run",
        "it is mounted anew, read-only",
        "`rollback_failed` (7), with what is to be done by a person; no loop of attempts.",
        &["modules/faults::a_disk_that_became_read_only_is_a_rollback_that_failed"],
    ),
    fault(
        15,
        "a target is marked immutable or append-only",
        "chattr +i",
        "The plan says so.",
        &["modules/faults::a_file_that_is_marked_is_refused_in_a_plan_too"],
    ),
    fault(
        16,
        "a target is edited by hand after the plan",
        "its content is replaced",
        "The host is `stale` (5); the edit stays, and what the run had written is undone.",
        &["tests/transaction::what_was_edited_by_hand_since_the_plan_makes_the_host_stale"],
    ),
    fault(
        17,
        "a target is edited by hand between an apply and its rollback",
        "its content is replaced",
        "`rollback_conflict` (7): the edit is left as found, and both versions are kept.",
        &["tests/undo::a_rollback_leaves_what_somebody_else_has_changed_since"],
    ),
    fault(
        18,
        "two controllers work on one host",
        "both are started",
        "The second is told who holds it, by which run and since when (6).",
        &["tests/lock::the_second_run_is_told_who_holds_the_host"],
    ),
    fault(
        19,
        "the controller that holds a lock is dead, its helper is not",
        "kill -9 of fleetctl while a task is at work",
        "The lock is still held. `fleetctl host unlock` breaks it for who names the run that holds it, and for nobody else.",
        &["tests/faults::a_lock_is_held_by_the_helper_and_broken_by_name_only"],
    ),
    fault(
        20,
        "the helper that holds a lock is killed",
        "kill -9 of the helper",
        "The kernel frees the lock; the next run undoes what was under way before anything else.",
        &["tests/recovery::a_killed_helper_leaves_what_the_next_run_puts_right"],
    ),
    fault(
        22,
        "a reload is accepted, and the service keeps its old configuration",
        "a port that is taken",
        "The proof of the reload fails: the old files are put back and reloaded.",
        &["tests/undo::a_refused_reload_is_undone"],
    ),
    fault(
        28,
        "a host is far away",
        "a line with 300 ms each way",
        "No false `unreachable`, and no more turns than nearby.",
        &["tests/faults::a_host_that_is_far_away_is_only_slow"],
    ),
    fault(
        29,
        "the other end vanishes without a word",
        "the host's network cable is unplugged while a task runs",
        "Found out by keepalives within 30 s: `lost` (7).",
        &["tests/recovery::a_cut_cable_leaves_a_host_that_undoes_by_itself"],
    ),
    fault(
        31,
        "sudo asks for a password, or refuses it",
        "a login whose sudo asks",
        "Refused before any write, in sudo's own words; a wrong password is tried once.",
        &[
            "tests/bad_input::a_sudo_password_that_nobody_gave",
            "tests/bad_input::a_wrong_sudo_password_is_tried_once_and_told_once",
        ],
    ),
    fault(
        32,
        "a host's key has changed",
        "the host gets another key",
        "A hard stop for that host (4), with both fingerprints.",
        &[
            "tests/bad_input::an_unknown_host_key_is_refused_until_it_is_enrolled_and_a_changed_one_always",
        ],
    ),
    fault(
        33,
        "the kernel kills the helper in the middle of a step",
        "kill -9 of the helper (nearest to running out of memory)",
        "As with any killed helper.",
        &["tests/recovery::a_killed_helper_leaves_what_the_next_run_puts_right"],
    ),
    fault(
        34,
        "a command prints without end",
        "more than fits",
        "What it says is cut, and the conversation goes on.",
        &["modules/faults::a_command_that_says_too_much_is_cut_and_not_the_conversation"],
    ),
    fault(
        35,
        "a run fails between a change and its handler",
        "a later step fails",
        "The handler runs with the next run.",
        &["tests/apply::a_handler_that_a_failed_run_left_over_runs_at_the_next_one"],
    ),
    fault(
        36,
        "the channel's output closes while a plan is applied",
        "kill -9 of fleetctl and its ssh",
        "The helper does what it was sent: nobody has to hear of it.",
        &[
            "tests/transaction::a_run_that_was_killed_goes_on_where_it_was_and_does_nothing_twice",
            "modules/deadman::what_a_saved_plan_has_sent_is_done_though_nobody_hears_of_it",
        ],
    ),
    fault(
        37,
        "a plan file is cut off, altered, too old, or not approved",
        "bytes are cut off and flipped",
        "Refused (5) before any connection.",
        &[
            "tests/transaction::a_plan_that_was_altered_cut_off_or_is_too_old_is_refused_before_any_connection",
            "tests/faults::a_plan_needs_the_approvals_that_are_asked_for",
        ],
    ),
    fault(
        38,
        "the inventory has changed since the plan",
        "a host is added",
        "What is not in the plan is not touched; a warning says that the file is another.",
        &["tests/faults::a_host_that_came_after_the_plan_is_not_touched"],
    ),
    fault(
        39,
        "a fact that a template used has changed since the plan",
        "another value of a local fact",
        "The host is `stale` (5).",
        &["tests/transaction::a_fact_that_was_used_and_has_changed_makes_the_host_stale"],
    ),
    fault(
        43,
        "another machine has the host's name",
        "another machine-id",
        "Refused (5): the plan was made for another machine.",
        &["tests/transaction::a_fact_that_was_used_and_has_changed_makes_the_host_stale"],
    ),
    fault(
        45,
        "the host's journals are gone or damaged",
        "bytes are flipped, the directory is removed",
        "No run begins before `fleetctl host repair` has set the damage aside (7).",
        &["tests/faults::damaged_journals_let_no_run_begin_before_they_are_repaired"],
    ),
];

/// The page that docs/faults.md is.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(
        "# Faults\n\n\
         What fleetctl promises, and the faults that are injected for real to show it, most of them on real hosts. `tests/faults N` runs the\n\
         tests of one row. This page is made from the list that the tests are run from (`tests/src/faults.rs`): there is no row without a test.\n\n\
         * **P1** A file is never half written.\n\
         * **P2** Nothing is lost: the host's own journal is enough to undo a run, and for a saved plan to go on with it.\n\
         * **P3** Nothing passes in silence: what is not known is told as not known.\n\
         * **P4** Never two writers on a host.\n\
         * **P5** Never beyond the plan.\n\
         * **P6** Never past a red gate, and unreachable is red.\n\
         * **P7** A host that was cut off by a change comes back with its old configuration within the timeout, with or without a boot.\n\
         * **P8** No secret in a plan, a log, a diff, an argument or a file that others can read.\n\n\
         Beside these rows, random faults (a killed controller, a killed helper, a cut cable, a power cut, at any moment) are let loose on six hosts in\n\
         the middle of a saved plan, and a checker that knows nothing of fleetctl's code compares disks, plan and journals:\n\
         `FLEETCTL_SEEDS=200 cargo test -p fleet-tests --test random_faults`. A seed that fails is told, and `FLEETCTL_SEEDS=17..18` runs it again.\n\n\
         | # | fault | how it is injected | what happens |\n|---|---|---|---|\n",
    );
    for fault in FAULTS {
        page += &format!(
            "| {} | {} | {} | {} |\n",
            fault.number, fault.fault, fault.injection, fault.behaviour
        );
    }
    page
}
