//! Texts as bytes and back, by the names that Python has for encodings.

use minijinja::Error;

use crate::template::given::failed;

/// How characters are written as bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Charset {
    Utf8,
    Ascii,
    Latin1,
    Latin9,
    /// With the bytes' order: whether the least comes first; `None`: a mark at the beginning says it.
    Utf16(Option<bool>),
    Utf32(Option<bool>),
}

/// Where Latin-9 differs from Latin-1.
const LATIN9: [(u8, char); 8] = [
    (0xa4, '€'),
    (0xa6, 'Š'),
    (0xa8, 'š'),
    (0xb4, 'Ž'),
    (0xb8, 'ž'),
    (0xbc, 'Œ'),
    (0xbd, 'œ'),
    (0xbe, 'Ÿ'),
];

const MARK: char = '\u{feff}';

fn named(name: &str) -> Result<Charset, Error> {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    Ok(match plain.as_str() {
        "utf8" | "u8" => Charset::Utf8,
        "ascii" | "usascii" | "646" => Charset::Ascii,
        "latin1" | "iso88591" | "88591" | "l1" => Charset::Latin1,
        "latin9" | "iso885915" | "885915" | "l9" => Charset::Latin9,
        "utf16" => Charset::Utf16(None),
        "utf16le" => Charset::Utf16(Some(true)),
        "utf16be" => Charset::Utf16(Some(false)),
        "utf32" => Charset::Utf32(None),
        "utf32le" => Charset::Utf32(Some(true)),
        "utf32be" => Charset::Utf32(Some(false)),
        _ => {
            return Err(failed(format!(
                "unknown encoding: {name} (known are utf-8, ascii, latin-1, latin-9, utf-16 and utf-32)"
            )));
        }
    })
}

/// The text's bytes.
///
/// # Errors
/// If the encoding is not known, or has no such character.
pub(crate) fn encoded(text: &str, encoding: &str) -> Result<Vec<u8>, Error> {
    let charset = named(encoding)?;
    let missing = |c: char| failed(format!("the encoding {encoding} has no character {c:?}"));
    let single = |limit: u32| {
        text.chars()
            .map(|c| {
                let special = LATIN9.iter().find(|(_, known)| *known == c);
                match special.filter(|_| charset == Charset::Latin9) {
                    Some((byte, _)) => Ok(*byte),
                    None => u8::try_from(u32::from(c))
                        .ok()
                        .filter(|byte| u32::from(*byte) < limit)
                        .ok_or_else(|| missing(c)),
                }
            })
            .collect::<Result<Vec<u8>, Error>>()
    };
    let mark = |order: Option<bool>| order.is_none().then_some(MARK);
    match charset {
        Charset::Utf8 => Ok(text.as_bytes().to_vec()),
        Charset::Ascii => single(0x80),
        Charset::Latin1 | Charset::Latin9 => single(0x100),
        Charset::Utf16(order) => {
            let mut units = [0; 2];
            let mut bytes = Vec::new();
            for c in mark(order).into_iter().chain(text.chars()) {
                for unit in c.encode_utf16(&mut units) {
                    match order {
                        Some(false) => bytes.extend(unit.to_be_bytes()),
                        _ => bytes.extend(unit.to_le_bytes()),
                    }
                }
            }
            Ok(bytes)
        }
        Charset::Utf32(order) => {
            let all = mark(order).into_iter().chain(text.chars());
            Ok(all
                .flat_map(|c| match order {
                    Some(false) => u32::from(c).to_be_bytes(),
                    _ => u32::from(c).to_le_bytes(),
                })
                .collect())
        }
    }
}

/// The bytes' text.
///
/// # Errors
/// If the encoding is not known, or the bytes are not of it.
pub(crate) fn decoded(bytes: &[u8], encoding: &str) -> Result<String, Error> {
    let wrong = || failed(format!("the bytes are no text in {encoding}"));
    let numbers = |width: usize, order: Option<bool>| -> Result<Vec<u32>, Error> {
        if !bytes.len().is_multiple_of(width) {
            return Err(wrong());
        }
        let little = order.unwrap_or(!bytes.starts_with(&[0xfe, 0xff]));
        let number = |piece: &[u8]| {
            let join = |made: u32, byte: &u8| made << 8 | u32::from(*byte);
            if little {
                piece.iter().rev().fold(0, join)
            } else {
                piece.iter().fold(0, join)
            }
        };
        let all = bytes.chunks(width).map(number);
        Ok(all
            .enumerate()
            .filter(|(at, number)| {
                !(order.is_none() && *at == 0 && [u32::from(MARK), 0xfffe].contains(number))
            })
            .map(|(_, number)| number)
            .collect())
    };
    match named(encoding)? {
        Charset::Utf8 => String::from_utf8(bytes.to_vec()).map_err(|_| wrong()),
        Charset::Ascii if !bytes.is_ascii() => Err(wrong()),
        Charset::Ascii | Charset::Latin1 => Ok(bytes.iter().copied().map(char::from).collect()),
        Charset::Latin9 => Ok(bytes
            .iter()
            .map(|byte| {
                let special = LATIN9.iter().find(|(known, _)| known == byte);
                special.map_or(char::from(*byte), |(_, c)| *c)
            })
            .collect()),
        Charset::Utf16(order) => {
            let units: Vec<u16> = numbers(2, order)?
                .into_iter()
                .map(|unit| unit as u16)
                .collect();
            String::from_utf16(&units).map_err(|_| wrong())
        }
        Charset::Utf32(order) => numbers(4, order)?
            .into_iter()
            .map(|number| char::from_u32(number).ok_or_else(wrong))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for encoding in [
            "utf-8",
            "latin9",
            "utf-16",
            "utf-16-be",
            "utf-16-le",
            "utf-32",
            "utf-32-be",
        ] {
            let bytes = encoded("aé€", encoding).unwrap();
            assert_eq!(decoded(&bytes, encoding).unwrap(), "aé€", "{encoding}");
        }
        assert_eq!(encoded("aé", "ISO_8859-1").unwrap(), [0x61, 0xe9]);
        assert_eq!(encoded("é", "utf-16").unwrap(), [0xff, 0xfe, 0xe9, 0]);
        assert!(encoded("é", "ascii").is_err());
        assert!(decoded(&[0xff], "utf-8").is_err());
    }
}
