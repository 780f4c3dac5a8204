//! The one command that a channel starts with: it runs the helper that is there, or takes in one.

use std::sync::Arc;

use super::{
    Become,
    helpers::Helper,
};

/// What the script prints when the helper runs from here on.
pub(crate) const READY: &str = "FLEETCTL-READY";
/// What it prints, with the architecture and `gz` or `raw`, when it needs the helper.
pub(crate) const NEED: &str = "FLEETCTL-NEED";
/// What it prints, with the architecture, when there is no helper for it.
pub(crate) const ARCH: &str = "FLEETCTL-ARCH";
/// What it prints, with what was tried, when programs can run nowhere.
pub(crate) const NOWHERE: &str = "FLEETCTL-NOWHERE";
/// What it prints when what arrived is not what was sent.
pub(crate) const BAD: &str = "FLEETCTL-BAD";

/// The script, in one line and without single quotes, so that any login shell hands it on.
///
/// A directory is taken if it is a real one and the user's own. `test -x` is false on a file system
/// that is mounted `noexec`. Root's copy is hashed before each start: its name alone proves nothing.
pub(crate) fn script(helpers: &[(&str, Arc<Helper>)]) -> String {
    let cases: String = helpers.iter().map(|(arch, helper)| format!("{arch}) h={};; ", helper.sha256)).collect();
    let places = "if [ \"$u\" = 0 ]; then \
         set -- /var/lib/fleetctl/bin /run/fleetctl/bin /usr/local/libexec/fleetctl; else \
         set -- \"${XDG_CACHE_HOME:-$HOME/.cache}/fleetctl\" \"/run/user/$u/fleetctl\" \"/dev/shm/fleetctl-$u\"; fi; ";
    let sum = "s() { sha256sum < \"$1\" | cut -c1-64; }; ";
    let run = "r() { echo FLEETCTL-READY; exec \"$1\" serve; }; ";
    let there = "for d in \"$@\"; do p=\"$d/helper-$h\"; \
         if [ -x \"$p\" ] && [ -O \"$p\" ] && [ -O \"$d\" ]; then \
         if [ \"$u\" != 0 ] || [ \"$(s \"$p\")\" = \"$h\" ]; then r \"$p\"; fi; fi; done; ";
    let place = "t=; q=; for d in \"$@\"; do mkdir -p \"$d\" 2>/dev/null; \
         if [ -d \"$d\" ] && [ ! -L \"$d\" ] && [ -O \"$d\" ] && chmod 700 \"$d\" 2>/dev/null; then \
         x=\"$d/.probe.$$\"; if : > \"$x\" && chmod 700 \"$x\" && [ -x \"$x\" ]; then rm -f \"$x\"; q=\"$d\"; break; fi; \
         rm -f \"$x\"; t=\"$t$d: programs cannot run there;\"; else t=\"$t$d: cannot be made or is not ours;\"; fi; done; \
         if [ -z \"$q\" ]; then echo \"FLEETCTL-NOWHERE $t\"; exit 0; fi; ";
    let take = "p=\"$q/helper-$h\"; z=raw; if command -v gzip >/dev/null 2>&1; then z=gz; fi; \
         echo \"FLEETCTL-NEED $m $z\"; read -r n || exit 0; \
         if [ $z = gz ]; then head -c \"$n\" | gzip -dc > \"$p.$$\"; else head -c \"$n\" > \"$p.$$\"; fi; \
         if [ \"$(s \"$p.$$\")\" != \"$h\" ]; then rm -f \"$p.$$\"; echo FLEETCTL-BAD; exit 0; fi; \
         chmod 700 \"$p.$$\" && mv -f \"$p.$$\" \"$p\"; \
         find \"$q\" -name \"helper-*\" ! -name \"helper-$h\" -mtime +30 -exec rm -f {} + 2>/dev/null; r \"$p\"";
    format!(
        "set -f; umask 077; m=$(uname -m); u=$(id -u); case $m in {cases}*) echo \"FLEETCTL-ARCH $m\"; exit 0;; esac; \
         {sum}{run}{places}{there}{place}{take}"
    )
}

/// The command line for a login shell. With `sudo`, unless the login user is root already.
pub(crate) fn remote(script: &str, r#become: Option<&Become>, prompt: &str) -> String {
    let Some(who) = r#become else {
        return format!("exec /bin/sh -c {}", quoted(script));
    };
    let sudo = who.sudo(prompt);
    let skip = sudo.len();
    let words: Vec<String> = sudo.iter().map(|word| quoted(word)).collect();
    let choose = format!("if [ \"$(id -u)\" = 0 ]; then shift {skip}; fi; exec \"$@\"");
    format!("exec /bin/sh -c {} sh {} /bin/sh -c {}", quoted(&choose), words.join(" "), quoted(script))
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::{remote, script};
    use crate::transport::{Become, Helpers};

    #[test]
    fn the_script_is_one_line_without_single_quotes() {
        let script = script(&Helpers::new(Vec::new()).all().unwrap());
        assert!(!script.contains(['\n', '\'']), "{script}");
    }

    #[test]
    fn sh_understands_it() {
        let script = script(&[]);
        let status = std::process::Command::new("/bin/sh").args(["-n", "-c", &script]).status().unwrap();
        assert!(status.success());
    }

    #[test]
    fn a_root_login_needs_no_sudo() {
        let line = remote("echo run", Some(&Become { exe: Some("/no/such/sudo".to_owned()), ..Become::root() }), "p");
        let output = std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
        // Tests run as root or not; only root gets by without sudo.
        let root = std::fs::read_to_string("/proc/self/status").unwrap().contains("Uid:\t0\t");
        assert_eq!(String::from_utf8_lossy(&output.stdout) == "run\n", root);
    }
}
