//! Approvals of saved plans: signatures over a plan's hash by ssh keys, in a file beside the plan.

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::error::Invalid;

/// What signatures are for: one for something else is none for a plan (ssh-keygen(1), `-n`).
const NAMESPACE: &str = "fleetctl-plan";

/// One approval.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Approval {
    /// The plan's hash.
    pub(crate) hash: String,
    /// Who, as the list of allowed signers names them.
    pub(crate) who: String,
    /// When, RFC 3339.
    pub(crate) at: String,
    signature: String,
}

/// The file of a plan's approvals.
pub(crate) fn beside(plan: &Path) -> PathBuf {
    let mut name = plan.as_os_str().to_owned();
    name.push(".approvals");
    name.into()
}

/// Signs a plan's hash with a key, and adds that to the plan's approvals.
///
/// # Errors
/// When ssh-keygen cannot sign.
pub(crate) fn add(plan: &Path, hash: &str, who: &str, key: &Path) -> Result<()> {
    let key_file = key.as_os_str();
    let words = ["-Y", "sign", "-n", NAMESPACE, "-f"].map(OsStr::new);
    let output = ssh_keygen(words.into_iter().chain([key_file]), hash)?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Invalid(format!(
            "ssh-keygen cannot sign with {}: {why}",
            key.display()
        ))
        .into());
    }
    let approval = Approval {
        hash: hash.to_owned(),
        who: who.to_owned(),
        at: jiff::Timestamp::now().to_string(),
        signature: String::from_utf8_lossy(&output.stdout).into_owned(),
    };
    let path = beside(plan);
    let line = format!("{}\n", serde_json::to_string(&approval)?);
    let mut file = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&path)?;
    file.write_all(line.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Who has approved a plan, each once, as far as the list of allowed signers lets them.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn valid(plan: &Path, hash: &str, signers: &Path) -> Result<(Vec<String>, Vec<String>)> {
    let path = beside(plan);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(problem) => {
            return Err(problem).with_context(|| format!("cannot read {}", path.display()));
        }
    };
    if !signers.exists() {
        let text = format!(
            "there is no list of allowed signers {}: ssh-keygen(1), ALLOWED SIGNERS",
            signers.display()
        );
        return Err(Invalid(text).into());
    }
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let of = |why: &str| format!("{}:{}: {why}", path.display(), number + 1);
        let Ok(approval) = serde_json::from_str::<Approval>(line) else {
            bad.push(of("this is no approval"));
            continue;
        };
        if approval.hash != hash {
            bad.push(of(&format!(
                "{} approved another plan, {}",
                approval.who, approval.hash
            )));
            continue;
        }
        match verified(&approval, signers)? {
            None if !good.contains(&approval.who) => good.push(approval.who),
            None => {}
            Some(why) => bad.push(of(&format!(
                "the signature of {} is not valid: {why}",
                approval.who
            ))),
        }
    }
    Ok((good, bad))
}

/// Why a signature is not one of who is said to have made it; none where it is.
fn verified(approval: &Approval, signers: &Path) -> Result<Option<String>> {
    let mut signature = tempfile::NamedTempFile::new()?;
    signature.write_all(approval.signature.as_bytes())?;
    let words = ["-Y", "verify", "-n", NAMESPACE, "-I", &approval.who, "-f"].map(OsStr::new);
    let files = [
        signers.as_os_str(),
        OsStr::new("-s"),
        signature.path().as_os_str(),
    ];
    let output = ssh_keygen(words.into_iter().chain(files), &approval.hash)?;
    let said = [output.stderr, output.stdout].concat();
    let why = String::from_utf8_lossy(&said).trim().replace('\n', "; ");
    Ok((!output.status.success()).then_some(why))
}

/// Runs ssh-keygen on a text.
fn ssh_keygen<'a>(words: impl Iterator<Item = &'a OsStr>, text: &str) -> Result<Output> {
    let mut child = Command::new("ssh-keygen")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run ssh-keygen")?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may have said no before it has read all: its status tells.
        let _ = stdin.write_all(text.as_bytes());
    }
    Ok(child.wait_with_output()?)
}
