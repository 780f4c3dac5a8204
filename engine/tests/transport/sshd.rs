//! An sshd of a test's own, on this machine, for the user who runs the test.

use std::{
    fs,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use fleet_engine::transport::Address;
use fleet_tests::eventually;
use tempfile::TempDir;

pub(crate) struct Sshd {
    dir: TempDir,
    port: u16,
    server: Child,
}

impl Sshd {
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// With more lines in its configuration.
    pub(crate) fn with(config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for key in ["host_key", "user_key"] {
            keygen(&path(key));
        }
        fs::copy(path("user_key.pub"), path("authorized_keys")).unwrap();
        fs::write(path("known_hosts"), "").unwrap();
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let text = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {dir}/host_key\nAuthorizedKeysFile {dir}/authorized_keys\n\
             StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nLogLevel VERBOSE\n{config}\n",
            dir = dir.path().display()
        );
        fs::write(path("sshd_config"), text).unwrap();
        // Where sshd looks for it when it is started as root.
        let _ = fs::create_dir_all("/run/sshd");
        let log = fs::File::create(path("log")).unwrap();
        let server = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f"])
            .arg(path("sshd_config"))
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|problem| {
                panic!("this test needs sshd (apt-get install openssh-server): {problem}")
            });
        let sshd = Self { dir, port, server };
        eventually("sshd listens", || sshd.log().contains("Server listening"));
        sshd
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The server's own process: its children are its connections.
    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }

    /// How many logins there were.
    pub(crate) fn logins(&self) -> usize {
        self.log().matches("Accepted publickey").count()
    }

    /// Its address, with nothing known about its key.
    pub(crate) fn address(&self) -> Address {
        let option = |text: String| ["-o".to_owned(), text];
        let options = [
            format!("UserKnownHostsFile={}", self.path("known_hosts").display()),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
        ];
        Address {
            port: Some(self.port),
            private_key_file: Some(self.path("user_key")),
            ssh_common_args: options.into_iter().flat_map(option).collect(),
            ..Address::ssh("web1", "127.0.0.1")
        }
    }

    /// Its address, once its key is known.
    pub(crate) fn known(&self) -> Address {
        self.record("host_key");
        self.address()
    }

    /// Records a key as that of this server.
    pub(crate) fn record(&self, key: &str) {
        let key = fs::read_to_string(self.path(&format!("{key}.pub"))).unwrap();
        fs::write(
            self.path("known_hosts"),
            format!("[127.0.0.1]:{} {key}", self.port),
        )
        .unwrap();
    }

    /// A key's fingerprint, as `ssh-keygen` shows it to whoever sits at the server.
    pub(crate) fn fingerprint(&self, key: &str) -> String {
        let output = Command::new("ssh-keygen")
            .arg("-lf")
            .arg(self.path(key))
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .to_owned()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

pub(crate) fn keygen(path: &std::path::Path) {
    let status = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status();
    assert!(status.unwrap().success());
}
