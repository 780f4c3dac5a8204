//! The escape hatch: modules that fleetctl lacks and that lie in the project, found, told apart and packed so that the
//! helper can run them on a host.
//!
//! ```text
//! search.find("ini_file")?   -> External            (what a playbook means by a name)
//! external.payload()?        -> Payload             (the bytes that travel beside the task, made once)
//! external.call(args, &ctx)  -> Map                 (the arguments of the helper's module `_external`)
//! ```

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

pub use call::{Context, MODULE};
pub use kind::{Interpreter, Kind};
pub use search::{Search, Unsupported};

mod archive;
mod bundle;
mod call;
mod imports;
mod kind;
mod python;
mod routing;
mod search;

/// A module of the project.
pub struct External {
    /// Its full name: `ansible.legacy.NAME`, or `NAMESPACE.COLLECTION.NAME`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
    /// How it is given its arguments.
    pub kind: Kind,
    /// What runs it.
    pub interpreter: Interpreter,
    /// It may say what it would do, without doing it: a module that supports Ansible's check mode.
    pub checkable: bool,
    source: Vec<u8>,
    /// Where the Python modules that it imports are looked for.
    libraries: bundle::Libraries,
    payload: OnceLock<Result<Arc<[u8]>, String>>,
}

impl External {
    fn read(name: String, path: &Path, libraries: bundle::Libraries) -> Result<Self, Unsupported> {
        let source = crate::sources::read(path).map_err(|problem| {
            Unsupported::new(format!(
                "the module `{name}` cannot be read: {}: {problem}",
                path.display()
            ))
        })?;
        let kind = Kind::of(&source);
        let interpreter = Interpreter::of(&source, kind);
        if kind == Kind::PowerShell {
            return Err(Unsupported::new(format!(
                "the module `{name}` is written for Windows: {}",
                path.display()
            )));
        }
        let mentions = |text: &[u8]| source.windows(text.len()).any(|part| part == text);
        Ok(Self {
            checkable: kind == Kind::Python && mentions(b"supports_check_mode"),
            name,
            path: path.to_owned(),
            kind,
            interpreter,
            source,
            libraries,
            payload: OnceLock::new(),
        })
    }

    /// The bytes to send beside the task: the file itself, or for a Python module an archive that holds it and all that
    /// it imports. Made once, the same for every host.
    ///
    /// # Errors
    /// A message for people when it imports something that is nowhere.
    pub fn payload(&self) -> Result<Arc<[u8]>, String> {
        let made = self.payload.get_or_init(|| match self.kind {
            Kind::Python => bundle::pack(&self.name, &self.source, &self.libraries).map(Arc::from),
            _ => Ok(Arc::from(self.source.as_slice())),
        });
        made.clone()
    }

    /// The variable by which a host says which program runs it, `ansible_python_interpreter`; none for a binary.
    #[must_use]
    pub fn interpreter_variable(&self) -> Option<String> {
        self.interpreter
            .program()
            .map(|program| format!("ansible_{program}_interpreter"))
    }
}

impl std::fmt::Debug for External {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("External")
            .field("name", &self.name)
            .field("path", &self.path)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}
