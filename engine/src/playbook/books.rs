//! All that can be read for a run: playbooks before it, and what their dynamic includes name while it goes on.

use std::{
    collections::HashMap,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use fleet_yaml::{Diagnostic, Node, Source};

use crate::{external, sources};

use super::{
    Action, Block, Check, Directives, Play, Playbook, Step, Task, Vars,
    reader::{Here, Reader},
    unset::Unset,
};

/// What reading depends on beside the files themselves.
#[derive(Clone)]
pub struct BookSettings {
    /// Looks at templates, and renders the names of static imports.
    pub check: Arc<dyn Check + Send + Sync>,
    /// Directories in which roles are looked for, behind `roles/` beside the playbook.
    pub roles_path: Vec<PathBuf>,
    /// Directories that hold `ansible_collections/`, behind `collections/` beside the playbook.
    pub collections_path: Vec<PathBuf>,
    /// Directories of modules that fleetctl does not have itself, behind `library/` beside the playbook and in roles.
    pub library: Vec<PathBuf>,
    /// Directories of what such modules import.
    pub module_utils: Vec<PathBuf>,
    /// `-e`
    pub extra_vars: Arc<Vars>,
}

impl BookSettings {
    /// Nothing is said but how templates are looked at.
    #[must_use]
    pub fn new(check: Arc<dyn Check + Send + Sync>) -> Self {
        Self {
            check,
            roles_path: Vec::new(),
            collections_path: Vec::new(),
            library: Vec::new(),
            module_utils: Vec::new(),
            extra_vars: Arc::default(),
        }
    }
}

/// Reads playbooks, roles and files of tasks; what was read is kept. Cheap to clone.
#[derive(Clone)]
pub struct Books(Arc<Shelf>);

/// A playbook, and what was noticed while reading it.
#[derive(Debug)]
pub struct Reading {
    /// The playbook; where there are mistakes, what of it could be understood.
    pub playbook: Playbook,
    /// Mistakes in the playbook itself, each at its place: with any it cannot be run.
    pub mistakes: Vec<Diagnostic>,
    /// Mistakes that Ansible tells only when a host reaches the task: arguments, templates, names of handlers, files, what
    /// dynamic includes name. A run that is to do as Ansible does begins all the same, and the task fails.
    pub late: Vec<Diagnostic>,
    /// Variables that are used for certain and that nothing in the playbook sets: mistakes of the late kind where no
    /// inventory sets them, either.
    pub unset: Vec<Unset>,
    /// What is taken, but may not be meant.
    pub warnings: Vec<Diagnostic>,
}

/// What stands around a dynamic include.
#[derive(Clone, Debug, Default)]
pub struct Around {
    /// What the included tasks inherit.
    pub directives: Directives,
    /// The include stands among handlers.
    pub handler: bool,
    /// The directory of the play's files.
    pub play_dir: PathBuf,
    /// Tells one include, item and host from another; the ids of the tasks are made of it.
    pub seed: u64,
}

/// What `include_role` asks for, rendered.
#[derive(Clone, Debug)]
pub struct RoleCall {
    /// `name:`
    pub name: String,
    /// `tasks_from:`
    pub tasks_from: Option<String>,
    /// `vars_from:`
    pub vars_from: Option<String>,
    /// `defaults_from:`
    pub defaults_from: Option<String>,
    /// `handlers_from:`
    pub handlers_from: Option<String>,
    /// `public:`; as the configuration says where it is absent.
    pub public: Option<bool>,
    /// `allow_duplicates:`; true where it is absent.
    pub allow_duplicates: Option<bool>,
    /// `rolespec_validate:`; true where it is absent.
    pub rolespec_validate: bool,
    /// Parameters of the role.
    pub params: Arc<Vars>,
}

impl Default for RoleCall {
    fn default() -> Self {
        Self {
            name: String::new(),
            tasks_from: None,
            vars_from: None,
            defaults_from: None,
            handlers_from: None,
            public: None,
            allow_duplicates: None,
            rolespec_validate: true,
            params: Arc::default(),
        }
    }
}

/// A role that was included while the play runs.
#[derive(Clone, Debug)]
pub struct IncludedRole {
    /// Its tasks, those of the roles that it depends on before them, each role in a block of its own.
    pub block: Arc<Block>,
    /// Its handlers, those of the roles that it depends on before them.
    pub handlers: Vec<Arc<Task>>,
}

impl Around {
    /// What the tasks inherit that `include` brings in: what stands around it, and its variables.
    #[must_use]
    pub fn of(include: &Task, handler: bool, play_dir: &Path, seed: u64) -> Self {
        let mut directives = match &include.action {
            Action::Include { around, .. } => (**around).clone(),
            _ => include.directives.clone(),
        };
        if !include.vars.is_empty() {
            directives.include_params.push(Arc::clone(&include.vars));
        }
        Self {
            directives,
            handler,
            play_dir: play_dir.to_owned(),
            seed,
        }
    }

    /// Merges the include's `apply:` into what its tasks inherit. Mistakes in it were told when the include was read.
    pub fn apply(&mut self, apply: &Node) {
        let shelf = Shelf::new(BookSettings::new(Arc::new(super::check::Trusting)));
        let mut reader = Reader::new(&shelf, 0, self.play_dir.clone());
        reader.applied(apply, &mut self.directives);
    }
}

impl Books {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(settings: BookSettings) -> Self {
        Self(Arc::new(Shelf::new(settings)))
    }

    /// Reads the playbook at `path`, or that of a collection by its full name, with all that it imports. What its
    /// includes name by a plain name is looked at, too.
    #[must_use]
    pub fn playbook(&self, path: &Path) -> Reading {
        let path = self.0.playbook_path(path);
        let dir = path.parent().map(Path::to_owned).unwrap_or_default();
        self.read(&path, dir, |reader| reader.playbook(&path))
    }

    /// Reads a playbook that is no file; `dir` stands for the directory that it would be in.
    #[must_use]
    pub fn text(&self, source: Arc<Source>, dir: &Path) -> Reading {
        let name = source.name.clone();
        self.read(&name, dir.to_owned(), |reader| reader.playbook_text(source))
    }

    fn read(
        &self,
        path: &Path,
        dir: PathBuf,
        plays: impl FnOnce(&mut Reader<'_>) -> Vec<Arc<Play>>,
    ) -> Reading {
        let first = self.0.next_id.load(Ordering::Relaxed);
        let mut reader = Reader::new(&self.0, first, dir);
        let plays = plays(&mut reader);
        let path = path.to_owned();
        self.0.next_id.store(reader.next_id, Ordering::Relaxed);
        let mut unset = std::mem::take(&mut reader.unset);
        // What was left out may set it.
        unset.retain(|unset| !reader.left_out.contains(&unset.name));
        let told = reader.told();
        Reading {
            unset,
            playbook: Playbook { path, plays },
            mistakes: told.mistakes,
            late: told.late,
            warnings: told.warnings,
        }
    }

    /// Reads the tasks of `file`, which the task `including` names.
    ///
    /// # Errors
    /// When there is no such file, or there are mistakes in it.
    pub fn tasks(
        &self,
        file: &str,
        including: &Task,
        around: &Around,
    ) -> Result<(PathBuf, Vec<Step>), Vec<Diagnostic>> {
        let mut reader = self.reader(including, around, file);
        let read = reader.included_tasks(file, including, &around.directives);
        reader.outcome(read)
    }

    /// Reads the role that the task `including` names.
    ///
    /// # Errors
    /// When there is no such role, or there are mistakes in it.
    pub fn role(
        &self,
        call: &RoleCall,
        including: &Task,
        around: &Around,
    ) -> Result<IncludedRole, Vec<Diagnostic>> {
        let mut reader = self.reader(including, around, &call.name);
        let read = reader.included_role(call, including, &around.directives);
        reader.outcome(read)
    }

    /// What a task does whose module is named by a template, now that the name is known: its arguments are looked at as
    /// those of any other task.
    ///
    /// # Errors
    /// When there is no such module, or it does not take the arguments.
    pub fn action(
        &self,
        name: &str,
        task: &Task,
        play_dir: &Path,
    ) -> Result<Action, Vec<Diagnostic>> {
        let mut reader = Reader::new(&self.0, 0, play_dir.to_owned());
        reader.here = Here {
            files: Arc::clone(&task.files),
            search: Arc::clone(&task.search),
            handlers: false,
        };
        let action = reader.named_action(name, task);
        reader.outcome(action)
    }

    fn reader(&self, including: &Task, around: &Around, name: &str) -> Reader<'_> {
        let mut hasher = DefaultHasher::new();
        (around.seed, name, &*including.files, around.handler).hash(&mut hasher);
        // The upper half keeps away from the ids of what was read before the run, and leaves room to count up.
        let first = (hasher.finish() >> 1) | (1 << 62);
        let first = usize::try_from(first).unwrap_or(usize::MAX / 2);
        let mut reader = Reader::new(&self.0, first, around.play_dir.clone());
        reader.here = Here {
            files: Arc::clone(&including.files),
            search: Arc::clone(&including.search),
            handlers: around.handler,
        };
        reader
    }
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Books").finish_non_exhaustive()
    }
}

/// The settings, and the files that were read.
pub(super) struct Shelf {
    pub(super) settings: BookSettings,
    files: Mutex<HashMap<PathBuf, (Stamp, Arc<File>)>>,
    modules: Mutex<HashMap<PathBuf, external::Search>>,
    next_id: AtomicUsize,
}

/// What tells that a file was written anew.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    written: i64,
    length: u64,
}

/// A file of YAML.
pub(super) struct File {
    pub(super) source: Arc<Source>,
    pub(super) documents: Vec<Node>,
    pub(super) warnings: Vec<Diagnostic>,
    /// Places that are no YAML, around which the rest was read, and the text that was left out.
    pub(super) mistakes: Vec<Diagnostic>,
    pub(super) left_out: String,
    /// Whether somebody looked at its templates and arguments already.
    pub(super) looked_at: std::sync::atomic::AtomicBool,
}

impl File {
    /// Takes a text apart.
    pub(super) fn of(source: Arc<Source>) -> Self {
        let partly = fleet_yaml::load_around(&source);
        Self {
            source,
            documents: partly.loaded.documents,
            warnings: partly.loaded.warnings,
            mistakes: partly.mistakes,
            left_out: partly.left_out,
            looked_at: false.into(),
        }
    }

    /// What stands in it: nothing, or its only document.
    pub(super) fn content(&self) -> Node {
        match self.documents.first() {
            Some(node) => node.clone(),
            None => Node::from_json(&serde_json::Value::Null, &self.source.span(0, 0)),
        }
    }
}

impl Shelf {
    fn new(settings: BookSettings) -> Self {
        Self {
            settings,
            files: Mutex::default(),
            modules: Mutex::default(),
            next_id: AtomicUsize::new(0),
        }
    }

    /// Where modules of the project are looked for by a play in this directory.
    pub(super) fn modules(&self, dir: &Path) -> external::Search {
        let settings = &self.settings;
        let mut known = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let search = known.entry(dir.to_owned()).or_insert_with(|| {
            external::Search::beside(
                dir,
                &settings.library,
                &settings.module_utils,
                &settings.collections_path,
            )
        });
        search.clone()
    }

    /// A file, read once as long as it stays as it is.
    pub(super) fn file(&self, path: &Path) -> Result<Arc<File>, Diagnostic> {
        let stamp = sources::about(path).ok().map(|found| Stamp {
            written: found.modified_ns,
            length: found.size,
        });
        let lock = || self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stamp) = stamp
            && let Some((known, file)) = lock().get(path)
            && *known == stamp
        {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::of(self.settings.check.source(path)?));
        if let Some(stamp) = stamp {
            lock().insert(path.to_owned(), (stamp, Arc::clone(&file)));
        }
        Ok(file)
    }

    /// The file of a playbook: as it stands, or in a collection.
    pub(super) fn playbook_path(&self, path: &Path) -> PathBuf {
        let Some(name) = path.to_str().filter(|_| !sources::exists(path)) else {
            return path.to_owned();
        };
        self.in_collection(name, "playbooks", Path::new(""))
            .unwrap_or_else(|| path.to_owned())
    }

    /// A thing of a collection by its full name, `namespace.collection.thing`, in the folder of its kind.
    pub(super) fn in_collection(&self, name: &str, folder: &str, dir: &Path) -> Option<PathBuf> {
        let mut parts = name.splitn(3, '.');
        let (namespace, collection, thing) = (parts.next()?, parts.next()?, parts.next()?);
        let plain = |part: &str| part.chars().all(|c| c.is_alphanumeric() || c == '_');
        if !plain(namespace) || !plain(collection) || thing.contains('/') {
            return None;
        }
        let mut roots = vec![dir.join("collections")];
        roots.extend(self.settings.collections_path.iter().cloned());
        roots.iter().find_map(|root| {
            let base = root.join("ansible_collections").join(namespace);
            let base = base.join(collection).join(folder);
            let path = thing.split('.').fold(base, |path, part| path.join(part));
            let named = |extension: &str| path.with_file_name(format!("{}{extension}", thing));
            [path.clone(), named(".yml"), named(".yaml")]
                .into_iter()
                .find(|candidate| sources::exists(candidate))
        })
    }
}
