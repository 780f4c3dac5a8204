//! Starts a helper: over a host's master, or on this machine.

use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    process::Command,
    time::timeout,
};

use super::{
    Address, Become, Kind, Settings,
    bootstrap::{self, ARCH, BAD, NEED, NOWHERE, READY},
    channel::{Channel, Process, Tail, listen, marker, not_started},
    diagnosis::{readable, target},
    error::{ConnectError, Target},
    masters,
};

/// How long the helper may take from its command to its first word; sending it is not counted.
const START: Duration = Duration::from_secs(30);

/// Connects to a host and starts its helper.
///
/// # Errors
/// Why there is no channel, what was tried, and what to do.
pub async fn connect(
    address: &Address,
    r#become: Option<&Become>,
    settings: &Settings,
) -> Result<Channel, ConnectError> {
    let prompt = prompt();
    match address.kind {
        Kind::Local => local(address, r#become, settings, &prompt).await,
        Kind::Ssh => {
            let helpers = settings.helpers.all()?;
            let line = bootstrap::remote(&bootstrap::script(&helpers), r#become, &prompt);
            let host = target(address, "");
            let (mut session, mut reused) = masters::session(address, settings).await?;
            loop {
                let child = Arc::clone(&session)
                    .arc_raw_command(&line)
                    .stdin(openssh::Stdio::piped())
                    .stdout(openssh::Stdio::piped())
                    .stderr(openssh::Stdio::piped())
                    .spawn()
                    .await;
                match child {
                    Ok(mut child) => {
                        let (Some(stdin), Some(stdout), Some(stderr)) =
                            (child.stdin().take(), child.stdout().take(), child.stderr().take())
                        else {
                            return Err(not_started(&host, "ssh gave no channel", &Tail::default()));
                        };
                        let start = Start { host, r#become, settings, prompt: &prompt };
                        return start.go(stdin, stdout, stderr, Process::Remote { _kept: child }).await;
                    }
                    // A kept master may have died between its check and its use.
                    Err(_) if reused => {
                        masters::disconnect(address, &settings.control_dir).await;
                        (session, reused) = masters::session(address, settings).await?;
                    }
                    Err(problem) => {
                        let reason = format!("ssh opened no channel ({})", readable(&problem.to_string()));
                        return Err(not_started(&host, &reason, &Tail::default()));
                    }
                }
            }
        }
    }
}

/// The helper of this machine needs no bootstrap: its file is here.
async fn local(
    address: &Address,
    r#become: Option<&Become>,
    settings: &Settings,
    prompt: &str,
) -> Result<Channel, ConnectError> {
    let host = target(address, "");
    let arch = std::env::consts::ARCH;
    let Some(helper) = settings.helpers.helper(arch)? else {
        return Err(ConnectError::NoHelperFor { host, arch: arch.to_owned(), looked: settings.helpers.looked() });
    };
    let path: PathBuf = helper.path.clone();
    let root = std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let mut words: Vec<String> = match r#become {
        Some(who) if !root => who.sudo(prompt),
        _ => Vec::new(),
    };
    words.extend([path.display().to_string(), "serve".to_owned()]);
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C is the controller's to handle.
        .process_group(0)
        .spawn()
        .map_err(|source| ConnectError::HelperFile { path, source })?;
    let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(not_started(&host, "it has no channel", &Tail::default()));
    };
    let start = Start { host, r#become, settings, prompt };
    start.go(stdin, stdout, stderr, Process::Local(child)).await
}

/// A command that is to become a helper.
struct Start<'a> {
    host: Target,
    r#become: Option<&'a Become>,
    settings: &'a Settings,
    prompt: &'a str,
}

impl Start<'_> {
    async fn go(
        self,
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        stderr: impl AsyncRead + Send + Unpin + 'static,
        process: Process,
    ) -> Result<Channel, ConnectError> {
        let tail = Tail::default();
        let mut asks = listen(stderr, tail.clone(), self.prompt.to_owned());
        let mut writer: Box<dyn AsyncWrite + Send + Unpin> = Box::new(stdin);
        let stdout: Box<dyn AsyncRead + Send + Unpin> = Box::new(stdout);
        let mut reader = BufReader::new(stdout);
        let mut uploaded = false;
        let mut given = false;
        loop {
            let next = tokio::select! {
                biased;
                Some(()) = asks.recv() => {
                    self.password(&mut writer, &mut given, &tail).await?;
                    continue;
                }
                next = timeout(START, marker(&mut reader, &tail)) => next,
            };
            let line = match next {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None) | Err(_)) => return Err(self.refused(&mut asks, given, &tail).await),
                Err(_) => {
                    return Err(ConnectError::Timeout {
                        host: self.host,
                        seconds: START.as_secs(),
                        stage: "starting the helper",
                        said: tail.said(),
                    });
                }
            };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word {
                READY => {}
                "FLEETCTL-HELPER" => break,
                NEED => {
                    self.upload(&mut writer, rest, &tail).await?;
                    uploaded = true;
                }
                ARCH => {
                    return Err(ConnectError::NoHelperFor {
                        arch: readable(rest),
                        looked: self.settings.helpers.looked(),
                        host: self.host,
                    });
                }
                NOWHERE => {
                    let tried = rest.split(';').filter(|place| !place.is_empty()).map(readable).collect();
                    return Err(ConnectError::NoExecutablePlace { host: self.host, tried });
                }
                BAD => return Err(not_started(&self.host, "what arrived there is not what was sent; is the disk full?", &tail)),
                _ => {}
            }
        }
        Ok(Channel { host: self.host, reader, writer, tail, process, uploaded })
    }

    /// sudo asks: it gets the password once.
    async fn password(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        given: &mut bool,
        tail: &Tail,
    ) -> Result<(), ConnectError> {
        let user = self.r#become.map_or_else(|| "root".to_owned(), |who| who.user.clone());
        if *given {
            return Err(ConnectError::SudoPasswordWrong { host: self.host.clone(), user });
        }
        let Some(password) = self.r#become.and_then(|who| who.password.as_ref()) else {
            return Err(ConnectError::SudoPasswordNeeded { host: self.host.clone(), user });
        };
        *given = true;
        let line = format!("{}\n", password.expose());
        let sent = async {
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await
        };
        sent.await.map_err(|_| not_started(&self.host, "sudo ended while it was given the password", tail))
    }

    async fn upload(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        rest: &str,
        tail: &Tail,
    ) -> Result<(), ConnectError> {
        let (arch, form) = rest.split_once(' ').unwrap_or((rest, "raw"));
        let Some(helper) = self.settings.helpers.helper(arch)? else {
            return Err(ConnectError::NoHelperFor {
                host: self.host.clone(),
                arch: readable(arch),
                looked: self.settings.helpers.looked(),
            });
        };
        let body = if form == "gz" { helper.gzip() } else { &helper.bytes };
        let sent = async {
            writer.write_all(format!("{}\n", body.len()).as_bytes()).await?;
            writer.write_all(body).await?;
            writer.flush().await
        };
        sent.await.map_err(|_| not_started(&self.host, "the channel closed while the helper was sent", tail))
    }

    /// The command ended before the helper spoke: most often sudo refused.
    async fn refused(self, asks: &mut tokio::sync::mpsc::Receiver<()>, given: bool, tail: &Tail) -> ConnectError {
        // The last words may still be on their way.
        while let Ok(Some(())) = timeout(Duration::from_secs(1), asks.recv()).await {}
        let text = tail.text();
        let user = self.r#become.map_or_else(|| "root".to_owned(), |who| who.user.clone());
        let host = self.host;
        let line = |sign: &str| text.lines().rev().find(|line| line.contains(sign)).map(readable);
        if text.contains("password is required") || text.contains("terminal is required") {
            return ConnectError::SudoPasswordNeeded { host, user };
        }
        if given && (text.contains("incorrect password") || text.contains("Sorry, try again")) {
            return ConnectError::SudoPasswordWrong { host, user };
        }
        let signs = ["not in the sudoers", "not allowed", "may not run sudo", "sudo: ", "sudo:"];
        if let Some(text) = signs.into_iter().find_map(line) {
            return ConnectError::SudoDenied { host, user, text };
        }
        not_started(&host, "it ended before its first word", tail)
    }
}

/// A prompt that nothing else prints.
fn prompt() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    format!("[fleetctl {:016x}]", RandomState::new().build_hasher().finish())
}
