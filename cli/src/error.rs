//! Every failure that a user sees, turned into a message and an exit code in one place.

use std::{borrow::Cow, path::PathBuf, sync::OnceLock};

use fleet_engine::{Diagnostic, vault::Vault};

/// Invalid input: a file, a pattern, an argument.
pub(crate) const INVALID: u8 = 11;
/// A mistake of fleetctl itself or of the machine that it runs on.
pub(crate) const INTERNAL: u8 = 1;

/// A plan that is not to be applied: stale, expired, another hash, not approved.
pub(crate) const PLAN_REFUSED: u8 = 5;

/// What is not allowed now: a freeze, an approval that is missing, what cannot be undone.
pub(crate) const NOT_ALLOWED: u8 = 9;

/// What is refused for a reason that has an exit code of its own.
#[derive(Debug)]
pub(crate) struct Refused {
    code: u8,
    text: String,
}

impl Refused {
    pub(crate) fn new(code: u8, text: impl Into<String>) -> Self {
        Self {
            code,
            text: text.into(),
        }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refused {}

/// Mistakes in files that a user wrote, each with its place.
#[derive(Debug)]
pub(crate) struct Mistakes(pub(crate) Vec<Diagnostic>);

impl std::fmt::Display for Mistakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} mistakes", self.0.len())
    }
}

impl std::error::Error for Mistakes {}

/// Invalid input that has no place in a file.
#[derive(Debug)]
pub(crate) struct Invalid(pub(crate) String);

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Invalid {}

impl From<Vec<Diagnostic>> for Mistakes {
    fn from(mistakes: Vec<Diagnostic>) -> Self {
        Self(mistakes)
    }
}

/// What of vaults must not be shown; it knows more as more is opened.
static VAULT: OnceLock<Vault> = OnceLock::new();

/// Hides what this vault opens in all failures that are told from now on.
pub(crate) fn keep_secret(vault: &Vault) {
    // There is one run, and so one vault.
    let _ = VAULT.set(vault.clone());
}

/// The text without what came out of a vault: for lines of files that people wrote.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    VAULT
        .get()
        .map_or(Cow::Borrowed(text), |vault| vault.mask(text))
}

/// File by file, as they are first met, and in each in the order of lines.
fn in_order(mistakes: &mut [&Diagnostic]) {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut place = |mistake: &&Diagnostic| {
        let Some(span) = &mistake.span else {
            return (usize::MAX, 0);
        };
        let name = &span.source.name;
        let file = files.iter().position(|known| known == name);
        let file = file.unwrap_or_else(|| {
            files.push(name.clone());
            files.len() - 1
        });
        (file, span.start)
    };
    mistakes.sort_by_cached_key(&mut place);
}

/// Prints a failure to standard error; returns the exit code.
pub(crate) fn report(problem: &anyhow::Error) -> u8 {
    let color = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    if let Some(Mistakes(mistakes)) = problem.downcast_ref() {
        // A limit that matches nothing is found once for each play.
        let mut told = std::collections::HashSet::new();
        let mut mistakes: Vec<_> = mistakes
            .iter()
            .filter(|mistake| told.insert(mistake.to_string()))
            .collect();
        in_order(&mut mistakes);
        for mistake in &mistakes {
            anstream::eprintln!("{}", masked(&fleet_engine::render(mistake, color)));
            if mistakes.len() > 1 {
                anstream::eprintln!();
            }
        }
        if mistakes.len() > 1 {
            anstream::eprintln!(
                "{} mistakes; nothing was connected, nothing was changed",
                mistakes.len()
            );
        }
        return INVALID;
    }
    let label = crate::paint::paint(crate::paint::BAD.bold(), "error");
    anstream::eprintln!("{label}: {}", masked(&format!("{problem:#}")));
    if let Some(refused) = problem.downcast_ref::<Refused>() {
        refused.code
    } else if problem.downcast_ref::<Invalid>().is_some() {
        INVALID
    } else {
        INTERNAL
    }
}
