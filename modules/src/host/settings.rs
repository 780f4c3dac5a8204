//! Settings that a tool of the host keeps: each is one value under a name, read and written by that tool.

use std::path::Path;
use std::time::Duration;

use fleet_wire::{SettingKind, UndoClass, What};

use super::process::{Process, read_only};
use super::{Fault, Host, Output, inode, words};

/// How long a tool may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// A setting that is wanted.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Who keeps it.
    pub kind: SettingKind,
    /// Its name, as [`SettingKind`] says.
    pub name: String,
    /// The value that is wanted; empty for none.
    pub value: String,
}

impl Host {
    /// A setting's value; empty where there is none.
    ///
    /// # Errors
    /// When the tool that keeps it is missing, or does not answer.
    pub fn setting(&self, kind: SettingKind, name: &str) -> Result<String, Fault> {
        match self.overlay.settings.get(&(kind, name.to_owned())) {
            Some(value) => Ok(value.clone()),
            None => read(kind, name),
        }
    }

    /// Brings a setting to a value; true where it changes.
    ///
    /// # Errors
    /// When its tool is missing or refuses.
    pub fn set(&mut self, setting: Setting) -> Result<bool, Fault> {
        let Setting { kind, name, value } = &setting;
        let before = self.setting(*kind, name)?;
        if same(*kind, &before, value) {
            return Ok(false);
        }
        self.set_by(setting.clone(), &before, |_| {
            write(*kind, name, &before, value)
        })
        .map(|()| true)
    }

    /// The same where a module knows better how to come from one value to the other; an undo does it by the tool alone.
    ///
    /// # Errors
    /// When the act fails.
    pub fn set_by(
        &mut self,
        setting: Setting,
        before: &str,
        act: impl FnOnce(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let Setting { kind, name, value } = setting;
        if !matches!(kind, SettingKind::Checkout | SettingKind::Times) {
            self.as_root(&format!("set the {kind} {name}"))?;
        }
        let key = (kind, name.clone());
        let assumed = self.open() && !self.overlay.settings.contains_key(&key);
        let what = What::Setting {
            kind,
            name,
            before: before.to_owned(),
            after: value.clone(),
        };
        let mut effect = self.effect(what, undo_class(kind), assumed);
        effect.secret |= kind == SettingKind::Debconf && value.starts_with("password");
        if self.recording {
            self.overlay.settings.insert(key, value);
            self.report(effect);
            return Ok(());
        }
        self.perform(effect, act)
    }
}

fn undo_class(kind: SettingKind) -> UndoClass {
    match kind {
        SettingKind::Alternative
        | SettingKind::Selection
        | SettingKind::Debconf
        | SettingKind::FirewallPolicy
        | SettingKind::SelinuxBoolean
        | SettingKind::SelinuxMode
        | SettingKind::Times
        | SettingKind::Attributes
        | SettingKind::Label => UndoClass::Exact,
        SettingKind::KernelModule | SettingKind::Mount | SettingKind::FirewallRule => {
            UndoClass::Inverse
        }
        SettingKind::Checkout => UndoClass::BestEffort,
    }
}

/// Whether two values are one to the tool.
pub(super) fn same(kind: SettingKind, a: &str, b: &str) -> bool {
    match kind {
        // Parameters of a module and options of a mount are not told back as they were given.
        SettingKind::KernelModule | SettingKind::FirewallRule | SettingKind::Mount => {
            a.is_empty() == b.is_empty()
        }
        SettingKind::Times => inode::same_times(a, b),
        _ => a == b,
    }
}

/// A setting's value on the machine.
pub(super) fn read(kind: SettingKind, name: &str) -> Result<String, Fault> {
    if let Some(value) = inode::read(kind, Path::new(name))? {
        return Ok(value);
    }
    let parts: Vec<&str> = name.split(' ').collect();
    match (kind, parts.as_slice()) {
        (SettingKind::Alternative, [group, rest @ ..]) => {
            let output = read_only(&["update-alternatives", "--query", group])?;
            let query = output.text();
            Ok(match rest {
                [] => alternative(&query),
                [path, ..] => registered(&query, path),
            })
        }
        (SettingKind::Selection, _) => {
            let output = read_only(&["dpkg", "--get-selections", name])?;
            let text = output.text();
            Ok(text
                .split_whitespace()
                .nth(1)
                .unwrap_or_default()
                .to_owned())
        }
        (SettingKind::Debconf, [package, question]) => debconf(package, question),
        (SettingKind::KernelModule, _) => {
            let file = Path::new("/proc/modules");
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let built_in = Path::new("/sys/module").join(name).join("uevent").exists()
                && !Path::new("/sys/module").join(name).join("refcnt").exists();
            let own = name.replace('-', "_");
            let loaded = text
                .lines()
                .any(|line| line.split(' ').next() == Some(own.as_str()));
            Ok(if loaded || built_in { "loaded" } else { "" }.to_owned())
        }
        (SettingKind::Mount, _) => Ok(mounted(name)),
        (SettingKind::FirewallRule, [program, table, rest @ ..]) => {
            let check = ["--wait", "-t", table, "-C"];
            let rule = words(&rest.join(" ")).map_err(Fault::new)?;
            let rule = rule.iter().map(String::as_str);
            let argv: Vec<&str> = std::iter::once(*program).chain(check).chain(rule).collect();
            let output = read_only(&argv)?;
            Ok(if output.ok() { "present" } else { "" }.to_owned())
        }
        (SettingKind::FirewallPolicy, [program, table, chain]) => {
            let output = read_only(&[program, "--wait", "-t", table, "-S", chain])?;
            let text = output.text();
            let policy = text.lines().find_map(|line| {
                line.strip_prefix("-P ")?
                    .strip_prefix(*chain)
                    .map(|policy| policy.trim().to_owned())
            });
            Ok(policy.unwrap_or_default())
        }
        (SettingKind::SelinuxBoolean, _) => {
            let output = read_only(&["getsebool", name])?;
            if !output.ok() {
                return Err(refused(kind, name, &output));
            }
            let text = output.text();
            Ok(text
                .rsplit(' ')
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned())
        }
        (SettingKind::SelinuxMode, _) => {
            Ok(read_only(&["getenforce"])?.text().trim().to_lowercase())
        }
        (SettingKind::Checkout, _) => {
            if !Path::new(name).exists() {
                return Ok(String::new());
            }
            let safe = format!("safe.directory={name}");
            let argv = ["git", "-c", &safe, "-C", name, "rev-parse", "HEAD"];
            let output = read_only(&argv)?;
            Ok(if output.ok() {
                output.text().trim().to_owned()
            } else {
                String::new()
            })
        }
        _ => Err(Fault::new(format!("`{name}` is no name of a {kind}"))),
    }
}

/// Brings a setting from one value to another on the machine.
pub(super) fn write(kind: SettingKind, name: &str, from: &str, to: &str) -> Result<(), Fault> {
    if inode::write(kind, Path::new(name), to)? {
        return Ok(());
    }
    let parts: Vec<&str> = name.split(' ').collect();
    let mut stdin = None;
    let argv: Vec<String> = match (kind, parts.as_slice()) {
        (SettingKind::Alternative, [group, path]) if to.is_empty() => {
            own(&["update-alternatives", "--remove", group, path])
        }
        (SettingKind::Alternative, [group, path]) => {
            let words: Vec<&str> = to.split(' ').collect();
            let (main, subs) = words.split_at(2.min(words.len()));
            let [link, priority] = main else {
                return Err(Fault::new(format!("`{to}` is no link with its priority")));
            };
            let mut argv = own(&[
                "update-alternatives",
                "--install",
                link,
                group,
                path,
                priority,
            ]);
            for sub in subs.chunks(3) {
                argv.push("--slave".to_owned());
                argv.extend(own(sub));
            }
            argv
        }
        (SettingKind::Alternative, _) if to == "auto" || to.is_empty() => {
            own(&["update-alternatives", "--auto", name])
        }
        (SettingKind::Alternative, _) => own(&["update-alternatives", "--set", name, to]),
        (SettingKind::Selection, _) => {
            // A package that was never selected has no state of its own: `purge` is how it looks like one.
            let to = if to.is_empty() { "purge" } else { to };
            stdin = Some(format!("{name} {to}\n"));
            own(&["dpkg", "--set-selections"])
        }
        (SettingKind::Debconf, [package, question]) if to.is_empty() => {
            stdin = Some(format!("unregister {question}\n"));
            own(&["debconf-communicate", "--", package])
        }
        (SettingKind::Debconf, _) => {
            stdin = Some(format!("{name} {to}\n"));
            own(&["debconf-set-selections"])
        }
        (SettingKind::KernelModule, _) if to.is_empty() => own(&["modprobe", "-r", name]),
        (SettingKind::KernelModule, _) => {
            let parameters = to.split_whitespace().skip(1).map(str::to_owned);
            own(&["modprobe", name])
                .into_iter()
                .chain(parameters)
                .collect()
        }
        (SettingKind::Mount, _) if to.is_empty() => own(&["umount", name]),
        (SettingKind::Mount, _) => {
            let mut fields = to.split(' ').map(unescaped);
            let mut next = || fields.next().unwrap_or_default();
            let (source, kind, options) = (next(), next(), next());
            own(&["mount", "-t", &kind, "-o", &options, &source, name])
        }
        (SettingKind::FirewallRule, [program, table, rest @ ..]) => {
            let rule = words(&rest.join(" ")).map_err(Fault::new)?;
            let (chain, rule) = rule
                .split_first()
                .ok_or_else(|| Fault::new("a rule has no chain"))?;
            let position = to.parse::<u32>().ok().map(|at| at.to_string());
            let verb = if to.is_empty() {
                "-D"
            } else if position.is_some() {
                "-I"
            } else {
                "-A"
            };
            let mut argv = own(&[program, "--wait", "-t", table, verb, chain]);
            argv.extend(position);
            argv.extend(rule.iter().cloned());
            argv
        }
        (SettingKind::FirewallPolicy, [program, table, chain]) => {
            own(&[program, "--wait", "-t", table, "-P", chain, to])
        }
        (SettingKind::SelinuxBoolean, _) => own(&["setsebool", name, to]),
        (SettingKind::SelinuxMode, _) => own(&["setenforce", to]),
        (SettingKind::Checkout, _) if to.is_empty() => {
            return std::fs::remove_dir_all(name)
                .map_err(|error| Fault::io("remove", Path::new(name), error));
        }
        (SettingKind::Checkout, _) => {
            let safe = format!("safe.directory={name}");
            own(&["git", "-c", &safe, "-C", name, "reset", "--hard", to])
        }
        _ => return Err(Fault::new(format!("`{name}` is no name of a {kind}"))),
    };
    let output = run(&argv, stdin.as_deref())?;
    if !output.ok() {
        let _ = from;
        return Err(refused(kind, name, &output));
    }
    Ok(())
}

fn own(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn run(argv: &[String], stdin: Option<&str>) -> Result<Output, Fault> {
    Process {
        argv,
        stdin: stdin.map(str::as_bytes),
        timeout: Some(PATIENCE),
        leave_children: true,
        ..Process::default()
    }
    .in_c_locale()
    .run()
}

fn refused(kind: SettingKind, name: &str, output: &Output) -> Fault {
    Fault::new(format!(
        "cannot set the {kind} {name}: {}",
        output.complaint()
    ))
    .with("rc", output.rc)
    .with("stdout", output.text())
    .with("stderr", output.error_text())
}

/// What is chosen of a link group: `auto`, or the path.
fn alternative(query: &str) -> String {
    let field = |name: &str| query.lines().find_map(|line| line.strip_prefix(name));
    match (field("Status: "), field("Value: ")) {
        (Some("auto"), Some(_)) => "auto".to_owned(),
        (_, Some(value)) if value != "none" => value.to_owned(),
        _ => String::new(),
    }
}

/// How a program is known in a link group: its link and priority, then the link, name and path of each that follows it.
fn registered(query: &str, path: &str) -> String {
    let mut paragraphs = query.split("\n\n");
    let main = paragraphs.next().unwrap_or_default();
    let field = |text: &str, name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found.map(str::to_owned)
    };
    let follows = |text: &str| -> Vec<(String, String)> {
        let lines = text
            .lines()
            .skip_while(|line| !line.starts_with("Slaves:"))
            .skip(1);
        let lines = lines.take_while(|line| line.starts_with(' '));
        lines
            .filter_map(|line| line.trim().split_once(' '))
            .map(|(name, path)| (name.to_owned(), path.to_owned()))
            .collect()
    };
    let own = paragraphs.find(|text| field(text, "Alternative: ").as_deref() == Some(path));
    let (Some(link), Some(own)) = (field(main, "Link: "), own) else {
        return String::new();
    };
    let mut words = vec![link, field(own, "Priority: ").unwrap_or_default()];
    let links = follows(main);
    for (name, path) in follows(own) {
        if let Some((_, link)) = links.iter().find(|(known, _)| *known == name) {
            words.extend([link.clone(), name, path]);
        }
    }
    words.join(" ")
}

/// A question's type and answer, as `debconf-set-selections` takes them; empty where it was never answered.
fn debconf(package: &str, question: &str) -> Result<String, Fault> {
    let commands = format!("metaget {question} type\nget {question}\n");
    let output = run(
        &own(&["debconf-communicate", "--", package]),
        Some(&commands),
    )?;
    let text = output.text();
    let mut answers = text
        .lines()
        .map(|line| line.strip_prefix("0 ").or((line == "0").then_some("")));
    Ok(match (answers.next().flatten(), answers.next().flatten()) {
        (Some(kind), Some(answer)) => format!("{kind} {answer}").trim_end().to_owned(),
        _ => String::new(),
    })
}

/// What is mounted at a path: source, type and options, as in fstab.
fn mounted(path: &str) -> String {
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let at = table
        .lines()
        .rev()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let mut at = at.filter(|fields| fields.len() > 3 && unescaped(fields[1]) == path);
    at.next().map_or_else(String::new, |fields| {
        [fields[0], fields[2], fields[3]].join(" ")
    })
}

/// A field of fstab and its like: a space is written `\040`.
pub(crate) fn unescaped(field: &str) -> String {
    let codes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    codes
        .iter()
        .fold(field.to_owned(), |field, (code, letter)| {
            field.replace(code, letter)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tools_say_is_read() {
        let java = "Name: java\nLink: /usr/bin/java\nSlaves:\n java.1.gz /usr/share/man/man1/java.1.gz\nStatus: auto\n\n\
            Alternative: /opt/java\nPriority: 10\nSlaves:\n java.1.gz /opt/java.1.gz\n\nAlternative: /opt/b\nPriority: 5\nSlaves:\n";
        assert_eq!(
            registered(java, "/opt/java"),
            "/usr/bin/java 10 /usr/share/man/man1/java.1.gz java.1.gz /opt/java.1.gz"
        );
        assert_eq!(registered(java, "/opt/b"), "/usr/bin/java 5");
        assert_eq!(registered(java, "/opt/c"), "");
        let query = "Name: editor\nLink: /usr/bin/editor\nStatus: manual\nBest: /bin/nano\nValue: /usr/bin/vim.basic\n";
        assert_eq!(alternative(query), "/usr/bin/vim.basic");
        assert_eq!(
            alternative("Name: x\nStatus: auto\nValue: /bin/nano\n"),
            "auto"
        );
        assert_eq!(
            alternative("update-alternatives: error: no alternatives for x\n"),
            ""
        );
        assert_eq!(unescaped("/mnt/a\\040b"), "/mnt/a b");
        assert!(mounted("/proc").starts_with("proc proc "));
        assert_eq!(mounted("/no/such"), "");
    }

    #[test]
    fn a_plan_remembers_what_it_would_set() {
        if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/dpkg").exists() {
            return;
        }
        let mut host = Host::plan();
        let hold = || Setting {
            kind: SettingKind::Selection,
            name: "dpkg".to_owned(),
            value: "hold".to_owned(),
        };
        assert!(host.set(hold()).unwrap());
        assert!(!host.set(hold()).unwrap());
        assert_eq!(host.end()[0].summary(), "selection of package dpkg");
        assert_ne!(read(SettingKind::Selection, "dpkg").unwrap(), "hold");
    }
}
