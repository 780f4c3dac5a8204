use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::json;

use crate::args::Text;
use crate::host::{Fault, Host, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<DpkgSelections>();

/// Selects a Debian package: to be held at its version, installed, or removed by the next run of the package manager.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct DpkgSelections {
    /// The package.
    name: Text,
    /// What it is selected for.
    selection: Selection,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Selection {
    Install,
    Hold,
    Deinstall,
    Purge,
}

impl Selection {
    fn word(self) -> &'static str {
        match self {
            Self::Install => "install",
            Self::Hold => "hold",
            Self::Deinstall => "deinstall",
            Self::Purge => "purge",
        }
    }
}

impl Task for DpkgSelections {
    const NAME: &'static str = "dpkg_selections";

    fn check(&self) -> Result<(), ArgumentError> {
        match self.name.is_empty()
            || self.name.starts_with('-')
            || self.name.contains(char::is_whitespace)
        {
            true => Err(ArgumentError::of(
                "name",
                format!("`{}` is not the name of a package", self.name),
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let wanted = self.selection.word();
        let before = host.setting(SettingKind::Selection, &self.name)?;
        if before.is_empty() && !host.open() {
            return Err(Fault::new(format!(
                "Failed to find package '{}' to perform selection '{wanted}'.",
                self.name
            )));
        }
        host.set(Setting {
            kind: SettingKind::Selection,
            name: self.name.to_string(),
            value: wanted.to_owned(),
        })?;
        Ok(Report::of(json!({"before": before, "after": wanted})))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_package_is_held() {
        let root = rustix::process::geteuid().is_root();
        if !root || !std::path::Path::new("/usr/bin/dpkg").exists() {
            return;
        }
        let mut host = Host::plan();
        let args = json!({"name": "dpkg", "selection": "hold"});
        let report = (MODULE.run)(args.clone(), &mut host).unwrap();
        assert_eq!(report.fields["before"], "install");
        assert_eq!(host.end().len(), 1);
        (MODULE.run)(args, &mut host).unwrap();
        assert!(host.end().is_empty());
        let fault = (MODULE.run)(
            json!({"name": "no-such-one", "selection": "hold"}),
            &mut host,
        )
        .unwrap_err();
        assert!(
            fault
                .message
                .starts_with("Failed to find package 'no-such-one'")
        );
    }
}
