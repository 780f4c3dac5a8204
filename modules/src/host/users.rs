use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::PathBuf;

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::{Fault, process};

/// A user of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The number.
    pub uid: u32,
    /// The first group's number.
    pub gid: u32,
    /// The home directory.
    pub home: PathBuf,
    /// The login shell.
    pub shell: PathBuf,
}

/// The host's users and groups, read once for a task.
#[derive(Debug, Default)]
pub(super) struct Names {
    users: OnceCell<Vec<User>>,
    groups: OnceCell<Vec<Group>>,
    /// What `getent` said of names and numbers that the files do not have.
    asked: std::cell::RefCell<BTreeMap<(&'static str, String), Option<String>>>,
}

#[derive(Clone, Debug)]
struct Group {
    name: String,
    gid: u32,
    members: Vec<String>,
}

impl Names {
    /// The users and groups of these databases; none to read the machine's own when they are needed.
    pub(super) fn of(passwd: Option<Vec<u8>>, group: Option<Vec<u8>>) -> Self {
        let names = Self::default();
        if let Some(passwd) = passwd {
            // The cell is new.
            let _ = names.users.set(parsed(&passwd, user_of));
        }
        if let Some(group) = group {
            let _ = names.groups.set(parsed(&group, group_of));
        }
        names
    }

    pub(super) fn user(&self, name_or_number: &str) -> Option<User> {
        let number = name_or_number.parse().ok();
        let known = self.users.get_or_init(|| lines("/etc/passwd", user_of));
        let by_name = known.iter().find(|user| user.name == name_or_number);
        by_name
            .or_else(|| known.iter().find(|user| Some(user.uid) == number))
            .cloned()
            .or_else(|| {
                self.ask("passwd", name_or_number)
                    .as_deref()
                    .and_then(user_of)
            })
    }

    fn group(&self, name_or_number: &str) -> Option<Group> {
        let number = name_or_number.parse().ok();
        let known = self.groups.get_or_init(|| lines("/etc/group", group_of));
        let by_name = known.iter().find(|group| group.name == name_or_number);
        by_name
            .or_else(|| known.iter().find(|group| Some(group.gid) == number))
            .cloned()
            .or_else(|| {
                self.ask("group", name_or_number)
                    .as_deref()
                    .and_then(group_of)
            })
    }

    /// The user's name, or the number where it has none.
    pub(super) fn user_name(&self, uid: u32) -> String {
        let number = uid.to_string();
        self.user(&number).map_or(number, |user| user.name)
    }

    /// The group's name, or the number where it has none.
    pub(super) fn group_name(&self, gid: u32) -> String {
        let number = gid.to_string();
        self.group(&number).map_or(number, |group| group.name)
    }

    /// A user's number; a number needs no user.
    pub(super) fn uid(&self, owner: &str) -> Option<u32> {
        self.user(owner)
            .map(|user| user.uid)
            .or_else(|| owner.parse().ok())
    }

    /// A group's number; a number needs no group.
    pub(super) fn gid(&self, group: &str) -> Option<u32> {
        self.group(group)
            .map(|group| group.gid)
            .or_else(|| group.parse().ok())
    }

    /// Whom a user's processes and file accesses act as.
    pub(super) fn identity(&self, user: &User) -> Identity {
        let known = self.groups.get_or_init(|| lines("/etc/group", group_of));
        let mut groups: Vec<u32> = known
            .iter()
            .filter(|group| group.members.contains(&user.name))
            .map(|group| group.gid)
            .collect();
        if !groups.contains(&user.gid) {
            groups.push(user.gid);
        }
        Identity {
            uid: user.uid,
            gid: user.gid,
            groups,
        }
    }

    fn ask(&self, database: &'static str, key: &str) -> Option<String> {
        // An option in its place would be read as one.
        if key.is_empty() || key.starts_with('-') {
            return None;
        }
        let slot = (database, key.to_owned());
        if let Some(answer) = self.asked.borrow().get(&slot) {
            return answer.clone();
        }
        let answer = process::read_only(&["getent", database, key])
            .ok()
            .filter(process::Output::ok)
            .map(|output| output.text());
        self.asked.borrow_mut().insert(slot, answer.clone());
        answer
    }
}

/// A user's number and groups: what the kernel judges by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Identity {
    /// Turns the calling thread, and it alone, into this user, for good.
    pub(super) fn assume(&self) -> io::Result<()> {
        let groups: Vec<Gid> = self.groups.iter().map(|gid| Gid::from_raw(*gid)).collect();
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        set_thread_groups(&groups)?;
        set_thread_res_gid(gid, gid, gid)?;
        set_thread_res_uid(uid, uid, uid)?;
        Ok(())
    }
}

/// Does something on the file system as a user: in a thread that is thrown away, so that nothing can act as the wrong one.
pub(super) fn acting<T: Send>(
    identity: Option<&Identity>,
    act: impl FnOnce() -> T + Send,
) -> Result<T, Fault> {
    let Some(identity) = identity else {
        return Ok(act());
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| identity.assume().map(|()| act()));
        match thread.join() {
            Ok(done) => done.map_err(|error| {
                Fault::new(format!(
                    "cannot act as the user with the number {}: {error}",
                    identity.uid
                ))
            }),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn lines<T>(path: &str, parse: fn(&str) -> Option<T>) -> Vec<T> {
    parsed(&fs::read(path).unwrap_or_default(), parse)
}

fn parsed<T>(text: &[u8], parse: fn(&str) -> Option<T>) -> Vec<T> {
    String::from_utf8_lossy(text)
        .lines()
        .filter_map(parse)
        .collect()
}

fn user_of(line: &str) -> Option<User> {
    let mut fields = line.trim_end().split(':');
    let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    let home = fields.nth(1).unwrap_or("/").into();
    let shell = fields
        .next()
        .filter(|shell| !shell.is_empty())
        .unwrap_or("/bin/sh")
        .into();
    Some(User {
        name,
        uid,
        gid,
        home,
        shell,
    })
}

fn group_of(line: &str) -> Option<Group> {
    let mut fields = line.trim_end().split(':');
    let name = fields.next().filter(|name| !name.is_empty())?.to_owned();
    let gid = fields.nth(1)?.parse().ok()?;
    let members = fields.next().unwrap_or_default();
    let members = members
        .split(',')
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    Some(Group { name, gid, members })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_databases_are_read() {
        let user = user_of("www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin\n").unwrap();
        assert_eq!(
            (user.uid, user.gid, user.home, user.shell),
            (33, 33, "/var/www".into(), "/usr/sbin/nologin".into())
        );
        let group = group_of("adm:x:4:syslog,ops").unwrap();
        assert_eq!(
            (group.gid, group.members),
            (4, vec!["syslog".to_owned(), "ops".to_owned()])
        );
        assert!(user_of("+::::::").is_none());
    }

    #[test]
    fn names_and_numbers_lead_to_each_other() {
        let names = Names::default();
        assert_eq!(names.user_name(0), "root");
        assert_eq!(names.uid("daemon"), Some(1));
        assert_eq!(names.uid("1"), Some(1));
        assert_eq!(names.uid("987654"), Some(987_654));
        assert_eq!(names.user_name(987_654), "987654");
        assert_eq!(names.uid("no-such-user"), None);
        assert_eq!(names.gid("adm"), Some(4));
    }

    #[test]
    fn another_user_acts_in_a_thread_of_its_own() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let names = Names::default();
        let identity = names.identity(&names.user("nobody").unwrap());
        let seen = acting(Some(&identity), || {
            let own = rustix::process::geteuid().as_raw();
            (own, fs::read("/etc/shadow").is_err())
        });
        assert_eq!(seen.unwrap(), (65_534, true));
        assert!(rustix::process::geteuid().is_root());
    }
}
