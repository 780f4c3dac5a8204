//! Starts a helper: over a host's master, or on this machine.

use std::{path::PathBuf, process::Stdio, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    process::Command,
    time::timeout,
};

use super::{
    Address, Become, Kind, Settings,
    bootstrap::{self, ARCH, BAD, INSTALL, NEED, NO_SUDO, NOWHERE, READY},
    channel::{Channel, Process, Tail, listen, marker, not_started},
    diagnosis::{readable, target},
    error::{ConnectError, Said, Target},
    masters,
};

/// How long the helper may take from its command to its first word; sending it is not counted.
const START: Duration = Duration::from_secs(30);
/// How long a kept master may take to open a channel: one turn. A host that was switched off since is noticed here, and
/// not only when ssh gives the connection up.
const REUSE: Duration = Duration::from_secs(5);
/// The slowest line that a helper is still sent over, in bytes a second.
const SLOWEST: u64 = 4 << 10;

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
    let prompt = r#become.map_or(prompt.clone(), |who| who.prompt(&prompt));
    match address.kind {
        Kind::Local => local(address, r#become, settings, &prompt).await,
        Kind::Ssh => {
            let helpers = settings.helpers.all()?;
            let line = bootstrap::remote(&bootstrap::script(&helpers), r#become, &prompt);
            let host = target(address, "");
            let (mut session, mut reused) = masters::session(address, settings).await?;
            loop {
                let mut command = Arc::clone(&session).arc_raw_command(&line);
                command
                    .stdin(openssh::Stdio::piped())
                    .stdout(openssh::Stdio::piped())
                    .stderr(openssh::Stdio::piped());
                let patience = if reused { REUSE } else { START };
                match timeout(patience, command.spawn()).await {
                    Ok(Ok(mut child)) => {
                        let (Some(stdin), Some(stdout), Some(stderr)) = (
                            child.stdin().take(),
                            child.stdout().take(),
                            child.stderr().take(),
                        ) else {
                            return Err(not_started(
                                &host,
                                "ssh gave no channel",
                                &Tail::default(),
                            ));
                        };
                        let start = Start {
                            host,
                            r#become,
                            settings,
                            prompt: &prompt,
                        };
                        return start
                            .go(stdin, stdout, stderr, Process::Remote(Some(child)))
                            .await;
                    }
                    // The server's MaxSessions is used up, perhaps by a run that is at work: it keeps its connection.
                    Ok(Err(problem))
                        if reused && described(&problem).contains("refused by peer") =>
                    {
                        masters::retire(address, &settings.control_dir);
                        (session, reused) = masters::session(address, settings).await?;
                    }
                    // A kept master answers for itself, not for its connection.
                    Ok(Err(_)) | Err(_) if reused => {
                        masters::disconnect(address, &settings.control_dir).await;
                        (session, reused) = masters::session(address, settings).await?;
                    }
                    Ok(Err(problem)) => {
                        let reason =
                            format!("ssh opened no channel ({})", readable(&described(&problem)));
                        return Err(not_started(&host, &reason, &Tail::default()));
                    }
                    Err(_) => {
                        return Err(ConnectError::Timeout {
                            host,
                            seconds: patience.as_secs(),
                            stage: "opening a channel",
                            said: Said::default(),
                        });
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
        return Err(ConnectError::NoHelperFor {
            host,
            arch: arch.to_owned(),
            looked: settings.helpers.looked(),
        });
    };
    let path: PathBuf = helper.path.clone();
    let root = std::fs::metadata("/proc/self")
        .is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    let r#become = r#become.filter(|who| !(root && who.user == "root"));
    let mut words = r#become.map_or_else(Vec::new, |who| who.words(prompt));
    words.extend([path.display().to_string(), "serve".to_owned()]);
    let mut command = Command::new(&words[0]);
    if words.len() > 2 {
        // What sudo says is recognised, so it must say it in English.
        command.env("LC_ALL", "C");
    }
    if let Some(dir) = address.local_dir.as_ref().filter(|dir| dir.is_dir()) {
        command.current_dir(dir);
    }
    let mut child = command
        .args(&words[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C is the controller's to handle.
        .process_group(0)
        .spawn()
        .map_err(|source| match r#become {
            Some(who) => ConnectError::BecomeDenied {
                host: host.clone(),
                program: who.method.name(),
                user: who.user.clone(),
                text: format!("`{}` cannot be run ({source})", words[0]),
            },
            None => ConnectError::HelperFile { path, source },
        })?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(not_started(&host, "it has no channel", &Tail::default()));
    };
    let start = Start {
        host,
        r#become,
        settings,
        prompt,
    };
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
        let (mut asks, listening) = listen(stderr, tail.clone(), self.prompt.to_owned());
        let mut writer: Box<dyn AsyncWrite + Send + Unpin> = Box::new(stdin);
        let stdout: Box<dyn AsyncRead + Send + Unpin> = Box::new(stdout);
        let mut reader = BufReader::new(stdout);
        let mut uploaded = false;
        let mut given = false;
        let mut patience = START;
        loop {
            let next = tokio::select! {
                biased;
                Some(()) = asks.recv() => {
                    self.password(&mut writer, &mut given, &tail).await?;
                    continue;
                }
                next = timeout(patience, marker(&mut reader, &tail)) => next,
            };
            let line = match next {
                Ok(Ok(Some(line))) => line,
                Ok(Ok(None) | Err(_)) => return Err(self.refused(&mut asks, given, &tail).await),
                Err(_) => {
                    return Err(ConnectError::Timeout {
                        host: self.host,
                        seconds: patience.as_secs(),
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
                    patience = self.upload(&mut writer, rest).await?;
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
                    let tried = rest
                        .split(';')
                        .filter(|place| !place.is_empty())
                        .map(readable)
                        .collect();
                    return Err(ConnectError::NoExecutablePlace {
                        host: self.host,
                        tried,
                    });
                }
                BAD => {
                    let reason = format!("it cannot be installed: {}", readable(rest));
                    return Err(not_started(&self.host, &reason, &tail));
                }
                NO_SUDO => {
                    let text = "it is not installed there".to_owned();
                    return Err(ConnectError::BecomeDenied {
                        program: self.program(),
                        user: self.user(),
                        host: self.host,
                        text,
                    });
                }
                _ => {}
            }
        }
        Ok(Channel {
            host: self.host,
            reader,
            writer,
            tail,
            listening,
            process,
            uploaded,
        })
    }

    /// sudo asks: it gets the password once.
    async fn password(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        given: &mut bool,
        tail: &Tail,
    ) -> Result<(), ConnectError> {
        let user = self.user();
        if *given {
            return Err(ConnectError::PasswordWrong {
                host: self.host.clone(),
                program: self.program(),
                user,
            });
        }
        let Some(password) = self.r#become.and_then(|who| who.password.as_ref()) else {
            return Err(ConnectError::PasswordNeeded {
                host: self.host.clone(),
                program: self.program(),
                user,
            });
        };
        *given = true;
        let line = format!("{}\n", password.expose());
        let sent = async {
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await
        };
        sent.await
            .map_err(|_| not_started(&self.host, "it ended while it was given the password", tail))
    }

    /// Sends the helper; returns how long its start may take, for most of it is still on its way then.
    async fn upload(
        &self,
        writer: &mut (impl AsyncWrite + Unpin),
        rest: &str,
    ) -> Result<Duration, ConnectError> {
        let (arch, form) = rest.split_once(' ').unwrap_or((rest, "raw"));
        let Some(helper) = self.settings.helpers.helper(arch)? else {
            return Err(ConnectError::NoHelperFor {
                host: self.host.clone(),
                arch: readable(arch),
                looked: self.settings.helpers.looked(),
            });
        };
        let body = if form == "gz" {
            helper.gzip()
        } else {
            &helper.bytes
        };
        let patience = START + Duration::from_secs(body.len() as u64 / SLOWEST);
        let head = format!("{INSTALL}\n{}\n", body.len());
        let sent = async {
            writer.write_all(head.as_bytes()).await?;
            writer.write_all(body).await?;
            writer.flush().await
        };
        match timeout(patience, sent).await {
            // Where the host reads no more of it, it says why.
            Ok(Ok(()) | Err(_)) => Ok(patience),
            Err(_) => Err(ConnectError::Timeout {
                host: self.host.clone(),
                seconds: patience.as_secs(),
                stage: "sending the helper",
                said: Said::default(),
            }),
        }
    }

    fn program(&self) -> &'static str {
        self.r#become.map_or("sudo", |who| who.method.name())
    }

    fn user(&self) -> String {
        self.r#become
            .map_or_else(|| "root".to_owned(), |who| who.user.clone())
    }

    /// The command ended before the helper spoke: most often sudo refused.
    async fn refused(
        self,
        asks: &mut tokio::sync::mpsc::Receiver<()>,
        given: bool,
        tail: &Tail,
    ) -> ConnectError {
        // The last words may still be on their way.
        while let Ok(Some(())) = timeout(Duration::from_secs(1), asks.recv()).await {}
        let text = tail.text();
        if self.r#become.is_none() {
            return not_started(&self.host, "it ended before its first word", tail);
        }
        let (user, program) = (self.user(), self.program());
        let host = self.host;
        let line = |sign: &str| {
            text.lines()
                .rev()
                .find(|line| line.contains(sign))
                .map(readable)
        };
        if text.contains("password is required") || text.contains("terminal is required") {
            return ConnectError::PasswordNeeded {
                host,
                user,
                program,
            };
        }
        let wrong = [
            "incorrect password",
            "Sorry, try again",
            "Authentication failure",
        ];
        if given && wrong.iter().any(|sign| text.contains(sign)) {
            return ConnectError::PasswordWrong {
                host,
                user,
                program,
            };
        }
        let signs = [
            "not in the sudoers",
            "not allowed",
            "may not run sudo",
            "sudo:",
            "su:",
            "su (to",
        ];
        if let Some(text) = signs.into_iter().find_map(line) {
            return ConnectError::BecomeDenied {
                host,
                user,
                program,
                text,
            };
        }
        not_started(&host, "it ended before its first word", tail)
    }
}

/// A prompt that nothing else prints.
fn prompt() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    format!(
        "[fleetctl {:016x}]",
        RandomState::new().build_hasher().finish()
    )
}

/// An error with its causes: openssh's own words say only which step failed.
fn described(problem: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(problem), |problem| problem.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
