//! What is sent with a request, written as forms and as JSON.

use std::io;
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

use crate::checksum::Algorithm;
use crate::host::{Fault, Host};

/// A text as it is, anything else as JSON.
pub(super) fn raw(body: &Value) -> Vec<u8> {
    match body {
        Value::String(text) => text.clone().into_bytes(),
        other => written(other),
    }
}

/// JSON as Python writes it. A text is JSON already.
pub(super) fn json(body: &Value) -> Vec<u8> {
    raw(body)
}

fn written(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let mut serializer = Serializer::with_formatter(&mut out, Python);
    // Writing a value to memory cannot fail.
    let _ = value.serialize(&mut serializer);
    out
}

/// Python's way of writing JSON: blanks behind signs, and nothing but ASCII.
struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { out.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        for letter in text.chars() {
            match letter {
                ' '..='~' => write!(out, "{letter}")?,
                _ => {
                    for unit in letter.encode_utf16(&mut [0; 2]) {
                        write!(out, "\\u{unit:04x}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// `a=1&b=x&b=y`: of a mapping, or of a list of pairs. A text is written already.
pub(super) fn urlencoded(body: &Value) -> Result<Vec<u8>, Fault> {
    let wrong = || {
        Fault::new(
            "failed to parse body as form_urlencoded: it is no mapping, no list of pairs and no text",
        )
    };
    let pairs: Vec<(String, Value)> = match body {
        Value::String(text) => return Ok(text.clone().into_bytes()),
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| match item.as_array().map(Vec::as_slice) {
                Some([name, value]) => Ok((plain(name), value.clone())),
                _ => Err(wrong()),
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(wrong()),
    };
    let mut parts = Vec::new();
    for (name, value) in pairs {
        match value {
            Value::Array(items) => {
                parts.extend(
                    items
                        .iter()
                        .map(|item| format!("{}={}", quoted(&name), quoted(&plain(item)))),
                );
            }
            one => parts.push(format!("{}={}", quoted(&name), quoted(&plain(&one)))),
        }
    }
    Ok(parts.join("&").into_bytes())
}

/// A value as Python prints it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(byte.into())
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A form of parts, which may be files: `{filename, content, mime_type}`; and what its `Content-Type` says.
pub(super) fn multipart(host: &Host, body: &Value) -> Result<(Vec<u8>, String), Fault> {
    let Value::Object(fields) = body else {
        return Err(Fault::new(
            "failed to parse body as form-multipart: it is no mapping",
        ));
    };
    let mut parts = Vec::new();
    for (name, value) in fields {
        parts.push(part(host, name, value)?);
    }
    // A line that is none of the parts': made of what they are, so that the same form is the same twice.
    let sum = Algorithm::Sha1.sum(&parts.concat());
    let boundary = format!("==============={}==", &sum[..20]);
    let mut out = Vec::new();
    for part in parts {
        out.extend(format!("--{boundary}\r\n").into_bytes());
        out.extend(part);
        out.extend(b"\r\n");
    }
    out.extend(format!("--{boundary}--\r\n").into_bytes());
    Ok((out, format!("multipart/form-data; boundary=\"{boundary}\"")))
}

fn part(host: &Host, name: &str, value: &Value) -> Result<Vec<u8>, Fault> {
    let field = |key: &str| value.get(key).and_then(Value::as_str);
    let (content, kind, file) = match value {
        Value::Object(_) => {
            let (content, file) = (field("content"), field("filename"));
            let content = match (content, file) {
                (Some(content), _) => content.as_bytes().to_vec(),
                (None, Some(file)) => host.read(Path::new(file))?.ok_or_else(|| {
                    Fault::new(format!("the file `{file}` of the part `{name}` is not on this host: give its `content`"))
                })?,
                (None, None) => {
                    return Err(Fault::new(format!("the part `{name}` needs `filename` or `content`")));
                }
            };
            let usual = if file.is_some() {
                "application/octet-stream"
            } else {
                "text/plain"
            };
            (
                content,
                field("mime_type").unwrap_or(usual).to_owned(),
                file,
            )
        }
        other => (plain(other).into_bytes(), "text/plain".to_owned(), None),
    };
    let file = file.map(|file| {
        format!(
            "; filename=\"{}\"",
            file.rsplit('/').next().unwrap_or_default()
        )
    });
    let head = format!(
        "Content-Type: {kind}\r\nContent-Disposition: form-data; name=\"{name}\"{}\r\n\r\n",
        file.unwrap_or_default()
    );
    Ok([head.into_bytes(), content].concat())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn forms_are_written_as_python_does() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let body = json!({"a": 1, "b": ["x y", "ö&"], "c": true});
        assert_eq!(
            text(urlencoded(&body).unwrap()),
            "a=1&b=x+y&b=%C3%B6%26&c=True"
        );
        assert_eq!(
            text(urlencoded(&json!([["a", 1], ["a", 2]])).unwrap()),
            "a=1&a=2"
        );
        assert_eq!(text(urlencoded(&json!("a=b")).unwrap()), "a=b");
        assert!(urlencoded(&json!([1])).is_err());
        assert_eq!(
            text(json(&body)),
            r#"{"a": 1, "b": ["x y", "\u00f6&"], "c": true}"#
        );
        assert_eq!(text(json(&json!("{\"a\":1}"))), "{\"a\":1}");
    }

    #[test]
    fn a_form_of_parts_has_files() {
        let body = json!({"f": {"filename": "/x/a.txt", "content": "hi"}, "t": "text"});
        let (body, kind) = multipart(&Host::plan(), &body).unwrap();
        let boundary = kind
            .strip_prefix("multipart/form-data; boundary=\"")
            .unwrap()
            .trim_end_matches('"');
        let text = String::from_utf8(body).unwrap().replace(boundary, "B");
        assert_eq!(
            text,
            "--B\r\nContent-Type: application/octet-stream\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.txt\"\r\n\r\nhi\r\n--B\r\nContent-Type: text/plain\r\nContent-Disposition: form-data; name=\"t\"\r\n\r\ntext\r\n--B--\r\n"
        );
    }
}
