//! Vault ids: names of secrets, and where each secret comes from.

use std::{
    fmt,
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use zeroize::Zeroizing;

use super::{DEFAULT, Vault, VaultError};
use crate::secret::Secret;

/// A secret that opens vaults.
#[derive(Clone)]
pub struct VaultSecret {
    label: String,
    password: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for VaultSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VaultSecret")
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl VaultSecret {
    /// A password under a label.
    #[must_use]
    pub fn new(label: impl Into<String>, password: &Secret) -> Self {
        Self::from_bytes(label.into(), password.expose().as_bytes())
    }

    fn from_bytes(label: String, password: &[u8]) -> Self {
        Self {
            label,
            password: Zeroizing::new(password.to_vec()),
        }
    }

    /// The id that it goes by.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn password(&self) -> &[u8] {
        &self.password
    }
}

/// One `--vault-id`: a label, and where its secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VaultId {
    /// The label; `default` where none was given.
    pub label: String,
    /// Where the secret comes from.
    pub source: SecretSource,
}

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A person is asked for it, by the id's label (`--vault-id dev@prompt`).
    Prompt,
    /// A person is asked for it (`--ask-vault-pass`).
    Ask,
    /// A file that holds it, or that prints it where it is executable.
    File(PathBuf),
}

/// Why a secret cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// `--vault-id` with a label that a vault's first line cannot hold.
    #[error("`{0}` is no vault id: a label has no `;` and no line break")]
    Label(String),
    /// There is nothing at the path.
    #[error("there is no vault password file {}", .0.display())]
    Missing(PathBuf),
    /// It is a directory.
    #[error("the vault password file {} is a directory", .0.display())]
    Directory(PathBuf),
    /// The file cannot be read.
    #[error("the vault password file {} cannot be read: {problem}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        problem: io::Error,
    },
    /// The password is empty.
    #[error("the vault password from {0} is empty")]
    Empty(String),
    /// The executable file cannot be run.
    #[error("the vault password file {} is executable, and cannot be run: {problem}; where it is no program, take its executable bit away", .path.display())]
    NoProgram {
        /// The file.
        path: PathBuf,
        /// What the system says.
        problem: io::Error,
    },
    /// The program failed.
    #[error("the vault password program {} ended with {status}{said}", .path.display())]
    Failed {
        /// The program.
        path: PathBuf,
        /// How it ended.
        status: String,
        /// What it wrote to its error output, behind `: `.
        said: String,
    },
    /// A client program that knows no secret of this label: it ended with 2.
    #[error("the vault password program {} knows no secret for the vault id `{label}`{said}", .path.display())]
    Unknown {
        /// The program.
        path: PathBuf,
        /// The label.
        label: String,
        /// What it wrote to its error output, behind `: `.
        said: String,
    },
    /// The password file is itself a vault that does not open.
    #[error("the vault password file {} is a vault itself: {problem}", .path.display())]
    Vaulted {
        /// The file.
        path: PathBuf,
        /// Why it does not open.
        problem: VaultError,
    },
    /// Nobody answered.
    #[error("cannot ask for the vault password `{label}`: {problem}")]
    Unasked {
        /// The label.
        label: String,
        /// Why.
        problem: io::Error,
    },
    /// A new password was typed in two ways.
    #[error("the two passwords for the vault id `{0}` differ")]
    Differ(String),
}

/// Whether secrets are to open what is there, or may seal something new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To open: a person is asked once.
    Open,
    /// To seal: a person is asked twice.
    Seal,
}

/// Asks a person for a secret, without showing what is typed; given the question, which ends with `: `.
pub type Asker<'a> = dyn Fn(&str) -> io::Result<Secret> + 'a;

impl VaultId {
    /// Reads `label@source` or `source`, where a source is `prompt`, a file, or a program.
    ///
    /// # Errors
    /// When the label cannot stand in a vault.
    pub fn parse(text: &str, default: &str) -> Result<Self, SecretError> {
        let (label, source) = text.split_once('@').unwrap_or(("", text));
        if label.contains([';', '\n', '\r']) {
            return Err(SecretError::Label(text.to_owned()));
        }
        let label = if label.is_empty() { default } else { label };
        Ok(Self {
            label: label.to_owned(),
            source: match source {
                "prompt" => SecretSource::Prompt,
                "prompt_ask_vault_pass" => SecretSource::Ask,
                path => SecretSource::File(path.into()),
            },
        })
    }

    /// The id of a password file, under the default label.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>, default: &str) -> Self {
        Self {
            label: default.to_owned(),
            source: SecretSource::File(path.into()),
        }
    }

    /// The id of `--ask-vault-pass`.
    #[must_use]
    pub fn ask(default: &str) -> Self {
        Self {
            label: default.to_owned(),
            source: SecretSource::Ask,
        }
    }

    /// Gets the secret. A password file may be a vault itself, which the secrets in `known` open. `~` in paths is
    /// the caller's to replace.
    ///
    /// # Errors
    /// Why it cannot be had.
    pub fn secret(
        &self,
        purpose: Purpose,
        asker: &Asker<'_>,
        known: &Vault,
    ) -> Result<VaultSecret, SecretError> {
        let password = match &self.source {
            SecretSource::File(path) => from_file(path, &self.label, known)?,
            SecretSource::Prompt | SecretSource::Ask => self.asked(purpose, asker)?,
        };
        if password.is_empty() {
            return Err(SecretError::Empty(match &self.source {
                SecretSource::File(path) => path.display().to_string(),
                SecretSource::Prompt | SecretSource::Ask => "the prompt".to_owned(),
            }));
        }
        Ok(VaultSecret::from_bytes(self.label.clone(), &password))
    }

    fn asked(
        &self,
        purpose: Purpose,
        asker: &Asker<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, SecretError> {
        let ask = |question: String| {
            asker(&question).map_err(|problem| SecretError::Unasked {
                label: self.label.clone(),
                problem,
            })
        };
        // The questions are those that scripts around ansible-vault wait for.
        let label = &self.label;
        let first = match (purpose, &self.source) {
            (Purpose::Open, SecretSource::Ask) => ask("Vault password: ".to_owned()),
            (Purpose::Open, _) => ask(format!("Vault password ({label}): ")),
            (Purpose::Seal, SecretSource::Ask) => ask("New Vault password: ".to_owned()),
            (Purpose::Seal, _) => ask(format!("New vault password ({label}): ")),
        }?;
        if purpose == Purpose::Seal {
            let second = match self.source {
                SecretSource::Ask => ask("Confirm New Vault password: ".to_owned()),
                _ => ask(format!("Confirm new vault password ({label}): ")),
            }?;
            if first != second {
                return Err(SecretError::Differ(label.clone()));
            }
        }
        // As Ansible: spaces around a password that was typed are not part of it.
        Ok(Zeroizing::new(first.expose().trim().as_bytes().to_vec()))
    }
}

/// What became of a list of vault ids.
#[derive(Debug)]
pub struct Secrets {
    /// The secrets, in order.
    pub secrets: Vec<VaultSecret>,
    /// Those that could not be had, where at least one could.
    pub warnings: Vec<SecretError>,
}

/// Gets the secrets of ids in order. One that cannot be had is a warning where another can.
///
/// # Errors
/// Why the last could not be had, where none could.
pub fn secrets(
    ids: &[VaultId],
    purpose: Purpose,
    asker: &Asker<'_>,
) -> Result<Secrets, SecretError> {
    let mut found = Secrets {
        secrets: Vec::new(),
        warnings: Vec::new(),
    };
    for id in ids {
        let known = Vault::new(found.secrets.clone());
        match id.secret(purpose, asker, &known) {
            Ok(secret) => found.secrets.push(secret),
            // A person who types in two ways, or goes away, means to stop.
            Err(problem @ (SecretError::Differ(_) | SecretError::Unasked { .. })) => {
                return Err(problem);
            }
            Err(problem) => found.warnings.push(problem),
        }
    }
    if found.secrets.is_empty()
        && let Some(last) = found.warnings.pop()
    {
        return Err(last);
    }
    Ok(found)
}

/// The password in a file, or printed by it.
fn from_file(path: &Path, label: &str, known: &Vault) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    let unreadable = |problem: io::Error| match problem.kind() {
        ErrorKind::NotFound => SecretError::Missing(path.to_owned()),
        _ => SecretError::Unreadable {
            path: path.to_owned(),
            problem,
        },
    };
    let metadata = path.metadata().map_err(unreadable)?;
    if metadata.is_dir() || path.as_os_str().is_empty() {
        return Err(SecretError::Directory(path.to_owned()));
    }
    if metadata.permissions().mode() & 0o111 != 0 {
        return from_program(path, label);
    }
    let bytes = Zeroizing::new(std::fs::read(path).map_err(unreadable)?);
    let plain = match Vault::is_vault(&bytes) {
        true => {
            let opened = known.open(&bytes).map_err(|problem| SecretError::Vaulted {
                path: path.to_owned(),
                problem,
            })?;
            Zeroizing::new(opened.bytes().to_vec())
        }
        false => bytes,
    };
    Ok(Zeroizing::new(plain.trim_ascii().to_vec()))
}

/// The password that a program prints. One whose name ends with `-client` (before an ending) is told the label.
fn from_program(path: &Path, label: &str) -> Result<Zeroizing<Vec<u8>>, SecretError> {
    let client = path
        .file_stem()
        .is_some_and(|stem| stem.to_string_lossy().ends_with("-client"));
    // A bare name would be looked for in `PATH`.
    let program = match path.components().count() {
        1 if path.is_relative() => Path::new(".").join(path),
        _ => path.to_owned(),
    };
    let mut command = Command::new(program);
    if client {
        command.args(["--vault-id", label]);
    }
    // Its questions go to the terminal: its input is this one's.
    let output = command
        .stdin(Stdio::inherit())
        .output()
        .map_err(|problem| SecretError::NoProgram {
            path: path.to_owned(),
            problem,
        })?;
    let printed = Zeroizing::new(output.stdout);
    if output.status.success() {
        let lines = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let from = printed.iter().take_while(|byte| lines(byte)).count();
        let behind = printed[from..].iter().rev().take_while(|byte| lines(byte));
        let to = printed.len() - behind.count();
        return Ok(Zeroizing::new(printed[from..to].to_vec()));
    }
    let said = match String::from_utf8_lossy(&output.stderr).trim() {
        "" => String::new(),
        said => format!(": {said}"),
    };
    Err(match output.status.code() {
        Some(2) if client => SecretError::Unknown {
            path: path.to_owned(),
            label: label.to_owned(),
            said,
        },
        _ => SecretError::Failed {
            path: path.to_owned(),
            status: output.status.to_string(),
            said,
        },
    })
}

/// The label that is taken where none is given, unless a configuration names another.
pub const DEFAULT_LABEL: &str = DEFAULT;

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;

    use super::*;

    /// A folder with files; names that end with `.sh` are programs.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            if name.ends_with(".sh") {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            }
        }
        dir
    }

    fn nobody(_: &str) -> io::Result<Secret> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn got(dir: &tempfile::TempDir, ids: &[&str]) -> Result<Vec<(String, String)>, String> {
        let ids: Vec<VaultId> = ids
            .iter()
            .map(|text| {
                let mut id = VaultId::parse(text, DEFAULT).unwrap();
                if let SecretSource::File(path) = &mut id.source {
                    *path = dir.path().join(&*path);
                }
                id
            })
            .collect();
        let found = secrets(&ids, Purpose::Open, &nobody).map_err(|problem| {
            problem
                .to_string()
                .replace(&format!("{}/", dir.path().display()), "")
        })?;
        let text = |secret: &VaultSecret| String::from_utf8(secret.password().to_vec()).unwrap();
        Ok(found
            .secrets
            .iter()
            .map(|secret| (secret.label().to_owned(), text(secret)))
            .collect())
    }

    fn one(dir: &tempfile::TempDir, id: &str) -> Result<String, String> {
        got(dir, &[id]).map(|found| found[0].1.clone())
    }

    #[test]
    fn an_id_is_a_label_and_a_source() {
        let id = |text| VaultId::parse(text, DEFAULT).unwrap();
        assert_eq!(
            (id("dev@a@b").label.as_str(), id("dev@a@b").source),
            ("dev", SecretSource::File("a@b".into()))
        );
        assert_eq!(
            (id("@pw").label.as_str(), id("pw").source),
            ("default", SecretSource::File("pw".into()))
        );
        assert_eq!(id("dev@prompt").source, SecretSource::Prompt);
        assert_eq!(id("prompt").label, "default");
        assert!(VaultId::parse("a;b@pw", DEFAULT).is_err());
    }

    #[test]
    fn blanks_around_a_password_in_a_file_do_not_count_and_a_programs_newlines_do_not() {
        let dir = folder(&[
            ("pw", "  two words \n\n"),
            ("pw.sh", "#!/bin/sh\nprintf '  two words \\n\\n'\n"),
        ]);
        assert_eq!(one(&dir, "pw").as_deref(), Ok("two words"));
        assert_eq!(one(&dir, "pw.sh").as_deref(), Ok("  two words "));
    }

    #[test]
    fn a_client_is_told_the_label() {
        let script = "#!/bin/sh\necho \"<$*>\"\n";
        let dir = folder(&[("keyring-client.sh", script), ("client.sh", script)]);
        assert_eq!(
            one(&dir, "dev@keyring-client.sh").as_deref(),
            Ok("<--vault-id dev>")
        );
        assert_eq!(
            one(&dir, "keyring-client.sh").as_deref(),
            Ok("<--vault-id default>")
        );
        assert_eq!(one(&dir, "dev@client.sh").as_deref(), Ok("<>"));
    }

    #[test]
    fn a_password_file_may_be_a_vault_that_an_earlier_secret_opens() {
        let sealed = super::super::seal(
            b"inner\n",
            &VaultSecret::from_bytes("a".into(), b"outer"),
            "a",
            None,
        );
        let dir = folder(&[("outer", "outer"), ("sealed", &sealed.unwrap())]);
        let found = got(&dir, &["a@outer", "b@sealed"]).unwrap();
        assert_eq!(found[1], ("b".to_owned(), "inner".to_owned()));
        assert_eq!(
            one(&dir, "b@sealed").unwrap_err(),
            "the vault password file sealed is a vault itself: this is encrypted by vault, and no vault secrets were given"
        );
    }

    #[test]
    fn why_a_secret_cannot_be_had_is_told() {
        let dir = folder(&[
            ("empty", " \n"),
            ("fails.sh", "#!/bin/sh\necho no luck >&2\nexit 3\n"),
            ("ring-client.sh", "#!/bin/sh\nexit 2\n"),
            ("text.sh", "a password"),
        ]);
        fs::create_dir(dir.path().join("dir")).unwrap();
        let told = |id| one(&dir, id).unwrap_err();
        assert_eq!(told("nope"), "there is no vault password file nope");
        assert_eq!(told("dir"), "the vault password file dir is a directory");
        assert_eq!(told("empty"), "the vault password from empty is empty");
        assert_eq!(
            told("fails.sh"),
            "the vault password program fails.sh ended with exit status: 3: no luck"
        );
        assert_eq!(
            told("dev@ring-client.sh"),
            "the vault password program ring-client.sh knows no secret for the vault id `dev`"
        );
        assert!(told("text.sh").ends_with("where it is no program, take its executable bit away"));
    }

    #[test]
    fn one_secret_that_can_be_had_is_enough() {
        let dir = folder(&[("pw", "x")]);
        assert_eq!(
            got(&dir, &["a@nope", "b@pw"]).unwrap(),
            [("b".to_owned(), "x".to_owned())]
        );
    }

    #[test]
    fn a_new_password_is_asked_for_twice() {
        let asked = RefCell::new(Vec::new());
        let answers = RefCell::new(vec!["b", "a ", "a", "a"]);
        let ask = |question: &str| {
            asked.borrow_mut().push(question.to_owned());
            Ok(Secret::new(answers.borrow_mut().pop().unwrap().to_owned()))
        };
        let id = VaultId::parse("dev@prompt", DEFAULT).unwrap();
        let made = secrets(std::slice::from_ref(&id), Purpose::Seal, &ask).unwrap();
        assert_eq!(made.secrets[0].password(), b"a");
        let differ = secrets(&[id], Purpose::Seal, &ask).unwrap_err();
        assert_eq!(
            differ.to_string(),
            "the two passwords for the vault id `dev` differ"
        );
        assert_eq!(
            asked.borrow()[..2],
            [
                "New vault password (dev): ",
                "Confirm new vault password (dev): "
            ]
        );
    }
}
