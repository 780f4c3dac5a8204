//! Base 64 with padding, as results and headers carry bytes.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes as text.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let all = (u32::from(chunk[0]) << 16)
            | (u32::from(chunk.get(1).copied().unwrap_or(0)) << 8)
            | u32::from(chunk.get(2).copied().unwrap_or(0));
        for place in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() {
                '='
            } else {
                letter.into()
            });
        }
    }
    text
}

/// Text as bytes, white space aside; none where it is not base 64.
#[must_use]
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let letters = text.bytes().filter(|letter| !letter.is_ascii_whitespace());
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut all, mut bits) = (0_u32, 0);
    for letter in letters.take_while(|letter| *letter != b'=') {
        let value = LETTERS.iter().position(|known| *known == letter)?;
        all = (all << 6) | u32::try_from(value).ok()?;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push((all >> bits & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{decode, encode};

    #[test]
    fn bytes_go_both_ways() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"\xff\xfe\x00a", "//4AYQ=="),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        assert_eq!(decode("a*b"), None);
    }
}
