//! Files of the controller that tasks name: where they are looked for, and how templates among them are read.

use std::path::{Path, PathBuf};

use fleet_yaml::{Diagnostic, Span};

use crate::{sources, template::FileSyntax};

/// Where a file of the controller is: as it stands where it is absolute, else in these directories, in the
/// folder of its kind first.
///
/// # Errors
/// Where was looked.
pub(crate) fn find(name: &str, folder: &str, search: &[PathBuf]) -> Result<PathBuf, Vec<PathBuf>> {
    let given = Path::new(name);
    let candidates: Vec<PathBuf> = if given.is_absolute() {
        vec![given.to_owned()]
    } else {
        search
            .iter()
            .flat_map(|dir| [dir.join(folder).join(name), dir.join(name)])
            .collect()
    };
    candidates
        .iter()
        .find(|path| sources::exists(path))
        .cloned()
        .ok_or(candidates)
}

/// The message about a file that is nowhere.
pub(crate) fn missing(name: &str, place: &Span, tried: &[PathBuf]) -> Diagnostic {
    let plain = |path: &PathBuf| path.components().collect::<PathBuf>().display().to_string();
    let mut shown: Vec<String> = Vec::new();
    for path in tried.iter().map(plain) {
        if !shown.contains(&path) {
            shown.push(path);
        }
    }
    let looked_for = format!("looked for {}", shown.join(", "));
    Diagnostic::error(place.clone(), format!("there is no file `{name}`")).with_help(
        match neighbour(tried) {
            Some(near) => format!("did you mean `{near}`? {looked_for}"),
            None => looked_for,
        },
    )
}

/// A path from the root on, for messages and for Ansible's own variables.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let path = match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    };
    let path = sources::rooted(path).unwrap_or_else(|_| path.to_owned());
    path.components().collect()
}

/// A file with nearly that name, where one was looked for.
pub(super) fn neighbour(tried: &[PathBuf]) -> Option<String> {
    tried.iter().find_map(|path| {
        let name = path.file_name()?.to_str()?;
        let names = sources::list(path.parent()?).ok()?;
        fleet_yaml::nearest(name, names.iter().map(String::as_str)).map(str::to_owned)
    })
}

/// The directories in which a playbook's files are looked for.
pub(crate) fn search(playbook_dir: &Path) -> Vec<PathBuf> {
    vec![playbook_dir.to_owned(), playbook_dir.join("..")]
}

/// Whether an argument of `template` says how the file is to be read.
pub(crate) fn is_syntax(argument: &str) -> bool {
    argument.ends_with("_string")
        || argument.ends_with("_blocks")
        || matches!(argument, "keep_trailing_newline" | "newline_sequence")
}

/// Takes such an argument in; its value as a text and as yes or no.
pub(crate) fn set_syntax(syntax: &mut FileSyntax, argument: &str, text: String, truth: bool) {
    match argument {
        "trim_blocks" => syntax.trim_blocks = truth,
        "lstrip_blocks" => syntax.lstrip_blocks = truth,
        "block_start_string" => syntax.block.0 = text,
        "block_end_string" => syntax.block.1 = text,
        "variable_start_string" => syntax.variable.0 = text,
        "variable_end_string" => syntax.variable.1 = text,
        "comment_start_string" => syntax.comment.0 = text,
        "comment_end_string" => syntax.comment.1 = text,
        "newline_sequence" => syntax.newline = text.replace("\\r", "\r").replace("\\n", "\n"),
        _ => {}
    }
}
