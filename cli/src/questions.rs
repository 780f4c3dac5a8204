//! Questions that a run asks a person: `--step`, and the `vars_prompt` of plays.

use std::{
    collections::HashMap,
    io::{IsTerminal, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, Result};
use fleet_engine::{
    playbook::{Play, Prompt, Vars},
    run::{Ask, Step},
    template::{Evaluated, Templar},
    variables::Scope,
};
use fleet_yaml::{Node, Source, Span};

use crate::{error::Invalid, tags::Layers};

/// `--step`: asks once for each task, whatever the number of hosts.
pub(crate) fn step() -> Step {
    let goes_on = AtomicBool::new(false);
    let answered: Mutex<HashMap<String, bool>> = Mutex::default();
    Arc::new(move |_host, task| {
        if goes_on.load(Ordering::Relaxed) {
            return true;
        }
        let mut answered = answered.lock().unwrap_or_else(PoisonError::into_inner);
        *answered.entry(task.to_owned()).or_insert_with(|| {
            let answer = line(&format!(
                "Perform task: TASK: {task} (N)o/(y)es/(c)ontinue: "
            ));
            match answer.unwrap_or_default().trim().to_lowercase().as_str() {
                "y" | "yes" => true,
                "c" | "continue" => {
                    goes_on.store(true, Ordering::Relaxed);
                    true
                }
                _ => false,
            }
        })
    })
}

/// Whom a run may ask; nobody where standard input is no terminal.
pub(crate) fn ask() -> Option<Ask> {
    std::io::stdin().is_terminal().then(|| {
        let ask: Ask = Arc::new(|question: &str, echo| {
            let answer = match echo {
                true => line(&format!("{question}\n")),
                false => rpassword::prompt_password(format!("{question}\n")),
            };
            answer.ok()
        });
        ask
    })
}

fn line(question: &str) -> std::io::Result<String> {
    let mut out = std::io::stdout();
    write!(out, "{question}")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim_end_matches(['\r', '\n']).to_owned())
}

/// The answers to the questions of `plays`, by the place of the play. What the extra variables say is not asked for.
pub(crate) fn prompts<'p>(
    plays: impl Iterator<Item = &'p Arc<Play>>,
    extra_vars: &Arc<Vars>,
    templar: &Templar,
) -> Result<HashMap<String, Arc<Vars>>> {
    let mut answers = HashMap::new();
    let mut told = false;
    for play in plays {
        let mut own = Vars::new();
        for prompt in &play.prompts {
            if extra_vars.contains_key(&prompt.name) {
                continue;
            }
            let interactive = std::io::stdin().is_terminal();
            if !interactive && !std::mem::replace(&mut told, true) {
                anstream::eprintln!("[WARNING]: Not prompting as we are not in interactive mode");
            }
            let answer = asked(prompt, play, extra_vars, templar, interactive)?;
            own.insert(prompt.name.clone(), value(prompt, answer, &play.span));
        }
        if !own.is_empty() {
            answers.insert(play.span.to_string(), Arc::new(own));
        }
    }
    Ok(answers)
}

/// The answer as a variable, or the default where there is none.
fn value(prompt: &Prompt, answer: Option<String>, play: &Span) -> Node {
    match (answer, &prompt.default) {
        (Some(text), _) => {
            let source = Source::new(format!("vars_prompt: {}", prompt.name), text.as_str());
            let span = source.span(0, text.len());
            let mut node = Node::string(&text, &span);
            let plain = prompt.r#unsafe.as_ref().and_then(Node::as_bool);
            node.tag = plain.unwrap_or(false).then(|| Arc::from("unsafe"));
            node
        }
        (None, Some(default)) => default.clone(),
        // Ansible has this text then, not nothing.
        (None, None) => Node::string("None", play),
    }
}

fn asked(
    prompt: &Prompt,
    play: &Play,
    extra_vars: &Arc<Vars>,
    templar: &Templar,
    interactive: bool,
) -> Result<Option<String>> {
    let yes = |node: &Option<Node>, otherwise| match node {
        Some(node) => node.as_bool().unwrap_or(otherwise),
        None => otherwise,
    };
    let layers = vec![Arc::clone(&play.vars), Arc::clone(extra_vars)];
    let scope: Arc<dyn Scope> = Arc::new(Layers(layers));
    let text = |node: &Option<Node>| {
        let node = node.as_ref()?;
        match templar.value(node, &scope) {
            Ok(Evaluated::Known(value)) => Some(value.to_string()),
            _ => node.scalar_text().map(|text| text.into_owned()),
        }
    };
    let default = text(&prompt.default);
    let mut question = text(&prompt.text).unwrap_or_else(|| prompt.name.clone());
    let private = yes(&prompt.private, true);
    if let Some(default) = default.as_ref().filter(|_| !private) {
        question.push_str(&format!(" [{default}]"));
    }
    question.push_str(": ");
    let ask = |question: &str| match private {
        true => rpassword::prompt_password(question),
        false => line(question),
    };
    let answer = loop {
        if !interactive {
            break String::new();
        }
        let answer = ask(&question).context("cannot ask for a variable")?;
        if !yes(&prompt.confirm, false) {
            break answer;
        }
        let again = ask(&format!("confirm {question}")).context("cannot ask for a variable")?;
        if again == answer {
            break answer;
        }
        anstream::println!("***** VALUES ENTERED DO NOT MATCH ****");
    };
    // A default keeps its type where nothing is made of it.
    let answer = match (answer.is_empty(), &prompt.encrypt) {
        (true, None) => None,
        (true, Some(_)) => default,
        (false, _) => Some(answer),
    };
    match (answer, text(&prompt.encrypt)) {
        (Some(answer), Some(method)) => hashed(prompt, &answer, &method, templar).map(Some),
        (answer, _) => Ok(answer),
    }
}

/// `encrypt:`: the answer as a password's hash, made as `password_hash` makes it.
fn hashed(prompt: &Prompt, answer: &str, method: &str, templar: &Templar) -> Result<String> {
    let span = Source::new("vars_prompt", "").span(0, 0);
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let salt = prompt.salt.as_ref().and_then(Node::scalar_text);
    let mut arguments = quoted(method);
    if let Some(salt) = salt {
        arguments.push_str(&format!(", salt={}", quoted(&salt)));
    } else if let Some(size) = prompt.salt_size.as_ref().and_then(Node::as_i64) {
        arguments.push_str(&format!(", salt_size={size}"));
    }
    let expression = format!("{} | password_hash({arguments})", quoted(answer));
    let scope: Arc<dyn Scope> = Arc::new(Layers(Vec::new()));
    match templar.expression(&expression, &span, &scope) {
        Ok(Evaluated::Known(hash)) => Ok(hash.to_string()),
        _ => Err(Invalid(format!(
            "the variable `{}` cannot be hashed by `{method}`",
            prompt.name
        ))
        .into()),
    }
}
