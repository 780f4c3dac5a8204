//! Where modules are looked for, and in which order.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use super::{External, bundle::Libraries, routing::Routing};
use crate::sources;

/// Endings that no module has.
const NEVER: [&str; 12] = [
    "pyo", "pyc", "swp", "bak", "rpm", "md", "txt", "rst", "yaml", "yml", "ini", "orig",
];

/// Collections in which Ansible's own short names of old are, in the order in which they are tried.
const OF_OLD: [&str; 22] = [
    "community.general",
    "ansible.posix",
    "community.mysql",
    "community.postgresql",
    "community.crypto",
    "community.docker",
    "community.mongodb",
    "community.rabbitmq",
    "community.proxysql",
    "community.libvirt",
    "community.grafana",
    "community.zabbix",
    "community.digitalocean",
    "community.aws",
    "amazon.aws",
    "kubernetes.core",
    "containers.podman",
    "google.cloud",
    "openstack.cloud",
    "azure.azcollection",
    "community.vmware",
    "ansible.netcommon",
];

/// What Ansible's controller does by itself: a module of such a name is never run.
const CONTROLLER: [&str; 17] = [
    "add_host",
    "assert",
    "debug",
    "fail",
    "fetch",
    "gather_facts",
    "group_by",
    "include_vars",
    "meta",
    "pause",
    "raw",
    "reboot",
    "script",
    "set_fact",
    "set_stats",
    "validate_argument_spec",
    "wait_for_connection",
];

/// A module that is there and that fleetctl cannot run; the text says why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unsupported {
    /// A lowercase fragment.
    pub message: String,
    /// What to do instead.
    pub help: Option<&'static str>,
}

impl Unsupported {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: None,
        }
    }
}

/// The directories of a play in which modules, and what they import, are looked for. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Search {
    library: Vec<PathBuf>,
    settings_library: Vec<PathBuf>,
    module_utils: Vec<PathBuf>,
    settings_module_utils: Vec<PathBuf>,
    collections_paths: Vec<PathBuf>,
    action_plugins: Vec<PathBuf>,
    known: Arc<Mutex<Known>>,
}

#[derive(Default)]
struct Known {
    listings: HashMap<PathBuf, Arc<[PathBuf]>>,
    modules: HashMap<PathBuf, Result<Arc<External>, Unsupported>>,
    routings: HashMap<PathBuf, Arc<Routing>>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl Search {
    /// What lies beside a playbook (`library/`, `module_utils/`, `collections/`), and behind it the directories of the
    /// settings: `library` (with `-M` before it), `module_utils` and `collections_path`.
    #[must_use]
    pub fn beside(
        playbook_dir: &Path,
        library: &[PathBuf],
        module_utils: &[PathBuf],
        collections_path: &[PathBuf],
    ) -> Self {
        let mut search = Self {
            settings_library: library.to_vec(),
            settings_module_utils: module_utils.to_vec(),
            collections_paths: vec![playbook_dir.join("collections")],
            ..Self::default()
        };
        search
            .collections_paths
            .extend(collections_path.iter().cloned());
        search.add(playbook_dir);
        search
    }

    /// Adds a role: what it brings is seen by the whole play, behind what the roles before it brought.
    pub fn add_role(&mut self, role_dir: &Path) {
        self.add(role_dir);
    }

    fn add(&mut self, dir: &Path) {
        for (name, list) in [
            ("library", &mut self.library),
            ("module_utils", &mut self.module_utils),
            ("action_plugins", &mut self.action_plugins),
        ] {
            let own = dir.join(name);
            if !list.contains(&own) && sources::is_dir(&own) {
                list.push(own);
            }
        }
    }

    /// What a task means by a name, where that is a module of the project. `collections` is the task's `collections:`
    /// (in a role of a collection with that collection before it); `builtin` says whether fleetctl itself has a module
    /// of this name.
    ///
    /// A short name is looked for in the task's `collections`, then in `library`, and then among fleetctl's own modules;
    /// a full name among these first.
    ///
    /// # Errors
    /// When the module is there and cannot be run: it is for Windows, is gone from its collection, or runs on the
    /// controller as an action plugin.
    pub fn find(
        &self,
        name: &str,
        collections: &[String],
        builtin: bool,
    ) -> Result<Option<Arc<External>>, Unsupported> {
        let short = name.strip_prefix("ansible.legacy.").unwrap_or(name);
        if builtin && CONTROLLER.contains(&short) {
            return Ok(None);
        }
        if !short.contains('.') {
            let own = collections.iter().filter(|_| short == name);
            for collection in own {
                match collection.as_str() {
                    "ansible.builtin" if builtin => return Ok(None),
                    "ansible.builtin" | "ansible.legacy" => break,
                    collection => {
                        if let Some(found) = self.in_collection(collection, short)? {
                            return Ok(Some(found));
                        }
                    }
                }
            }
            if let Some(found) = self.in_library(short)? {
                return Ok(Some(found));
            }
            if builtin {
                return Ok(None);
            }
            // Names from before there were collections.
            for collection in OF_OLD {
                if let Some(found) = self.in_collection(collection, short)? {
                    return Ok(Some(found));
                }
            }
            return Ok(None);
        }
        if builtin || name.starts_with("ansible.builtin.") {
            return Ok(None);
        }
        let mut parts = name.splitn(3, '.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(namespace), Some(collection), Some(module)) => {
                self.in_collection(&format!("{namespace}.{collection}"), module)
            }
            _ => Ok(None),
        }
    }

    /// Looks whether a project's action plugin of this name stands before every module of it.
    ///
    /// # Errors
    /// When there is one: it runs in Ansible itself.
    pub fn no_plugin(&self, name: &str) -> Result<(), Unsupported> {
        let short = name.strip_prefix("ansible.legacy.").unwrap_or(name);
        self.no_action_plugin(&self.action_plugins, short)
    }

    /// Names of modules in the `library` directories and of a collection, for suggestions.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let dirs = self.library.iter().chain(&self.settings_library);
        let mut names: Vec<String> = dirs
            .flat_map(|dir| self.listing(dir).to_vec())
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names.dedup();
        names
    }

    fn in_library(&self, name: &str) -> Result<Option<Arc<External>>, Unsupported> {
        let dirs = self.library.iter().chain(&self.settings_library);
        let found = dirs.into_iter().find_map(|dir| self.in_dir(dir, name));
        let Some(path) = found else { return Ok(None) };
        self.no_plugin(name)?;
        self.read(format!("ansible.legacy.{name}"), &path).map(Some)
    }

    fn in_collection(
        &self,
        collection: &str,
        module: &str,
    ) -> Result<Option<Arc<External>>, Unsupported> {
        self.in_collection_after(collection, module, 0)
    }

    fn in_collection_after(
        &self,
        collection: &str,
        module: &str,
        redirections: usize,
    ) -> Result<Option<Arc<External>>, Unsupported> {
        let Some(root) = self.collection(collection) else {
            return Ok(None);
        };
        let routing = self.routing(&root);
        if let Some(gone) = routing.gone(module) {
            return Err(Unsupported::new(format!(
                "the module `{collection}.{module}` is gone from its collection: {gone}"
            )));
        }
        if let Some(target) = routing.redirect(module)
            && redirections < 8
        {
            let mut parts = target.splitn(3, '.');
            return match (parts.next(), parts.next(), parts.next()) {
                (Some(namespace), Some(other), Some(module)) => self.in_collection_after(
                    &format!("{namespace}.{other}"),
                    module,
                    redirections + 1,
                ),
                _ => Ok(None),
            };
        }
        let (below, last) = match module.rsplit_once('.') {
            Some((folders, last)) => (folders.replace('.', "/"), last),
            None => (String::new(), module),
        };
        self.no_action_plugin(&[root.join("plugins/action").join(&below)], last)?;
        let Some(path) = self.in_dir(&root.join("plugins/modules").join(below), last) else {
            return Ok(None);
        };
        self.read(format!("{collection}.{module}"), &path).map(Some)
    }

    /// The directory of a collection, in the first place that has it.
    fn collection(&self, collection: &str) -> Option<PathBuf> {
        let (namespace, name) = collection.split_once('.')?;
        self.collections_paths.iter().find_map(|dir| {
            let root = match dir.ends_with("ansible_collections") {
                true => dir.join(namespace).join(name),
                false => dir.join("ansible_collections").join(namespace).join(name),
            };
            sources::is_dir(&root).then_some(root)
        })
    }

    fn no_action_plugin(&self, dirs: &[PathBuf], name: &str) -> Result<(), Unsupported> {
        let plugin = dirs
            .iter()
            .map(|dir| dir.join(format!("{name}.py")))
            .find(|path| sources::is_file(path));
        match plugin {
            None => Ok(()),
            Some(path) => Err(Unsupported {
                help: Some(
                    "what it does on hosts can be a module in `library/` that reads and prints JSON; what it does here, \
                     lookups, `set_fact` and tasks with `delegate_to: localhost`",
                ),
                ..Unsupported::new(format!(
                    "`{name}` is an action plugin, which runs in Ansible itself and not on a host; fleetctl cannot run it: {}",
                    path.display()
                ))
            }),
        }
    }

    /// The file of a module in a directory: Python before anything else.
    fn in_dir(&self, dir: &Path, name: &str) -> Option<PathBuf> {
        let listing = self.listing(dir);
        let mut found = listing
            .iter()
            .filter(|path| path.file_stem().is_some_and(|stem| stem == name));
        let first = found.next()?;
        let python = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "py");
        Some(match python(&first) {
            true => first.clone(),
            false => found.find(python).unwrap_or(first).clone(),
        })
    }

    /// The files of a directory that may be modules, sorted.
    fn listing(&self, dir: &Path) -> Arc<[PathBuf]> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(listing) = known.listings.get(dir) {
            return Arc::clone(listing);
        }
        let names = sources::list(dir).unwrap_or_default();
        let mut paths: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
        paths.retain(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or("");
            let ending = path.extension().and_then(|ending| ending.to_str());
            !name.ends_with('~')
                && name != "__init__.py"
                && !ending.is_some_and(|ending| NEVER.contains(&ending))
                && sources::is_file(path)
        });
        paths.sort();
        let listing: Arc<[PathBuf]> = paths.into();
        known.listings.insert(dir.to_owned(), Arc::clone(&listing));
        listing
    }

    fn routing(&self, root: &Path) -> Arc<Routing> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let routing = known
            .routings
            .entry(root.to_owned())
            .or_insert_with(|| Arc::new(Routing::read(root)));
        Arc::clone(routing)
    }

    fn read(&self, name: String, path: &Path) -> Result<Arc<External>, Unsupported> {
        let libraries = Libraries {
            module_utils: [&self.module_utils[..], &self.settings_module_utils].concat(),
            collections_paths: self.collections_paths.clone(),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Roles that came since may have brought what it imports.
        if let Some(Ok(module)) = known.modules.get(path)
            && module.libraries == libraries
            && module.name == name
        {
            return Ok(Arc::clone(module));
        }
        let read = External::read(name, path, libraries).map(Arc::new);
        known.modules.insert(path.to_owned(), read.clone());
        read
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::Search;

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn at(search: &Search, name: &str, builtin: bool) -> Option<String> {
        let found = search.find(name, &[], builtin).unwrap()?;
        Some(format!(
            "{} {}",
            found.name,
            found.path.file_name()?.to_str()?
        ))
    }

    #[test]
    fn a_library_wins_over_builtin_modules_for_short_names_only() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "library/ping.py", "#!/usr/bin/python\n");
        put(dir.path(), "library/ping.ini", "");
        put(dir.path(), "library/fail.py", "");
        put(dir.path(), "library/sub/deep.py", "");
        let search = Search::beside(dir.path(), &[], &[], &[]);
        let ours = Some("ansible.legacy.ping ping.py".to_owned());
        assert_eq!(at(&search, "ping", true), ours);
        assert_eq!(at(&search, "ansible.legacy.ping", true), ours);
        assert_eq!(at(&search, "ansible.builtin.ping", true), None);
        assert_eq!(at(&search, "deep", false), None);
        assert_eq!(at(&search, "fail", true), None);
        assert_eq!(search.names(), ["fail", "ping"]);
    }

    #[test]
    fn the_first_role_wins_and_the_settings_come_last() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("foo/library/a.sh", "foo"),
            ("bar/library/a", "bar"),
            ("set/a.py", "set"),
            ("set/b", "b"),
        ] {
            put(dir.path(), path, text);
        }
        let settings = [dir.path().join("set")];
        let mut search = Search::beside(&dir.path().join("play"), &settings, &[], &[]);
        assert_eq!(at(&search, "a", false).unwrap(), "ansible.legacy.a a.py");
        search.add_role(&dir.path().join("foo"));
        search.add_role(&dir.path().join("bar"));
        assert_eq!(at(&search, "a", false).unwrap(), "ansible.legacy.a a.sh");
        assert_eq!(at(&search, "b", false).unwrap(), "ansible.legacy.b b");
    }

    #[test]
    fn collections_are_found_by_full_names_and_by_those_of_the_task() {
        let dir = tempfile::tempdir().unwrap();
        let root = "collections/ansible_collections/ns/c";
        put(dir.path(), &format!("{root}/plugins/modules/m.py"), "");
        put(dir.path(), &format!("{root}/plugins/modules/sub/n.py"), "");
        put(dir.path(), &format!("{root}/plugins/modules/act.py"), "");
        put(dir.path(), &format!("{root}/plugins/action/act.py"), "");
        put(
            dir.path(),
            &format!("{root}/meta/runtime.yml"),
            "plugin_routing:\n  modules:\n    old: {redirect: ns.c.m}\n    gone: {tombstone: {removal_version: 2.0.0, warning_text: Use m.}}\n",
        );
        let search = Search::beside(dir.path(), &[], &[], &[]);
        assert_eq!(at(&search, "ns.c.m", false).unwrap(), "ns.c.m m.py");
        assert_eq!(at(&search, "ns.c.sub.n", false).unwrap(), "ns.c.sub.n n.py");
        assert_eq!(at(&search, "ns.c.old", false).unwrap(), "ns.c.m m.py");
        assert_eq!(at(&search, "m", false), None);
        let own = search.find("m", &["ns.c".to_owned()], false).unwrap();
        assert_eq!(own.unwrap().name, "ns.c.m");
        assert_eq!(
            search.find("ns.c.gone", &[], false).unwrap_err().message,
            "the module `ns.c.gone` is gone from its collection: Use m."
        );
        assert!(
            search
                .find("ns.c.act", &[], false)
                .unwrap_err()
                .message
                .contains("action plugin")
        );
    }
}
