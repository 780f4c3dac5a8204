//! OpenPGP keys, as far as keyrings need: where one ends and the next begins, and their fingerprints (RFC 4880 and 9580).

use sha1::{Digest, Sha1};

use crate::base64;

/// One public key with all that belongs to it: user ids, signatures, subkeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) bytes: Vec<u8>,
    /// Of the key itself first, then of its subkeys; upper-case hex.
    pub(super) fingerprints: Vec<String>,
}

impl Key {
    /// Whether an id names this key or a subkey of it: the end of a fingerprint, in hex.
    pub(super) fn is(&self, id: &str) -> bool {
        self.fingerprints
            .iter()
            .any(|fingerprint| fingerprint.ends_with(id))
    }

    pub(super) fn fingerprint(&self) -> &str {
        self.fingerprints
            .first()
            .map(String::as_str)
            .unwrap_or_default()
    }
}

/// An id as it is compared: without `0x`, spaces and small letters.
pub(super) fn id(text: &str) -> Option<String> {
    let text = text.trim();
    let bare = text
        .strip_prefix("0x")
        .or(text.strip_prefix("0X"))
        .unwrap_or(text);
    let id: String = bare
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_ascii_uppercase())
        .collect();
    (id.len() >= 8 && id.chars().all(|c| c.is_ascii_hexdigit())).then_some(id)
}

/// Whether a content is text that armours keys.
pub(super) fn is_armored(content: &[u8]) -> bool {
    content
        .windows(START.len())
        .take(4096)
        .any(|window| window == START.as_bytes())
}

const START: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// The keys of a keyring, armoured or not.
pub(super) fn keys(content: &[u8]) -> Result<Vec<Key>, String> {
    if content.get(8..12) == Some(b"KBXf") {
        return Err("it is a keybox of GnuPG, which apt cannot read either: export the key (`gpg --export`)".to_owned());
    }
    match is_armored(content) {
        true => packets(&dearmor(&String::from_utf8_lossy(content))?),
        false => packets(content),
    }
}

fn dearmor(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for block in text.split(START).skip(1) {
        let block = block.split("-----END").next().unwrap_or_default();
        // Headers end with an empty line; a checksum stands behind `=` at the start of a line.
        let lines = block.lines().map(str::trim).skip(1);
        let body: Vec<&str> = lines
            .filter(|line| !line.contains(": ") && !line.starts_with('='))
            .collect();
        let decoded = base64::decode(&body.concat()).filter(|bytes| !bytes.is_empty());
        bytes.extend(decoded.ok_or("its armoured inline data is not base 64")?);
    }
    Ok(bytes)
}

fn packets(content: &[u8]) -> Result<Vec<Key>, String> {
    let mut keys: Vec<Key> = Vec::new();
    let mut at = 0;
    while at < content.len() {
        let (tag, body) = packet(content, at)
            .filter(|(_, body)| body.end <= content.len())
            .ok_or_else(|| {
                format!("error in its inline data at byte {at}: no packet of OpenPGP begins there")
            })?;
        let (from, to) = (at, body.end);
        at = to;
        if tag == 6 {
            keys.push(Key {
                bytes: Vec::new(),
                fingerprints: Vec::new(),
            });
        }
        let Some(key) = keys.last_mut() else {
            return Err("its inline data does not begin with a public key".to_owned());
        };
        if matches!(tag, 6 | 14) {
            key.fingerprints.extend(fingerprint(&content[body]));
        }
        key.bytes.extend_from_slice(&content[from..to]);
    }
    match keys.is_empty() {
        true => Err("there is no key in its inline data".to_owned()),
        false => Ok(keys),
    }
}

/// A packet's tag, and where its body lies.
fn packet(content: &[u8], at: usize) -> Option<(u8, std::ops::Range<usize>)> {
    let byte = |at: usize| content.get(at).map(|byte| usize::from(*byte));
    let head = *content.get(at)?;
    if head & 0x80 == 0 {
        return None;
    }
    let number = |at: usize, count: usize| -> Option<usize> {
        (0..count).try_fold(0_usize, |number, place| {
            Some(number << 8 | byte(at + place)?)
        })
    };
    let (tag, start, length) = if head & 0x40 == 0 {
        let count = match head & 3 {
            0 => 1,
            1 => 2,
            2 => 4,
            _ => return None,
        };
        (head >> 2 & 15, at + 1 + count, number(at + 1, count)?)
    } else {
        let (size, length) = match byte(at + 1)? {
            short @ 0..192 => (1, short),
            first @ 192..224 => (2, ((first - 192) << 8) + byte(at + 2)? + 192),
            255 => (5, number(at + 2, 4)?),
            _ => return None,
        };
        (head & 63, at + 1 + size, length)
    };
    Some((tag, start..start.checked_add(length)?))
}

fn fingerprint(body: &[u8]) -> Option<String> {
    if body.first() != Some(&4) {
        return None;
    }
    let length = u16::try_from(body.len()).ok()?;
    let mut sha1 = Sha1::new();
    sha1.update([0x99]);
    sha1.update(length.to_be_bytes());
    sha1.update(body);
    Some(
        sha1.finalize()
            .iter()
            .map(|byte| format!("{byte:02X}"))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of nobody.
    const ARMORED: &str = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n\
        mDMEYCQjIxYJKwYBBAHaRw8BAQdAD/P5Nvvnvk66SxBBHDbhRml9ORg1WV5CvzKY\n\
        CuMfoIS0BmFiY2RlZoiQBBMWCgA4FiEErCIG1VhKWMWo2yfAREZd5NfO31cFAmAk\n\
        IyMCGyMFCwkIBwMFFQoJCAsFFgIDAQACHgECF4AACgkQREZd5NfO31fbOwD6ArzS\n\
        dM0Dkd5h2Ujy1b6KcAaVW9FOa5UNfJ9FFBtjLQEBAJ7UyWD3dZzhvlaAwunsk7DG\n\
        3bHcln8DMpIJVXht78sL\n=IE0r\n-----END PGP PUBLIC KEY BLOCK-----\n";

    #[test]
    fn a_key_is_known_by_its_fingerprint_in_either_form() {
        let found = keys(ARMORED.as_bytes()).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].fingerprint(),
            "AC2206D5584A58C5A8DB27C044465DE4D7CEDF57"
        );
        let twice = [found[0].bytes.clone(), found[0].bytes.clone()].concat();
        assert_eq!(keys(&twice).unwrap(), [found[0].clone(), found[0].clone()]);
        assert!(found[0].is(&id("0x4446 5de4d7cedf57").unwrap()));
        assert!(!found[0].is("00000000"));
        assert_eq!(id("xyz"), None);
        assert!(is_armored(ARMORED.as_bytes()) && !is_armored(&twice));
    }

    #[test]
    fn what_is_no_key_is_told_so() {
        for wrong in [&b""[..], &[0; 64], b"<html>", &[0x99, 0xff, 0xff, 4]] {
            assert!(
                keys(wrong).unwrap_err().contains("inline data"),
                "{wrong:?}"
            );
        }
        assert!(
            keys(b"\0\0\0\x20\x01\x01\0\x02KBXf")
                .unwrap_err()
                .contains("keybox")
        );
    }
}
