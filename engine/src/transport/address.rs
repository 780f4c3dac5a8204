use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use crate::secret::Secret;

/// How to reach a host: from inventory variables and flags, already resolved and rendered.
#[derive(Clone, Debug)]
pub struct Address {
    /// The host's name in the inventory, for messages.
    pub name: String,
    /// Over ssh, or on this very machine.
    pub kind: Kind,
    /// What `ssh` is asked for: a name, an address, or an alias of the user's `ssh_config`.
    pub host: String,
    /// The port; none leaves it to ssh and its configuration.
    pub port: Option<u16>,
    /// The login user; none leaves it to ssh and its configuration.
    pub user: Option<String>,
    /// A private key to try first.
    pub private_key_file: Option<PathBuf>,
    /// Options for every ssh command, one word each (`ansible_ssh_common_args`).
    pub ssh_common_args: Vec<String>,
    /// More options, after those (`ansible_ssh_extra_args`).
    pub ssh_extra_args: Vec<String>,
    /// The `ssh` to run; none for the one in `PATH`.
    pub ssh_executable: Option<PathBuf>,
    /// How long to wait for the TCP connection and the server's greeting.
    pub timeout: Duration,
    /// What to do with a host key that is not known.
    pub host_key_checking: HostKeys,
    /// Where relative paths begin on this machine; none for where fleetctl was started. On others it is the user's home.
    pub local_dir: Option<PathBuf>,
}

/// Where a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Somewhere else, reached by ssh.
    Ssh,
    /// This machine: the helper is a child process.
    Local,
}

/// What to do with a host key that is not known. A *changed* key is refused by the first and the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostKeys {
    /// Refuse the host.
    #[default]
    Strict,
    /// Connect anyway, as `host_key_checking = False` of Ansible does.
    No,
    /// Record the key and connect.
    AcceptNew,
}

/// The program that makes another user of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// `sudo`, by the login user's own password or none.
    #[default]
    Sudo,
    /// `su`, by the password of the user to become.
    Su,
}

impl Method {
    /// By the name that playbooks have for it; none where fleetctl does not know it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name.strip_prefix("ansible.builtin.").unwrap_or(name) {
            "sudo" => Some(Self::Sudo),
            "su" | "community.general.su" => Some(Self::Su),
            _ => None,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sudo => "sudo",
            Self::Su => "su",
        }
    }
}

/// Acting as another user.
#[derive(Clone, Debug)]
pub struct Become {
    /// How.
    pub method: Method,
    /// The user to become, most often `root`.
    pub user: String,
    /// The password that the program asks for; none where none is needed.
    pub password: Option<Secret>,
    /// Flags for the program; sudo's `-n`, `-S`, `-p` and `-u` are added as needed. Empty for sudo's `-H`.
    pub flags: Vec<String>,
    /// The program to run; none for the one of that name.
    pub exe: Option<String>,
}

impl Address {
    /// The address of a host that is reached by ssh, with nothing else said about it.
    #[must_use]
    pub fn ssh(name: &str, host: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: Kind::Ssh,
            host: host.to_owned(),
            port: None,
            user: None,
            private_key_file: None,
            ssh_common_args: Vec::new(),
            ssh_extra_args: Vec::new(),
            ssh_executable: None,
            timeout: Duration::from_secs(10),
            host_key_checking: HostKeys::Strict,
            local_dir: None,
        }
    }

    /// The address of this machine under an inventory name.
    #[must_use]
    pub fn local(name: &str) -> Self {
        Self {
            kind: Kind::Local,
            ..Self::ssh(name, "localhost")
        }
    }

    /// The ssh to run.
    pub(crate) fn ssh_program(&self) -> OsString {
        self.ssh_executable
            .as_ref()
            .map_or_else(|| "ssh".into(), |path| path.clone().into_os_string())
    }

    /// ssh's arguments for this host, the host itself last. `first` are options that nothing may override: ssh
    /// takes the first value that it sees, on the command line before the configuration files.
    pub(crate) fn ssh_args(&self, first: &[&str]) -> Vec<OsString> {
        let mut args: Vec<OsString> = Vec::new();
        let mut option = |text: String| {
            args.push("-o".into());
            args.push(text.into());
        };
        for text in first {
            option((*text).to_owned());
        }
        args.extend(self.own_options().map(OsString::from));
        let mut option = |text: String| {
            args.push("-o".into());
            args.push(text.into());
        };
        option(format!("ConnectTimeout={}", self.timeout.as_secs().max(1)));
        option("ServerAliveInterval=10".to_owned());
        option("ServerAliveCountMax=3".to_owned());
        option("ForwardAgent=no".to_owned());
        // Forwards of the user's configuration would collide with those of an interactive session.
        option("ClearAllForwardings=yes".to_owned());
        option(format!(
            "StrictHostKeyChecking={}",
            match self.host_key_checking {
                HostKeys::Strict => "yes",
                HostKeys::No => "no",
                HostKeys::AcceptNew => "accept-new",
            }
        ));
        if let Some(key) = &self.private_key_file {
            args.push("-i".into());
            args.push(key.into());
        }
        if let Some(user) = &self.user {
            args.push("-l".into());
            args.push(user.into());
        }
        if let Some(port) = self.port {
            args.push("-p".into());
            args.push(port.to_string().into());
        }
        // A host named `-oProxyCommand=…` must not be an option.
        args.push("--".into());
        args.push((&self.host).into());
        args
    }

    /// Whether its own options lead through another host. The user's configuration may, too: only ssh knows.
    pub(crate) fn has_jump(&self) -> bool {
        self.own_options().any(|word| {
            let word = word.to_ascii_lowercase();
            let option = word.strip_prefix("-o").unwrap_or(&word).trim_start();
            word.starts_with("-j")
                || option.starts_with("proxyjump")
                || option.starts_with("proxycommand")
        })
    }

    /// The user's own options, common before extra.
    pub(crate) fn own_options(&self) -> impl Iterator<Item = &String> {
        self.ssh_common_args.iter().chain(&self.ssh_extra_args)
    }
}

/// `ops@10.0.0.1:2222`, as far as it is known before ssh has read its configuration.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind == Kind::Local {
            return f.write_str("this machine");
        }
        if let Some(user) = &self.user {
            write!(f, "{user}@")?;
        }
        if self.host.contains(':') {
            write!(f, "[{}]", self.host)?;
        } else {
            f.write_str(&self.host)?;
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl Become {
    /// Becoming root without a password.
    #[must_use]
    pub fn root() -> Self {
        Self {
            method: Method::Sudo,
            user: "root".to_owned(),
            password: None,
            flags: Vec::new(),
            exe: None,
        }
    }

    /// What the program prints when it wants the password; `own` where that can be chosen.
    pub(crate) fn prompt(&self, own: &str) -> String {
        match self.method {
            Method::Sudo => own.to_owned(),
            // In the locale C; `su` has no way to choose it.
            Method::Su => "Password: ".to_owned(),
        }
    }

    /// The words that stand before a command; `prompt` is what is printed when the password is wanted.
    pub(crate) fn words(&self, prompt: &str) -> Vec<String> {
        match self.method {
            Method::Sudo => self.sudo(prompt),
            Method::Su => self.su(),
        }
    }

    fn su(&self) -> Vec<String> {
        let mut words = vec![self.exe.clone().unwrap_or_else(|| "su".to_owned())];
        words.extend(self.flags.iter().cloned());
        let shell = ["-s", "/bin/sh", "-c", "exec \"$@\"", "--", &self.user, "su"];
        words.extend(shell.map(str::to_owned));
        words
    }

    fn sudo(&self, prompt: &str) -> Vec<String> {
        let mut words = vec![self.exe.clone().unwrap_or_else(|| "sudo".to_owned())];
        if self.flags.is_empty() {
            words.push("-H".to_owned());
        }
        // Ansible's default flags are `-H -S -n`: which of the last two it is, is ours to say.
        let ours = ["-n", "--non-interactive", "-S", "--stdin"];
        words.extend(
            self.flags
                .iter()
                .filter(|flag| !ours.contains(&flag.as_str()))
                .cloned(),
        );
        if self.password.is_some() {
            words.extend(["-S".to_owned(), "-p".to_owned(), prompt.to_owned()]);
        } else {
            words.push("-n".to_owned());
        }
        words.extend(["-u".to_owned(), self.user.clone(), "--".to_owned()]);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(args: Vec<OsString>) -> String {
        args.iter()
            .map(|word| word.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn ours_come_first_then_the_users_then_defaults() {
        let address = Address {
            user: Some("ops".to_owned()),
            port: Some(2222),
            ssh_common_args: vec!["-J".to_owned(), "bastion".to_owned()],
            ssh_extra_args: vec!["-C".to_owned()],
            ..Address::ssh("web1", "10.0.0.1")
        };
        assert_eq!(
            words(address.ssh_args(&["BatchMode=yes"])),
            "-o BatchMode=yes -J bastion -C -o ConnectTimeout=10 -o ServerAliveInterval=10 -o ServerAliveCountMax=3 \
             -o ForwardAgent=no -o ClearAllForwardings=yes -o StrictHostKeyChecking=yes -l ops -p 2222 -- 10.0.0.1"
        );
        assert_eq!(address.to_string(), "ops@10.0.0.1:2222");
    }

    #[test]
    fn a_way_through_another_host_is_seen() {
        let jumps = |words: &[&str]| {
            let ssh_common_args = words.iter().map(|word| (*word).to_owned()).collect();
            Address {
                ssh_common_args,
                ..Address::ssh("web1", "10.0.0.1")
            }
            .has_jump()
        };
        for words in [
            &["-J", "bastion"][..],
            &["-Jbastion"],
            &["-o", "ProxyJump=bastion"],
            &["-oProxyCommand=ssh -W %h:%p bastion"],
            &["-o", "proxycommand nc %h %p"],
        ] {
            assert!(jumps(words), "{words:?}");
        }
        assert!(!jumps(&["-C", "-o", "Compression=yes", "-i", "job"]));
    }

    #[test]
    fn sudo_without_a_password_never_asks() {
        let mut who = Become::root();
        assert_eq!(who.sudo("p").join(" "), "sudo -H -n -u root --");
        who.flags = ["-H", "-S", "-n"].map(str::to_owned).to_vec();
        who.password = Some(Secret::new("x".to_owned()));
        assert_eq!(who.sudo("p").join(" "), "sudo -H -S -p p -u root --");
    }

    #[test]
    fn su_hands_the_command_on_as_words() {
        let who = Become {
            method: Method::Su,
            ..Become::root()
        };
        assert_eq!(
            who.words("p").join(" "),
            "su -s /bin/sh -c exec \"$@\" -- root su"
        );
        assert_eq!(who.prompt("p"), "Password: ");
    }
}
