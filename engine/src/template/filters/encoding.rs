//! Base64, URLs and UUIDs.

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};
use sha1::{Digest, Sha1};

use super::charset::{decoded, encoded};
use crate::template::given::{Filter, Given, failed, items};
use crate::template::python::text::{self, pairs};

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "b64encode",
        parameters: "encoding urlsafe",
        run: b64encode,
    },
    Filter {
        names: "b64decode",
        parameters: "encoding urlsafe",
        run: b64decode,
    },
    Filter {
        names: "urlencode",
        parameters: "",
        run: urlencode,
    },
    Filter {
        names: "urldecode",
        parameters: "",
        run: urldecode,
    },
    Filter {
        names: "urlsplit",
        parameters: "query",
        run: urlsplit,
    },
    Filter {
        names: "to_uuid",
        parameters: "namespace",
        run: to_uuid,
    },
];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn b64encode(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let bytes = encoded(&text::str(value)?, &given.text(0, "utf-8")?)?;
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            if at > chunk.len() {
                out.push('=');
            } else {
                out.push(ALPHABET[(bits >> (18 - 6 * at) & 63) as usize] as char);
            }
        }
    }
    Ok(Value::from(if given.flag(1, false) {
        out.replace('+', "-").replace('/', "_")
    } else {
        out
    }))
}

fn b64decode(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let written = text::str(value)?;
    let wrong = || failed("the text is no base64");
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for c in written
        .bytes()
        .filter(|c| !c.is_ascii_whitespace() && *c != b'=')
    {
        let c = match c {
            b'-' => b'+',
            b'_' => b'/',
            c => c,
        };
        let digit = ALPHABET
            .iter()
            .position(|known| *known == c)
            .ok_or_else(wrong)?;
        bits = bits << 6 | digit as u32;
        count += 1;
        if count == 4 {
            bytes.extend([(bits >> 16) as u8, (bits >> 8) as u8, bits as u8]);
            (bits, count) = (0, 0);
        }
    }
    match count {
        0 => {}
        2 => bytes.push((bits >> 4) as u8),
        3 => bytes.extend([(bits >> 10) as u8, (bits >> 2) as u8]),
        _ => return Err(wrong()),
    }
    decoded(&bytes, &given.text(0, "utf-8")?).map(Value::from)
}

fn percent_encoded(text: &str, safe: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric()
            || b"_.-~".contains(&byte)
            || safe.as_bytes().contains(&byte)
        {
            out.push(byte as char);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn urlencode(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let query = match value.kind() {
        ValueKind::Map => pairs(value)?,
        ValueKind::Seq | ValueKind::Iterable => items(value)?
            .iter()
            .map(|pair| Ok((pair.get_item_by_index(0)?, pair.get_item_by_index(1)?)))
            .collect::<Result<_, Error>>()?,
        _ => return Ok(percent_encoded(&text::str(value)?, "/").into()),
    };
    let plus =
        |value: &Value| Ok::<_, Error>(percent_encoded(&text::str(value)?, " ").replace(' ', "+"));
    let parts: Vec<String> = query
        .iter()
        .map(|(key, value)| Ok(format!("{}={}", plus(key)?, plus(value)?)))
        .collect::<Result<_, Error>>()?;
    Ok(parts.join("&").into())
}

fn urldecode(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let text = text::str(value)?.replace('+', " ");
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'%')
            .then(|| after.get(..2))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned().into())
}

fn urlsplit(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let url = text::str(value)?;
    let (rest, fragment) = url.split_once('#').unwrap_or((&url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let scheme_end = rest.find(':').filter(|at| {
        rest[..*at]
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
            && *at > 0
    });
    let (scheme, rest) = scheme_end.map_or(("", rest), |at| (&rest[..at], &rest[at + 1..]));
    let (netloc, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let (user, host) = netloc
        .rsplit_once('@')
        .map_or((None, netloc), |(user, host)| (Some(user), host));
    let (username, password) = user.map_or((None, None), |user| match user.split_once(':') {
        Some((name, password)) => (Some(name), Some(password)),
        None => (Some(user), None),
    });
    let (hostname, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':')),
        None => host
            .split_once(':')
            .map_or((host, None), |(host, port)| (host, Some(port))),
    };
    let optional = |part: Option<&str>| {
        part.filter(|part| !part.is_empty())
            .map_or_else(|| Value::from(()), Value::from)
    };
    let port = port
        .and_then(|port| port.parse::<u16>().ok())
        .map_or_else(|| Value::from(()), Value::from);
    let parts = [
        ("fragment", Value::from(fragment)),
        ("hostname", optional(Some(&hostname.to_lowercase()))),
        ("netloc", Value::from(netloc)),
        ("password", optional(password)),
        ("path", Value::from(path)),
        ("port", port),
        ("query", Value::from(query)),
        ("scheme", Value::from(scheme.to_lowercase())),
        ("username", optional(username)),
    ];
    match given.some(0).map(text::str).transpose()? {
        None => Ok(Value::from_pairs(parts)),
        Some(wanted) => parts
            .into_iter()
            .find(|(name, _)| *name == wanted)
            .map(|pair| pair.1)
            .ok_or_else(|| failed(format!("unknown URL component: {wanted}"))),
    }
}

/// The namespace of UUIDs that Ansible makes.
const ANSIBLE: &str = "361E6D51-FAEC-444A-9079-341386DA8E2E";

fn to_uuid(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let namespace = given.text(0, ANSIBLE)?;
    let digits: String = namespace.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|_| digits.len() == 32)
        .ok_or_else(|| {
            failed(format!(
                "Invalid value '{namespace}' for 'namespace': it is no UUID"
            ))
        })?;
    let mut hash = Sha1::new();
    hash.update(number.to_be_bytes());
    hash.update(text::str(value)?.as_bytes());
    let digest = hash.finalize();
    let mut made = digest
        .iter()
        .take(16)
        .fold(0_u128, |made, byte| made << 8 | u128::from(*byte));
    made = made & !(0xf000_u128 << 64) | 0x5000_u128 << 64;
    made = made & !(0xc000_u128 << 48) | 0x8000_u128 << 48;
    let hex = format!("{made:032x}");
    Ok(Value::from(format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )))
}
