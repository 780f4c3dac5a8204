//! The flags that give vault secrets, and what the configuration says of them.

use std::{
    io::{self, BufRead, Write},
    path::{Path, PathBuf},
};

use anyhow::Result;
use fleet_engine::{
    config::Config,
    secret::Secret,
    vault::{self, Purpose, SecretError, SecretSource, Vault, VaultId, VaultSecret},
};

use crate::{error::Invalid, paint};

/// Where vault secrets come from; several are tried in turn.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct VaultFlags {
    /// A vault secret as `LABEL@SOURCE`: a file, a program that prints it, or `prompt` (repeatable)
    #[arg(long = "vault-id", value_name = "ID", help_heading = "Vault")]
    vault_ids: Vec<String>,
    /// A file with a vault's password, or a program that prints it (repeatable)
    #[arg(
        long = "vault-password-file",
        alias = "vault-pass-file",
        value_name = "FILE",
        help_heading = "Vault"
    )]
    vault_password_files: Vec<PathBuf>,
    /// Ask for the vault's password
    #[arg(
        short = 'J',
        long = "ask-vault-password",
        visible_alias = "ask-vault-pass",
        conflicts_with = "vault_password_files",
        help_heading = "Vault"
    )]
    ask_vault_password: bool,
}

impl VaultFlags {
    /// Whether any of them is given.
    pub(crate) fn is_said(&self) -> bool {
        !self.vault_ids.is_empty()
            || !self.vault_password_files.is_empty()
            || self.ask_vault_password
    }

    /// The vault of a run: the secrets of the flags and of the configuration, got now. Nobody is asked unless a flag or
    /// the configuration says so.
    ///
    /// # Errors
    /// When there are ids, and no secret can be had for any of them.
    pub(crate) fn vault(&self, config: &Config) -> Result<Vault> {
        let ids = self.ids(config, false)?;
        got(&ids, Purpose::Open, config)
    }

    /// The same for a verb that cannot do without: where nothing names a secret, a person is asked.
    pub(super) fn vault_or_ask(&self, config: &Config, purpose: Purpose) -> Result<Vault> {
        let ids = self.ids(config, true)?;
        got(&ids, purpose, config)
    }

    fn ids(&self, config: &Config, ask_if_none: bool) -> Result<Vec<VaultId>> {
        let default = config.vault_identity();
        let mut ids = Vec::new();
        let listed = config.vault_identity_list();
        for text in listed.iter().chain(&self.vault_ids) {
            ids.push(parsed(text.trim(), default)?);
        }
        for path in &self.vault_password_files {
            ids.push(VaultId::file(expanded(path), default));
        }
        if let Some(path) = config.vault_password_file() {
            ids.push(VaultId::file(path, default));
        }
        let asked = self.ask_vault_password || config.ask_vault_pass();
        if asked || (ask_if_none && ids.is_empty()) {
            ids.push(VaultId::ask(default));
        }
        Ok(ids)
    }
}

/// An id as `--vault-id` takes it.
pub(super) fn parsed(text: &str, default: &str) -> Result<VaultId> {
    let mut id = VaultId::parse(text, default).map_err(|problem| match problem {
        SecretError::Label(_) => anyhow::Error::new(Invalid(problem.to_string())),
        other => other.into(),
    })?;
    if let SecretSource::File(path) = &mut id.source {
        *path = expanded(path);
    }
    Ok(id)
}

/// The path with `~` replaced.
pub(super) fn expanded(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), std::env::home_dir()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// The secrets of ids; what cannot be had is a warning where another can.
pub(super) fn got(ids: &[VaultId], purpose: Purpose, config: &Config) -> Result<Vault> {
    let found = vault::secrets(ids, purpose, &ask)?;
    for warning in &found.warnings {
        let label = paint::paint(paint::CHANGED, "warning");
        anstream::eprintln!("{label}: {warning}");
    }
    Ok(Vault::matching(found.secrets, config.vault_id_match()))
}

/// The secret to seal with.
pub(super) fn sealer<'v>(vault: &'v Vault, label: Option<&str>) -> Result<&'v VaultSecret> {
    vault.sealer(label).map_err(|problem| match problem {
        vault::VaultError::Ambiguous(_) => Invalid(problem.to_string()).into(),
        other => other.into(),
    })
}

/// Asks on the terminal without an echo; where there is none, the answer is a line of the standard input.
pub(super) fn ask(question: &str) -> io::Result<Secret> {
    match rpassword::prompt_password(question) {
        Ok(answer) => Ok(Secret::new(answer)),
        // Nobody is there to look at the screen.
        Err(_) if !has_terminal() => line(question).map(Secret::new),
        Err(problem) => Err(problem),
    }
}

fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Asks for something that everybody may see.
pub(super) fn line(question: &str) -> io::Result<String> {
    let mut out = io::stderr().lock();
    write!(out, "{question}")?;
    out.flush()?;
    let mut answer = String::new();
    if io::stdin().lock().read_line(&mut answer)? == 0 {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "there is nobody to answer",
        ));
    }
    Ok(answer.trim_end_matches(['\r', '\n']).to_owned())
}
