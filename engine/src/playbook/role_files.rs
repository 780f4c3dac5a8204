//! Roles on disk: where they are looked for, and which of their files are read.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Map, Node, Span};

use crate::sources;

use super::{Vars, check::truth, reader::Reader};

const EXTENSIONS: [&str; 4] = [".yml", ".yaml", ".json", ""];

/// A role as it lies on disk, read with the names of files that one use of it gives.
pub(super) struct RoleFiles {
    pub(super) name: String,
    pub(super) path: PathBuf,
    pub(super) defaults: Arc<Vars>,
    pub(super) vars: Arc<Vars>,
    pub(super) tasks: Option<PathBuf>,
    pub(super) handlers: Option<PathBuf>,
    pub(super) dependencies: Vec<Node>,
    pub(super) allow_duplicates: bool,
    pub(super) collections: Vec<String>,
    /// The entry point: what `tasks_from` names, `main` where it does not.
    pub(super) entry: String,
    /// The specification of the arguments of this entry point.
    pub(super) specification: Option<Node>,
}

/// Names of files in place of `main`.
#[derive(Clone, Default, Hash)]
pub(super) struct From {
    pub(super) tasks: Option<String>,
    pub(super) vars: Option<String>,
    pub(super) defaults: Option<String>,
    pub(super) handlers: Option<String>,
}

impl Reader<'_> {
    /// The directory of a role and its full name.
    pub(super) fn find_role(
        &mut self,
        name: &str,
        place: &Span,
        collections: &[String],
        beside: Option<&Path>,
    ) -> Option<(String, PathBuf)> {
        let shelf = self.shelf;
        let full = (name.matches('.').count() >= 2 && !name.contains('/'))
            .then(|| name.to_owned())
            .into_iter()
            .chain(
                (!name.contains(['.', '/']))
                    .then(|| collections.iter().map(|own| format!("{own}.{name}")))
                    .into_iter()
                    .flatten(),
            );
        for full in full {
            if let Some(path) = shelf.in_collection(&full, "roles", &self.dir)
                && sources::is_dir(&path)
            {
                return Some((full, path));
            }
        }
        let given = Path::new(name);
        let short = || {
            let last = given.file_name().unwrap_or(given.as_os_str());
            last.to_string_lossy().into_owned()
        };
        let mut places = vec![self.dir.join("roles")];
        places.extend(shelf.settings.roles_path.iter().cloned());
        places.extend(beside.map(Path::to_owned));
        places.push(self.dir.clone());
        let found = match given.is_absolute() {
            true => Some(given.to_owned()).filter(|path| sources::is_dir(path)),
            false => places
                .iter()
                .map(|place| place.join(given))
                .find(|path| sources::is_dir(path)),
        };
        if let Some(path) = found {
            return Some((short(), path));
        }
        let shown: Vec<String> = places
            .iter()
            .map(|path| super::files::absolute(path).display().to_string())
            .collect();
        let candidates: Vec<PathBuf> = places.iter().map(|place| place.join(given)).collect();
        let near = super::files::neighbour(&candidates);
        self.problem(
            place,
            format!("the role '{name}' was not found in {}", shown.join(":")),
        )
        .help = Some(match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                "set `roles_path` to where it is, or install it beside the playbook in `roles/`"
                    .to_owned()
            }
        });
        None
    }

    /// Reads a role but for its tasks and handlers.
    pub(super) fn role_files(
        &mut self,
        (name, path): (String, PathBuf),
        place: &Span,
        from: &From,
    ) -> Option<RoleFiles> {
        let meta = self.role_mapping(&name, &path, "meta", None, place)?;
        let defaults = self.role_vars(&name, &path, "defaults", from.defaults.as_deref(), place)?;
        let vars = self.role_vars(&name, &path, "vars", from.vars.as_deref(), place)?;
        let tasks = self.role_file(&name, &path, "tasks", from.tasks.as_deref(), place)?;
        let handlers = self.role_file(&name, &path, "handlers", from.handlers.as_deref(), place)?;
        let entry = Path::new(from.tasks.as_deref().unwrap_or("main"));
        let entry = entry.file_stem().unwrap_or_default();
        let entry = entry.to_string_lossy().into_owned();
        let specification = self.specification(&path, &entry, meta.as_ref());
        let of_meta = |key: &str| meta.as_ref().and_then(|meta| meta.get(key));
        let mut dependencies = Vec::new();
        if let Some(node) = of_meta("dependencies").filter(|node| !node.is_null()) {
            match node.as_seq() {
                Some(items) => dependencies.extend(items.iter().cloned()),
                None => {
                    self.wrong_kind(node, "a list of roles");
                }
            }
        }
        let collections = of_meta("collections").filter(|node| !node.is_null());
        let collections = collections.map_or_else(Vec::new, |node| self.strings(node));
        Some(RoleFiles {
            allow_duplicates: of_meta("allow_duplicates").and_then(truth) == Some(true),
            name,
            path,
            defaults,
            vars,
            tasks,
            handlers,
            dependencies,
            collections,
            entry,
            specification,
        })
    }

    /// One file of a role: `main` where no name is given, and then it need not be there.
    /// None where there is a mistake.
    fn role_file(
        &mut self,
        name: &str,
        role: &Path,
        folder: &str,
        file: Option<&str>,
        place: &Span,
    ) -> Option<Option<PathBuf>> {
        let dir = role.join(folder);
        let wanted = file.unwrap_or("main");
        let mut extensions = EXTENSIONS;
        if file.is_some() {
            extensions.rotate_right(1);
        }
        let candidates = extensions.map(|extension| dir.join(format!("{wanted}{extension}")));
        let found = candidates.iter().find(|path| sources::is_file(path));
        match (found, file) {
            (Some(path), Some(_)) if escapes(wanted) => {
                self.problem(
                    place,
                    format!(
                        "failed loading '{}' for role ({name}), as it is not inside the expected role path: '{}'",
                        path.display(),
                        dir.display()
                    ),
                );
                None
            }
            (None, Some(file)) => {
                let near = super::files::neighbour(&candidates);
                self.problem(
                    place,
                    format!("could not find specified file in role: {folder}/{file}"),
                )
                .help = near.map(|near| format!("did you mean `{near}`?"));
                None
            }
            (found, _) => Some(found.cloned()),
        }
    }

    /// A mapping of a role, that of `meta/main.yml`. None where there is a mistake.
    fn role_mapping(
        &mut self,
        name: &str,
        role: &Path,
        folder: &str,
        file: Option<&str>,
        place: &Span,
    ) -> Option<Option<Map>> {
        let Some(path) = self.role_file(name, role, folder, file, place)? else {
            return Some(None);
        };
        let content = self.open(&path)?.content();
        if content.is_null() {
            return Some(None);
        }
        let Some(map) = content.as_map() else {
            self.wrong_kind(
                &content,
                &format!("a mapping in the `{folder}` of role '{name}'"),
            );
            return None;
        };
        Some(Some(map.clone()))
    }

    /// `defaults/` or `vars/`: a file, or all files of a directory of that name.
    fn role_vars(
        &mut self,
        name: &str,
        role: &Path,
        folder: &str,
        file: Option<&str>,
        place: &Span,
    ) -> Option<Arc<Vars>> {
        let dir = role.join(folder).join(file.unwrap_or("main"));
        let paths = match sources::is_dir(&dir) && !file.is_some_and(escapes) {
            true => files_of(&dir),
            false => {
                let path = self.role_file(name, role, folder, file, place)?;
                path.into_iter().collect()
            }
        };
        let mut vars = Vars::new();
        for path in paths {
            let content = self.open(&path)?.content();
            match content.as_map() {
                Some(_) => vars.extend(Arc::unwrap_or_clone(self.vars(&content))),
                None if content.is_null() => {}
                None => {
                    let shown = path
                        .strip_prefix(role)
                        .unwrap_or(&path)
                        .display()
                        .to_string();
                    self.problem(
                        &content.span,
                        format!(
                            "the {shown} file for role '{name}' must contain a dictionary of variables"
                        ),
                    );
                }
            }
        }
        Some(Arc::new(vars))
    }

    /// What the role says of the arguments of an entry point.
    fn specification(&mut self, role: &Path, entry: &str, meta: Option<&Map>) -> Option<Node> {
        let dir = role.join("meta");
        let path = EXTENSIONS
            .map(|extension| dir.join(format!("argument_specs{extension}")))
            .into_iter()
            .find(|path| sources::is_file(path));
        let all = match path {
            Some(path) => {
                let content = self.open(&path)?.content();
                content.get("argument_specs").cloned()
            }
            None => meta?.get("argument_specs").cloned(),
        };
        all?.get(entry).cloned()
    }
}

/// Whether a name leads out of the folder that it is looked for in.
fn escapes(name: &str) -> bool {
    let mut depth = 0_i32;
    for part in Path::new(name).components() {
        match part {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

/// All files of variables below a directory, in order.
fn files_of(dir: &Path) -> Vec<PathBuf> {
    let names = sources::list(dir).unwrap_or_default();
    let paths = names.iter().map(|name| dir.join(name));
    let mut files = Vec::new();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') || name.ends_with('~') {
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        if sources::is_dir(&path) {
            files.extend(files_of(&path));
        } else if matches!(extension, None | Some("yml" | "yaml" | "json")) {
            files.push(path);
        }
    }
    files
}
