//! Addresses in texts made links.

use minijinja::{Error, State, Value};

use super::regexes::python;
use super::text::escaped;
use crate::template::given::{Filter, Given};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[Filter {
    names: "urlize",
    parameters: "trim_url_limit nofollow target rel extra_schemes",
    run: urlize,
}];

/// What is an address of the web: a scheme or `www.` before a name, a name under an old top level, or numbers.
const WEB: &str = concat!(
    r"^((https?://|www\.)([\w%-]+\.)*([a-z]{2,63}|xn--[\w%]{2,59})",
    r"|([\w%-]{2,63}\.)+(com|net|int|edu|gov|org|info|mil)",
    r"|https?://(\d{1,3}(\.\d{1,3}){3}|\[[\da-f:]+\]))",
    r"(:\d{1,5})?([/?#]\S*)?$",
);

const MAIL: &str = r"^\S+@\w[\w.-]*\.\w+$";

fn urlize(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let limit = given.some(0).map(|_| given.int(0, 0)).transpose()?;
    let mut rel: Vec<String> = given
        .text(3, "")?
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    rel.push("noopener".to_owned());
    if given.flag(1, false) {
        rel.push("nofollow".to_owned());
    }
    rel.sort();
    rel.dedup();
    let mut attributes = format!(" rel=\"{}\"", escaped(&rel.join(" ")));
    if let Some(target) = given.some(2).map(text::str).transpose()? {
        attributes.push_str(&format!(" target=\"{}\"", escaped(&target)));
    }
    let (web, mail) = (python(WEB, true, false)?, python(MAIL, false, false)?);
    let link =
        |address: &str, shown: &str| format!("<a href=\"{address}\"{attributes}>{shown}</a>");
    let mail_link = |address: &str, shown: &str| format!("<a href=\"{address}\">{shown}</a>");
    let shortened = |address: &str| match limit.and_then(|limit| usize::try_from(limit).ok()) {
        Some(limit) if address.chars().count() > limit => {
            address.chars().take(limit).collect::<String>() + "..."
        }
        _ => address.to_owned(),
    };
    let mut out = String::new();
    let written = escaped(&text::str(value)?);
    for piece in pieces(&written) {
        let (head, middle, tail) = bare(piece);
        out.push_str(head);
        if web.is_match(middle)? {
            let address = if middle.starts_with("http://") || middle.starts_with("https://") {
                middle.to_owned()
            } else {
                format!("https://{middle}")
            };
            out.push_str(&link(&address, &shortened(middle)));
        } else if let Some(address) = middle.strip_prefix("mailto:")
            && mail.is_match(address)?
        {
            out.push_str(&mail_link(middle, address));
        } else if !middle.starts_with("www.") && !middle.contains(':') && mail.is_match(middle)? {
            out.push_str(&link(&format!("mailto:{middle}"), middle).replace(&attributes, ""));
        } else {
            out.push_str(middle);
        }
        out.push_str(tail);
    }
    Ok(out.into())
}

/// Words, and the blanks between them.
fn pieces(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let blank = first.is_whitespace();
        let end = rest
            .find(|c: char| c.is_whitespace() != blank)
            .unwrap_or(rest.len());
        found.push(&rest[..end]);
        rest = &rest[end..];
    }
    found
}

/// A word without the signs around it. A closing bracket stays where the word opens one.
fn bare(word: &str) -> (&str, &str, &str) {
    let mut middle = word;
    while let Some(rest) = ["(", "&lt;"]
        .into_iter()
        .find_map(|sign| middle.strip_prefix(sign))
    {
        middle = rest;
    }
    let head = &word[..word.len() - middle.len()];
    let after = middle;
    loop {
        let closing =
            |open: &str, close: &str| middle.matches(close).count() > middle.matches(open).count();
        let shorter = if let Some(rest) = middle.strip_suffix(['.', ',']) {
            rest
        } else if middle.ends_with(')') && closing("(", ")") {
            &middle[..middle.len() - 1]
        } else if middle.ends_with("&gt;") && closing("&lt;", "&gt;") {
            &middle[..middle.len() - 4]
        } else {
            break;
        };
        middle = shorter;
    }
    (head, middle, &after[middle.len()..])
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn signs_around_an_address_are_no_part_of_it() {
        assert_eq!(bare("(http://x.org)."), ("(", "http://x.org", ")."));
        assert_eq!(bare("http://x.org/a_(b)"), ("", "http://x.org/a_(b)", ""));
    }
}
