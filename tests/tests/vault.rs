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
        .ended(11)
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

/// The forms in which a secret may have leaked: as it is, in base 64 at each of its three places, in hex, in a URL and in
/// JSON.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes = secret.as_bytes();
    let base64 = |skipped: usize| -> Vec<u8> {
        // Whole groups of three bytes look the same wherever they stand.
        bytes[skipped..]
            .chunks_exact(3)
            .flat_map(|three| {
                let all =
                    u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
                [18, 12, 6, 0].map(|shift| LETTERS[(all >> shift & 63) as usize])
            })
            .collect()
    };
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let url: String = bytes
        .iter()
        .map(|byte| match byte.is_ascii_alphanumeric() {
            true => char::from(*byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect();
    let json = serde_json::Value::from(secret).to_string();
    vec![
        bytes.to_vec(),
        base64(0),
        base64(1),
        base64(2),
        hex.clone().into_bytes(),
        hex.to_uppercase().into_bytes(),
        url.into_bytes(),
        json.trim_matches('"').as_bytes().to_vec(),
    ]
}

fn holds(text: &[u8], form: &[u8]) -> bool {
    text.windows(form.len()).any(|part| part == form)
}

/// The files below a directory that hold a secret in some form.
fn leaks(dir: &std::path::Path, secret: &str, found: &mut Vec<String>) {
    let forms = forms(secret);
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(about) = entry.metadata() else {
            continue;
        };
        if about.is_dir() {
            leaks(&path, secret, found);
        } else if about.is_file() {
            let text = std::fs::read(&path).unwrap_or_default();
            if forms.iter().any(|form| holds(&text, form)) {
                found.push(path.display().to_string());
            }
        }
    }
}

const SECRET: &str = "Tr0ub4dor&3 \"zebra\"";

#[test]
fn the_search_finds_a_planted_leak_of_each_form() {
    let dir = tempfile::tempdir().unwrap();
    for (number, form) in forms(SECRET).iter().enumerate() {
        let path = dir.path().join(number.to_string());
        std::fs::write(&path, [b"before ", &form[..], b" behind"].concat()).unwrap();
        let mut found = Vec::new();
        leaks(dir.path(), SECRET, &mut found);
        assert_eq!(found, [path.display().to_string()]);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_secret_of_a_saved_plan_is_in_no_plan_log_journal_or_process_in_any_form() {
    let ctl = Fleetctl::on(&FLEET, &["web2"]);
    let password = ctl
        .write("pw", "a vault of its own\n")
        .display()
        .to_string();
    let vars = ctl
        .write("vars.yml", &format!("secret: {SECRET:?}\n"))
        .display()
        .to_string();
    ctl.run([
        "vault",
        "encrypt",
        "--vault-password-file",
        &password,
        &vars,
    ])
    .ended(0);
    ctl.write("secret.j2", "user=x\npassword={{ secret }}\n");
    let play = ctl.play(
        r#"
  vars_files: [vars.yml]
  tasks:
    - template: {src: secret.j2, dest: /srv/secret, mode: "0600"}
    - copy: {dest: /srv/again, content: "{{ secret }}\n", mode: "0600"}
    - command: sleep 3
"#,
    );
    let plan = ctl.home().join("state/a.plan").display().to_string();
    let pass = ["--vault-password-file", password.as_str()];
    ctl.plan(&play, &[&pass[..], &["--out", &plan]].concat())
        .ended(0);
    let mut running = ctl.start([&["apply", &plan, "-D", "-vv"][..], &pass].concat());
    running.until("the host sleeps", || {
        FLEET.sh("web2", "pgrep -x sleep").success()
    });
    let processes = FLEET.sh(
        "web2",
        "cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null; true",
    );
    for form in forms(SECRET) {
        assert!(
            !holds(processes.stdout.as_bytes(), &form),
            "a process shows the secret"
        );
    }
    let applied = running.wait();
    applied.ended(0);
    for form in forms(SECRET) {
        assert!(
            !holds(applied.stdout.as_bytes(), &form),
            "the output shows the secret"
        );
    }
    assert_eq!(FLEET.read("web2", "/srv/again"), format!("{SECRET}\n"));
    // A second run, so that there are backups of what held it, too.
    std::fs::write(&vars, format!("secret: {:?}\n", format!("{SECRET} more"))).unwrap();
    ctl.run([
        "vault",
        "encrypt",
        "--vault-password-file",
        &password,
        &vars,
    ])
    .ended(0);
    ctl.apply(&play, &pass).ended(0);

    let mut found = Vec::new();
    leaks(&ctl.home().join("state"), SECRET, &mut found);
    for dir in ["var/lib/fleetctl", "var/log", "etc", "tmp", "run", "home"] {
        leaks(&FLEET.root("web2").join(dir), SECRET, &mut found);
    }
    // The journal keeps the old contents of files that held it: root's alone, as they were.
    found.retain(|path| !path.contains("/backup/"));
    assert_eq!(found, Vec::<String>::new());
    let open = FLEET.sh(
        "web2",
        "find /var/lib/fleetctl /srv -type f -perm /077 -not -path '*/bin/*'",
    );
    assert_eq!(open.text(), "");
}
