//! Checksums.

use minijinja::{Error, State, Value};
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use crate::template::given::{Filter, Given, failed};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "hash",
        parameters: "hashtype",
        run: hash,
    },
    Filter {
        names: "sha1",
        parameters: "",
        run: |_, value, _| digest("sha1", value),
    },
    Filter {
        names: "md5",
        parameters: "",
        run: |_, value, _| digest("md5", value),
    },
    Filter {
        names: "checksum",
        parameters: "",
        run: |_, value, _| digest("sha1", value),
    },
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(kind: &str, value: &Value) -> Result<Value, Error> {
    let text = text::str(value)?;
    let bytes = text.as_bytes();
    Ok(Value::from(match kind {
        "sha1" => hex(&Sha1::digest(bytes)),
        "sha224" => hex(&Sha224::digest(bytes)),
        "sha256" => hex(&Sha256::digest(bytes)),
        "sha384" => hex(&Sha384::digest(bytes)),
        "sha512" => hex(&Sha512::digest(bytes)),
        "md5" => hex(&md5(bytes)),
        other => {
            return Err(failed(format!(
                "unsupported hash type {other}: there are sha1, sha224, sha256, sha384, sha512, md5"
            )));
        }
    }))
}

fn hash(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    digest(&given.text(0, "sha1")?, value)
}

/// MD5 by RFC 1321, for old checksums only.
pub(super) fn md5(message: &[u8]) -> [u8; 16] {
    const SHIFTS: [[u32; 4]; 4] = [
        [7, 12, 17, 22],
        [5, 9, 14, 20],
        [4, 11, 16, 23],
        [6, 10, 15, 21],
    ];
    let mut padded = message.to_vec();
    padded.push(0x80);
    while padded.len() % 64 != 56 {
        padded.push(0);
    }
    padded.extend((message.len() as u64).wrapping_mul(8).to_le_bytes());
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    for block in padded.chunks_exact(64) {
        let words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| {
                word.iter()
                    .rev()
                    .fold(0, |made, byte| made << 8 | u32::from(*byte))
            })
            .collect();
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64_usize {
            let (mixed, word) = match step / 16 {
                0 => ((b & c) | (!b & d), step),
                1 => ((d & b) | (!d & c), (5 * step + 1) % 16),
                2 => (b ^ c ^ d, (3 * step + 5) % 16),
                _ => (c ^ (b | !d), 7 * step % 16),
            };
            let constant = ((step as f64 + 1.0).sin().abs() * 4_294_967_296.0) as u32;
            let sum = a
                .wrapping_add(mixed)
                .wrapping_add(constant)
                .wrapping_add(words[word]);
            (a, d, c, b) = (
                d,
                c,
                b,
                b.wrapping_add(sum.rotate_left(SHIFTS[step / 16][step % 4])),
            );
        }
        for (part, new) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(new);
        }
    }
    let mut out = [0; 16];
    for (place, part) in out.chunks_exact_mut(4).zip(state) {
        place.copy_from_slice(&part.to_le_bytes());
    }
    out
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn md5_is_that_of_the_rfc() {
        assert_eq!(hex(&md5(b"")), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            hex(&md5(b"message digest")),
            "f96b697d7cb7938d525a2f31aaf161d0"
        );
        // Lengths around the padding of a block.
        assert_eq!(hex(&md5(&[b'1'; 55])), "1e817ad27a934e9db7239bc92a4e0932");
        assert_eq!(hex(&md5(&[b'1'; 56])), "16e54833b88a6cc06966d83d05c271b3");
        assert_eq!(hex(&md5(&[b'1'; 63])), "4770c94a3ad003237dc1fb66278ef8b8");
        assert_eq!(hex(&md5(&[b'1'; 64])), "46f04863257ac8040905ea0002183d35");
        assert_eq!(hex(&md5(&[b'1'; 80])), "7478ba1875f17511c12740431336a09e");
    }
}
