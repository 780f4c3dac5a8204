use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use self::home::Home;
use super::accounts::{Accounts, Fields, definitions, is_name};
use super::group::{State, id};
use crate::args::{Bool, List, Number, Text};
use crate::host::{Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

mod home;
mod keys;

pub(super) static MODULE: Module = Module::of::<User>();

/// Creates, changes and removes a user of the host's own databases, with groups, home directory, password and an SSH key.
///
/// What would be written is known in the plan, the user's number too, and an undo puts back the very lines and files.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct User {
    /// The user.
    name: Text,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// The user's number; the next free one where it is not given.
    uid: Option<Number>,
    /// The number may be another user's, too.
    #[serde(default)]
    non_unique: Bool,
    /// The first group, a name or a number; one of the user's own name where it is not given.
    group: Option<Text>,
    /// Further groups; an empty list takes the user out of all of them.
    groups: Option<List>,
    /// Add `groups` to those that the user has, and take the user out of none.
    #[serde(default)]
    append: Bool,
    /// Who it is: the comment field (GECOS).
    comment: Option<Text>,
    /// The login shell.
    shell: Option<Text>,
    /// The home directory.
    home: Option<Text>,
    /// Make the home directory where it is missing.
    #[serde(default = "yes")]
    create_home: Bool,
    /// Move the old home directory to `home` where they differ.
    #[serde(default)]
    move_home: Bool,
    /// What a new home directory is filled from; needs `create_home`.
    skeleton: Option<Text>,
    /// The umask that a new home directory is made with; needs `create_home`.
    umask: Option<Text>,
    /// A new user gets a number from the range for the system's own users.
    #[serde(default)]
    system: Bool,
    /// The password, already turned into what `/etc/shadow` holds (the filter `password_hash` does that).
    password: Option<Text>,
    /// `always` sets a password that differs, `on_create` only that of a new user.
    #[serde(default)]
    update_password: Update,
    /// Lock the password (a `!` before it), or unlock it.
    password_lock: Option<Bool>,
    /// Most days between changes of the password.
    password_expire_max: Option<Number>,
    /// Fewest days between changes of the password.
    password_expire_min: Option<Number>,
    /// Days of warning before a password expires.
    password_expire_warn: Option<Number>,
    /// Days after a password expired until the account is disabled.
    password_expire_account_disable: Option<Number>,
    /// When the account expires, in seconds since 1970; a negative number for never.
    expires: Option<Value>,
    /// Remove the home directory and the mail spool with the user.
    #[serde(default)]
    remove: Bool,
    /// Remove the user even if somebody is logged in as it.
    #[serde(default)]
    force: Bool,
    /// Make an SSH key for the user where it has none.
    #[serde(default)]
    generate_ssh_key: Bool,
    /// Bits of the key; as `ssh-keygen` chooses where it is not given.
    ssh_key_bits: Option<Number>,
    /// The key's comment; `ansible-generated on HOST` where it is not given.
    ssh_key_comment: Option<Text>,
    /// The key's file, in the home directory where it is not absolute; `.ssh/id_TYPE` where it is not given.
    ssh_key_file: Option<Text>,
    /// The key's passphrase.
    ssh_key_passphrase: Option<Text>,
    /// The kind of key.
    #[serde(default = "rsa")]
    ssh_key_type: Text,
    /// The lowest number to give; as `/etc/login.defs` says where it is not given.
    uid_min: Option<Number>,
    /// The highest number to give; as `/etc/login.defs` says where it is not given.
    uid_max: Option<Number>,
    /// Taken for Ansible's sake: the host's own databases are always the ones that are changed.
    #[serde(default)]
    local: Bool,
    /// Not for Linux without SELinux's own tools: refused.
    seuser: Option<Value>,
    /// Taken for Ansible's sake: only macOS has it.
    #[serde(default, rename = "hidden")]
    _hidden: Option<Value>,
    /// Taken for Ansible's sake: only FreeBSD, OpenBSD and NetBSD have it.
    #[serde(default, rename = "login_class")]
    _login_class: Option<Value>,
    /// Taken for Ansible's sake: only Solaris has it.
    #[serde(default, rename = "profile")]
    _profile: Option<Value>,
    /// Taken for Ansible's sake: only Solaris has it.
    #[serde(default, rename = "authorization")]
    _authorization: Option<Value>,
    /// Taken for Ansible's sake: only Solaris has it.
    #[serde(default, rename = "role")]
    _role: Option<Value>,
}

fn yes() -> Bool {
    Bool(true)
}

fn rsa() -> Text {
    "rsa".into()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "snake_case")]
enum Update {
    #[default]
    Always,
    OnCreate,
}

/// The fields of a line of `/etc/passwd`.
mod passwd {
    pub(super) const UID: usize = 2;
    pub(super) const GID: usize = 3;
    pub(super) const COMMENT: usize = 4;
    pub(super) const HOME: usize = 5;
    pub(super) const SHELL: usize = 6;
}

/// The fields of a line of `/etc/shadow`.
mod shadow {
    pub(super) const PASSWORD: usize = 1;
    pub(super) const CHANGED: usize = 2;
    pub(super) const MIN: usize = 3;
    pub(super) const MAX: usize = 4;
    pub(super) const WARN: usize = 5;
    pub(super) const INACTIVE: usize = 6;
    pub(super) const EXPIRES: usize = 7;
}

impl Task for User {
    const NAME: &'static str = "user";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("user", "name"), ("createhome", "create_home")];

    fn check(&self) -> Result<(), ArgumentError> {
        if !is_name(&self.name) {
            return Err(ArgumentError::of(
                "name",
                format!("`{}` cannot be the name of a user", self.name),
            ));
        }
        for (name, number) in [
            ("uid", self.uid),
            ("uid_min", self.uid_min),
            ("uid_max", self.uid_max),
        ] {
            id(name, number)?;
        }
        if *self.non_unique && self.uid.is_none() {
            return Err(ArgumentError::of("uid", "it is required with non_unique"));
        }
        if self.seuser.is_some() {
            return Err(ArgumentError::of(
                "seuser",
                "mapping to a user of SELinux is not supported: run `semanage login` by the module command",
            ));
        }
        if let Some(umask) = &self.umask
            && u32::from_str_radix(umask, 8).is_err()
        {
            return Err(ArgumentError::of(
                "umask",
                format!("`{umask}` is no octal mode"),
            ));
        }
        self.expiry()?;
        let texts = [
            ("comment", &self.comment),
            ("shell", &self.shell),
            ("home", &self.home),
            ("password", &self.password),
        ];
        match texts
            .iter()
            .find(|(_, text)| text.as_ref().is_some_and(|text| text.contains([':', '\n'])))
        {
            Some((name, _)) => Err(ArgumentError::of(
                name,
                "a colon or a line's end cannot be in it",
            )),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if *self.local && (self.uid_min.is_some() || self.uid_max.is_some()) {
            return Err(Fault::new(
                "local does not go with uid_min and uid_max: the host's own tools for local users take no range",
            ));
        }
        match self.state {
            State::Absent => self.remove(host),
            State::Present => self.ensure(host),
        }
    }
}

impl User {
    /// The day of expiry as `/etc/shadow` has it; empty for never.
    fn expiry(&self) -> Result<Option<String>, ArgumentError> {
        let Some(value) = &self.expires else {
            return Ok(None);
        };
        let seconds = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let Some(seconds) = seconds.filter(|seconds: &f64| seconds.is_finite()) else {
            return Err(ArgumentError::of("expires", "expected seconds since 1970"));
        };
        Ok(Some(match seconds < 0.0 {
            true => String::new(),
            false => format!("{:.0}", (seconds / 86_400.0).floor()),
        }))
    }

    fn account(&self) -> String {
        format!("user {}", self.name)
    }

    fn remove(self, host: &mut Host) -> Result<Report, Fault> {
        let mut accounts = Accounts::read(host)?;
        let name = self.name.to_string();
        let mut fields = json!({"name": name, "state": "absent"});
        let Some(user) = accounts.passwd.find(&name) else {
            return Ok(Report::of(fields));
        };
        fields["force"] = (*self.force).into();
        fields["remove"] = (*self.remove).into();
        if !*self.force && logged_in(&user[passwd::UID]) {
            return Err(Fault::new(format!(
                "user {name} is currently used by a process: end it, or set `force: true`"
            ))
            .with("name", name)
            .with("rc", 8));
        }
        accounts.passwd.remove(&name);
        if let Some(shadow) = &mut accounts.shadow {
            shadow.remove(&name);
        }
        for group in accounts.memberships(&name) {
            accounts.set_member(&group, &name, false);
        }
        accounts.remove_subordinates(&name);
        let own = accounts.group.find(&name).filter(|group| {
            let others = accounts
                .passwd
                .all()
                .any(|other| other.get(passwd::GID) == group.get(2));
            group.get(3).is_none_or(String::is_empty) && (*self.force || !others)
        });
        if own.is_some() && !accounts.def_is("USERGROUPS_ENAB", "no") {
            accounts.remove_group(&name);
        }
        accounts.commit(host, &self.account())?;
        if *self.remove {
            Home::of(&user).remove(host, &name)?;
        }
        Ok(Report::of(fields))
    }

    fn ensure(self, host: &mut Host) -> Result<Report, Fault> {
        let mut accounts = Accounts::read(host)?;
        let name = self.name.to_string();
        for group in self.group.iter().map(|group| &**group).chain(self.listed()) {
            if accounts.find_group(group).is_none() && !host.open() {
                return Err(Fault::new(format!("Group {group} does not exist")).with("name", name));
            }
        }
        let before = accounts.passwd.find(&name);
        let mut fields = json!({"name": name, "state": "present"});
        let user = match &before {
            None => {
                fields["system"] = (*self.system).into();
                fields["create_home"] = (*self.create_home).into();
                self.create(host, &mut accounts)?
            }
            Some(user) => {
                fields["append"] = (*self.append).into();
                fields["move_home"] = (*self.move_home).into();
                self.modify(&mut accounts, user.clone())?
            }
        };
        let umask = self
            .umask
            .as_ref()
            .and_then(|umask| u32::from_str_radix(umask, 8).ok());
        let mode = umask
            .map(|umask| 0o777 & !umask)
            .or_else(|| accounts.def_mode("HOME_MODE"))
            .unwrap_or_else(|| 0o777 & !accounts.def_mode("UMASK").unwrap_or(0o022));
        accounts.commit(host, &self.account())?;
        let home = Home::of(&user);
        if let Some(before) = before {
            let moved = before[passwd::HOME] != user[passwd::HOME];
            if *self.move_home && moved {
                Home::of(&before).move_to(host, &home)?;
            }
            if before[passwd::UID] != user[passwd::UID] {
                home.give(host, &before[passwd::UID], &user[passwd::UID])?;
            }
        }
        if *self.create_home {
            let skeleton = self.skeleton.as_ref().map(|dir| PathBuf::from(&**dir));
            let skeleton = match skeleton {
                Some(given) => given,
                None => defaults(host)?
                    .get("SKEL")
                    .map_or_else(|| "/etc/skel".into(), PathBuf::from),
            };
            home.make(host, &skeleton, mode)?;
        }
        fields["uid"] = number(&user[passwd::UID]);
        fields["group"] = number(&user[passwd::GID]);
        fields["comment"] = user[passwd::COMMENT].clone().into();
        fields["home"] = user[passwd::HOME].clone().into();
        fields["shell"] = user[passwd::SHELL].clone().into();
        if let Some(password) = &self.password {
            fields["password"] = "NOT_LOGGING_PASSWORD".into();
            if !is_hash(password) {
                fields["warnings"] = json!([NO_HASH]);
            }
        }
        if self.groups.is_some() {
            fields["groups"] = self.listed().collect::<Vec<_>>().join(",").into();
        }
        if *self.generate_ssh_key {
            let key = self.ssh_key(host, &home)?;
            for (name, value) in key {
                fields[name] = value;
            }
        }
        Ok(Report::of(fields))
    }

    fn ssh_key(&self, host: &mut Host, home: &Home) -> Result<Vec<(&'static str, Value)>, Fault> {
        let file = match &self.ssh_key_file {
            Some(file) => home.dir.join(&**file),
            None => home.dir.join(format!(".ssh/id_{}", self.ssh_key_type)),
        };
        let wanted = keys::Key {
            file,
            kind: &self.ssh_key_type,
            bits: self.ssh_key_bits.map(|bits| *bits),
            comment: self.ssh_key_comment.as_deref(),
            passphrase: self.ssh_key_passphrase.as_deref(),
        };
        wanted.make(host, home)
    }

    /// The further groups; `groups: ""` names none.
    fn listed(&self) -> impl Iterator<Item = &str> {
        let groups = self.groups.iter().flat_map(|groups| groups.iter());
        groups
            .map(|group| group.trim())
            .filter(|group| !group.is_empty())
    }

    fn free_uid(&self, accounts: &Accounts) -> Result<Option<u32>, Fault> {
        let Some(uid) = id("uid", self.uid)? else {
            return Ok(None);
        };
        let text = uid.to_string();
        let other = accounts
            .passwd
            .all()
            .find(|user| user.get(passwd::UID) == Some(&text) && user[0] != *self.name);
        match other {
            Some(other) if !*self.non_unique => Err(Fault::new(format!(
                "UID {uid} is not unique: the user `{}` has it (`non_unique: true` allows it)",
                other[0]
            ))
            .with("name", self.name.to_string())
            .with("rc", 4)),
            _ => Ok(Some(uid)),
        }
    }

    fn create(&self, host: &Host, accounts: &mut Accounts) -> Result<Fields, Fault> {
        let name = self.name.to_string();
        let defaults = defaults(host)?;
        let default = |name: &str, otherwise: &str| {
            defaults
                .get(name)
                .filter(|text| !text.is_empty())
                .map_or_else(|| otherwise.to_owned(), Clone::clone)
        };
        let (min, max) = (id("uid_min", self.uid_min)?, id("uid_max", self.uid_max)?);
        let uid = match self.free_uid(accounts)? {
            Some(uid) => uid,
            None => accounts.next_uid(*self.system, min, max)?,
        };
        let own_groups = !accounts.def_is("USERGROUPS_ENAB", "no");
        let gid = match &self.group {
            Some(group) => match accounts.find_group(group) {
                Some(group) => group[2].clone(),
                // What came before in a plan may bring it.
                None => group.to_string(),
            },
            None if own_groups && accounts.group.find(&name).is_none() => {
                let gid = accounts.next_gid(Some(uid), *self.system, None, None)?;
                accounts.add_group(&name, gid);
                gid.to_string()
            }
            None => {
                let usual = default("GROUP", "100");
                accounts
                    .find_group(&usual)
                    .map_or(usual, |group| group[2].clone())
            }
        };
        let home = match &self.home {
            Some(home) => home.to_string(),
            None => format!("{}/{name}", default("HOME", "/home").trim_end_matches('/')),
        };
        let user = vec![
            name.clone(),
            if accounts.shadow.is_some() { "x" } else { "!" }.to_owned(),
            uid.to_string(),
            gid,
            self.comment.as_deref().unwrap_or_default().to_owned(),
            home,
            self.shell
                .as_ref()
                .map_or_else(|| default("SHELL", "/bin/sh"), ToString::to_string),
        ];
        accounts.passwd.set(&user);
        let aging = |name: &str| match *self.system {
            true => String::new(),
            false => match i64::from(accounts.def(name, u32::MAX)) {
                none if none == i64::from(u32::MAX) => String::new(),
                days => days.to_string(),
            },
        };
        let inactive = match *self.system {
            true => String::new(),
            false => default("INACTIVE", "").replace("-1", ""),
        };
        let expires = default("EXPIRE", "");
        let mut line = vec![
            name.clone(),
            "!".to_owned(),
            today().to_string(),
            aging("PASS_MIN_DAYS"),
            aging("PASS_MAX_DAYS"),
            aging("PASS_WARN_AGE"),
            inactive,
            if expires.bytes().all(|c| c.is_ascii_digit()) {
                expires
            } else {
                String::new()
            },
            String::new(),
        ];
        if let Some(password) = &self.password {
            let lock = if self.password_lock.is_some_and(|lock| *lock) {
                "!"
            } else {
                ""
            };
            line[shadow::PASSWORD] = format!("{lock}{password}");
        }
        self.age(&mut line)?;
        if let Some(shadow) = &mut accounts.shadow {
            shadow.set(&line);
        }
        if !*self.system {
            accounts.add_subordinates(&name, uid);
        }
        for group in self.listed() {
            if let Some(group) = accounts.find_group(group) {
                accounts.set_member(&group[0], &name, true);
            }
        }
        Ok(user)
    }

    fn modify(&self, accounts: &mut Accounts, mut user: Fields) -> Result<Fields, Fault> {
        let name = self.name.to_string();
        user.resize(7, String::new());
        if let Some(uid) = self.free_uid(accounts)? {
            user[passwd::UID] = uid.to_string();
        }
        if let Some(group) = &self.group
            && let Some(group) = accounts.find_group(group)
        {
            user[passwd::GID].clone_from(&group[2]);
        }
        let texts = [
            (passwd::COMMENT, &self.comment),
            (passwd::SHELL, &self.shell),
            (passwd::HOME, &self.home),
        ];
        for (at, text) in texts {
            if let Some(text) = text {
                user[at] = text.to_string();
            }
        }
        accounts.passwd.set(&user);
        if self.groups.is_some() {
            let has = accounts.memberships(&name);
            let wanted: BTreeSet<String> = self
                .listed()
                .filter_map(|group| accounts.find_group(group))
                .map(|group| group[0].clone())
                .collect();
            let primary = |group: &str| {
                accounts
                    .group
                    .find(group)
                    .is_some_and(|group| group.get(2) == user.get(passwd::GID))
            };
            let come: Vec<&String> = wanted
                .difference(&has)
                .filter(|group| !primary(group))
                .collect();
            let go: Vec<&String> = has
                .difference(&wanted)
                .filter(|group| !*self.append && !primary(group))
                .collect();
            let (come, go): (Vec<String>, Vec<String>) = (
                come.into_iter().cloned().collect(),
                go.into_iter().cloned().collect(),
            );
            come.iter()
                .for_each(|group| accounts.set_member(group, &name, true));
            go.iter()
                .for_each(|group| accounts.set_member(group, &name, false));
        }
        let Some(mut line) = accounts
            .shadow
            .as_ref()
            .and_then(|shadow| shadow.find(&name))
        else {
            return Ok(user);
        };
        line.resize(9, String::new());
        let old = line[shadow::PASSWORD].clone();
        let bare = |text: &str| text.trim_start_matches('!').to_owned();
        let lock = self.password_lock.map(|lock| *lock);
        match &self.password {
            Some(password)
                if self.update_password == Update::Always && bare(&old) != bare(password) =>
            {
                let lock = if lock == Some(true) { "!" } else { "" };
                line[shadow::PASSWORD] = format!("{lock}{password}");
                line[shadow::CHANGED] = today().to_string();
            }
            _ => match lock {
                Some(true) if !old.starts_with('!') => line[shadow::PASSWORD] = format!("!{old}"),
                Some(false) if old.starts_with('!') => {
                    let open = old[1..].to_owned();
                    if open.is_empty() {
                        return Err(Fault::new(format!(
                            "unlocking the user's password would result in a passwordless account: give `{name}` a password"
                        )));
                    }
                    line[shadow::PASSWORD] = open;
                }
                _ => {}
            },
        }
        self.age(&mut line)?;
        if let Some(shadow) = &mut accounts.shadow {
            shadow.set(&line);
        }
        Ok(user)
    }

    /// How long account and password last.
    fn age(&self, line: &mut [String]) -> Result<(), Fault> {
        if let Some(day) = self.expiry()? {
            line[shadow::EXPIRES] = day;
        }
        let days = [
            (shadow::MAX, self.password_expire_max),
            (shadow::MIN, self.password_expire_min),
            (shadow::WARN, self.password_expire_warn),
            (shadow::INACTIVE, self.password_expire_account_disable),
        ];
        for (at, days) in days {
            if let Some(days) = days {
                line[at] = if *days < 0 {
                    String::new()
                } else {
                    days.to_string()
                };
            }
        }
        Ok(())
    }
}

/// What new users get where nobody says otherwise.
fn defaults(host: &Host) -> Result<std::collections::BTreeMap<String, String>, Fault> {
    let text = host
        .read(Path::new("/etc/default/useradd"))?
        .unwrap_or_default();
    Ok(definitions(&String::from_utf8_lossy(&text)))
}

const NO_HASH: &str = "The input password appears not to have been hashed. The 'password' argument must be encrypted for this module to work properly.";

/// Whether a password looks like what `/etc/shadow` holds, or like one that nobody has.
fn is_hash(password: &str) -> bool {
    if matches!(password, "*" | "!" | "*************") {
        return true;
    }
    let fields: Vec<&str> = password.split('$').collect();
    let [_, kind, .., hash] = fields[..] else {
        return false;
    };
    let length = match kind {
        "1" => Some(22),
        "5" | "y" => Some(43),
        "6" => Some(86),
        _ => None,
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "./=".contains(c);
    !password.contains(['*', '!'])
        && hash.chars().all(plain)
        && length.is_none_or(|length| hash.len() == length)
}

fn number(text: &str) -> Value {
    text.parse::<u32>()
        .map_or_else(|_| text.into(), Value::from)
}

/// Days since 1970.
fn today() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap_or_default().as_secs() / 86_400
}

/// Whether a process runs as a user.
fn logged_in(uid: &str) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers =
        processes.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    numbers.into_iter().any(|entry| {
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        status
            .lines()
            .find_map(|line| line.strip_prefix("Uid:"))
            .is_some_and(|uids| uids.split_whitespace().any(|own| own == uid))
            && uid != "0"
    })
}

/// Whether something is at a path, for the parts of this module.
fn exists(host: &Host, path: &Path) -> Result<bool, Fault> {
    Ok(host.entry(path)? != Entry::Absent)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MODULE, is_hash};
    use crate::host::Host;

    fn plan(host: &mut Host, args: Value) -> (Value, Vec<String>) {
        let report = (MODULE.run)(args, host).unwrap();
        let effects = host.end().iter().map(fleet_wire::Effect::summary).collect();
        (report.fields.into(), effects)
    }

    #[test]
    fn a_user_is_planned_with_group_home_and_number() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut host = Host::plan();
        let args = json!({"name": "fleetctl-ann", "uid": 61234, "comment": "Ann", "shell": "/bin/bash", "groups": "adm"});
        let (made, effects) = plan(&mut host, args.clone());
        assert_eq!(
            made,
            json!({
                "name": "fleetctl-ann", "state": "present", "system": false, "create_home": true, "uid": 61234,
                "group": 61234, "comment": "Ann", "home": "/home/fleetctl-ann", "shell": "/bin/bash", "groups": "adm",
            })
        );
        assert_eq!(
            effects[..2],
            [
                "create user fleetctl-ann",
                "create directory /home/fleetctl-ann"
            ]
        );
        let (again, effects) = plan(&mut host, args);
        assert!(effects.is_empty(), "{effects:?}");
        assert_eq!(
            (&again["append"], &again["uid"]),
            (&json!(false), &json!(61234))
        );
        let (_, effects) = plan(&mut host, json!({"name": "fleetctl-ann", "groups": []}));
        assert_eq!(effects, ["user fleetctl-ann"]);
        let (_, effects) = plan(
            &mut host,
            json!({"name": "fleetctl-ann", "state": "absent", "remove": true}),
        );
        assert_eq!(effects[0], "remove user fleetctl-ann");
        assert_eq!(effects.last().unwrap(), "remove /home/fleetctl-ann");
        let (gone, effects) = plan(
            &mut host,
            json!({"name": "fleetctl-ann", "state": "absent"}),
        );
        assert_eq!(
            (gone, effects.len()),
            (json!({"name": "fleetctl-ann", "state": "absent"}), 0)
        );
    }

    #[test]
    fn passwords_are_set_locked_and_never_told() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut host = Host::plan();
        let changed = |host: &mut Host, more: Value| {
            let mut args = json!({"name": "fleetctl-bob", "create_home": false});
            for (name, value) in more.as_object().unwrap() {
                args[name.as_str()] = value.clone();
            }
            let report = (MODULE.run)(args, host).unwrap();
            let effects = host.end();
            assert!(
                !format!("{effects:?}{report:?}").contains("$6$"),
                "{effects:?}"
            );
            !effects.is_empty()
        };
        assert!(changed(&mut host, json!({"password": "$6$a$b"})));
        assert!(!changed(&mut host, json!({"password": "$6$a$b"})));
        assert!(changed(&mut host, json!({"password_lock": true})));
        assert!(!changed(&mut host, json!({"password": "$6$a$b"})));
        assert!(!changed(
            &mut host,
            json!({"password": "$6$c$d", "update_password": "on_create"})
        ));
        assert!(changed(&mut host, json!({"password": "$6$c$d"})));
        assert!(changed(&mut host, json!({"expires": 1_800_000_000.5})));
        let lines = host.accounts("/etc/shadow").unwrap().unwrap();
        let line = lines
            .iter()
            .find(|line| line.starts_with("fleetctl-bob:"))
            .unwrap();
        assert!(
            line.starts_with("fleetctl-bob:$6$c$d:") && line.ends_with(":20833:"),
            "{line}"
        );
        assert!(changed(&mut host, json!({"expires": -1})));
    }

    #[test]
    fn a_password_that_is_none_is_warned_of() {
        let yescrypt = "$y$jCT$ZiF3ZV39/maUl9Lzt2Hk80$Ih6bI4OXU52OnWWqt3T1BAmVn8eH.4qlcP.8/NOjGN5";
        for hash in ["*", "!", "*************", yescrypt] {
            assert!(is_hash(hash), "{hash}");
        }
        for plain in ["plaintext", "$6$salt$short", "$y$a", "a*b", "$5$a$b+"] {
            assert!(!is_hash(plain), "{plain}");
        }
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(refused(json!({"name": "a b"})).contains("cannot be the name of a user"));
        assert!(
            refused(json!({"name": "a", "comment": "x:y"}))
                .starts_with("argument `comment`: a colon")
        );
        assert!(refused(json!({"name": "a", "expires": "soon"})).contains("seconds since 1970"));
        assert!(refused(json!({"name": "a", "umask": "9"})).contains("no octal mode"));
        let fault =
            (MODULE.run)(json!({"name": "a", "group": "no-such"}), &mut Host::plan()).unwrap_err();
        assert_eq!(fault.message, "Group no-such does not exist");
    }
}
