//! The cipher `AES256` of vaults: AES-256 in counter mode, then HMAC-SHA256 over what came out, with keys that
//! PBKDF2 makes of the password.

use aes::cipher::{KeyIvInit, StreamCipher};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

/// Rounds of PBKDF2, as Ansible makes them: a few milliseconds.
const ROUNDS: u32 = 10_000;
/// Bytes of a key.
const KEY: usize = 32;
/// Bytes of a block of AES, to which a text is filled up.
const BLOCK: usize = 16;
/// Bytes of a fresh salt.
pub(super) const SALT: usize = 32;

/// A text that is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sealed {
    pub(super) salt: Vec<u8>,
    /// HMAC-SHA256 over the ciphertext.
    pub(super) mac: Vec<u8>,
    pub(super) ciphertext: Vec<u8>,
}

/// Why a sealed text does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shut {
    /// Another password, or other bytes than those that were sealed.
    Mismatch,
    /// The password fits, but what was sealed is not filled up to whole blocks.
    Padding,
}

struct Keys {
    cipher: [u8; KEY],
    mac: [u8; KEY],
    counter: [u8; BLOCK],
}

/// A key of 32 bytes from a password, as slow to make as those of a vault.
pub(super) fn stretched(password: &[u8], salt: &[u8]) -> Vec<u8> {
    let mut made = vec![0; KEY];
    pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, ROUNDS, &mut made);
    made
}

impl Keys {
    fn derive(password: &[u8], salt: &[u8]) -> Self {
        let mut made = Zeroizing::new([0; 2 * KEY + BLOCK]);
        pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, ROUNDS, &mut *made);
        let (cipher, rest) = made.split_at(KEY);
        let (mac, counter) = rest.split_at(KEY);
        let mut keys = Self {
            cipher: [0; KEY],
            mac: [0; KEY],
            counter: [0; BLOCK],
        };
        keys.cipher.copy_from_slice(cipher);
        keys.mac.copy_from_slice(mac);
        keys.counter.copy_from_slice(counter);
        keys
    }

    fn mac(&self) -> Hmac<Sha256> {
        // HMAC itself fills up a key to the hash's block of 64 bytes with zeros.
        let mut block = Zeroizing::new([0; 2 * KEY]);
        block[..KEY].copy_from_slice(&self.mac);
        KeyInit::new(&(*block).into())
    }

    /// Encrypts, or decrypts: in counter mode that is the same.
    fn apply(&self, text: &mut [u8]) {
        ctr::Ctr128BE::<aes::Aes256>::new(&self.cipher.into(), &self.counter.into())
            .apply_keystream(text);
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.cipher.zeroize();
        self.mac.zeroize();
    }
}

impl Sealed {
    pub(super) fn seal(plain: &[u8], password: &[u8], salt: &[u8]) -> Self {
        let keys = Keys::derive(password, salt);
        let fill = BLOCK - plain.len() % BLOCK;
        let mut text = plain.to_vec();
        // PKCS#7: as many bytes as are missing, each of that value; a whole block where none is.
        text.resize(plain.len() + fill, u8::try_from(fill).unwrap_or_default());
        keys.apply(&mut text);
        let mut mac = keys.mac();
        mac.update(&text);
        Self {
            salt: salt.to_vec(),
            mac: mac.finalize().into_bytes().to_vec(),
            ciphertext: text,
        }
    }

    pub(super) fn open(&self, password: &[u8]) -> Result<Zeroizing<Vec<u8>>, Shut> {
        let keys = Keys::derive(password, &self.salt);
        let mut mac = keys.mac();
        mac.update(&self.ciphertext);
        mac.verify_slice(&self.mac).map_err(|_| Shut::Mismatch)?;
        let mut text = Zeroizing::new(self.ciphertext.clone());
        keys.apply(&mut text);
        let fill = text.last().map_or(0, |byte| usize::from(*byte));
        let length = text.len().checked_sub(fill).ok_or(Shut::Padding)?;
        let filled = (1..=BLOCK).contains(&fill)
            && text[length..].iter().all(|byte| usize::from(*byte) == fill);
        if !filled {
            return Err(Shut::Padding);
        }
        text.truncate(length);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Sealed, Shut};

    #[test]
    fn what_is_sealed_opens_with_its_password_only() {
        for length in [0, BLOCK - 1, BLOCK, 1000] {
            let plain: Vec<u8> = (0..length).map(|at| (at % 256) as u8).collect();
            let sealed = Sealed::seal(&plain, b"hunter2", b"salt");
            assert_eq!(sealed.ciphertext.len() % BLOCK, 0);
            assert!(sealed.ciphertext.len() > length);
            assert_eq!(*sealed.open(b"hunter2").unwrap(), plain);
            assert_eq!(sealed.open(b"hunter3"), Err(Shut::Mismatch));
        }
    }

    #[test]
    fn any_byte_that_differs_is_noticed() {
        let sealed = Sealed::seal(b"a text", b"p", b"s");
        for at in [0, sealed.ciphertext.len() - 1] {
            let mut other = sealed.clone();
            other.ciphertext[at] ^= 1;
            assert_eq!(other.open(b"p"), Err(Shut::Mismatch));
        }
    }
}
