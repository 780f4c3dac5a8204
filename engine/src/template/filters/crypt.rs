//! Passwords as `/etc/shadow` has them.

use bcrypt::Version;
use minijinja::{Error, State, Value};
use sha2::{Digest, Sha256, Sha512};

use super::chance::letters;
use super::hashing::md5;
use crate::template::given::{Filter, Given, failed};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[Filter {
    names: "password_hash",
    parameters: "hashtype salt salt_size rounds ident",
    run: password_hash,
}];

/// The digits of `crypt(3)`.
const CRYPT: &str = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The digits of bcrypt.
const BCRYPT: &str = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Md5,
    Sha256,
    Sha512,
    Bcrypt,
    Yescrypt,
}

impl Scheme {
    fn named(name: &str) -> Result<Self, Error> {
        Ok(match name {
            "md5" | "md5_crypt" => Self::Md5,
            "sha256" | "sha256_crypt" => Self::Sha256,
            "sha512" | "sha512_crypt" => Self::Sha512,
            "blowfish" | "bcrypt" => Self::Bcrypt,
            "yescrypt" => Self::Yescrypt,
            other => {
                return Err(failed(format!(
                    "{other} is not in the list of supported passlib algorithms, and crypt does not support '{other}' algorithm: there are md5, sha256, sha512, bcrypt and yescrypt"
                )));
            }
        })
    }

    /// How many characters a salt may have, and whether it has to have them all.
    fn salt_size(self) -> (usize, bool) {
        match self {
            Self::Md5 => (8, false),
            Self::Sha256 | Self::Sha512 => (16, false),
            Self::Bcrypt => (22, true),
            Self::Yescrypt => (16, true),
        }
    }
}

fn password_hash(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let kind = given.text(0, "sha512")?;
    let rounds = given.some(3).map(|_| given.int(3, 0)).transpose()?;
    let salt = given.some(1).map(text::str).transpose()?;
    let salt_size = match given.some(2) {
        None => None,
        Some(size) => Some(
            size.as_usize()
                .ok_or_else(|| failed("salt_size must be an integer"))?,
        ),
    };
    let ident = given.some(4).map(text::str).transpose()?;
    let salt = match (salt.filter(|salt| !salt.is_empty()), salt_size) {
        (None, Some(size)) => Some(letters(size, CRYPT)?),
        (salt, _) => salt,
    };
    crypt(&text::str(value)?, &kind, salt, rounds, ident.as_deref()).map(Value::from)
}

/// A password hashed as by `crypt(3)`. Without a salt, one is thrown.
///
/// # Errors
/// If the scheme is not known, or the salt cannot be one.
pub(crate) fn crypt(
    password: &str,
    kind: &str,
    salt: Option<String>,
    rounds: Option<i64>,
    ident: Option<&str>,
) -> Result<String, Error> {
    let scheme = Scheme::named(kind)?;
    let (size, exact) = scheme.salt_size();
    let salt = match salt {
        Some(salt) => salt,
        None => letters(size, CRYPT)?,
    };
    if !salt.chars().all(|c| CRYPT.contains(c)) {
        return Err(failed(
            "invalid characters in salt: it may have A-Z, a-z, 0-9, `.` and `/`",
        ));
    }
    if salt.len() > size || (exact && salt.len() != size) {
        let most = if exact { "" } else { "at most " };
        return Err(failed(format!(
            "invalid salt size supplied ({}), expected {most}{size}",
            salt.len()
        )));
    }
    // Ansible (passlib) writes the number of rounds when it is not the scheme's own.
    let long = rounds.map(|rounds| rounds.clamp(1000, 999_999_999) as u32);
    match scheme {
        Scheme::Md5 => Ok(md5_crypt(password.as_bytes(), salt.as_bytes(), &salt)),
        Scheme::Sha512 => Ok(sha_crypt::<Sha512>(
            "$6$",
            password,
            &salt,
            long,
            &SHA512_ORDER,
            656_000,
        )),
        Scheme::Sha256 => Ok(sha_crypt::<Sha256>(
            "$5$",
            password,
            &salt,
            long,
            &SHA256_ORDER,
            535_000,
        )),
        Scheme::Bcrypt => blowfish(password, &salt, rounds, ident),
        Scheme::Yescrypt => yescrypt(password, &salt, rounds),
    }
}

fn blowfish(
    password: &str,
    salt: &str,
    rounds: Option<i64>,
    ident: Option<&str>,
) -> Result<String, Error> {
    let version = match ident.unwrap_or("2b") {
        "2a" => Version::TwoA,
        "2b" | "2" => Version::TwoB,
        "2y" => Version::TwoY,
        other => {
            return Err(failed(format!(
                "bcrypt has no ident `{other}`: 2a, 2b or 2y"
            )));
        }
    };
    // 22 digits of 6 bits are 16 bytes and 4 bits that nobody needs.
    let mut bytes = [0_u8; 16];
    let (mut bits, mut count, mut at) = (0_u32, 0, 0);
    for digit in salt.chars() {
        bits = bits << 6 | BCRYPT.find(digit).unwrap_or(0) as u32;
        count += 6;
        if count >= 8 && at < bytes.len() {
            count -= 8;
            bytes[at] = (bits >> count) as u8;
            at += 1;
        }
    }
    let cost = rounds.unwrap_or(12).clamp(4, 31) as u32;
    bcrypt::hash_with_salt(password, cost, bytes)
        .map(|parts| parts.format_for_version(version))
        .map_err(|error| failed(format!("bcrypt cannot hash this password: {error}")))
}

/// The scheme of Debian's own passwords, as libxcrypt has it: the salt's bytes, and the cost from 1 to 11.
fn yescrypt(password: &str, salt: &str, rounds: Option<i64>) -> Result<String, Error> {
    let cost = rounds.unwrap_or(5).clamp(1, 11);
    let (log2, r): (u32, u32) = if cost <= 2 {
        (9 + cost as u32, 8)
    } else {
        (7 + cost as u32, 32)
    };
    let wrong = || failed("yescrypt cannot hash this password");
    let params =
        ::yescrypt::Params::new(::yescrypt::Mode::Rw, 1 << log2, r, 1).map_err(|_| wrong())?;
    let mut hash = [0_u8; 32];
    ::yescrypt::yescrypt(password.as_bytes(), salt.as_bytes(), &params, &mut hash)
        .map_err(|_| wrong())?;
    let mut out = "$y$j".to_owned();
    digits(&mut out, log2 - 1, 1);
    digits(&mut out, r - 1, 1);
    out.push('$');
    all_digits(&mut out, salt.as_bytes());
    out.push('$');
    all_digits(&mut out, &hash);
    Ok(out)
}

/// Bytes as digits, three to four, the least first.
fn all_digits(out: &mut String, bytes: &[u8]) {
    for piece in bytes.chunks(3) {
        let bits = piece
            .iter()
            .rev()
            .fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        digits(out, bits, piece.len() + 1);
    }
}

/// The scheme of FreeBSD's `crypt` of 1994 (beerware).
fn md5_crypt(key: &[u8], salt: &[u8], shown: &str) -> String {
    let alternate = md5(&[key, salt, key].concat());
    let mut message = [key, b"$1$", salt].concat();
    message.extend(alternate.iter().cycle().take(key.len()));
    let mut bits = key.len();
    while bits > 0 {
        message.push(if bits & 1 == 1 {
            0
        } else {
            key.first().copied().unwrap_or(0)
        });
        bits >>= 1;
    }
    let mut hash = md5(&message);
    for round in 0..1000 {
        let mut message: Vec<u8> = Vec::new();
        message.extend(if round & 1 == 1 { key } else { &hash });
        if round % 3 != 0 {
            message.extend(salt);
        }
        if round % 7 != 0 {
            message.extend(key);
        }
        message.extend(if round & 1 == 1 { &hash[..] } else { key });
        hash = md5(&message);
    }
    let mut out = format!("$1${shown}$");
    for [x, y, z] in [[0, 6, 12], [1, 7, 13], [2, 8, 14], [3, 9, 15], [4, 10, 5]] {
        let bits = u32::from(hash[x]) << 16 | u32::from(hash[y]) << 8 | u32::from(hash[z]);
        digits(&mut out, bits, 4);
    }
    digits(&mut out, u32::from(hash[11]), 2);
    out
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
    let alphabet = CRYPT.as_bytes();
    for _ in 0..count {
        out.push(alphabet[(bits & 63) as usize] as char);
        bits >>= 6;
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn hashed(password: &str, kind: &str, salt: &str, rounds: Option<i64>) -> String {
        crypt(password, kind, Some(salt.to_owned()), rounds, None).unwrap()
    }

    #[test]
    fn passwords_hash_as_in_the_paper() {
        assert_eq!(
            hashed("Hello world!", "sha512", "saltstring", Some(5000)),
            "$6$saltstring$svn8UoSVapNtMuq1ukKS4tPQd8iKwSMHWjl/O817G3uBnIFNjnQJuesI68u4OTLiBFdcbYEdFCoEOfaS35inz1"
        );
        assert_eq!(
            hashed("Hello world!", "sha256", "saltstringsaltst", Some(10_000)),
            "$5$rounds=10000$saltstringsaltst$3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"
        );
    }

    /// As `crypt(3)` of libxcrypt makes them.
    #[test]
    fn other_schemes_are_those_of_the_c_library() {
        assert_eq!(
            hashed("secret", "md5", "hZrQ", None),
            "$1$hZrQ$qJvGXKs3dZori1c/xzjcZ1"
        );
        assert_eq!(
            hashed("secret", "bcrypt", "KRGxLBS0Lxe3KBCwKxOzLe", Some(5)),
            "$2b$05$KRGxLBS0Lxe3KBCwKxOzLeGgIioXFiRMErSDWpHJqOlYG2asFGRue"
        );
        assert_eq!(
            hashed("test_password", "yescrypt", "abcdefghijklmnop", None),
            "$y$j9T$V7qMYJaNbVKOeh4PhtqPk/$x7rTqZ.RpI07.dkBSxcg.jLM8ODUfx25rCN0cFsAUg0"
        );
    }
}
