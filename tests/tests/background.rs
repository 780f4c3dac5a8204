//! Tasks that are left running (`async` with `poll: 0`), and waiting for them.

use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(3));

#[test]
fn a_job_outlives_the_run_that_started_it_and_a_later_one_hears_of_it() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    let play = ctl.play(
        r#"
  tasks:
    - shell: sleep 3; echo over > /srv/over; echo said
      async: 60
      poll: 0
      register: job
    - copy: {dest: /srv/job, content: "{{ job.ansible_job_id }}"}
"#,
    );
    ctl.apply(&play, &[]).ended(0);
    assert!(
        !FLEET.root("web1").join("srv/over").exists(),
        "the run did not wait"
    );
    let id = FLEET.read("web1", "/srv/job");
    let play = ctl.play(&format!(
        r#"
  tasks:
    - async_status: {{jid: "{id}"}}
      register: job
      until: job is finished
      retries: 20
      delay: 1
    - copy: {{dest: /srv/said, content: "{{{{ job.stdout }}}} {{{{ job.rc }}}} {{{{ job.changed }}}}"}}
    - async_status: {{jid: "{id}", mode: cleanup}}
    - async_status: {{jid: "{id}"}}
      register: gone
      ignore_errors: true
    - copy: {{dest: /srv/gone, content: "{{{{ gone.msg }}}}"}}
"#
    ));
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(FLEET.read("web1", "/srv/over"), "over\n");
    assert_eq!(FLEET.read("web1", "/srv/said"), "said 0 True");
    assert_eq!(FLEET.read("web1", "/srv/gone"), "could not find job");
}

#[test]
fn a_job_that_takes_too_long_is_killed_with_all_that_it_started() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    let play = ctl.play(
        r#"
  tasks:
    - shell: sleep 4711 & sleep 4712
      async: 1
      poll: 0
      register: job
    - async_status: {jid: "{{ job.ansible_job_id }}"}
      register: end
      until: end is finished
      retries: 20
      delay: 1
      ignore_errors: true
    - copy: {dest: /srv/end, content: "{{ end.msg }}"}
"#,
    );
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(FLEET.read("web2", "/srv/end"), "Timeout exceeded");
    assert_eq!(
        FLEET
            .sh("web2", "sleep 6; pgrep -c -f '^sleep 471[12]' || true")
            .text(),
        "0"
    );
}

#[test]
fn jobs_of_a_loop_go_side_by_side() {
    let ctl = Fleetctl::on(&FLEET, &["web3"]);
    let play = ctl.play(
        r#"
  tasks:
    - shell: sleep 2; echo {{ item }}
      async: 60
      poll: 0
      loop: [a, b, c, d]
      register: jobs
    - async_status: {jid: "{{ item.ansible_job_id }}"}
      loop: "{{ jobs.results }}"
      register: ends
      until: ends is finished
      retries: 30
      delay: 1
    - copy: {dest: /srv/ends, content: "{{ ends.results | map(attribute='stdout') | join(' ') }}"}
"#,
    );
    let began = std::time::Instant::now();
    ctl.apply(&play, &[]).ended(0);
    assert_eq!(FLEET.read("web3", "/srv/ends"), "a b c d");
    assert!(
        began.elapsed().as_secs() < 7,
        "one after the other they take 8 s"
    );
    let plan = ctl.plan(&play, &[]);
    plan.ended(0)
        .says("in the background")
        .says("cannot be undone");
}
