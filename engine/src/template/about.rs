//! What a template knows of itself: `ansible_managed`, `template_path` and their like.

use std::{collections::BTreeMap, path::Path};

use minijinja::Value;

use crate::{playbook::files, sources};

/// The variables of the template that is named `written` and lies at `path`. `managed` is the setting `ansible_managed`:
/// `{file}`, `{host}` and `{uid}` in it stand for the template's own, and what `strftime` knows for its last change.
pub(crate) fn about(written: &str, path: &Path, managed: &str) -> BTreeMap<String, Value> {
    let full = files::absolute(path).display().to_string();
    let (host, owner) = (hostname(), owner(path));
    let changed = changed_at(path);
    let shown = managed
        .replace("{file}", written)
        .replace("{host}", &host)
        .replace("{uid}", &owner);
    let zone = jiff::tz::TimeZone::system();
    let shown = match changed {
        Some(time) if shown.contains('%') => {
            jiff::fmt::strtime::format(&shown, &jiff::ZonedDateTime::new(time, zone))
                .unwrap_or(shown)
        }
        _ => shown,
    };
    let now = jiff::Timestamp::from_second(sources::now() as i64).unwrap_or_default();
    [
        ("ansible_managed", shown),
        ("template_path", written.to_owned()),
        ("template_fullpath", full),
        ("template_host", host),
        ("template_uid", owner),
        (
            "template_mtime",
            changed.map(written_at).unwrap_or_default(),
        ),
        ("template_run_date", written_at(now)),
    ]
    .map(|(name, value)| (name.to_owned(), Value::from(value)))
    .into()
}

/// The controller's name, as templates may show it.
fn hostname() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_default()
}

/// The owner of a template: the name, or the number where it has none.
fn owner(path: &Path) -> String {
    let Ok(about) = sources::about(path) else {
        return String::new();
    };
    let number = about.uid.to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    name.unwrap_or(number)
}

fn changed_at(path: &Path) -> Option<jiff::Timestamp> {
    let about = sources::about(path).ok()?;
    jiff::Timestamp::from_nanosecond(about.modified_ns.into()).ok()
}

/// As Python prints a time without a zone.
fn written_at(time: jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S.%f").to_string()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::about;

    #[test]
    fn a_template_tells_what_manages_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.j2");
        std::fs::write(&path, "x").unwrap();
        let managed = |setting: &str, path: &Path| {
            about("a.j2", path, setting)["ansible_managed"].to_string()
        };
        assert_eq!(managed("Ansible managed", &path), "Ansible managed");
        let shown = managed("by {file} of %Y", &path);
        assert!(shown.starts_with("by a.j2 of 20"), "{shown}");
        // Without a file there is no time to tell.
        assert_eq!(managed("of %Y", Path::new("/no/such")), "of %Y");
    }
}
