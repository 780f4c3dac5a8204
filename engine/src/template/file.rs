//! Template files: their header, their syntax, and the files that they include.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet_yaml::{Diagnostic, Source};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, Value};

use super::evaluation::{self, Evaluation};
use super::failure::{EvalError, Place, code};
use super::filters::normalized;
use super::rewrite::{self, Backslashes, Delimiters, Rewritten};
use super::{FileSyntax, INLINE, Templar, TemplateSettings, python::truth};

const HEADER: &str = "#jinja2:";

/// The syntax for minijinja.
///
/// # Errors
/// If delimiters are empty or the same.
pub(crate) fn syntax(syntax: &FileSyntax) -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder()
        .block_delimiters(syntax.block.0.clone(), syntax.block.1.clone())
        .variable_delimiters(syntax.variable.0.clone(), syntax.variable.1.clone())
        .comment_delimiters(syntax.comment.0.clone(), syntax.comment.1.clone())
        .trim_blocks(syntax.trim_blocks)
        .lstrip_blocks(syntax.lstrip_blocks)
        .keep_trailing_newline(false)
        .line_statement_prefix(syntax.line_statement.clone())
        .line_comment_prefix(syntax.line_comment.clone())
        .build()
}

fn delimiters(syntax: &FileSyntax) -> Delimiters {
    Delimiters {
        block: syntax.block.clone(),
        variable: syntax.variable.clone(),
        comment: syntax.comment.clone(),
        trim_blocks: syntax.trim_blocks,
    }
}

/// What the first line of a file says about its syntax, and where the template begins.
fn header(text: &str, syntax: &FileSyntax) -> Result<(FileSyntax, usize), String> {
    let mut syntax = syntax.clone();
    let Some(line) = text
        .strip_prefix(HEADER)
        .map(|rest| rest.split('\n').next().unwrap_or_default())
    else {
        return Ok((syntax, 0));
    };
    for setting in line.split(',') {
        let (name, value) = setting
            .split_once(':')
            .ok_or_else(|| format!("`{}` is no setting: write `name: value`", setting.trim()))?;
        let value = value.trim();
        let text = value
            .strip_prefix(['\'', '"'])
            .and_then(|rest| rest.strip_suffix(['\'', '"']))
            .unwrap_or(value)
            .to_owned();
        let flag = || {
            truth::from_text(value).ok_or_else(|| format!("`{value}` is neither True nor False"))
        };
        match name.trim() {
            "trim_blocks" => syntax.trim_blocks = flag()?,
            "lstrip_blocks" => syntax.lstrip_blocks = flag()?,
            "keep_trailing_newline" => {}
            "newline_sequence" => syntax.newline = text.replace("\\r", "\r").replace("\\n", "\n"),
            "block_start_string" => syntax.block.0 = text,
            "block_end_string" => syntax.block.1 = text,
            "variable_start_string" => syntax.variable.0 = text,
            "variable_end_string" => syntax.variable.1 = text,
            "comment_start_string" => syntax.comment.0 = text,
            "comment_end_string" => syntax.comment.1 = text,
            "line_statement_prefix" => syntax.line_statement = text,
            "line_comment_prefix" => syntax.line_comment = text,
            other => return Err(format!("the header knows no setting `{other}`")),
        }
    }
    Ok((syntax, (HEADER.len() + line.len() + 1).min(text.len())))
}

/// A file made ready.
pub(crate) struct Compiled {
    environment: Environment<'static>,
    syntax: FileSyntax,
    pub(crate) rewritten: Rewritten,
    /// Whether minijinja takes it.
    pub(crate) outcome: Result<(), Error>,
}

/// Reads the header and compiles the rest.
///
/// # Errors
/// What is wrong with the header.
pub(crate) fn compile(
    templar: &Templar,
    path: &Path,
    text: &str,
    given: &FileSyntax,
) -> Result<Compiled, String> {
    let (given, start) = header(text, given)?;
    let mut environment = templar.environment().clone();
    environment.set_syntax(syntax(&given).map_err(|error| error.to_string())?);
    set_loader(&mut environment, templar.settings(), path.parent(), &given);
    let mut rewritten = rewrite::template(&text[start..], &delimiters(&given), Backslashes::Escape);
    rewritten.offset = start;
    let outcome = environment
        .template_from_named_str(&path.to_string_lossy(), &rewritten.text)
        .map(drop);
    Ok(Compiled {
        environment,
        syntax: given,
        rewritten,
        outcome,
    })
}

/// Renders a file. As anywhere, one that prints a single value is that value: a file of nothing but `{{ list }}` gives
/// the list, and its last newline counts only for texts.
///
/// # Errors
/// At the place in the file, or in the file that it includes.
pub(crate) fn render(
    evaluation: &Arc<Evaluation>,
    path: &Path,
    text: &str,
    syntax: &FileSyntax,
) -> Result<Value, EvalError> {
    let plain = |delimiters: &Delimiters| {
        [&delimiters.block, &delimiters.variable, &delimiters.comment]
            .into_iter()
            .all(|(start, _)| !text.contains(start))
    };
    if !text.starts_with(HEADER) && plain(&delimiters(syntax)) {
        return Ok(Value::from(text));
    }
    // Jinja reads every kind of line end as one newline.
    let text = if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n"))
    } else {
        Cow::Borrowed(text)
    };
    let source = Source::new(path, &*text);
    let compiled = compile(&evaluation.templar, path, &text, syntax).map_err(|wrong| {
        let end = text.find('\n').unwrap_or(text.len());
        EvalError::new(
            Diagnostic::without_place(wrong)
                .with_code(code::SYNTAX)
                .at(source.span(0, end)),
        )
    })?;
    let value = evaluation
        .printed(|| {
            compiled.environment.render_named_str(
                &path.to_string_lossy(),
                &compiled.rewritten.text,
                evaluation.root(compiled.rewritten.mutable),
            )
        })
        .map_err(|error| {
            EvalError::explain(
                evaluation,
                &compiled.rewritten,
                &Place::File(&source),
                &error,
            )
        })?;
    let value = match value.as_str() {
        Some(rendered) if compiled.syntax.newline != "\n" => {
            Value::from(rendered.replace('\n', &compiled.syntax.newline))
        }
        _ => value,
    };
    Ok(with_newlines(&text, value))
}

/// Jinja drops the newline at the end of a template; a text ends with as many as its template again, unless it has
/// them already.
pub(crate) fn with_newlines(template: &str, value: Value) -> Value {
    let count = |text: &str| text.len() - text.trim_end_matches('\n').len();
    match value.as_str() {
        Some(rendered) if count(template) > count(rendered) => {
            let missing = count(template) - count(rendered);
            Value::from(format!("{rendered}{}", "\n".repeat(missing)))
        }
        _ => value,
    }
}

/// Where `{% include %}`, `{% import %}` and `{% extends %}` look: beside the file that says so, then in the search path.
pub(crate) fn set_loader(
    environment: &mut Environment<'static>,
    settings: &TemplateSettings,
    beside: Option<&Path>,
    syntax: &FileSyntax,
) {
    let controller = settings.controller.clone();
    let mut search: Vec<PathBuf> = beside.map(Path::to_owned).into_iter().collect();
    search.extend(settings.search_path.iter().cloned());
    search.push(settings.playbook_dir.clone());
    environment.set_path_join_callback(move |name, parent| {
        let beside_parent = (parent != INLINE)
            .then(|| Path::new(parent).parent())
            .flatten();
        // Where the task looks for its files, as far as the settings do not say it.
        let of_task = evaluation::current()
            .map(|evaluation| evaluation.search_path())
            .unwrap_or_default();
        for directory in beside_parent
            .into_iter()
            .chain(search.iter().chain(&of_task).map(PathBuf::as_path))
        {
            for candidate in [directory.join(name), directory.join("templates").join(name)] {
                if controller.exists(&candidate) && !controller.is_dir(&candidate) {
                    return Cow::Owned(normalized(&candidate.to_string_lossy()));
                }
            }
        }
        Cow::Borrowed(name)
    });
    let controller = settings.controller.clone();
    let delimiters = delimiters(syntax);
    environment.set_loader(move |name| {
        let Ok(bytes) = controller.read(Path::new(name)) else {
            return Ok(None);
        };
        Ok(Some(
            rewrite::template(
                &String::from_utf8_lossy(&bytes),
                &delimiters,
                Backslashes::Escape,
            )
            .text,
        ))
    });
}

/// An included file once more, to find the place of an error in it.
pub(crate) fn again(
    evaluation: &Arc<Evaluation>,
    name: &str,
    place: &Place<'_>,
) -> Option<(Arc<Source>, Rewritten)> {
    if let Place::File(source) = place
        && source.name.as_path() == Path::new(name)
    {
        return None;
    }
    let bytes = evaluation.templar.controller().read(Path::new(name)).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let rewritten = rewrite::template(&text, &Delimiters::default(), Backslashes::Escape);
    Some((Source::new(name, text), rewritten))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_header_sets_the_syntax() {
        let text = "#jinja2: lstrip_blocks: True, trim_blocks:False, variable_start_string: '[[', variable_end_string: ']]'\nbody";
        let (syntax, start) = header(text, &FileSyntax::default()).unwrap();
        assert!(syntax.lstrip_blocks);
        assert!(!syntax.trim_blocks);
        assert_eq!(syntax.variable, ("[[".to_owned(), "]]".to_owned()));
        assert_eq!(&text[start..], "body");
    }

    #[test]
    fn an_unknown_setting_is_refused() {
        assert!(
            header("#jinja2: trim: True\n", &FileSyntax::default())
                .unwrap_err()
                .contains("`trim`")
        );
    }
}
