//! Encrypted files of every kind in a run over ssh: they are used, and nothing of them is shown or kept.

use std::sync::LazyLock;

use fleet_tests::{Fleet, Fleetctl};

static FLEET: LazyLock<Fleet> = LazyLock::new(|| Fleet::up(6));

/// `greeting: correct horse` as ansible-vault encrypted it, with the password `secretpw` and the id `dev`.
const VARIABLES: &str = "$ANSIBLE_VAULT;1.2;AES256;dev
32613463613139326336383963323764646530636164623539356466653132313361663839353964
3165396462316531353066313231393837363539356666640a366561643264323638353133373438
39646231353737356164626566623337376661303936343361373166663139663234623233636461
3635653333343232320a326361393238333962376330663630313533363461623034383762653235
35313362636139633939333431626136623331353461343133323238363131396165
";

const PLAY: &str = r#"
  vars_files: [vars.yml]
  tasks:
    - name: a file with {{ greeting }}
      copy: {dest: /srv/made, content: "user=x\npassword={{ greeting }}\n", mode: "0600"}
    - name: an encrypted file
      copy: {src: vars.yml, dest: /srv/opened, mode: "0600"}
    - name: an encrypted file as it is
      copy: {src: vars.yml, dest: /srv/kept, mode: "0600", decrypt: false}
    - name: a command
      command: echo {{ greeting }}
      register: said
    - name: its answer
      debug: {var: said.stdout}
"#;

#[test]
fn secrets_arrive_on_the_host_and_nowhere_else() {
    let ctl = Fleetctl::on(&FLEET, &["web1"]);
    ctl.write("vars.yml", VARIABLES);
    let password = ctl.write("pw", "secretpw\n");
    let password = format!("--vault-id=dev@{}", password.display());
    let play = ctl.play(PLAY);

    ctl.plan(&play, &[])
        .ended(3)
        .says("this is encrypted by vault, and no vault secrets were given");
    let plan = ctl.plan(&play, &[&password]);
    plan.ended(0)
        .says("+password=********")
        .keeps_silent_about("correct horse");
    let applied = ctl.apply(&play, &[&password, "-v"]);
    applied.ended(0).keeps_silent_about("correct horse");

    assert_eq!(
        FLEET.read("web1", "/srv/made"),
        "user=x\npassword=correct horse\n"
    );
    assert_eq!(
        FLEET.read("web1", "/srv/opened"),
        "greeting: correct horse\n"
    );
    assert_eq!(FLEET.read("web1", "/srv/kept"), VARIABLES);
    let kept = std::process::Command::new("grep")
        .args(["-r", "correct horse"])
        .arg(ctl.home().join("state"))
        .output();
    assert_eq!(kept.map(|found| found.stdout).ok(), Some(Vec::new()));
}
