use serde::Deserialize;

use super::apt::{self, State};
use crate::args::List;
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Package>();

/// Installs, upgrades and removes packages with the host's own package manager. Hosts with apt only, so far.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Package {
    /// The packages.
    name: List,
    /// `present`, `latest` or `absent`.
    #[serde(default)]
    state: State,
    /// The package manager: `auto` or `apt`.
    #[serde(default)]
    r#use: Manager,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Manager {
    #[default]
    Auto,
    Apt,
}

impl Task for Package {
    const NAME: &'static str = "package";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("pkg", "name")];

    fn check(&self) -> Result<(), ArgumentError> {
        match self.name.is_empty() {
            true => Err(ArgumentError::of("name", "no package is named")),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let (Manager::Auto | Manager::Apt) = self.r#use;
        apt::packages(host, &self.name, self.state)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;

    #[test]
    fn arguments_are_checked() {
        assert!((MODULE.check)(&json!({"name": ["a", "b"], "state": "latest"})).is_ok());
        let refused = (MODULE.check)(&json!({"name": []}))
            .unwrap_err()
            .to_string();
        assert_eq!(refused, "argument `name`: no package is named");
    }
}
