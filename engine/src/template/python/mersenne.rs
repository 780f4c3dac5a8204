//! Python's random numbers: the Mersenne Twister MT19937, seeded as `random.Random` seeds it. A playbook that says
//! `59 | random(seed=inventory_hostname)` gets the minute that it got from Ansible.

use sha2::{Digest, Sha512};

const SIZE: usize = 624;
const MIDDLE: usize = 397;

/// A source of numbers.
pub(crate) struct Mersenne {
    state: [u32; SIZE],
    next: usize,
}

impl Mersenne {
    /// Seeded by a text: by its bytes and their SHA-512 as one number.
    pub(crate) fn of_text(seed: &str) -> Self {
        let bytes = [seed.as_bytes(), &Sha512::digest(seed.as_bytes())].concat();
        let words: Vec<u32> = bytes
            .rchunks(4)
            .map(|word| {
                word.iter()
                    .fold(0, |made, byte| made << 8 | u32::from(*byte))
            })
            .collect();
        Self::of_words(&words)
    }

    /// Seeded by a number.
    pub(crate) fn of_number(seed: u128) -> Self {
        let words: Vec<u32> = (0..4).map(|at| (seed >> (32 * at)) as u32).collect();
        Self::of_words(&words)
    }

    /// The reference implementation's `init_by_array`, without the zeros at the number's high end.
    fn of_words(words: &[u32]) -> Self {
        let used = words
            .iter()
            .rposition(|word| *word != 0)
            .map_or(1, |at| at + 1);
        let key = words.get(..used).unwrap_or(&[0]);
        let mut state = [0_u32; SIZE];
        state[0] = 19_650_218;
        for at in 1..SIZE {
            let before = state[at - 1];
            state[at] = 1_812_433_253_u32
                .wrapping_mul(before ^ (before >> 30))
                .wrapping_add(at as u32);
        }
        let mix = |before: u32, factor: u32| (before ^ (before >> 30)).wrapping_mul(factor);
        let (mut at, mut in_key) = (1, 0);
        for _ in 0..SIZE.max(key.len()) {
            state[at] = (state[at] ^ mix(state[at - 1], 1_664_525))
                .wrapping_add(key[in_key])
                .wrapping_add(in_key as u32);
            at += 1;
            if at >= SIZE {
                state[0] = state[SIZE - 1];
                at = 1;
            }
            in_key = (in_key + 1) % key.len();
        }
        for _ in 1..SIZE {
            state[at] = (state[at] ^ mix(state[at - 1], 1_566_083_941)).wrapping_sub(at as u32);
            at += 1;
            if at >= SIZE {
                state[0] = state[SIZE - 1];
                at = 1;
            }
        }
        state[0] = 0x8000_0000;
        Self { state, next: SIZE }
    }

    fn word(&mut self) -> u32 {
        if self.next >= SIZE {
            for at in 0..SIZE {
                let joined =
                    (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % SIZE] & 0x7fff_ffff);
                let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
                self.state[at] = self.state[(at + MIDDLE) % SIZE] ^ (joined >> 1) ^ twist;
            }
            self.next = 0;
        }
        let mut word = self.state[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn bits(&mut self, count: u32) -> u64 {
        if count <= 32 {
            return u64::from(self.word() >> (32 - count));
        }
        let low = u64::from(self.word());
        low | u64::from(self.word() >> (64 - count)) << 32
    }

    /// A number from 0 below `limit`, which is above 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        let count = u64::BITS - limit.leading_zeros();
        loop {
            let number = self.bits(count);
            if number < limit {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `random.Random(seed).randrange(n)` of Python 3.
    #[test]
    fn numbers_are_pythons() {
        assert_eq!(Mersenne::of_text("a").below(100), 34);
        assert_eq!(Mersenne::of_text("foo").below(100), 58);
        assert_eq!(Mersenne::of_text("web1").below(60), 52);
        assert_eq!(Mersenne::of_number(5).below(100), 79);
        assert_eq!(Mersenne::of_text("inventory").below(1_000_000), 396_318);
    }
}
