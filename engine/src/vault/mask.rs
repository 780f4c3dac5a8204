//! What came out of vaults is hidden in all that is shown: every occurrence of a secret text, as it is and in the
//! forms that it takes in JSON, in URLs and in base64.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use aho_corasick::{AhoCorasick, MatchKind};

/// What stands for a secret.
pub const MASK: &str = "********";

/// Texts of fewer characters hide too much else.
const SHORTEST: usize = 4;
/// Forms in base64 of fewer characters are as likely to be something else.
const SHORTEST_BASE64: usize = 8;
/// Words that say nothing, and stand everywhere.
const PLAIN_WORDS: [&str; 6] = ["true", "false", "none", "null", "yes", "no"];

/// The secret texts of a run.
#[derive(Debug, Default)]
pub(super) struct Masks {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// All forms of all texts.
    forms: BTreeSet<String>,
    /// Finds them; none since one was added.
    finder: Option<Arc<AhoCorasick>>,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known")
            .field("forms", &self.forms.len())
            .finish_non_exhaustive()
    }
}

impl Masks {
    /// Adds a text, and each line of it.
    pub(super) fn add(&self, text: &str) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.forms.len();
        for part in std::iter::once(text).chain(text.lines()) {
            let part = part.trim();
            let counts = part.chars().count() >= SHORTEST
                && !PLAIN_WORDS.contains(&part.to_ascii_lowercase().as_str());
            if counts && !known.forms.contains(part) {
                known.forms.extend(forms(part));
            }
        }
        if known.forms.len() != before {
            known.finder = None;
        }
    }

    /// Whether nothing is secret.
    pub(super) fn is_empty(&self) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.forms.is_empty()
    }

    /// The text with every secret in it hidden.
    pub(super) fn mask<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(finder) = self.finder() else {
            return Cow::Borrowed(text);
        };
        let mut masked = String::new();
        let mut end = 0;
        for (from, to) in spans(&finder, text) {
            masked.push_str(&text[end..from]);
            masked.push_str(MASK);
            end = to;
        }
        if end == 0 {
            return Cow::Borrowed(text);
        }
        masked.push_str(&text[end..]);
        Cow::Owned(masked)
    }

    fn finder(&self) -> Option<Arc<AhoCorasick>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.forms.is_empty() {
            return None;
        }
        if known.finder.is_none() {
            let finder = AhoCorasick::builder()
                .match_kind(MatchKind::Standard)
                .build(&known.forms);
            known.finder = finder.ok().map(Arc::new);
        }
        known.finder.clone()
    }
}

/// Where secrets stand in a text, in order; those that overlap are one.
fn spans(finder: &AhoCorasick, text: &str) -> Vec<(usize, usize)> {
    let mut spans: Vec<(usize, usize)> = Vec::new();
    for found in finder.find_overlapping_iter(text) {
        let (mut from, to) = (found.start(), found.end());
        // They come in the order of their ends: a later one may begin before several earlier ones.
        while let Some((last_from, last_to)) = spans.last().copied() {
            if last_to <= from {
                break;
            }
            from = from.min(last_from);
            spans.pop();
        }
        spans.push((from, to));
    }
    spans
}

/// A text as it is, and as it is written in JSON, in a shell's quotes, in a URL, and in base64 at each of the three
/// places that it may have between other bytes.
fn forms(text: &str) -> Vec<String> {
    let mut forms = vec![text.to_owned()];
    let json = serde_json::Value::from(text).to_string();
    forms.push(json[1..json.len() - 1].to_owned());
    let ascii: String = json[1..json.len() - 1]
        .encode_utf16()
        .map(|unit| match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => char::from(byte).to_string(),
            _ => format!("\\u{unit:04x}"),
        })
        .collect();
    forms.push(ascii);
    forms.push(text.replace('\'', "'\"'\"'"));
    forms.push(text.replace('\'', "'\\''"));
    forms.push(text.replace('\'', "\\'"));
    for safe in ["", "/"] {
        forms.push(percent(text, safe));
    }
    forms.push(percent(text, "/").replace("%20", "+"));
    for before in 0..3 {
        let base64 = base64(text.as_bytes(), before);
        if base64.len() >= SHORTEST_BASE64 {
            forms.push(base64.replace('+', "-").replace('/', "_"));
            forms.push(base64);
        }
    }
    forms
}

fn percent(text: &str, safe: &str) -> String {
    text.bytes()
        .map(|byte| match char::from(byte) {
            c if c.is_ascii_alphanumeric() || "-_.~".contains(c) || safe.contains(c) => {
                c.to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// The characters of base64 that `bytes` alone decide, where `before` other bytes (modulo 3) stand in front of them.
fn base64(bytes: &[u8], before: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = |at: usize| bytes.get(at / 8).map(|byte| byte >> (7 - at % 8) & 1);
    // The first group of six bits that begins within the bytes.
    let mut at = (6 - before * 8 % 6) % 6;
    let mut made = String::new();
    while at + 6 <= bytes.len() * 8 {
        let digit = (at..at + 6)
            .filter_map(bits)
            .fold(0, |digit, bit| digit << 1 | bit);
        made.push(char::from(DIGITS[usize::from(digit)]));
        at += 6;
    }
    made
}

#[cfg(test)]
mod tests {
    use super::{Masks, base64};

    fn masks(secrets: &[&str]) -> Masks {
        let masks = Masks::default();
        for secret in secrets {
            masks.add(secret);
        }
        masks
    }

    #[test]
    fn every_occurrence_is_hidden() {
        let masks = masks(&["hunter2"]);
        assert_eq!(
            masks.mask("password=hunter2 hunter2\n"),
            "password=******** ********\n"
        );
        assert!(matches!(
            masks.mask("nothing"),
            std::borrow::Cow::Borrowed("nothing")
        ));
    }

    #[test]
    fn each_line_of_a_long_secret_is_one() {
        let masks = masks(&["-----BEGIN KEY-----\n  MIIEow\n-----END KEY-----\n"]);
        assert_eq!(masks.mask("key: MIIEow."), "key: ********.");
    }

    #[test]
    fn texts_that_say_nothing_hide_nothing() {
        let masks = masks(&["abc", "True", "  x  ", "null"]);
        assert!(masks.is_empty());
        assert_eq!(masks.mask("abc True null"), "abc True null");
    }

    #[test]
    fn overlapping_secrets_leave_no_rest() {
        let masks = masks(&["abcdef", "efgh", "defg", "cdefghi"]);
        assert_eq!(masks.mask("-abcdefgh-"), "-********-");
        assert_eq!(masks.mask("-abcdefghi-efgh"), "-********-********");
    }

    #[test]
    fn its_written_forms_are_hidden_too() {
        let masks = masks(&["it's \"späte\" & 1/2"]);
        for form in [
            serde_json::to_string("it's \"späte\" & 1/2").unwrap(),
            r#"it's \"sp\u00e4te\" & 1/2"#.to_owned(),
            "it%27s%20%22sp%C3%A4te%22%20%26%201/2".to_owned(),
            "it%27s%20%22sp%C3%A4te%22%20%26%201%2F2".to_owned(),
            "it%27s+%22sp%C3%A4te%22+%26+1/2".to_owned(),
            r#"it'"'"'s "späte" & 1/2"#.to_owned(),
        ] {
            let masked = masks.mask(&form).into_owned();
            assert_eq!(masked.trim_matches('"'), "********", "{form}");
        }
    }

    #[test]
    fn base64_is_hidden_wherever_it_stands() {
        let masks = masks(&["correct horse"]);
        // `correct horse`, `a:correct horse`, `ab:correct horse!`
        for (form, masked) in [
            ("Y29ycmVjdCBob3JzZQ==", "********Q=="),
            ("YTpjb3JyZWN0IGhvcnNl", "YTp********"),
            ("YWI6Y29ycmVjdCBob3JzZSE=", "YWI6********SE="),
        ] {
            assert_eq!(masks.mask(form), masked, "{form}");
        }
        assert_eq!(base64(b"abc", 0), "YWJj");
    }
}
