//! What a file system keeps of a file beside mode and owners: the attributes of `chattr`, and SELinux labels.

use std::path::Path;

use fleet_wire::SettingKind;

use crate::host::{Fault, Host, Setting};

/// The attributes and the label that are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Labels<'a> {
    pub(super) attributes: Option<&'a str>,
    pub(super) user: Option<&'a str>,
    pub(super) role: Option<&'a str>,
    pub(super) kind: Option<&'a str>,
    pub(super) level: Option<&'a str>,
}

impl Labels<'_> {
    /// Sets what is not as asked for; true where something was.
    pub(super) fn set(&self, host: &mut Host, path: &Path) -> Result<bool, Fault> {
        let flags = match self.attributes {
            Some(wanted) if !wanted.is_empty() => set_flags(host, path, wanted)?,
            _ => false,
        };
        Ok(self.label(host, path)? || flags)
    }

    fn label(&self, host: &mut Host, path: &Path) -> Result<bool, Fault> {
        let wanted = [self.user, self.role, self.kind, self.level];
        if wanted.iter().all(Option::is_none) || !Path::new("/sys/fs/selinux/enforce").exists() {
            return Ok(false);
        }
        let name = path.to_string_lossy().into_owned();
        let usual = || {
            let output = host.probe(&["matchpathcon", "-n", &name]);
            output.map(|output| output.text()).unwrap_or_default()
        };
        let is = host.setting(SettingKind::Label, &name)?;
        let usual = if is.is_empty() || wanted.contains(&Some("_default")) {
            usual()
        } else {
            String::new()
        };
        // The level may hold colons of its own.
        let parts = |label: &str| -> Vec<String> {
            label.trim().splitn(4, ':').map(str::to_owned).collect()
        };
        let usual = parts(&usual);
        let mut label = parts(&is);
        if is.is_empty() {
            label.clone_from(&usual);
        }
        for (at, part) in wanted.into_iter().enumerate() {
            let part = match part {
                Some("_default") => usual.get(at).cloned(),
                other => other.map(str::to_owned),
            };
            if let (Some(part), Some(place)) = (part, label.get_mut(at)) {
                *place = part;
            }
        }
        let (kind, value) = (SettingKind::Label, label.join(":"));
        host.set(Setting { kind, name, value })
    }
}

fn set_flags(host: &mut Host, path: &Path, wanted: &str) -> Result<bool, Fault> {
    let (kind, name) = (SettingKind::Attributes, path.to_string_lossy().into_owned());
    let is = host.setting(kind, &name)?;
    let value = changed(&is, wanted);
    host.set(Setting { kind, name, value })
}

/// The letters that result from a change: `+i`, `-i`, or `=ie` (the sign may be left out).
fn changed(is: &str, wanted: &str) -> String {
    let (how, letters) = match wanted.chars().next() {
        Some(how @ ('+' | '-' | '=')) => (how, &wanted[1..]),
        _ => ('=', wanted),
    };
    match how {
        '-' => is.chars().filter(|it| !letters.contains(*it)).collect(),
        '+' => {
            let more = letters.chars().filter(|it| !is.contains(*it));
            is.chars().chain(more).collect()
        }
        // What is there already keeps its order: the same letters are no change.
        _ => {
            let kept = is.chars().filter(|it| letters.contains(*it));
            kept.chain(letters.chars().filter(|it| !is.contains(*it)))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::changed;

    #[test]
    fn letters_are_added_taken_away_or_set() {
        for (is, wanted, becomes) in [
            ("e", "+A", "eA"),
            ("Ae", "+A", "Ae"),
            ("Ae", "-A", "e"),
            ("Ae", "=eA", "Ae"),
            ("e", "A", "A"),
        ] {
            assert_eq!(changed(is, wanted), becomes, "{is} {wanted}");
        }
    }
}
