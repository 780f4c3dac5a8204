//! Files of the controller that tasks name: where they are looked for, and how templates among them are read.

use std::path::{Path, PathBuf};

use crate::template::FileSyntax;

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
        search.iter().flat_map(|dir| [dir.join(folder).join(name), dir.join(name)]).collect()
    };
    candidates.iter().find(|path| path.exists()).cloned().ok_or(candidates)
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
