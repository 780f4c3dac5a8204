//! The lines of fstab(5).

use crate::host::unescaped;

/// A file system of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) source: String,
    pub(super) path: String,
    pub(super) kind: String,
    pub(super) options: String,
    pub(super) dump: String,
    pub(super) pass: String,
}

/// The file with all that is in it.
pub(super) struct Fstab {
    lines: Vec<String>,
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let mut fields = line.split_whitespace().map(unescaped);
        let (source, path, kind) = (fields.next()?, fields.next()?, fields.next()?);
        let mut next = |default: &str| fields.next().unwrap_or_else(|| default.to_owned());
        Some(Self {
            source,
            path,
            kind,
            options: next("defaults"),
            dump: next("0"),
            pass: next("0"),
        })
    }

    fn text(&self) -> String {
        let fields = [
            &self.source,
            &self.path,
            &self.kind,
            &self.options,
            &self.dump,
            &self.pass,
        ];
        fields.map(|field| escaped(field)).join(" ")
    }

    /// What the kernel tells of it when it is mounted.
    pub(super) fn mounted(&self) -> String {
        [&self.source, &self.kind, &self.options]
            .map(|field| escaped(field))
            .join(" ")
    }
}

fn escaped(field: &str) -> String {
    field
        .replace('\\', "\\134")
        .replace(' ', "\\040")
        .replace('\t', "\\011")
}

impl Fstab {
    pub(super) fn parse(text: &str) -> Self {
        Self {
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        match self.lines.is_empty() {
            true => String::new(),
            false => self.lines.join("\n") + "\n",
        }
    }

    /// Brings the line of a mount point, or of a swap, to what is wanted.
    pub(super) fn set(&mut self, wanted: Line) {
        let same = |line: &Line| match wanted.path.as_str() {
            "none" | "swap" => line.path == wanted.path && line.source == wanted.source,
            path => line.path == path,
        };
        let mut found = false;
        for line in &mut self.lines {
            let Some(known) = Line::parse(line).filter(|line| same(line)) else {
                continue;
            };
            found = true;
            if known != wanted {
                *line = wanted.text();
            }
        }
        if !found {
            self.lines.push(wanted.text());
        }
    }

    /// Takes the lines of a mount point out; of a swap, those of its source.
    pub(super) fn remove(&mut self, path: &str, source: Option<&str>) {
        self.lines.retain(|line| {
            !Line::parse(line).is_some_and(|line| {
                line.path == path
                    && (!matches!(path, "none" | "swap")
                        || source.is_none_or(|source| source == line.source))
            })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_set_and_others_stay_as_they_are() {
        let text = "# comment\nUUID=1  /   ext4 errors=remount-ro  0 1\n/dev/sdb /mnt/a\\040b xfs\n/dev/s1 none swap sw 0 0\n";
        let mut fstab = Fstab::parse(text);
        let line = |source: &str, path: &str| Line {
            source: source.to_owned(),
            path: path.to_owned(),
            kind: "xfs".to_owned(),
            options: "defaults".to_owned(),
            dump: "0".to_owned(),
            pass: "0".to_owned(),
        };
        fstab.set(line("/dev/sdb", "/mnt/a b"));
        assert_eq!(fstab.text(), text);
        fstab.set(line("/dev/sdc", "/mnt/a b"));
        assert!(
            fstab
                .text()
                .contains("\n/dev/sdc /mnt/a\\040b xfs defaults 0 0\n")
        );
        fstab.set(line("/dev/s2", "none"));
        fstab.remove("none", Some("/dev/s1"));
        assert!(
            fstab
                .text()
                .ends_with("0 0\n/dev/s2 none xfs defaults 0 0\n")
        );
        fstab.remove("/", None);
        assert!(fstab.text().starts_with("# comment\n/dev/sdc"));
    }
}
