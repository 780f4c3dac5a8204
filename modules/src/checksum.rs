//! Checksums in the algorithms that Ansible knows, as lower-case hex.

use std::io::{self, Read};

use serde::Deserialize;
use sha2::Digest;

use crate::host::hex;

/// An algorithm by Ansible's name for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// MD5
    Md5,
    /// SHA-1
    #[default]
    Sha1,
    /// SHA-224
    Sha224,
    /// SHA-256
    Sha256,
    /// SHA-384
    Sha384,
    /// SHA-512
    Sha512,
}

impl Algorithm {
    /// By name, in either case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "md5" => Self::Md5,
            "sha1" => Self::Sha1,
            "sha224" => Self::Sha224,
            "sha256" => Self::Sha256,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            _ => return None,
        })
    }

    /// SHA-256 and the checksum asked for, of a stream in one pass.
    ///
    /// # Errors
    /// When the stream breaks off.
    pub fn of(self, from: &mut impl Read) -> io::Result<(String, String)> {
        match self {
            Self::Md5 => both::<md5::Md5>(from),
            Self::Sha1 => both::<sha1::Sha1>(from),
            Self::Sha224 => both::<sha2::Sha224>(from),
            Self::Sha256 => both::<sha2::Sha256>(from),
            Self::Sha384 => both::<sha2::Sha384>(from),
            Self::Sha512 => both::<sha2::Sha512>(from),
        }
    }

    /// The checksum of bytes.
    #[must_use]
    pub fn sum(self, bytes: &[u8]) -> String {
        match self {
            Self::Md5 => hex(&md5::Md5::digest(bytes)),
            Self::Sha1 => hex(&sha1::Sha1::digest(bytes)),
            Self::Sha224 => hex(&sha2::Sha224::digest(bytes)),
            Self::Sha256 => hex(&sha2::Sha256::digest(bytes)),
            Self::Sha384 => hex(&sha2::Sha384::digest(bytes)),
            Self::Sha512 => hex(&sha2::Sha512::digest(bytes)),
        }
    }
}

fn both<D: Digest>(from: &mut impl Read) -> io::Result<(String, String)> {
    let (mut known, mut asked) = (sha2::Sha256::new(), D::new());
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        known.update(&buffer[..read]);
        asked.update(&buffer[..read]);
    }
    Ok((hex(&known.finalize()), hex(&asked.finalize())))
}

#[cfg(test)]
mod tests {
    use super::Algorithm;

    #[test]
    fn checksums_are_the_known_ones() {
        assert_eq!(
            Algorithm::Md5.sum(b"hello"),
            "5d41402abc4b2a76b9719d911017c592"
        );
        let (known, sum) = Algorithm::Sha1.of(&mut &b"hello world"[..]).unwrap();
        assert_eq!(sum, "2aae6c35c94fcfb415dbe95f408b9ce91ee846ed");
        assert_eq!(known, Algorithm::Sha256.sum(b"hello world"));
        assert_eq!(Algorithm::named("SHA512"), Some(Algorithm::Sha512));
    }
}
