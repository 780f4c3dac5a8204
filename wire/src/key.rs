use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// What stands before a digest that is keyed.
pub const KEYED: &str = "keyed-";

/// The key of the digests of secrets in a plan: without it nobody can try secrets until one gives the digest that stands
/// there. Its `Debug` does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestKey(Vec<u8>);

impl DigestKey {
    /// Takes the bytes of a key.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The digest that stands for another: HMAC-SHA256 of it, in hex, behind [`KEYED`].
    #[must_use]
    pub fn digest(&self, of: &str) -> String {
        if of.starts_with(KEYED) {
            return of.to_owned();
        }
        format!(
            "{KEYED}{}",
            self.sum(of)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        )
    }

    /// The key for one thing of many.
    #[must_use]
    pub fn of(&self, name: &str) -> Self {
        Self(self.sum(name))
    }

    fn sum(&self, text: &str) -> Vec<u8> {
        // Any length of key will do: RFC 2104, section 3.
        let Ok(mut mac) = <Hmac<Sha256> as KeyInit>::new_from_slice(&self.0) else {
            return Vec::new();
        };
        mac.update(text.as_bytes());
        mac.finalize().into_bytes().to_vec()
    }
}

impl std::fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::DigestKey;

    #[test]
    fn a_keyed_digest_needs_its_key_and_is_keyed_once() {
        let key = DigestKey::new(b"k".to_vec());
        let (web1, web2) = (key.of("web1"), key.of("web2"));
        assert!(web1.digest("ab").starts_with("keyed-"));
        assert_ne!(web1.digest("ab"), web2.digest("ab"));
        assert_eq!(web1.digest(&web1.digest("ab")), web1.digest("ab"));
        assert_eq!(format!("{key:?}"), "***");
    }
}
