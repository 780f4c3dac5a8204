use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};

/// Permissions as a playbook writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `"0644"`, `"0o644"`, `"644"`: the bits themselves, `0o7777` at most.
    Octal(u32),
    /// `u=rw,g=r,o=r`, `a+x`, `u+s,g-w`: a change to the bits that are there.
    Symbolic(Vec<Clause>),
    /// `preserve`: as the source has it.
    Preserve,
}

/// One clause of a symbolic mode: for whom, how, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clause {
    /// Mask of the classes that it is for: `0o4700` user, `0o2070` group, `0o1007` other.
    who: u32,
    how: How,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Add,
    Remove,
    Set,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct What {
    /// `rwx` as three bits.
    bits: u32,
    /// `X`: execute only for directories and for what somebody may execute already.
    execute_if_sensible: bool,
    /// `s` and `t`.
    set_id: bool,
    sticky: bool,
    /// `u`, `g` or `o`: copied from that class; its shift.
    copy_of: Option<u32>,
}

impl Mode {
    /// Reads a mode from its spelling.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "preserve" {
            return Ok(Self::Preserve);
        }
        let digits = text.strip_prefix("0o").unwrap_or(text);
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            return match u32::from_str_radix(digits, 8) {
                Ok(bits) if bits <= 0o7777 => Ok(Self::Octal(bits)),
                _ => Err(format!(
                    "`{text}` is not an octal mode: up to four digits from 0 to 7, such as \"0644\""
                )),
            };
        }
        text.split(',')
            .map(clauses)
            .collect::<Option<Vec<_>>>()
            .filter(|all| all.iter().all(|one| !one.is_empty()))
            .map(|all| Self::Symbolic(all.concat()))
            .ok_or_else(|| format!("`{text}` is not a mode: write octal digits such as \"0644\", or symbols such as \"u=rw,g=r,o=r\""))
    }

    /// The bits that result where `current` bits are there now.
    #[must_use]
    pub fn resolve(&self, current: u32, directory: bool) -> u32 {
        match self {
            Self::Octal(bits) => *bits,
            Self::Preserve => current,
            Self::Symbolic(clauses) => clauses
                .iter()
                .fold(current, |mode, clause| clause.apply(mode, directory)),
        }
    }
}

fn clauses(text: &str) -> Option<Vec<Clause>> {
    let start = text.find(['+', '-', '='])?;
    let mut who = 0;
    for class in text[..start].chars() {
        who |= match class {
            'u' => 0o4700,
            'g' => 0o2070,
            'o' => 0o1007,
            'a' => 0o7777,
            _ => return None,
        };
    }
    if who == 0 {
        who = 0o7777;
    }
    let mut found = Vec::new();
    let mut rest = &text[start..];
    while let Some(how) = rest.chars().next() {
        let how = match how {
            '+' => How::Add,
            '-' => How::Remove,
            '=' => How::Set,
            _ => return None,
        };
        rest = &rest[1..];
        let end = rest.find(['+', '-', '=']).unwrap_or(rest.len());
        let mut what = What {
            bits: 0,
            execute_if_sensible: false,
            set_id: false,
            sticky: false,
            copy_of: None,
        };
        for symbol in rest[..end].chars() {
            match symbol {
                'r' => what.bits |= 4,
                'w' => what.bits |= 2,
                'x' => what.bits |= 1,
                'X' => what.execute_if_sensible = true,
                's' => what.set_id = true,
                't' => what.sticky = true,
                'u' if end == 1 => what.copy_of = Some(6),
                'g' if end == 1 => what.copy_of = Some(3),
                'o' if end == 1 => what.copy_of = Some(0),
                _ => return None,
            }
        }
        found.push(Clause { who, how, what });
        rest = &rest[end..];
    }
    Some(found)
}

impl Clause {
    fn apply(self, mode: u32, directory: bool) -> u32 {
        let What {
            mut bits,
            execute_if_sensible,
            set_id,
            sticky,
            copy_of,
        } = self.what;
        if let Some(shift) = copy_of {
            bits = mode >> shift & 7;
        }
        if execute_if_sensible && (directory || mode & 0o111 != 0) {
            bits |= 1;
        }
        let mut wanted = bits << 6 | bits << 3 | bits;
        if set_id {
            wanted |= 0o6000;
        }
        if sticky {
            wanted |= 0o1000;
        }
        let wanted = wanted & self.who;
        match self.how {
            How::Add => mode | wanted,
            How::Remove => mode & !wanted,
            // As chmod(1): a directory's setuid and setgid bits stay unless they are named.
            How::Set if directory => mode & !(self.who & !0o6000) | wanted,
            How::Set => mode & !self.who | wanted,
        }
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Spelling;
        impl Visitor<'_> for Spelling {
            type Value = Mode;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mode: a quoted octal number such as \"0644\", or \"u=rw,g=r,o=r\"")
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Mode, E> {
                Mode::parse(value).map_err(E::custom)
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Mode, E> {
                Err(E::custom(format!(
                    "the mode is the number {value} (octal {value:04o}): write it in quotes with a leading zero, such as \"0644\""
                )))
            }
        }
        from.deserialize_any(Spelling)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    fn resolved(text: &str, current: u32, directory: bool) -> u32 {
        Mode::parse(text).unwrap().resolve(current, directory)
    }

    #[test]
    fn octal_spellings_mean_their_bits() {
        for text in ["0644", "644", "0o644", "00644"] {
            assert_eq!(Mode::parse(text), Ok(Mode::Octal(0o644)), "{text}");
        }
        assert_eq!(Mode::parse("4755"), Ok(Mode::Octal(0o4755)));
        for wrong in [
            "0888",
            "77777",
            "rw",
            "",
            "u",
            "u=q",
            "u=rw,,g=r",
            "z+x",
            "0644 x",
        ] {
            assert!(Mode::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn symbols_change_the_bits_that_are_there() {
        assert_eq!(resolved("u=rw,g=r,o=r", 0o777, false), 0o644);
        assert_eq!(resolved("a+x", 0o644, false), 0o755);
        assert_eq!(resolved("+x", 0o644, false), 0o755);
        assert_eq!(resolved("go-rwx", 0o755, false), 0o700);
        assert_eq!(resolved("u+s,o+t", 0o755, false), 0o5755);
        assert_eq!(resolved("g=u", 0o740, false), 0o770);
        assert_eq!(resolved("a=rX", 0o600, false), 0o444);
        assert_eq!(resolved("a=rX", 0o700, true), 0o555);
        assert_eq!(resolved("u=rwx,g=rx,o=", 0o2755, true), 0o2750);
        assert_eq!(resolved("u+r-x", 0o100, false), 0o400);
        assert_eq!(resolved("preserve", 0o640, false), 0o640);
    }

    #[test]
    fn a_number_is_refused_with_its_cause() {
        let refused = from_value::<Mode>(json!(420)).unwrap_err().to_string();
        assert!(
            refused.contains("420") && refused.contains("\"0644\""),
            "{refused}"
        );
    }
}
