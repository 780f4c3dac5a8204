//! The text form of a vault: a line that says what it is, and hex in lines of 80.
//!
//! `$ANSIBLE_VAULT;1.1;AES256`, or `$ANSIBLE_VAULT;1.2;AES256;LABEL` where the label is not `default`; then the hex of
//! three hex texts with newlines between: salt, MAC, ciphertext.

use super::{DEFAULT, cipher::Sealed};

/// What every vault begins with.
pub(super) const MAGIC: &str = "$ANSIBLE_VAULT";
/// Characters of a line of hex.
const WIDTH: usize = 80;

/// A vault, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The id of the secret that it was sealed with, as far as that is told.
    pub(super) label: String,
    pub(super) sealed: Sealed,
}

/// What is wrong in the text of a vault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Damage {
    /// The line, from 1, which is the line that begins with `$ANSIBLE_VAULT`.
    pub(super) line: usize,
    pub(super) what: String,
}

impl Envelope {
    /// # Errors
    /// Where the text is no vault of a known kind, or its body is damaged.
    pub(super) fn parse(text: &[u8]) -> Result<Self, Damage> {
        let text = std::str::from_utf8(text).map_err(|problem| Damage {
            line: 1 + text[..problem.valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count(),
            what: "this is no hex".to_owned(),
        })?;
        let mut lines = text.lines().map(str::trim).enumerate();
        let header = lines.next().map_or("", |(_, line)| line);
        let label = label(header).map_err(|what| Damage { line: 1, what })?;
        // Whatever is found wrong as a whole belongs to the body's first line.
        let whole = |what: &str| Damage {
            line: 2,
            what: what.to_owned(),
        };
        let mut body = String::new();
        for (index, line) in lines {
            if let Some(odd) = line.chars().find(|c| !c.is_ascii_hexdigit()) {
                return Err(Damage {
                    line: index + 1,
                    what: format!("`{}` is no hex digit", odd.escape_default()),
                });
            }
            body.push_str(line);
        }
        if body.is_empty() {
            return Err(whole("nothing follows the first line"));
        }
        let body = unhex(body.as_bytes())
            .ok_or_else(|| whole("an odd number of hex digits: one is missing"))?;
        let mut parts = body.splitn(3, |byte| *byte == b'\n').map(unhex);
        match (parts.next(), parts.next(), parts.next()) {
            (Some(Some(salt)), Some(Some(mac)), Some(Some(ciphertext))) => Ok(Self {
                label,
                sealed: Sealed {
                    salt,
                    mac,
                    ciphertext,
                },
            }),
            _ => Err(whole(
                "the hex does not hold salt, check sum and text: a part is missing",
            )),
        }
    }

    /// The text, ending with a newline.
    pub(super) fn text(&self) -> String {
        let mut text = if self.label == DEFAULT {
            format!("{MAGIC};1.1;AES256\n")
        } else {
            format!("{MAGIC};1.2;AES256;{}\n", self.label)
        };
        let parts = [&self.sealed.salt, &self.sealed.mac, &self.sealed.ciphertext];
        let body = hex(parts.map(|part| hex(part)).join("\n").as_bytes());
        for at in (0..body.len()).step_by(WIDTH) {
            text.push_str(&body[at..body.len().min(at + WIDTH)]);
            text.push('\n');
        }
        text
    }
}

/// The label that a first line names.
fn label(header: &str) -> Result<String, String> {
    let mut fields = header.split(';').map(str::trim);
    if fields.next() != Some(MAGIC) {
        return Err(format!("a vault begins with `{MAGIC};`"));
    }
    let (version, cipher, label) = (fields.next(), fields.next(), fields.next());
    match (version, cipher) {
        (Some("1.1" | "1.2"), Some("AES256")) => {}
        (Some("1.1" | "1.2"), Some(other)) => {
            return Err(format!("the cipher `{other}` is not known; `AES256` is"));
        }
        (Some(other), Some(_)) => {
            return Err(format!(
                "the format `{other}` is not known; `1.1` and `1.2` are"
            ));
        }
        (_, None) | (None, _) => {
            return Err(format!(
                "expected `{MAGIC};1.1;AES256` or `{MAGIC};1.2;AES256;LABEL`"
            ));
        }
    }
    let label = label.filter(|label| version == Some("1.2") && !label.is_empty());
    Ok(label.unwrap_or(DEFAULT).to_owned())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// The bytes that hex digits stand for; none where one is missing, or no digit.
fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    let value = |digit: u8| char::from(digit).to_digit(16);
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| u8::try_from(value(pair[0])? << 4 | value(pair[1])?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(label: &str) -> Envelope {
        Envelope {
            label: label.to_owned(),
            sealed: Sealed::seal(b"a: 1\n", b"secretpw", b"salt"),
        }
    }

    #[test]
    fn the_default_label_has_the_older_format_and_any_other_the_newer() {
        let text = envelope("default").text();
        assert!(text.starts_with("$ANSIBLE_VAULT;1.1;AES256\n"), "{text}");
        let text = envelope("dev").text();
        assert!(
            text.starts_with("$ANSIBLE_VAULT;1.2;AES256;dev\n"),
            "{text}"
        );
        assert!(text.lines().skip(1).all(|line| line.len() <= 80));
        assert!(text.ends_with('\n'));
    }

    #[test]
    fn a_text_is_read_however_its_lines_are_broken() {
        let text = envelope("dev").text();
        let (header, body) = text.split_once('\n').unwrap();
        for text in [
            text.clone(),
            text.replace('\n', "\r\n"),
            format!("{header}\n{}", body.replace('\n', "")),
            format!("  {}", text.replace('\n', "\n   ")),
        ] {
            assert_eq!(Envelope::parse(text.as_bytes()), Ok(envelope("dev")));
        }
    }

    #[test]
    fn damage_is_told_with_its_line() {
        for (text, line, what) in [
            (
                "$ANSIBLE_VAULT;1.1;AES256\n6162\n61x2\n",
                3,
                "`x` is no hex digit",
            ),
            (
                "$ANSIBLE_VAULT;1.1;AES256\n61620\n",
                2,
                "an odd number of hex digits: one is missing",
            ),
            (
                "$ANSIBLE_VAULT;1.1;AES256\n6162\n",
                2,
                "the hex does not hold salt, check sum and text: a part is missing",
            ),
            (
                "$ANSIBLE_VAULT;1.1;AES256\n",
                2,
                "nothing follows the first line",
            ),
            (
                "$ANSIBLE_VAULT;1.1;AES128\n6162\n",
                1,
                "the cipher `AES128` is not known; `AES256` is",
            ),
            (
                "$ANSIBLE_VAULT;1.0;AES\n6162\n",
                1,
                "the format `1.0` is not known; `1.1` and `1.2` are",
            ),
            (
                "$ANSIBLE_VAULT\n6162\n",
                1,
                "expected `$ANSIBLE_VAULT;1.1;AES256` or `$ANSIBLE_VAULT;1.2;AES256;LABEL`",
            ),
        ] {
            let damage = Damage {
                line,
                what: what.to_owned(),
            };
            assert_eq!(Envelope::parse(text.as_bytes()), Err(damage), "{text}");
        }
    }
}
