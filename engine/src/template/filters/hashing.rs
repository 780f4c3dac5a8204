//! Checksums, and passwords as `/etc/shadow` has them.

use minijinja::{Error, State, Value};
use sha1::{Digest, Sha1};
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::sequences::letters;
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
    Filter {
        names: "password_hash",
        parameters: "hashtype salt salt_size rounds ident",
        run: password_hash,
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
                "there is no hash `{other}`: sha1, sha224, sha256, sha384, sha512, md5"
            )));
        }
    }))
}

fn hash(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    digest(&given.text(0, "sha1")?, value)
}

/// MD5 by RFC 1321, for old checksums only.
fn md5(message: &[u8]) -> [u8; 16] {
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

fn password_hash(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let kind = given.text(0, "sha512")?;
    let rounds = given.some(3).map(|_| given.int(3, 0)).transpose()?;
    let salt = given.some(1).map(text::str).transpose()?;
    crypt(&text::str(value)?, &kind, salt, rounds).map(Value::from)
}

/// A password hashed as by `crypt(3)`: SHA-256 and SHA-512 (Drepper's scheme). Without a salt, one is thrown.
///
/// # Errors
/// If the scheme is not known, or the salt cannot be one.
pub(crate) fn crypt(
    password: &str,
    kind: &str,
    salt: Option<String>,
    rounds: Option<i64>,
) -> Result<String, Error> {
    const SALT: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./";
    let salt = match salt {
        Some(salt) => salt,
        None => letters(16, SALT)?,
    };
    if salt.len() > 16 || !salt.chars().all(|c| SALT.contains(c)) {
        return Err(failed(
            "a salt has at most 16 of the characters A-Z, a-z, 0-9, `.` and `/`",
        ));
    }
    // Ansible (passlib) writes the number of rounds when it is not the scheme's own.
    let rounds = rounds.map(|rounds| rounds.clamp(1000, 999_999_999) as u32);
    match kind {
        "sha512" | "sha512_crypt" => Ok(sha_crypt::<Sha512>(
            "$6$",
            password,
            &salt,
            rounds,
            &SHA512_ORDER,
            656_000,
        )),
        "sha256" | "sha256_crypt" => Ok(sha_crypt::<Sha256>(
            "$5$",
            password,
            &salt,
            rounds,
            &SHA256_ORDER,
            535_000,
        )),
        other => Err(failed(format!(
            "passwords are hashed with sha512 or sha256, not `{other}`"
        ))),
    }
}

type Order = [[usize; 3]];

const SHA512_ORDER: [[usize; 3]; 21] = [
    [0, 21, 42],
    [22, 43, 1],
    [44, 2, 23],
    [3, 24, 45],
    [25, 46, 4],
    [47, 5, 26],
    [6, 27, 48],
    [28, 49, 7],
    [50, 8, 29],
    [9, 30, 51],
    [31, 52, 10],
    [53, 11, 32],
    [12, 33, 54],
    [34, 55, 13],
    [56, 14, 35],
    [15, 36, 57],
    [37, 58, 16],
    [59, 17, 38],
    [18, 39, 60],
    [40, 61, 19],
    [62, 20, 41],
];
const SHA256_ORDER: [[usize; 3]; 10] = [
    [0, 10, 20],
    [21, 1, 11],
    [12, 22, 2],
    [3, 13, 23],
    [24, 4, 14],
    [15, 25, 5],
    [6, 16, 26],
    [27, 7, 17],
    [18, 28, 8],
    [9, 19, 29],
];

/// The scheme of "Unix crypt using SHA-256 and SHA-512" (Drepper, public domain).
fn sha_crypt<D: Digest>(
    prefix: &str,
    password: &str,
    salt: &str,
    rounds: Option<u32>,
    order: &Order,
    default_rounds: u32,
) -> String {
    let (key, salt_bytes) = (password.as_bytes(), salt.as_bytes());
    let count = rounds.unwrap_or(default_rounds);
    let all = |parts: &[&[u8]]| {
        let mut hash = D::new();
        for part in parts {
            hash.update(part);
        }
        hash.finalize().to_vec()
    };
    let stretched = |digest: &[u8], length: usize| {
        digest
            .iter()
            .copied()
            .cycle()
            .take(length)
            .collect::<Vec<u8>>()
    };
    let b = all(&[key, salt_bytes, key]);
    let mut hash = D::new();
    hash.update(key);
    hash.update(salt_bytes);
    hash.update(stretched(&b, key.len()));
    let mut bits = key.len();
    while bits > 0 {
        hash.update(if bits & 1 == 1 { &b } else { key });
        bits >>= 1;
    }
    let a = hash.finalize().to_vec();
    let p = stretched(&all(&vec![key; key.len()]), key.len());
    let s = stretched(
        &all(&vec![salt_bytes; 16 + usize::from(a[0])]),
        salt_bytes.len(),
    );
    let mut c = a;
    for round in 0..count {
        let mut parts: Vec<&[u8]> = vec![if round & 1 == 1 { &p } else { &c }];
        if round % 3 != 0 {
            parts.push(&s);
        }
        if round % 7 != 0 {
            parts.push(&p);
        }
        parts.push(if round & 1 == 1 { &c } else { &p });
        c = all(&parts);
    }
    let mut out = String::new();
    for [x, y, z] in order {
        digits(
            &mut out,
            u32::from(c[*x]) << 16 | u32::from(c[*y]) << 8 | u32::from(c[*z]),
            4,
        );
    }
    match c.len() {
        64 => digits(&mut out, u32::from(c[63]), 2),
        _ => digits(&mut out, u32::from(c[31]) << 8 | u32::from(c[30]), 3),
    }
    let shown = if count == 5000 {
        String::new()
    } else {
        format!("rounds={count}$")
    };
    format!("{prefix}{shown}{salt}${out}")
}

fn digits(out: &mut String, mut bits: u32, count: usize) {
    const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for _ in 0..count {
        out.push(ALPHABET[(bits & 63) as usize] as char);
        bits >>= 6;
    }
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

    #[test]
    fn passwords_hash_as_in_the_paper() {
        assert_eq!(
            crypt(
                "Hello world!",
                "sha512",
                Some("saltstring".into()),
                Some(5000)
            )
            .unwrap(),
            "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1"
        );
        assert_eq!(
            crypt(
                "Hello world!",
                "sha256",
                Some("saltstringsaltst".into()),
                Some(10_000)
            )
            .unwrap(),
            "$5$rounds=10000$saltstringsaltst$3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"
        );
    }
}
