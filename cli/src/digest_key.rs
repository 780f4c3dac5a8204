//! The key of the digests of secrets in plans: made of what opens the vault, so that whoever can apply a plan has it; where
//! there is no vault, a file of this user's.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use anyhow::{Context, Result};
use fleet_engine::vault::Vault;
use fleet_wire::DigestKey;

/// Bytes of a key that is made here.
const BYTES: u64 = 32;

/// The key of this user, with what opens this vault.
pub(crate) fn of(vault: &Vault, state: &Path) -> Result<DigestKey> {
    match vault.digest_key() {
        Some(key) => Ok(key),
        None => own(&state.join("plan-key")),
    }
}

fn own(path: &Path) -> Result<DigestKey> {
    match fs::read(path) {
        Ok(bytes) if bytes.len() as u64 == BYTES => return Ok(DigestKey::new(bytes)),
        Ok(_) => {}
        Err(problem) if problem.kind() == ErrorKind::NotFound => {}
        Err(problem) => {
            return Err(problem).with_context(|| format!("cannot read {}", path.display()));
        }
    }
    let mut bytes = Vec::new();
    let made = fs::File::open("/dev/urandom")
        .and_then(|random| random.take(BYTES).read_to_end(&mut bytes));
    made.context("cannot make a key")?;
    let write = || -> std::io::Result<()> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir)?;
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)?;
        file.write_all(&bytes)?;
        file.sync_all()
    };
    write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(DigestKey::new(bytes))
}
