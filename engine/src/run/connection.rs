//! From a host's variables and the command line to the address that it is reached at.

use std::{path::PathBuf, time::Duration};

use minijinja::Value;

use super::{scope::HostScope, shared::Shared};
use crate::{
    playbook::Directives,
    secret::Secret,
    template::{Evaluated, is_omit},
    transport::{Address, Become, HostKeys, Kind, Method},
    variables::{Scope, Variable},
};

/// How to reach a host, and as whom to work there.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) address: Address,
    /// None where no task of the run needs root.
    pub(crate) r#become: Option<Become>,
    pub(crate) state_dir: Option<String>,
}

impl Reach {
    /// What a connection's variable is where nobody sets it.
    pub(super) fn variable(&self, name: &str) -> Option<Variable> {
        let address = &self.address;
        let value = match name {
            "ansible_connection" => Value::from(match address.kind {
                Kind::Ssh => "ssh",
                Kind::Local => "local",
            }),
            "ansible_host" | "ansible_ssh_host" => Value::from(match address.kind {
                Kind::Ssh => address.host.as_str(),
                Kind::Local => address.name.as_str(),
            }),
            "ansible_user" | "ansible_ssh_user" => Value::from(address.user.as_deref()?),
            "ansible_timeout" | "ansible_ssh_timeout" => Value::from(address.timeout.as_secs()),
            "ansible_private_key_file" => {
                Value::from(address.private_key_file.as_ref()?.display().to_string())
            }
            "ansible_shell_executable" => Value::from("/bin/sh"),
            _ => return None,
        };
        Some(Variable::Data(value))
    }
}

/// Resolves a host's connection variables.
///
/// # Errors
/// A message with the variable's place, when one cannot be rendered or makes no sense.
pub(crate) fn reach(
    shared: &Shared,
    host: &str,
    directives: Option<&Directives>,
    scope: &HostScope,
    needs_root: bool,
) -> Result<Reach, String> {
    let text = |names: &[&str]| text(shared, scope, names);
    let keyword = |node: Option<&fleet_yaml::Node>| match node {
        Some(node) => rendered(shared, scope, node).map(Some),
        None => Ok(None),
    };
    let settings = &shared.settings;
    let connection = directives.map(|directives| &directives.connection);
    let kind = match text(&["ansible_connection"])? {
        Some(kind) => Some(kind),
        None => keyword(connection.and_then(|c| c.kind.as_ref()))?
            .or_else(|| settings.connection.clone()),
    };
    let kind = match kind.as_deref() {
        None | Some("ssh" | "smart" | "openssh" | "ansible.builtin.ssh") => Kind::Ssh,
        Some("local" | "ansible.builtin.local") => Kind::Local,
        Some(other) => {
            return Err(format!(
                "ansible_connection: `{other}` is not supported; `ssh` and `local` are"
            ));
        }
    };
    let port = match text(&["ansible_port", "ansible_ssh_port"])? {
        Some(port) => Some(port),
        None => keyword(connection.and_then(|c| c.port.as_ref()))?,
    };
    let port = match port {
        Some(port) => Some(port.parse::<u16>().map_err(|_| {
            format!("ansible_port: `{port}` is no port; it takes a number from 1 to 65535")
        })?),
        None => shared.inventory().host(host).and_then(|host| host.port),
    };
    let user = match text(&["ansible_user", "ansible_ssh_user"])? {
        Some(user) => Some(user),
        None => {
            keyword(connection.and_then(|c| c.user.as_ref()))?.or_else(|| settings.user.clone())
        }
    };
    let mut address = match kind {
        Kind::Local => Address::local(host),
        Kind::Ssh => Address::ssh(
            host,
            &text(&["ansible_host", "ansible_ssh_host"])?.unwrap_or_else(|| host.to_owned()),
        ),
    };
    address.port = port;
    address.user = user;
    address.local_dir = Some(settings.playbook_dir.clone());
    address.private_key_file = text(&["ansible_private_key_file", "ansible_ssh_private_key_file"])?
        .map(|path| settings.expand_home(&path))
        .or_else(|| settings.private_key_file.clone());
    address.ssh_common_args = words(text(&["ansible_ssh_common_args"])?)?;
    address
        .ssh_common_args
        .extend(settings.ssh_common_args.iter().cloned());
    address.ssh_extra_args = words(text(&["ansible_ssh_extra_args"])?)?;
    address
        .ssh_extra_args
        .extend(settings.ssh_extra_args.iter().cloned());
    address.ssh_executable = text(&["ansible_ssh_executable"])?.map(PathBuf::from);
    address.timeout =
        match text(&["ansible_ssh_timeout", "ansible_timeout"])? {
            Some(seconds) => Duration::from_secs(seconds.parse().map_err(|_| {
                format!("ansible_ssh_timeout: `{seconds}` is no number of seconds")
            })?),
            None => settings.timeout,
        };
    address.host_key_checking =
        match text(&["ansible_host_key_checking", "ansible_ssh_host_key_checking"])?.as_deref() {
            Some("false" | "False" | "no" | "0") => HostKeys::No,
            Some("accept-new") => HostKeys::AcceptNew,
            _ => settings.host_keys,
        };
    let method = match text(&["ansible_become_method"])? {
        Some(method) => Some(method),
        None => keyword(directives.and_then(|d| d.become_method.as_ref()))?
            .or_else(|| settings.become_method.clone()),
    };
    let method = match method.as_deref() {
        None => Method::default(),
        Some(name) => match Method::named(name) {
            Some(method) => method,
            None if !needs_root => Method::default(),
            None => {
                return Err(format!(
                    "become_method: `{name}` is not supported; `sudo` and `su` are"
                ));
            }
        },
    };
    let way = settings.become_ways.get(method.name());
    let way = way.cloned().unwrap_or_default();
    let of = |what: &str| format!("ansible_{}_{what}", method.name());
    let flags = match text(&["ansible_become_flags", &of("flags")])? {
        Some(flags) => Some(flags),
        None => {
            keyword(directives.and_then(|d| d.become_flags.as_ref()))?.or_else(|| way.flags.clone())
        }
    };
    let flags = words(flags)?;
    let r#become = needs_root.then_some(Become {
        method,
        user: "root".to_owned(),
        password: match text(&[
            "ansible_become_password",
            "ansible_become_pass",
            &of("pass"),
        ])? {
            Some(password) => Some(Secret::new(password)),
            None => settings.become_password.clone(),
        },
        flags,
        exe: match text(&["ansible_become_exe", &of("exe")])? {
            Some(exe) => Some(exe),
            None => {
                keyword(directives.and_then(|d| d.become_exe.as_ref()))?.or_else(|| way.exe.clone())
            }
        },
    });
    Ok(Reach {
        address,
        r#become,
        state_dir: text(&["fleetctl_state_dir"])?,
    })
}

/// The first of `names` that the host has, rendered. Facts are not asked: they come later.
fn text(shared: &Shared, scope: &HostScope, names: &[&str]) -> Result<Option<String>, String> {
    for name in names {
        match scope.get(name) {
            Some(Variable::Written(node)) => {
                return rendered(shared, scope, &node)
                    .map(|text| (!text.is_empty()).then_some(text));
            }
            Some(Variable::Data(value)) if !is_omit(&value) => return Ok(Some(value.to_string())),
            _ => {}
        }
    }
    Ok(None)
}

fn rendered(shared: &Shared, scope: &HostScope, node: &fleet_yaml::Node) -> Result<String, String> {
    match shared.templar.value(node, &scope.shared()) {
        Ok(Evaluated::Known(value)) => Ok(value.to_string()),
        Ok(_) => Err(format!(
            "{}: this must be known before the host is reached",
            node.span
        )),
        Err(problem) => Err(super::dispatch::describe(&problem)),
    }
}

fn words(text: Option<String>) -> Result<Vec<String>, String> {
    match text {
        Some(text) => shlex::split(&text).ok_or_else(|| format!("an open quote in `{text}`")),
        None => Ok(Vec::new()),
    }
}
