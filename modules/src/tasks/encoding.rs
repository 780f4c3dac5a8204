//! Files in other encodings than UTF-8: the editors look at them as UTF-8, by way of the host's `iconv`.

use crate::host::{Fault, Host};

/// Whether an encoding is UTF-8 or a part of it, so that bytes need no change.
fn is_native(encoding: &str) -> bool {
    let name: String = encoding
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .collect();
    matches!(
        name.to_ascii_lowercase().as_str(),
        "utf8" | "ascii" | "usascii"
    )
}

/// A content as UTF-8.
pub(super) fn decode(host: &Host, encoding: &str, content: Vec<u8>) -> Result<Vec<u8>, Fault> {
    if is_native(encoding) || content.is_empty() {
        return Ok(content);
    }
    convert(host, &name(encoding), "UTF-8", &content)
}

/// A content of UTF-8 in its own encoding.
pub(super) fn encode(host: &Host, encoding: &str, content: Vec<u8>) -> Result<Vec<u8>, Fault> {
    if is_native(encoding) || content.is_empty() {
        return Ok(content);
    }
    convert(host, "UTF-8", &name(encoding), &content)
}

fn convert(host: &Host, from: &str, to: &str, content: &[u8]) -> Result<Vec<u8>, Fault> {
    host.filter(&["iconv", "-f", from, "-t", to], content)
}

/// Python's name of an encoding in the C library's words.
fn name(encoding: &str) -> String {
    let lower = encoding.to_ascii_lowercase().replace('_', "-");
    match lower.as_str() {
        "latin-1" | "latin1" => "ISO-8859-1".to_owned(),
        other => other
            .strip_prefix("cp")
            .map_or_else(|| lower.clone(), |page| format!("CP{page}"))
            .to_ascii_uppercase(),
    }
}
