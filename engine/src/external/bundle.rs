//! A Python module with all that it imports of Ansible's, as one archive.

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
    path::{Path, PathBuf},
};

use super::{archive, imports, python};
use crate::sources;

/// Where the Python modules that a module imports are looked for, before those that fleetctl brings along.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Libraries {
    /// For `ansible.module_utils`.
    pub(super) module_utils: Vec<PathBuf>,
    /// For `ansible_collections`.
    pub(super) collections_paths: Vec<PathBuf>,
}

/// The archive of a module, by its full name and its text.
pub(super) fn pack(name: &str, source: &[u8], libraries: &Libraries) -> Result<Vec<u8>, String> {
    let mut bundle = Bundle {
        name,
        libraries,
        files: BTreeMap::new(),
        waiting: VecDeque::new(),
    };
    let own = dotted(name);
    let file = format!("{}.py", own.join("/"));
    bundle.packages(&own);
    bundle.take(file, Cow::Borrowed(source), own.clone(), false);
    let starter = own.join(".");
    let starter =
        format!("\"\"\"Which module of this archive is run.\"\"\"\n\nNAME = {starter:?}\n");
    bundle.files.insert(
        "fleetctl_module.py".to_owned(),
        Cow::Owned(starter.into_bytes()),
    );
    bundle
        .files
        .insert("__main__.py".to_owned(), Cow::Borrowed(python::MAIN));
    bundle.import(&dotted_of("ansible.module_utils.basic"), None, false)?;
    while let Some((own, package, text)) = bundle.waiting.pop_front() {
        for import in imports::of(&text, &own, package) {
            bundle.import(&import.module, import.name.as_deref(), import.optional)?;
        }
    }
    let files = bundle
        .files
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_ref()));
    archive::of(files).map_err(|problem| format!("the module `{name}` cannot be packed: {problem}"))
}

/// A module's full name as Python has it: `ansible.modules.NAME`, `ansible_collections.NS.C.plugins.modules.NAME`.
fn dotted(name: &str) -> Vec<String> {
    if let Some(short) = name.strip_prefix("ansible.legacy.") {
        return ["ansible", "modules", short].map(str::to_owned).into();
    }
    let mut parts = name.split('.').map(str::to_owned);
    let mut full = vec!["ansible_collections".to_owned()];
    full.extend(parts.by_ref().take(2));
    full.extend(["plugins", "modules"].map(str::to_owned));
    full.extend(parts);
    full
}

fn dotted_of(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

struct Bundle<'a> {
    name: &'a str,
    libraries: &'a Libraries,
    files: BTreeMap<String, Cow<'a, [u8]>>,
    /// Texts whose imports are still to be followed, with their names and whether they are packages.
    waiting: VecDeque<(Vec<String>, bool, String)>,
}

impl<'a> Bundle<'a> {
    /// Takes in what an import names, and the packages around it.
    fn import(
        &mut self,
        module: &[String],
        name: Option<&str>,
        optional: bool,
    ) -> Result<(), String> {
        let ours = match module.first().map(String::as_str) {
            Some("ansible") => {
                module.get(1).is_some_and(|part| part == "module_utils")
                    || module.len() == 1 && name == Some("module_utils")
            }
            Some("ansible_collections") => module.len() > 3,
            _ => false,
        };
        if !ours {
            return Ok(());
        }
        let mut tried = Vec::new();
        if let Some(name) = name {
            let mut whole = module.to_vec();
            whole.push(name.to_owned());
            tried.push(whole);
        }
        tried.push(module.to_vec());
        for module in &mut tried {
            // What is in `six.moves` are names, though they are imported as modules.
            if module.len() > 4 && module[1..4] == ["module_utils", "six", "moves"] {
                module.truncate(4);
            }
        }
        if tried.iter().any(|module| self.module(module)) || optional {
            return Ok(());
        }
        let tried: Vec<String> = tried
            .iter()
            .map(|module| format!("'{}'", module.join(".")))
            .collect();
        Err(format!(
            "Could not find imported module support code for {}. Looked for ([{}])",
            self.name,
            tried.join(", ")
        ))
    }

    /// Takes in a module or a package; whether there is one of this name.
    fn module(&mut self, module: &[String]) -> bool {
        let path = module.join("/");
        let (file, package) = (format!("{path}.py"), format!("{path}/__init__.py"));
        if self.files.contains_key(&file) || self.files.contains_key(&package) {
            return true;
        }
        let Some((content, is_package)) = self.find(module) else {
            return false;
        };
        self.packages(module);
        let at = if is_package { package } else { file };
        self.take(at, content, module.to_vec(), is_package);
        true
    }

    fn take(&mut self, file: String, content: Cow<'a, [u8]>, module: Vec<String>, package: bool) {
        let text = String::from_utf8_lossy(&content).into_owned();
        self.waiting.push_back((module, package, text));
        self.files.insert(file, content);
    }

    /// The packages that a module is in: their own texts where they have one, else empty ones.
    fn packages(&mut self, module: &[String]) {
        for depth in 1..module.len() {
            let package = &module[..depth];
            let file = format!("{}/__init__.py", package.join("/"));
            if self.files.contains_key(&file) {
                continue;
            }
            match self.find(package) {
                Some((content, true)) => self.take(file, content, package.to_vec(), true),
                _ => {
                    self.files.insert(file, Cow::Borrowed(&[]));
                }
            }
        }
    }

    /// A module's text, and whether it is a package's. A directory without a text is an empty package.
    fn find(&self, module: &[String]) -> Option<(Cow<'a, [u8]>, bool)> {
        let below = match module {
            [ansible, module_utils, rest @ ..]
                if ansible == "ansible" && module_utils == "module_utils" =>
            {
                rest
            }
            [first, namespace, collection, plugins, ..]
                if first == "ansible_collections" && plugins == "plugins" =>
            {
                let roots = &self.libraries.collections_paths;
                return roots.iter().find_map(|dir| {
                    let root = match dir.ends_with("ansible_collections") {
                        true => dir.clone(),
                        false => dir.join("ansible_collections"),
                    };
                    let root = root.join(namespace).join(collection);
                    sources::is_dir(&root)
                        .then(|| on_disk(&root.join("plugins"), &module[4..]))
                        .flatten()
                });
            }
            _ => return None,
        };
        if below.is_empty() {
            // What a project has there is no package of its own.
            return Some((Cow::Borrowed(&[]), true));
        }
        self.libraries
            .module_utils
            .iter()
            .find_map(|dir| on_disk(dir, below))
            .or_else(|| brought(below))
    }
}

fn on_disk<'a>(dir: &Path, module: &[String]) -> Option<(Cow<'a, [u8]>, bool)> {
    let base = module
        .iter()
        .fold(dir.to_owned(), |path, part| path.join(part));
    if sources::is_dir(&base) {
        let text = sources::read(base.join("__init__.py")).unwrap_or_default();
        return Some((Cow::Owned(text), true));
    }
    let file = base.with_file_name(format!("{}.py", module.last()?));
    sources::read(file)
        .ok()
        .map(|text| (Cow::Owned(text), false))
}

fn brought(module: &[String]) -> Option<(Cow<'static, [u8]>, bool)> {
    let path = module.join("/");
    let text = |file: &str| {
        let found = python::FILES.iter().find(|(name, _)| *name == file);
        found.map(|(_, text)| text.as_bytes())
    };
    let package = text(&format!("{path}/__init__.py")).map(|text| (Cow::Borrowed(text), true));
    package
        .or_else(|| text(&format!("{path}.py")).map(|text| (Cow::Borrowed(text), false)))
        .or_else(|| {
            // A package without a text of its own.
            let inside = format!("{path}/");
            let any = python::FILES
                .iter()
                .any(|(name, _)| name.starts_with(&inside));
            any.then_some((Cow::Borrowed(&[][..]), true))
        })
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, path::Path, process::Command};

    use serde_json::{Value, json};

    use super::{Libraries, pack};

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What a module answers, run as the helper runs it.
    fn run(name: &str, source: &str, libraries: &Libraries, args: &Value) -> Value {
        let archive = pack(name, source.as_bytes(), libraries).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("module.zip");
        fs::write(&path, archive).unwrap();
        let mut child = Command::new("python3")
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let given = json!({"ANSIBLE_MODULE_ARGS": args}).to_string();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(given.as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    #[test]
    fn a_module_runs_with_what_it_imports() {
        let dir = tempfile::tempdir().unwrap();
        put(
            dir.path(),
            "mu/own.py",
            "from ansible.module_utils.deep.er import VALUE\n",
        );
        put(dir.path(), "mu/deep/er/__init__.py", "VALUE = 7\n");
        put(
            dir.path(),
            "c/ansible_collections/ns/c/plugins/module_utils/u.py",
            "from .v import WORD\n",
        );
        put(
            dir.path(),
            "c/ansible_collections/ns/c/plugins/module_utils/v.py",
            "WORD = 'v'\n",
        );
        let libraries = Libraries {
            module_utils: vec![dir.path().join("mu")],
            collections_paths: vec![dir.path().join("c")],
        };
        let source = "from ansible.module_utils.basic import AnsibleModule\nfrom ansible.module_utils.own import VALUE\n\
            from ..module_utils.u import WORD\nfrom ansible.module_utils.six.moves.urllib.parse import quote\n\
            try:\n    from ansible.module_utils.nowhere import x\nexcept ImportError:\n    x = None\n\
            m = AnsibleModule(argument_spec=dict(n=dict(type='int')))\n\
            m.exit_json(changed=True, sum=m.params['n'] + VALUE, word=quote(WORD + '/ '), name=__name__)\n";
        assert_eq!(
            run("ns.c.m", source, &libraries, &json!({"n": "5"})),
            json!({"changed": true, "sum": 12, "word": "v/%20", "name": "__main__"})
        );
    }

    #[test]
    fn an_exception_is_a_failure_with_its_words() {
        let source = "from ansible.module_utils.basic import AnsibleModule\nAnsibleModule(argument_spec={})\nraise ValueError('boom')\n";
        let said = run(
            "ansible.legacy.m",
            source,
            &Libraries::default(),
            &json!({}),
        );
        assert_eq!(
            (&said["failed"], &said["msg"]),
            (&json!(true), &json!("Task failed: Module failed: boom"))
        );
        assert!(
            said["exception"]
                .as_str()
                .unwrap()
                .contains("ValueError: boom")
        );
    }

    #[test]
    fn what_is_nowhere_is_said_with_where_it_was_looked_for() {
        let source = "from ansible.module_utils.zebra import foo4\n";
        assert_eq!(
            pack("ansible.legacy.t", source.as_bytes(), &Libraries::default()).unwrap_err(),
            "Could not find imported module support code for ansible.legacy.t. Looked for \
             (['ansible.module_utils.zebra.foo4', 'ansible.module_utils.zebra'])"
        );
    }

    #[test]
    fn every_file_that_is_brought_along_is_listed_and_can_be_imported() {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("src/external/python/ansible/module_utils");
        let mut on_disk = Vec::new();
        let mut waiting = vec![root.clone()];
        while let Some(dir) = waiting.pop() {
            for entry in fs::read_dir(dir).unwrap().flatten() {
                let path = entry.path();
                match path.is_dir() {
                    true => waiting.push(path),
                    false => on_disk.push(path.strip_prefix(&root).unwrap().display().to_string()),
                }
            }
        }
        on_disk.retain(|path| path.ends_with(".py"));
        on_disk.sort();
        let listed: Vec<&str> = super::python::FILES.iter().map(|(path, _)| *path).collect();
        assert_eq!(on_disk, listed);
        // Each is imported once; SELinux's has nothing to give on most hosts.
        let imports: String = listed
            .iter()
            .filter(|path| **path != "compat/selinux.py")
            .map(|path| {
                path.trim_end_matches(".py")
                    .trim_end_matches("/__init__")
                    .replace('/', ".")
            })
            .map(|module| format!("import ansible.module_utils.{module}\n"))
            .collect();
        let source = format!(
            "{imports}from ansible.module_utils.basic import AnsibleModule\nAnsibleModule(argument_spec={{}}).exit_json(ok=True)\n"
        );
        let said = run(
            "ansible.legacy.m",
            &source,
            &Libraries::default(),
            &json!({}),
        );
        assert_eq!(said, json!({"ok": true}));
    }

    #[test]
    fn what_is_brought_along_behaves_as_documented() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/external/python");
        let output = Command::new("python3")
            .args(["-B", "interface_test.py"])
            .env("PYTHONPATH", &root)
            .current_dir(&root)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
