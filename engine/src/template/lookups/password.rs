//! The `password` lookup: a password made once and kept in a file.

use std::path::Path;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::{Asked, Lookup};
use crate::template::filters;
use crate::template::given::{failed, items};
use crate::template::python::text;

pub(super) const LOOKUPS: &[Lookup] = &[Lookup {
    names: "password",
    run: password,
}];

const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";

struct Wanted {
    path: String,
    length: usize,
    characters: String,
    encrypt: Option<String>,
    ident: Option<String>,
    seed: Option<String>,
}

fn wanted(asked: &Asked, term: &str) -> Result<Wanted, Error> {
    let mut words = term.split_whitespace();
    let path = words.next().unwrap_or_default().to_owned();
    let mut settings: Vec<(String, String)> = Vec::new();
    for (name, value) in &asked.options {
        let value = match value.kind() {
            ValueKind::Seq | ValueKind::Iterable => items(value)?
                .iter()
                .map(text::str)
                .collect::<Result<Vec<_>, _>>()?
                .join(","),
            _ => text::str(value)?,
        };
        settings.push((name.clone(), value));
    }
    for word in words {
        let (name, value) = word
            .split_once('=')
            .ok_or_else(|| failed(format!("`{word}` is no setting of password")))?;
        settings.push((name.to_owned(), value.to_owned()));
    }
    let mut wanted = Wanted {
        path,
        length: 20,
        characters: format!("{LETTERS}{DIGITS}.,:-_"),
        encrypt: None,
        ident: None,
        seed: None,
    };
    for (name, value) in settings {
        match name.as_str() {
            "length" => {
                wanted.length = value
                    .parse()
                    .ok()
                    .filter(|length| *length <= 10_000)
                    .ok_or_else(|| failed("password needs a length up to 10000"))?
            }
            "chars" => wanted.characters = characters(&value),
            "encrypt" => {
                wanted.encrypt = Some(value)
                    .filter(|scheme| !scheme.is_empty() && scheme != "None" && scheme != "False")
            }
            "seed" => wanted.seed = Some(value).filter(|seed| seed != "None"),
            "ident" => wanted.ident = Some(value).filter(|ident| ident != "None"),
            "wantlist" | "errors" => {}
            other => {
                return Err(failed(format!(
                    "Unrecognized value `{other}` given to the password lookup"
                )));
            }
        }
    }
    if wanted.characters.is_empty() {
        return Err(failed("password has no characters to choose from"));
    }
    Ok(wanted)
}

/// Sets by their Python names, and characters by themselves.
fn characters(written: &str) -> String {
    let mut all = String::new();
    if written.contains(",,") {
        all.push(',');
    }
    for part in written.split(',').filter(|part| !part.is_empty()) {
        match part {
            "ascii_letters" => all.push_str(LETTERS),
            "ascii_lowercase" => all.push_str(&LETTERS[..26]),
            "ascii_uppercase" => all.push_str(&LETTERS[26..]),
            "digits" => all.push_str(DIGITS),
            "hexdigits" => all.push_str("0123456789abcdefABCDEF"),
            "octdigits" => all.push_str("01234567"),
            "punctuation" => all.push_str("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
            characters => all.push_str(characters),
        }
    }
    all
}

fn password(asked: &Asked) -> Result<Vec<Value>, Error> {
    let templar = &asked.evaluation.templar;
    let mut found = Vec::new();
    for term in asked.texts()? {
        let wanted = wanted(asked, &term)?;
        let kept = wanted.path != "/dev/null";
        let path = templar
            .settings()
            .playbook_dir
            .join(templar.expand_user(Path::new(&wanted.path)));
        let written = kept
            .then(|| templar.controller().read(&path).ok())
            .flatten();
        let written = written.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned());
        let (mut secret, mut salt) = (None, None);
        if let Some(line) = &written {
            match line.split_once(" salt=") {
                Some((password, rest)) => {
                    (secret, salt) = (
                        Some(password.to_owned()),
                        rest.split_whitespace().next().map(str::to_owned),
                    )
                }
                None => secret = Some(line.clone()),
            }
        }
        let fresh = secret.is_none();
        let secret = match secret {
            Some(secret) => secret,
            None => match &wanted.seed {
                Some(seed) => {
                    let mut dice = filters::seeded(&Value::from(seed.as_str()))?;
                    let all: Vec<char> = wanted.characters.chars().collect();
                    (0..wanted.length)
                        .map(|_| all[dice.below(all.len() as u64) as usize])
                        .collect()
                }
                None => filters::letters(wanted.length, &wanted.characters)?,
            },
        };
        let needs_salt = wanted.encrypt.is_some() && salt.is_none();
        if needs_salt {
            salt = Some(filters::letters(16, &format!("{LETTERS}{DIGITS}./"))?);
        }
        if kept && (fresh || needs_salt) {
            let line = match &salt {
                Some(salt) => format!("{secret} salt={salt}\n"),
                None => format!("{secret}\n"),
            };
            templar
                .controller()
                .write(&path, line.as_bytes())
                .map_err(|error| {
                    failed(format!("{} cannot be written: {error}", path.display()))
                })?;
        }
        found.push(match &wanted.encrypt {
            Some(scheme) => {
                filters::crypt(&secret, scheme, salt, None, wanted.ident.as_deref())?.into()
            }
            None => secret.into(),
        });
    }
    Ok(found)
}
