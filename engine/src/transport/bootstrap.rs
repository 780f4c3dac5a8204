//! The one command that a channel starts with: it runs the helper that is there, or takes in one.
//!
//! The command is short, because login shells have limits and sudo logs it. What is only needed where the helper is
//! missing travels with the helper, and costs no turn of its own.

use std::sync::Arc;

use super::{Become, helpers::Helper};

/// What the script prints when the helper runs from here on.
pub(crate) const READY: &str = "FLEETCTL-READY";
/// What it prints, with the architecture and `gz` or `raw`, when it needs the helper.
pub(crate) const NEED: &str = "FLEETCTL-NEED";
/// What it prints, with the architecture, when there is no helper for it.
pub(crate) const ARCH: &str = "FLEETCTL-ARCH";
/// What it prints, with what was tried, when programs can run nowhere.
pub(crate) const NOWHERE: &str = "FLEETCTL-NOWHERE";
/// What it prints, with why, when the helper cannot be taken in.
pub(crate) const BAD: &str = "FLEETCTL-BAD";
/// What it prints when there is no sudo.
pub(crate) const NO_SUDO: &str = "FLEETCTL-NOSUDO";

/// The script: one line without single quotes, backslashes and exclamation marks, so that any login shell hands it on.
/// It never spells its own marks out, for a login shell or a forced command may print what it was told to run.
///
/// A directory is taken if it is the user's own and nobody else can write to it; in `/dev/shm`, where others can make
/// links, only under its very name. A copy is hashed before each start: its name alone proves nothing.
pub(crate) fn script(helpers: &[(&str, Arc<Helper>)]) -> String {
    let cases: String = helpers
        .iter()
        .map(|(arch, helper)| format!("{arch}) h={};; ", helper.sha256))
        .collect();
    let locale = "case $# in 1) LC_ALL=$1; [ -n \"$1\" ] || unset LC_ALL;; esac; ";
    let places = "if [ \"$u\" = 0 ]; then \
         set -- /var/lib/fleetctl/bin /usr/local/lib/fleetctl /run/fleetctl/bin; else \
         set -- \"${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/fleetctl\" \"/run/user/$u/fleetctl\" \"/dev/shm/fleetctl-$u\"; fi; ";
    let ours = "q() { d=$(cd -P \"$1\" 2>/dev/null && pwd -P) && [ -O \"$d\" ] && \
         case $1 in /dev/shm/*) [ \"$d\" = \"$1\" ];; esac; }; ";
    let run = "r() { echo \"$f-READY\"; exec \"$1\" serve; }; ";
    let there = "for p in \"$@\"; do if [ -x \"$p/helper-$h\" ] && q \"$p\"; then \
         case $(ls -ld \"$d\") in drwx------*) \
         case $(sha256sum < \"$d/helper-$h\") in \"$h \"*) r \"$d/helper-$h\";; esac;; esac; fi; done; ";
    let need = "z=raw; command -v gzip >/dev/null 2>&1 && z=gz; echo \"$f-NEED $m $z\"; read -r i && eval \"$i\"";
    format!(
        "f=FLEETCTL; {locale}m=$(uname -m); u=$(id -u); case $m in {cases}*) echo \"$f-ARCH $m\"; exit 0;; esac; \
         {places}{ours}{run}{there}{need}"
    )
}

/// What the script reads as its next line when it needs the helper; after it come the number of bytes, as a line,
/// and the bytes.
///
/// `test -x` is false on a file system that is mounted `noexec`; what else may forbid a program to run, only running
/// it shows. A place that fails is not the end: the next one gets a copy. What gzip unpacks carries its own checksum,
/// so that only a copy that came unpacked is hashed here (and each is, before every later start).
pub(crate) const INSTALL: &str = "k=$(umask); umask 077; a=; e=; \
    command -v sha256sum >/dev/null 2>&1 || { echo \"$f-BAD there is no sha256sum\"; exit 0; }; \
    for p in \"$@\"; do [ -d \"$p\" ] || mkdir -p \"$p\" 2>/dev/null; \
    if q \"$p\" && chmod 700 \"$d\" && n=\"$d/.new.$$\" && true > \"$n\" && chmod 700 \"$n\"; then \
    if [ -x \"$n\" ]; then v=; \
    if [ -n \"$a\" ]; then cp \"$a\" \"$n\" && v=1; else \
    read -r c || exit 0; \
    if [ $z = gz ]; then head -c \"$c\" | gzip -dc > \"$n\" && v=1; else \
    head -c \"$c\" > \"$n\"; case $(sha256sum < \"$n\") in \"$h \"*) v=1;; esac; fi; a=$n; fi; \
    case $v in 1) ;; *) rm -f \"$n\" \"$a\"; echo \"$f-BAD what arrived in $d is not what was sent (is the disk full?)\"; exit 0;; esac; \
    w=$(\"$n\" serve </dev/null 2>&1); \
    case $w in \"$f-HELPER\"*) mv -f \"$n\" \"$d/helper-$h\"; [ \"$a\" = \"$n\" ] || rm -f \"$a\"; \
    umask \"$k\"; r \"$d/helper-$h\";; esac; \
    e=\"$e$d: programs may not run there ($(echo \"$w\" | head -n 1 | tr -d \";\"));\"; [ \"$a\" = \"$n\" ] || rm -f \"$n\"; \
    else e=\"$e$d: mounted noexec;\"; rm -f \"$n\"; fi; \
    else e=\"$e$p: cannot be written, or is not ours alone;\"; fi; done; \
    [ -z \"$a\" ] || rm -f \"$a\"; echo \"$f-NOWHERE $e\"";

/// The command line for a login shell. With what makes another user of one, unless the login user is the wanted one already.
pub(crate) fn remote(script: &str, r#become: Option<&Become>, prompt: &str) -> String {
    let Some(who) = r#become else {
        return format!("exec /bin/sh -c {}", quoted(script));
    };
    let before = who.words(prompt);
    let skip = before.len();
    let words: Vec<String> = before.iter().map(|word| quoted(word)).collect();
    // What sudo says is recognised, so it must say it in English; the helper gets its locale back.
    let choose = format!(
        "f=FLEETCTL; l=${{LC_ALL-}}; if [ \"$(id -un)\" = \"$0\" ]; then shift {skip}; \
         elif command -v \"$1\" >/dev/null 2>&1; then LC_ALL=C; FLEETCTL_LOGIN=$(id -un); export LC_ALL FLEETCTL_LOGIN; \
         else echo \"$f-NOSUDO\"; exit 0; fi; exec \"$@\" \"$l\""
    );
    format!(
        "exec /bin/sh -c {} {} {} /bin/sh -c {} fleetctl",
        quoted(&choose),
        quoted(&who.user),
        words.join(" "),
        quoted(script)
    )
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::{INSTALL, remote, script};
    use crate::transport::{Become, Helpers};

    fn run(shell: &str, line: &str) -> Output {
        Command::new(shell).args(["-c", line]).output().unwrap()
    }

    #[test]
    fn any_login_shell_hands_the_script_on() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("fleet-helper"), "a helper").unwrap();
        let script = script(&Helpers::new(vec![dir.path().to_owned()]).all().unwrap());
        assert!(script.contains("x86_64) h=") || script.contains("aarch64) h="));
        for text in [&script, INSTALL] {
            assert!(!text.contains(['\n', '\'', '\\', '!']), "{text}");
        }
        // Old C shells take no word of more than 2,048 characters.
        assert!(script.len() < 1500, "{}", script.len());
        for mark in ["READY", "NEED", "ARCH", "HELPER"] {
            assert!(!script.contains(&format!("FLEETCTL-{mark}")));
        }
    }

    #[test]
    fn sh_understands_both_parts() {
        for text in [&script(&[]), INSTALL] {
            let status = Command::new("/bin/sh")
                .args(["-n", "-c", text])
                .status()
                .unwrap();
            assert!(status.success(), "{text}");
        }
    }

    #[test]
    fn the_wanted_user_needs_no_sudo() {
        let me = String::from_utf8(run("/bin/sh", "id -un").stdout).unwrap();
        let line = |user: &str| {
            let who = Become {
                method: crate::transport::Method::Sudo,
                user: user.to_owned(),
                exe: Some("/no/such/sudo".to_owned()),
                ..Become::root()
            };
            remote("echo run", Some(&who), "p")
        };
        assert_eq!(run("/bin/sh", &line(me.trim())).stdout, b"run\n");
        assert_eq!(
            run("/bin/sh", &line("somebody")).stdout,
            b"FLEETCTL-NOSUDO\n"
        );
    }

    #[test]
    fn sudo_speaks_english_and_the_helper_as_before() {
        // `env` stands in for sudo: it runs what follows its own words.
        let who = Become {
            method: crate::transport::Method::Sudo,
            user: "x".to_owned(),
            exe: Some("/usr/bin/env".to_owned()),
            ..Become::root()
        };
        let line = remote("echo $LC_ALL $1", Some(&who), "p")
            .replace("'-H' '-n' '-u' 'x' '--'", "A=1 B=2 C=3 D=4 E=5");
        let output = Command::new("/bin/sh")
            .args(["-c", &line])
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "C C.UTF-8\n");
    }
}
