//! ssh masters: one a host, kept for a while after the run so that the next one connects at once.

use std::{
    fs::{self, DirBuilder, File, TryLockError},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use openssh::Session;
use tokio::{process::Command, time::timeout};

use super::{
    Address, Settings,
    diagnosis::{Verdict, diagnose, target},
    error::{ConnectError, Said},
};

/// How often a connection is tried when the server is too busy to answer.
const TRIES: u32 = 3;
/// How long a master may take to say that it lives.
const CHECK: Duration = Duration::from_secs(3);
/// Sockets that are older are looked at for whether their master lives.
const SWEPT_AGE: Duration = Duration::from_secs(3600);
/// Masters that are being closed at the same time.
const CLOSING: usize = 32;
/// What the login may take beyond the time for the connection.
const LOGIN: Duration = Duration::from_secs(20);

/// A session on the host's master, which is started where there is none.
pub(crate) async fn session(
    address: &Address,
    settings: &Settings,
) -> Result<(Arc<Session>, bool), ConnectError> {
    let dir = control_dir(&settings.control_dir)?;
    let socket = dir.join(name(address));
    settings.swept.get_or_init(|| sweep(&dir));
    // Two fleetctl at once must not start two masters on one socket.
    let _lock = lock(&socket.with_extension("lock"))
        .await
        .map_err(|source| ConnectError::ControlDir {
            path: dir.clone(),
            problem: format!("cannot be locked: {source}"),
        })?;
    if let Some(session) = alive(&socket).await {
        return Ok((Arc::new(session), true));
    }
    let _ = fs::remove_file(&socket);
    let mut careful = None;
    if address.has_jump() {
        careful = settings.careful_limit.acquire().await.ok();
    }
    // The semaphores are never closed; without a permit the host is only connected early.
    let _permit = settings.connect_limit.acquire().await.ok();
    for attempt in 1.. {
        match start(address, settings, &socket).await {
            Ok(()) => break,
            Err(Verdict::Final(problem)) => return Err(problem),
            Err(Verdict::Again(problem)) if attempt == TRIES => return Err(problem),
            Err(Verdict::Again(_)) => {
                tokio::time::sleep(jitter(attempt)).await;
                if careful.is_none() {
                    careful = settings.careful_limit.acquire().await.ok();
                }
            }
        }
    }
    Ok((Arc::new(Session::resume_mux(socket.into(), None)), false))
}

/// A session on a master that answers.
async fn alive(socket: &Path) -> Option<Session> {
    if !socket.exists() {
        return None;
    }
    let session = Session::resume_mux(socket.into(), None);
    match timeout(CHECK, session.check()).await {
        Ok(Ok(())) => Some(session),
        _ => None,
    }
}

async fn start(address: &Address, settings: &Settings, socket: &Path) -> Result<(), Verdict> {
    let log = socket.with_extension("log");
    let _ = fs::remove_file(&log);
    // Jump hosts and proxy commands write there too, and not through ssh's own log.
    let log_file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&log);
    let log_file = log_file.map_err(|problem| {
        Verdict::Final(ConnectError::ControlDir {
            path: settings.control_dir.clone(),
            problem: format!("cannot take a log: {problem}"),
        })
    })?;
    let persist = format!("ControlPersist={}s", settings.persist.as_secs().max(1));
    let path = format!("ControlPath={}", socket.display());
    let first = [
        "BatchMode=yes",
        "ControlMaster=yes",
        &path,
        &persist,
        "EscapeChar=none",
        "PermitLocalCommand=no",
    ];
    let mut command = Command::new(address.ssh_program());
    command
        .args(["-v", "-f", "-N", "-T", "-E"])
        .arg(&log)
        .args(address.ssh_args(&first))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log_file)
        // A Ctrl-C for fleetctl is not meant for a connection that outlives it.
        .process_group(0)
        .kill_on_drop(true);
    let mut child = command.spawn().map_err(|source| {
        Verdict::Final(ConnectError::SshMissing {
            program: address.ssh_program().to_string_lossy().into_owned(),
            source,
        })
    })?;
    let ended = timeout(address.timeout + LOGIN, child.wait()).await;
    let said = fs::read(&log)
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let _ = fs::remove_file(&log);
    match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(_) => Err(diagnose(address, &said).await),
        Err(_) => Err(Verdict::Final(ConnectError::Timeout {
            host: target(address, &said),
            seconds: (address.timeout + LOGIN).as_secs(),
            stage: "logging in",
            said: Said::default(),
        })),
    }
}

/// Some 200 to 600 ms, growing with each attempt: hosts that were refused together must not come back together.
fn jitter(attempt: u32) -> Duration {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let random = RandomState::new().build_hasher().finish() % 400;
    Duration::from_millis(200 + random) * attempt
}

/// What tells one connection from another: everything that ssh is told, but for how long it may take.
fn name(address: &Address) -> String {
    let address = Address {
        timeout: Duration::ZERO,
        ..address.clone()
    };
    let mut hasher = blake3::Hasher::new();
    hasher.update(address.ssh_program().as_encoded_bytes());
    for word in address.ssh_args(&[]) {
        hasher.update(&[0]);
        hasher.update(word.as_encoded_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The directory of the sockets: made if it is not there, refused if it is not only ours.
fn control_dir(dir: &Path) -> Result<PathBuf, ConnectError> {
    let unfit = |problem: String| ConnectError::ControlDir {
        path: dir.to_owned(),
        problem,
    };
    // The kernel allows 107 bytes for a socket's path; ssh adds 17 while it makes one.
    if dir.as_os_str().len() + 1 + 16 > 90 {
        return Err(unfit(
            "has too long a name for sockets; set XDG_RUNTIME_DIR to a shorter one".to_owned(),
        ));
    }
    if let Err(problem) = DirBuilder::new().mode(0o700).recursive(true).create(dir) {
        return Err(unfit(format!("cannot be made: {problem}")));
    }
    let metadata =
        fs::symlink_metadata(dir).map_err(|problem| unfit(format!("cannot be read: {problem}")))?;
    let ours = fs::metadata("/proc/self").map_or(metadata.uid(), |own| own.uid());
    if !metadata.is_dir() || metadata.uid() != ours || metadata.mode() & 0o077 != 0 {
        return Err(unfit(
            "is not a directory that only this user can use; remove it".to_owned(),
        ));
    }
    Ok(dir.to_owned())
}

/// Held until it is dropped. A lock's file is never removed: whoever waits for it would hold what nobody else can see.
async fn lock(path: &Path) -> std::io::Result<File> {
    let file = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(TryLockError::Error(problem)) => return Err(problem),
        }
    }
}

/// Removes the sockets of masters that are gone, as a machine that went down leaves them. Young ones are let be: asking
/// each of a thousand masters would wake them all, and whoever needs one asks it.
fn sweep(dir: &Path) {
    let old = |path: &PathBuf| {
        let modified = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
        modified.is_ok_and(|time| time.elapsed().is_ok_and(|age| age > SWEPT_AGE))
    };
    for socket in sockets(dir).filter(old) {
        let refused = std::os::unix::net::UnixStream::connect(&socket)
            .is_err_and(|problem| problem.kind() == std::io::ErrorKind::ConnectionRefused);
        if refused {
            let _ = fs::remove_file(socket);
        }
    }
}

fn sockets(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_none())
}

/// Closes the master of a host; whether there was one.
pub async fn disconnect(address: &Address, control_dir: &Path) -> bool {
    close(&control_dir.join(name(address))).await
}

/// Closes all masters; returns how many.
pub async fn disconnect_all(control_dir: &Path) -> usize {
    let mut closing = tokio::task::JoinSet::new();
    let mut closed = 0;
    for socket in sockets(control_dir) {
        // Each is a process, and a wedged master takes its time: neither one by one nor all at once.
        if closing.len() == CLOSING {
            closed += usize::from(matches!(closing.join_next().await, Some(Ok(true))));
        }
        closing.spawn(async move { close(&socket).await });
    }
    let rest = closing.join_all().await;
    closed + rest.into_iter().filter(|closed| *closed).count()
}

/// Lets no more sessions begin on the host's master: those that it has go on, and it ends after the last of them.
pub(crate) fn retire(address: &Address, control_dir: &Path) {
    let _ = fs::remove_file(control_dir.join(name(address)));
}

async fn close(socket: &Path) -> bool {
    if !socket.exists() {
        return false;
    }
    let mut command = Command::new("ssh");
    // Whatever is wrong with the user's configuration, the socket is all that this needs.
    command
        .args(["-F", "none", "-S"])
        .arg(socket)
        .args(["-O", "exit", "--", "none"]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let closed = timeout(CHECK, command.status()).await;
    // A dead master leaves its socket behind.
    let _ = fs::remove_file(socket);
    matches!(closed, Ok(Ok(status)) if status.success())
}
