use serde::Deserialize;
use serde_json::json;

use super::accounts::{Accounts, is_name};
use crate::args::{Bool, Number, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Group>();

/// Creates, changes and removes a group of the host's own databases.
///
/// What would be written is known in the plan, the group's number too, and an undo puts back the very lines.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Group {
    /// The group.
    name: Text,
    /// `present` or `absent`.
    #[serde(default)]
    state: State,
    /// Its number; the next free one where it is not given.
    gid: Option<Number>,
    /// A new group gets a number from the range for the system's own groups.
    #[serde(default)]
    system: Bool,
    /// The number may be another group's, too.
    #[serde(default)]
    non_unique: Bool,
    /// Remove it even where it is some user's first group.
    #[serde(default)]
    force: Bool,
    /// The lowest number to give; as `/etc/login.defs` says where it is not given.
    gid_min: Option<Number>,
    /// The highest number to give; as `/etc/login.defs` says where it is not given.
    gid_max: Option<Number>,
    /// Taken for Ansible's sake: the host's own databases are always the ones that are changed.
    #[serde(default)]
    local: Bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    #[default]
    Present,
    Absent,
}

/// A number of a user or a group.
pub(super) fn id(argument: &str, number: Option<Number>) -> Result<Option<u32>, ArgumentError> {
    number
        .map(|number| {
            u32::try_from(*number)
                .ok()
                .filter(|id| *id < u32::MAX)
                .ok_or_else(|| {
                    ArgumentError::of(argument, format!("{} is not such a number", *number))
                })
        })
        .transpose()
}

impl Task for Group {
    const NAME: &'static str = "group";

    fn check(&self) -> Result<(), ArgumentError> {
        id("gid", self.gid)?;
        id("gid_min", self.gid_min)?;
        id("gid_max", self.gid_max)?;
        if *self.non_unique && self.gid.is_none() {
            return Err(ArgumentError::of("gid", "it is required with non_unique"));
        }
        match is_name(&self.name) {
            true => Ok(()),
            false => Err(ArgumentError::of(
                "name",
                format!("`{}` cannot be the name of a group", self.name),
            )),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if *self.local && (self.gid_min.is_some() || self.gid_max.is_some()) {
            return Err(Fault::new(
                "local does not go with gid_min and gid_max: the host's own tools for local groups take no range",
            ));
        }
        let mut accounts = Accounts::read(host)?;
        let name = &*self.name;
        let account = format!("group {name}");
        let known = accounts.group.find(name);
        if self.state == State::Absent {
            let Some(known) = known else {
                return Ok(self.report(None));
            };
            let user = accounts
                .passwd
                .all()
                .find(|user| user.get(3) == known.get(2));
            // Another group of the same number stays for them.
            let alone = accounts
                .group
                .all()
                .filter(|group| group.get(2) == known.get(2))
                .count()
                == 1;
            if let Some(user) = user.filter(|_| alone && !*self.force) {
                return Err(Fault::new(format!(
                    "cannot remove the primary group of user '{}': give the user another group first, or set `force: true`",
                    user[0]
                )));
            }
            accounts.remove_group(name);
            accounts.commit(host, &account)?;
            return Ok(self.report(None));
        }
        let gid = id("gid", self.gid)?;
        if let Some(gid) = gid.filter(|_| !*self.non_unique) {
            let number = gid.to_string();
            let other = accounts
                .group
                .all()
                .find(|group| group.get(2) == Some(&number) && group[0] != name);
            if let Some(other) = other {
                return Err(Fault::new(format!(
                    "GID '{gid}' already exists: the group `{}` has it (`non_unique: true` allows it)",
                    other[0]
                )));
            }
        }
        match known {
            Some(mut fields) => {
                if let (Some(gid), true) = (gid, fields.len() >= 3) {
                    let (old, new) = (fields[2].clone(), gid.to_string());
                    fields[2].clone_from(&new);
                    accounts.group.set(&fields);
                    // As groupmod does: those whose first group it is go with it.
                    for mut user in accounts.passwd.all().collect::<Vec<_>>() {
                        if user.get(3) == Some(&old) && old != new {
                            user[3].clone_from(&new);
                            accounts.passwd.set(&user);
                        }
                    }
                }
            }
            None => {
                let (min, max) = (id("gid_min", self.gid_min)?, id("gid_max", self.gid_max)?);
                let gid =
                    gid.map_or_else(|| accounts.next_gid(None, *self.system, min, max), Ok)?;
                accounts.add_group(name, gid);
            }
        }
        let gid = accounts
            .group
            .find(name)
            .and_then(|group| group.get(2)?.parse().ok());
        accounts.commit(host, &account)?;
        Ok(self.report(gid))
    }
}

impl Group {
    fn report(&self, gid: Option<u32>) -> Report {
        let state = if self.state == State::Absent {
            "absent"
        } else {
            "present"
        };
        let mut fields = json!({"name": &*self.name, "state": state});
        if self.state == State::Present {
            fields["system"] = (*self.system).into();
            fields["gid"] = gid.into();
        }
        Report::of(fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::Host;

    fn plan(host: &mut Host, args: Value) -> (Value, Vec<String>) {
        let report = (MODULE.run)(args, host).unwrap();
        let effects = host.end().iter().map(fleet_wire::Effect::summary).collect();
        (report.fields.into(), effects)
    }

    #[test]
    fn a_group_is_planned_with_its_number() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let mut host = Host::plan();
        let (made, effects) = plan(&mut host, json!({"name": "fleetctl-a", "gid": 61001}));
        assert_eq!(
            made,
            json!({"name": "fleetctl-a", "state": "present", "system": false, "gid": 61001})
        );
        assert_eq!(effects, ["create group fleetctl-a"]);
        let again = plan(&mut host, json!({"name": "fleetctl-a"})).1;
        assert!(again.is_empty());
        let (_, effects) = plan(&mut host, json!({"name": "fleetctl-a", "gid": 61002}));
        assert_eq!(effects, ["group fleetctl-a"]);
        let taken =
            (MODULE.run)(json!({"name": "fleetctl-b", "gid": 61002}), &mut host).unwrap_err();
        assert!(
            taken.message.starts_with("GID '61002' already exists"),
            "{taken}"
        );
        let (_, effects) = plan(&mut host, json!({"name": "fleetctl-a", "state": "absent"}));
        assert_eq!(effects, ["remove group fleetctl-a"]);
        assert!(
            plan(&mut host, json!({"name": "fleetctl-a", "state": "absent"}))
                .1
                .is_empty()
        );
    }

    #[test]
    fn a_users_first_group_is_not_removed() {
        let fault = (MODULE.run)(
            json!({"name": "root", "state": "absent"}),
            &mut Host::plan(),
        )
        .unwrap_err();
        assert!(
            fault.message.contains("primary group of user 'root'"),
            "{fault}"
        );
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert_eq!(
            refused(json!({"name": "a:b"})),
            "argument `name`: `a:b` cannot be the name of a group"
        );
        assert_eq!(
            refused(json!({"name": "x", "gid": -1})),
            "argument `gid`: -1 is not such a number"
        );
        assert_eq!(
            refused(json!({"name": "x", "non_unique": true})),
            "argument `gid`: it is required with non_unique"
        );
    }
}
