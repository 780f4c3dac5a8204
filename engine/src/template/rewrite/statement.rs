//! The walk over one `{% … %}`.

use super::expression::{NotAnExpression, Walk};
use super::lexer::TokenKind;

/// Walks a statement: its keyword says where names are assigned and where expressions stand.
pub(crate) fn statement(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    let (keyword, _) = walk.name()?;
    match keyword {
        "if" | "elif" | "print" | "do" | "autoescape" => walk.tuple(),
        "for" => for_loop(walk),
        "set" => set(walk),
        "with" => with(walk),
        "include" | "extends" => reference(walk),
        "import" => {
            reference(walk)?;
            imported_names(walk)
        }
        "from" => {
            walk.expression()?;
            imported_names(walk)
        }
        "macro" => {
            assigned_name(walk)?;
            parameters(walk)
        }
        "call" => {
            if walk.is("(") {
                parameters(walk)?;
            }
            walk.expression()
        }
        "filter" => {
            walk.filter()?;
            while walk.accept("|") {
                walk.filter()?;
            }
            Ok(())
        }
        // `else`, `endif`, `block NAME`, `raw`, `break` and the like hold no expressions.
        _ => {
            while !walk.done() {
                walk.take()?;
            }
            Ok(())
        }
    }
}

fn assigned_name(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    let (name, _) = walk.name()?;
    walk.notes().assigned.insert(name.to_owned());
    Ok(())
}

/// Targets up to a word or sign: names, tuples, `namespace.attribute`.
fn targets(walk: &mut Walk<'_>, stop: &[&str]) -> Result<(), NotAnExpression> {
    while !walk.done() && !stop.iter().any(|word| walk.is(word)) {
        if walk.kind() == Some(TokenKind::Name) {
            assigned_name(walk)?;
        } else {
            walk.take()?;
        }
    }
    Ok(())
}

fn for_loop(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    targets(walk, &["in"])?;
    walk.take()?;
    walk.or()?;
    while walk.accept(",") {
        walk.or()?;
    }
    if walk.accept("if") {
        walk.expression()?;
    }
    walk.accept("recursive");
    Ok(())
}

fn set(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    targets(walk, &["=", "|"])?;
    if walk.accept("=") {
        return walk.tuple();
    }
    while walk.accept("|") {
        walk.filter()?;
    }
    Ok(())
}

fn with(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    while !walk.done() {
        targets(walk, &["="])?;
        walk.take()?;
        walk.expression()?;
        walk.accept(",");
    }
    Ok(())
}

/// The name of a template, then words that say how to take it in.
fn reference(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    walk.expression()?;
    if walk.accept("ignore") {
        walk.accept("missing");
    }
    context(walk)
}

/// minijinja always gives an included template its context, and has no word for it.
fn context(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    if walk.is("with") || walk.is("without") {
        for _ in 0..2 {
            let word = walk.take()?;
            walk.notes().edits.replace(word.range, "");
        }
    }
    Ok(())
}

fn imported_names(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    while !walk.done() {
        context(walk)?;
        if walk.kind() == Some(TokenKind::Name) {
            assigned_name(walk)?;
        } else if !walk.done() {
            walk.take()?;
        }
    }
    Ok(())
}

fn parameters(walk: &mut Walk<'_>) -> Result<(), NotAnExpression> {
    walk.take()?;
    while !walk.accept(")") {
        assigned_name(walk)?;
        if walk.accept("=") {
            walk.expression()?;
        }
        walk.accept(",");
    }
    Ok(())
}
