//! The host's databases of users and groups, as `useradd` and its family see them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fleet_wire::AccountLine;

use crate::host::{Fault, Host};

/// The fields of a line.
pub(super) type Fields = Vec<String>;

/// One database: lines of fields with colons between them, the first one the name.
#[derive(Debug)]
pub(super) struct Database {
    path: &'static str,
    before: Vec<String>,
    lines: Vec<String>,
}

impl Database {
    /// None where the host has none of this kind.
    fn read(host: &Host, path: &'static str) -> Result<Option<Self>, Fault> {
        Ok(host.accounts(path)?.map(|lines| Self {
            path,
            before: lines.clone(),
            lines,
        }))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = Fields> + '_ {
        self.lines
            .iter()
            .map(|line| line.split(':').map(str::to_owned).collect())
    }

    pub(super) fn find(&self, name: &str) -> Option<Fields> {
        self.all().find(|fields| fields[0] == name)
    }

    pub(super) fn set(&mut self, fields: &[String]) {
        let line = fields.join(":");
        match at(&self.lines, &fields[0]) {
            Some(at) => self.lines[at] = line,
            None => self.lines.push(line),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(at) = at(&self.lines, name) {
            self.lines.remove(at);
        }
    }

    fn changes(&self) -> Vec<AccountLine> {
        let names: BTreeSet<&str> = self
            .before
            .iter()
            .chain(&self.lines)
            .map(|line| name_of(line))
            .collect();
        let line = |lines: &[String], name: &str| at(lines, name).map(|at| lines[at].clone());
        let lines = names.into_iter().map(|name| AccountLine {
            path: self.path.to_owned(),
            before: line(&self.before, name),
            after: line(&self.lines, name),
        });
        lines.filter(|line| line.before != line.after).collect()
    }
}

fn at(lines: &[String], name: &str) -> Option<usize> {
    lines.iter().position(|line| name_of(line) == name)
}

fn name_of(line: &str) -> &str {
    line.split(':').next().unwrap_or_default()
}

/// All of them. The changes that are made here are written at once by [`Accounts::commit`].
#[derive(Debug)]
pub(super) struct Accounts {
    pub(super) passwd: Database,
    pub(super) group: Database,
    pub(super) shadow: Option<Database>,
    pub(super) gshadow: Option<Database>,
    subuid: Option<Database>,
    subgid: Option<Database>,
    /// `/etc/login.defs`.
    defs: BTreeMap<String, String>,
}

/// What numbers are handed out.
pub(super) struct Range {
    min: u32,
    max: u32,
    /// From above, as system accounts are.
    down: bool,
}

impl Accounts {
    pub(super) fn read(host: &Host) -> Result<Self, Fault> {
        let needed = |path| {
            Database::read(host, path)?.ok_or_else(|| {
                Fault::new(format!(
                    "this host has no {path}: its accounts are kept elsewhere"
                ))
            })
        };
        let defs = host.read(Path::new("/etc/login.defs"))?.unwrap_or_default();
        let optional = |path| {
            // An unreadable one is as good as none to whom may not change it anyway.
            match rustix::process::geteuid().is_root() {
                true => Database::read(host, path),
                false => Ok(None),
            }
        };
        Ok(Self {
            passwd: needed("/etc/passwd")?,
            group: needed("/etc/group")?,
            shadow: optional("/etc/shadow")?,
            gshadow: optional("/etc/gshadow")?,
            subuid: optional("/etc/subuid")?,
            subgid: optional("/etc/subgid")?,
            defs: definitions(&String::from_utf8_lossy(&defs)),
        })
    }

    /// A number of `/etc/login.defs`.
    pub(super) fn def(&self, name: &str, default: u32) -> u32 {
        let text = self.defs.get(name).map(String::as_str);
        text.and_then(|text| text.parse().ok()).unwrap_or(default)
    }

    /// A mode of `/etc/login.defs`, which is octal.
    pub(super) fn def_mode(&self, name: &str) -> Option<u32> {
        let text = self.defs.get(name)?;
        u32::from_str_radix(text, 8).ok()
    }

    pub(super) fn def_is(&self, name: &str, value: &str) -> bool {
        self.defs.get(name).is_some_and(|text| text == value)
    }

    fn ids(&self, kind: &str, system: bool, min: Option<u32>, max: Option<u32>) -> Range {
        let lowest = self.def(&format!("{kind}_MIN"), 1000);
        let (default_min, default_max) = match system {
            true => (
                self.def(&format!("SYS_{kind}_MIN"), 101),
                self.def(&format!("SYS_{kind}_MAX"), lowest.saturating_sub(1)),
            ),
            false => (lowest, self.def(&format!("{kind}_MAX"), 60000)),
        };
        Range {
            min: min.unwrap_or(default_min),
            max: max.unwrap_or(default_max),
            down: system,
        }
    }

    /// The next number for a user.
    pub(super) fn next_uid(
        &self,
        system: bool,
        min: Option<u32>,
        max: Option<u32>,
    ) -> Result<u32, Fault> {
        self.ids("UID", system, min, max)
            .next(&numbers(&self.passwd))
            .ok_or_else(|| {
                Fault::new(
                    "no number for a user is free between UID_MIN and UID_MAX of /etc/login.defs",
                )
            })
    }

    /// The next number for a group; the wanted one where it is free.
    pub(super) fn next_gid(
        &self,
        wanted: Option<u32>,
        system: bool,
        min: Option<u32>,
        max: Option<u32>,
    ) -> Result<u32, Fault> {
        let used = numbers(&self.group);
        if let Some(wanted) = wanted.filter(|wanted| !used.contains(wanted)) {
            return Ok(wanted);
        }
        self.ids("GID", system, min, max)
            .next(&used)
            .ok_or_else(|| {
                Fault::new(
                    "no number for a group is free between GID_MIN and GID_MAX of /etc/login.defs",
                )
            })
    }

    /// A group by its name or its number.
    pub(super) fn find_group(&self, group: &str) -> Option<Fields> {
        let by_number = || {
            group.parse::<u32>().ok()?;
            self.group
                .all()
                .find(|fields| fields.get(2).is_some_and(|gid| gid == group))
        };
        self.group.find(group).or_else(by_number)
    }

    /// Adds a group without members.
    pub(super) fn add_group(&mut self, name: &str, gid: u32) {
        let gid = gid.to_string();
        self.group.set(&[name, "x", &gid, ""].map(str::to_owned));
        if let Some(gshadow) = &mut self.gshadow {
            gshadow.set(&[name, "!", "", ""].map(str::to_owned));
        }
    }

    pub(super) fn remove_group(&mut self, name: &str) {
        self.group.remove(name);
        if let Some(gshadow) = &mut self.gshadow {
            gshadow.remove(name);
        }
    }

    /// The names of the groups that list a user as their member.
    pub(super) fn memberships(&self, user: &str) -> BTreeSet<String> {
        let has = |fields: &Fields| {
            let members = fields.get(3).map(String::as_str).unwrap_or_default();
            members.split(',').any(|member| member == user)
        };
        self.group
            .all()
            .filter(has)
            .map(|fields| fields[0].clone())
            .collect()
    }

    /// Makes a user a member of a group, or no member any more.
    pub(super) fn set_member(&mut self, group: &str, user: &str, member: bool) {
        let shadow = self.gshadow.iter_mut();
        for database in std::iter::once(&mut self.group).chain(shadow) {
            if let Some(mut fields) = database.find(group)
                && fields.len() >= 4
            {
                let members = fields[3]
                    .split(',')
                    .filter(|name| !name.is_empty() && *name != user);
                let own = member.then_some(user);
                fields[3] = members.chain(own).collect::<Vec<_>>().join(",");
                // A member that was there already keeps its place.
                let same = |a: &Fields, b: &str| a[3].split(',').count() == b.split(',').count();
                match database.find(group) {
                    Some(old)
                        if member
                            && same(&old, &fields[3])
                            && old[3].split(',').any(|name| name == user) => {}
                    _ => database.set(&fields),
                }
            }
        }
    }

    /// Gives a user the next free ranges of numbers for name spaces, as far as the host hands any out.
    pub(super) fn add_subordinates(&mut self, user: &str, uid: u32) {
        let ordinary = (self.def("UID_MIN", 1000)..=self.def("UID_MAX", 60000)).contains(&uid);
        if !ordinary {
            return;
        }
        for (kind, database) in [("UID", &mut self.subuid), ("GID", &mut self.subgid)] {
            let number = |name: &str, default: u64| {
                let text = self.defs.get(name).and_then(|text| text.parse().ok());
                text.unwrap_or(default)
            };
            let count = number(&format!("SUB_{kind}_COUNT"), 65536);
            let (min, max) = (
                number(&format!("SUB_{kind}_MIN"), 100_000),
                number(&format!("SUB_{kind}_MAX"), 600_100_000),
            );
            let Some(database) = database
                .as_mut()
                .filter(|known| count > 0 && known.find(user).is_none())
            else {
                continue;
            };
            let mut taken: Vec<(u64, u64)> = database
                .all()
                .filter_map(|fields| {
                    Some((fields.get(1)?.parse().ok()?, fields.get(2)?.parse().ok()?))
                })
                .collect();
            taken.sort_unstable();
            let mut low = min;
            for (start, length) in taken {
                if start >= low + count {
                    break;
                }
                low = low.max(start + length);
            }
            if low + count - 1 <= max {
                database.set(&[user.to_owned(), low.to_string(), count.to_string()]);
            }
        }
    }

    pub(super) fn remove_subordinates(&mut self, user: &str) {
        for database in [&mut self.subuid, &mut self.subgid].into_iter().flatten() {
            database.remove(user);
        }
    }

    /// Writes all changes as one effect; true where there are any.
    pub(super) fn commit(self, host: &mut Host, account: &str) -> Result<bool, Fault> {
        let optional = [&self.shadow, &self.gshadow, &self.subuid, &self.subgid];
        let all = [&self.group, &self.passwd]
            .into_iter()
            .chain(optional.into_iter().flatten());
        let lines = all.flat_map(Database::changes).collect();
        host.set_account(account, lines)
    }
}

impl Range {
    /// The one behind the last that is in use, else the first free one.
    fn next(&self, used: &BTreeSet<u32>) -> Option<u32> {
        let mut own = used.range(self.min..=self.max.max(self.min));
        let next = match self.down {
            true => own
                .next()
                .map_or(Some(self.max), |lowest| lowest.checked_sub(1)),
            false => own
                .next_back()
                .map_or(Some(self.min), |highest| highest.checked_add(1)),
        };
        let mut all = self.min..=self.max;
        let free = |id: &u32| !used.contains(id);
        next.filter(|next| all.contains(next))
            .or_else(|| match self.down {
                true => all.rev().find(free),
                false => all.find(free),
            })
    }
}

fn numbers(database: &Database) -> BTreeSet<u32> {
    database
        .all()
        .filter_map(|fields| fields.get(2)?.parse().ok())
        .collect()
}

/// Names and values of a file as `/etc/login.defs`.
pub(super) fn definitions(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split(|c: char| c.is_whitespace() || c == '=');
            let name = words
                .next()
                .filter(|name| !name.is_empty() && !name.starts_with('#'))?;
            let value: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            Some((
                name.to_owned(),
                value.join(" ").trim_matches('"').to_owned(),
            ))
        })
        .collect()
}

/// Whether a name is one that the tools of the host take for a user or a group.
pub(super) fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "_-.$@\\+".contains(c);
    !name.is_empty()
        && name.len() <= 256
        && !name.starts_with('-')
        && name.chars().all(plain)
        && !name.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(path: &'static str, lines: &[&str]) -> Database {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        Database {
            path,
            before: lines.clone(),
            lines,
        }
    }

    fn accounts(passwd: &[&str], group: &[&str]) -> Accounts {
        Accounts {
            passwd: database("/etc/passwd", passwd),
            group: database("/etc/group", group),
            shadow: None,
            gshadow: Some(database("/etc/gshadow", &["sudo:*::bob"])),
            subuid: Some(database(
                "/etc/subuid",
                &["bob:100000:65536", "eve:300000:65536"],
            )),
            subgid: None,
            defs: definitions("# none\nUID_MIN\t\t 1000\nUMASK 022\n"),
        }
    }

    #[test]
    fn numbers_are_handed_out_as_useradd_does() {
        let known = accounts(
            &[
                "root:x:0:0",
                "daemon:x:999:999",
                "ann:x:1000:1000",
                "bob:x:1004:1004",
                "nobody:x:65534:65534",
            ],
            &["root:x:0:", "ann:x:1000:"],
        );
        assert_eq!(known.next_uid(false, None, None).unwrap(), 1005);
        assert_eq!(known.next_uid(true, None, None).unwrap(), 998);
        assert_eq!(known.next_uid(false, Some(2000), Some(2010)).unwrap(), 2000);
        assert_eq!(known.next_gid(Some(1005), false, None, None).unwrap(), 1005);
        assert_eq!(known.next_gid(Some(1000), false, None, None).unwrap(), 1001);
        // Where the lowest is taken the first free one from above is next.
        let full = accounts(&["a:x:101:1", "b:x:999:1"], &[]);
        assert_eq!(full.next_uid(true, None, None).unwrap(), 998);
        let last = accounts(&["a:x:60000:1"], &[]);
        assert_eq!(last.next_uid(false, None, None).unwrap(), 1000);
    }

    #[test]
    fn members_come_and_go_in_both_databases() {
        let mut known = accounts(&[], &["sudo:x:27:bob", "adm:x:4:ann,bob"]);
        known.set_member("sudo", "ann", true);
        known.set_member("sudo", "bob", true);
        known.set_member("adm", "ann", false);
        let changes = [&known.group, known.gshadow.as_ref().unwrap()];
        let after: Vec<_> = changes
            .iter()
            .flat_map(|database| database.changes())
            .map(|line| line.after.unwrap())
            .collect();
        assert_eq!(
            after,
            ["adm:x:4:bob", "sudo:x:27:bob,ann", "sudo:*::bob,ann"]
        );
        assert_eq!(known.memberships("bob").len(), 2);
    }

    #[test]
    fn subordinate_numbers_fill_the_first_gap() {
        let mut known = accounts(&[], &[]);
        known.add_subordinates("ann", 1001);
        known.add_subordinates("sys", 998);
        let lines = &known.subuid.as_ref().unwrap().lines;
        assert_eq!(lines[2], "ann:165536:65536");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn names_are_told_from_numbers() {
        assert!(is_name("www-data") && is_name("Ünal") && is_name("a.b"));
        assert!(
            !is_name("1000")
                && !is_name("-x")
                && !is_name("a:b")
                && !is_name("a b")
                && !is_name("")
        );
    }
}
