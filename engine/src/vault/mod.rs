//! Vaults: texts that are encrypted as Ansible encrypts them, and the secrets that open them.
//!
//! A [`Vault`] holds the secrets of a run. It opens whole files ([`Vault::plain`]) and `!vault` values
//! ([`Vault::value`]), each only once, and hides what it has opened in all that is shown ([`Vault::mask`]).

#[cfg(test)]
mod as_ansible;
mod cipher;
mod envelope;
mod file;
mod hide;
mod mask;
mod secrets;

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap, HashSet},
    io::Read,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use fleet_yaml::{Diagnostic, Kind, Node, Source, Span};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

pub use file::{Permissions, replace};
pub use mask::MASK;
pub use secrets::{
    Asker, DEFAULT_LABEL, Purpose, SecretError, SecretSource, Secrets, VaultId, VaultSecret,
    secrets,
};

use crate::sources;

use cipher::{Sealed, Shut};
use envelope::{Damage, Envelope, MAGIC};
use mask::Masks;

/// The codes of the diagnostics of vaults.
pub mod code {
    /// A vault that does not open.
    pub const SHUT: &str = "F0801";
    /// A vault that is damaged.
    pub const DAMAGED: &str = "F0802";
}

/// The label of secrets without one.
const DEFAULT: &str = "default";

/// The secrets of a run, and what they have opened. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Vault {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    secrets: Vec<VaultSecret>,
    /// Only secrets with a vault's own label are tried on it.
    match_labels: bool,
    /// What was opened, by the SHA-256 of its text: deriving the keys takes milliseconds.
    opened: Mutex<HashMap<[u8; 32], Attempt>>,
    masks: Masks,
    /// The texts of `!vault` values that were opened.
    values: Mutex<HashSet<String>>,
}

/// One try of all secrets on a vault, made by whoever comes first.
type Attempt = Arc<OnceLock<Result<Opened, VaultError>>>;

/// What was in a vault.
#[derive(Clone)]
pub struct Opened {
    bytes: Arc<Zeroizing<Vec<u8>>>,
    label: String,
    secret: VaultSecret,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened")
            .field("label", &self.label)
            .finish_non_exhaustive()
    }
}

impl Opened {
    /// The plain bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The vault's own label; `default` where it names none.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The secret that opened it.
    #[must_use]
    pub fn secret(&self) -> &VaultSecret {
        &self.secret
    }
}

/// Why a vault does not open, or cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    /// The bytes are no vault.
    #[error("this is not encrypted by vault")]
    Plain,
    /// There is no secret at all.
    #[error("this is encrypted by vault, and no vault secrets were given")]
    NoSecrets,
    /// No secret opens it.
    #[error("none of the vault secrets ({tried}) opens this{}", wanted(.label))]
    NoneFits {
        /// The labels of the secrets that were tried.
        tried: String,
        /// The label of the vault.
        label: String,
    },
    /// No secret has its label, and others must not be tried.
    #[error("no vault secret has the id `{label}`, and others are not tried (`vault_id_match`)")]
    NoMatch {
        /// The label of the vault.
        label: String,
    },
    /// It is damaged.
    #[error("the vault is damaged in its line {line}: {what}")]
    Damaged {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// There are several secrets to seal with, and none was chosen.
    #[error(
        "there are several vault secrets to encrypt with ({0}): choose one by `--encrypt-vault-id`"
    )]
    Ambiguous(String),
    /// The secret that was chosen to seal with is not there.
    #[error("no vault secret has the id `{label}`; there {}", there(.known))]
    Unknown {
        /// The label.
        label: String,
        /// The labels of those that are there, with commas.
        known: String,
    },
    /// The system has no random bytes.
    #[error("the system gives no random bytes for a salt: {0}")]
    NoRandom(String),
}

fn wanted(label: &str) -> String {
    match label {
        DEFAULT => String::new(),
        label => format!(", whose id is `{label}`"),
    }
}

fn there(known: &str) -> String {
    match known {
        "" => "are none".to_owned(),
        known => format!("is {known}"),
    }
}

impl VaultError {
    /// What to do about it.
    fn help(&self) -> Option<&'static str> {
        match self {
            Self::NoSecrets => Some(
                "give one by `--vault-password-file FILE`, `--vault-id LABEL@FILE` or `--ask-vault-pass`",
            ),
            Self::NoneFits { .. } => {
                Some("is the password right, and the id the one it was encrypted with?")
            }
            _ => None,
        }
    }

    /// The error at its place in a file of these bytes.
    #[must_use]
    pub fn in_file(&self, path: &Path, bytes: &[u8]) -> Diagnostic {
        let text = String::from_utf8_lossy(bytes).into_owned();
        diagnostic(self, &Source::new(path, text), 0)
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => code::DAMAGED,
            _ => code::SHUT,
        }
    }
}

impl From<Damage> for VaultError {
    fn from(Damage { line, what }: Damage) -> Self {
        Self::Damaged { line, what }
    }
}

impl Vault {
    /// A vault with these secrets, tried in this order.
    #[must_use]
    pub fn new(secrets: Vec<VaultSecret>) -> Self {
        Self::matching(secrets, false)
    }

    /// The same; with `match_labels` a vault with a label is opened by secrets of that label only.
    #[must_use]
    pub fn matching(secrets: Vec<VaultSecret>, match_labels: bool) -> Self {
        Self {
            inner: Arc::new(Inner {
                secrets,
                match_labels,
                ..Inner::default()
            }),
        }
    }

    /// The secrets, in order.
    #[must_use]
    pub fn secrets(&self) -> &[VaultSecret] {
        &self.inner.secrets
    }

    /// A key for the digests of secrets, made of the passwords; none where there are none. As slow to guess as they are
    /// in a vault.
    #[must_use]
    pub fn digest_key(&self) -> Option<fleet_wire::DigestKey> {
        let secrets = &self.inner.secrets;
        let passwords: Vec<&[u8]> = secrets.iter().map(VaultSecret::password).collect();
        (!passwords.is_empty()).then(|| {
            let joined = Zeroizing::new(passwords.join(&0));
            fleet_wire::DigestKey::new(cipher::stretched(&joined, b"digests of a plan"))
        })
    }

    /// Whether these bytes begin as a vault does.
    #[must_use]
    pub fn is_vault(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC.as_bytes())
    }

    /// Whether there is a vault at this path; a file that cannot be read is none.
    #[must_use]
    pub fn is_vault_at(path: &Path) -> bool {
        let mut head = [0; MAGIC.len()];
        sources::open(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok())
            && Self::is_vault(&head)
    }

    /// Whether a value carries the tag of an encrypted one.
    #[must_use]
    pub fn is_vaulted(node: &Node) -> bool {
        node.has_tag("vault") || node.has_tag("vault-encrypted")
    }

    /// Opens a vault: the secrets with its label are tried first, then all others. What was opened is remembered, and
    /// not masked: see [`Vault::hide`].
    ///
    /// # Errors
    /// When it is none, when it is damaged, or when no secret opens it.
    pub fn open(&self, bytes: &[u8]) -> Result<Opened, VaultError> {
        let bytes = bytes.trim_ascii();
        if !Self::is_vault(bytes) {
            return Err(VaultError::Plain);
        }
        let digest = Sha256::digest(bytes).into();
        let attempt = {
            let mut opened = self
                .inner
                .opened
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            Arc::clone(opened.entry(digest).or_default())
        };
        attempt.get_or_init(|| self.try_all(bytes)).clone()
    }

    fn try_all(&self, bytes: &[u8]) -> Result<Opened, VaultError> {
        let Envelope { label, sealed } = Envelope::parse(bytes)?;
        if self.inner.secrets.is_empty() {
            return Err(VaultError::NoSecrets);
        }
        let (own, others): (Vec<_>, Vec<_>) = self
            .inner
            .secrets
            .iter()
            .partition(|secret| secret.label() == label);
        let others = others.into_iter().filter(|_| !self.inner.match_labels);
        let mut tried = BTreeSet::new();
        for secret in own.into_iter().chain(others) {
            match sealed.open(secret.password()) {
                Ok(plain) => {
                    return Ok(Opened {
                        bytes: Arc::new(plain),
                        label,
                        secret: secret.clone(),
                    });
                }
                Err(Shut::Padding) => {
                    return Err(VaultError::Damaged {
                        line: 2,
                        what: "its end is not what the cipher leaves".to_owned(),
                    });
                }
                Err(Shut::Mismatch) => {
                    tried.insert(secret.label());
                }
            }
        }
        if tried.is_empty() {
            return Err(VaultError::NoMatch { label });
        }
        let tried = tried.into_iter().collect::<Vec<_>>().join(", ");
        Err(VaultError::NoneFits { tried, label })
    }

    /// The bytes of a file that people wrote, in plain: opened where they are a vault, else as they are. What was opened
    /// is masked from here on: each value of a YAML mapping; of plays and tasks their variables, and what has a name
    /// like `password`; each line of anything else.
    ///
    /// # Errors
    /// Why it does not open, at its place.
    pub fn plain(&self, path: &Path, bytes: Vec<u8>) -> Result<Vec<u8>, Diagnostic> {
        if !Self::is_vault(&bytes) {
            return Ok(bytes);
        }
        let opened = self
            .open(&bytes)
            .map_err(|problem| problem.in_file(path, &bytes))?;
        self.hide_values(path, opened.bytes());
        Ok(opened.bytes().to_vec())
    }

    /// Reads a file that people wrote, and opens it as [`Vault::plain`] does.
    ///
    /// # Errors
    /// Why it cannot be read or opened, at its place.
    pub fn read(&self, path: &Path) -> Result<Arc<Source>, Diagnostic> {
        match sources::read(path) {
            Ok(bytes) => Source::from_bytes(path, self.plain(path, bytes)?),
            // It says why in the words of all files.
            Err(_) => Source::read(path),
        }
    }

    /// The text of a `!vault` value, masked from here on.
    ///
    /// # Errors
    /// Why it does not open, at its place.
    pub fn value(&self, node: &Node) -> Result<String, Diagnostic> {
        let text = node.scalar_text().unwrap_or_default();
        let opened = self
            .open(text.as_bytes())
            .map_err(|problem| at_value(&problem, node))?;
        let Ok(plain) = std::str::from_utf8(opened.bytes()) else {
            return Err(Diagnostic::error(
                node.span.clone(),
                "what was encrypted here is no text (not UTF-8)",
            )
            .with_code(code::DAMAGED));
        };
        self.hide(plain);
        self.inner
            .values
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(plain.to_owned());
        Ok(plain.to_owned())
    }

    /// Whether a text is that of a `!vault` value which was opened.
    #[must_use]
    pub fn gave(&self, text: &str) -> bool {
        let values = self.inner.values.lock();
        values
            .unwrap_or_else(PoisonError::into_inner)
            .contains(text)
    }

    /// What is damaged in a `!vault` value, as far as that shows without a secret.
    #[must_use]
    pub fn check(node: &Node) -> Option<Diagnostic> {
        let text = node.scalar_text().unwrap_or_default();
        let text = text.trim();
        match Envelope::parse(text.as_bytes()) {
            Ok(_) => None,
            Err(damage) => Some(at_value(&damage.into(), node)),
        }
    }

    /// Masks a text, and each line of it, from here on. Texts of less than four characters, and plain words (`true`,
    /// `null`), are not.
    pub fn hide(&self, text: &str) {
        self.inner.masks.add(text);
    }

    /// Masks what a vaulted file holds.
    fn hide_values(&self, path: &Path, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return;
        };
        match fleet_yaml::load(Source::new(path, text)) {
            Ok(loaded) if loaded.documents.iter().any(|node| !node.is_scalar()) => {
                for document in &loaded.documents {
                    match document.as_seq() {
                        Some(_) => self.hide_named(document),
                        None => self.hide_scalars(document),
                    }
                }
            }
            _ => self.hide(text),
        }
    }

    /// Masks in a list of plays or tasks what their keys say is a secret, and all variables: the words of a task are
    /// no secrets.
    fn hide_named(&self, node: &Node) {
        const TELLING: [&str; 6] = ["pass", "secret", "token", "credential", "private", "key"];
        for item in node.as_seq().into_iter().flatten() {
            match item.is_scalar() {
                true => self.hide_scalars(item),
                false => self.hide_named(item),
            }
        }
        for (key, value) in node.as_map().into_iter().flat_map(|map| map.iter()) {
            let key = key.key_text().to_lowercase();
            if key == "vars" || TELLING.iter().any(|telling| key.contains(telling)) {
                self.hide_scalars(value);
            } else {
                self.hide_named(value);
            }
        }
    }

    fn hide_scalars(&self, node: &Node) {
        /// Shorter numbers are ports and sizes.
        const DIGITS: usize = 6;
        match &node.kind {
            Kind::Str(text) => self.hide(text),
            Kind::Int(_) | Kind::Float(_) if node.raw().len() >= DIGITS => self.hide(node.raw()),
            Kind::Null | Kind::Bool(_) | Kind::Int(_) | Kind::Float(_) => {}
            Kind::Seq(items) => items.iter().for_each(|item| self.hide_scalars(item)),
            Kind::Map(map) => map.iter().for_each(|(_, value)| self.hide_scalars(value)),
        }
    }

    /// Whether nothing is masked: [`Vault::mask`] gives back what it is given.
    #[must_use]
    pub fn masks_nothing(&self) -> bool {
        self.inner.masks.is_empty()
    }

    /// The text with everything that came out of a vault replaced by [`MASK`]: as it is, and as it is written in JSON,
    /// in a shell's quotes, in URLs and in base64.
    #[must_use]
    pub fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.inner.masks.mask(text)
    }

    /// Whether anything in the text would be masked.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        matches!(self.mask(text), Cow::Owned(_))
    }

    /// The same for the texts in a JSON value, keys and numbers, too.
    pub fn mask_json(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        if self.masks_nothing() {
            return;
        }
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.mask(text) {
                    *text = masked;
                }
            }
            Value::Number(number) => {
                let text = number.to_string();
                if self.mask(&text) == MASK {
                    *value = MASK.into();
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_json(item)),
            Value::Object(fields) => {
                for field in fields.values_mut() {
                    self.mask_json(field);
                }
                if fields
                    .keys()
                    .any(|key| matches!(self.mask(key), Cow::Owned(_)))
                {
                    *fields = std::mem::take(fields)
                        .into_iter()
                        .map(|(key, field)| (self.mask(&key).into_owned(), field))
                        .collect();
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// The secret to seal with: the first with this label, or the only one where none is named.
    ///
    /// # Errors
    /// When there is none, or more than one and none is named.
    pub fn sealer(&self, label: Option<&str>) -> Result<&VaultSecret, VaultError> {
        let secrets = &self.inner.secrets;
        let known = || {
            let labels: Vec<&str> = secrets.iter().map(VaultSecret::label).collect();
            labels.join(", ")
        };
        match (label, secrets.as_slice()) {
            (None, []) => Err(VaultError::NoSecrets),
            (None, [only]) => Ok(only),
            (None, _) => Err(VaultError::Ambiguous(known())),
            (Some(label), _) => secrets
                .iter()
                .find(|secret| secret.label() == label)
                .ok_or_else(|| VaultError::Unknown {
                    label: label.to_owned(),
                    known: known(),
                }),
        }
    }
}

/// Seals bytes: the text of a vault, ending with a newline. `salt` is fresh unless given.
///
/// # Errors
/// When the system has no random bytes for a salt.
pub fn seal(
    plain: &[u8],
    secret: &VaultSecret,
    label: &str,
    salt: Option<&[u8]>,
) -> Result<String, VaultError> {
    let mut fresh = [0; cipher::SALT];
    let salt = match salt {
        Some(salt) => salt,
        None => {
            getrandom::fill(&mut fresh)
                .map_err(|problem| VaultError::NoRandom(problem.to_string()))?;
            &fresh
        }
    };
    let envelope = Envelope {
        label: label.to_owned(),
        sealed: Sealed::seal(plain, secret.password(), salt),
    };
    Ok(envelope.text())
}

/// An error at a `!vault` value, whose first line may stand below the tag.
fn at_value(problem: &VaultError, node: &Node) -> Diagnostic {
    let Span { source, start, .. } = &node.span;
    let behind = source.text.get(*start..).unwrap_or_default();
    match behind.find(MAGIC) {
        Some(at) => diagnostic(problem, source, start + at),
        None => explained(problem).at(node.span.clone()),
    }
}

/// An error at the vault that begins at a byte of a text.
fn diagnostic(problem: &VaultError, source: &Arc<Source>, start: usize) -> Diagnostic {
    let first = source.line_col(start).0;
    let line = match problem {
        VaultError::Damaged { line, .. } => first + line - 1,
        _ => first,
    };
    let from = if line == first {
        start
    } else {
        source.line_start(line)
    };
    let text = source.line(line);
    let blanks = text.len() - text.trim_start().len();
    let end = source.line_start(line) + text.trim_end().len();
    let from = from.max(source.line_start(line) + blanks).min(end);
    explained(problem).at(source.span(from, end))
}

fn explained(problem: &VaultError) -> Diagnostic {
    let message = match problem {
        // The place says which line.
        VaultError::Damaged { what, .. } => format!("the vault is damaged: {what}"),
        other => other.to_string(),
    };
    let diagnostic = Diagnostic::without_place(message).with_code(problem.code());
    match problem.help() {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    }
}
