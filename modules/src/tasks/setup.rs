use std::path::Path;

use serde::Deserialize;
use serde_json::json;

use super::facts::{
    Wanted,
    source::{Answer, Source},
    subsets,
};
use crate::args::{Bool, List, Number, Text};
use crate::host::{Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Setup>();

/// Gathers facts about the host: its distribution, hardware, network and more, under Ansible's names,
/// and what tunings need under `ansible_fleetctl` and `ansible_sysctl`.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Setup {
    /// Which families of facts: `all`, `min`, names of families such as `hardware` or `network`; `!` before one leaves it out.
    #[serde(default)]
    gather_subset: List,
    /// Only facts whose name a shell pattern matches; the prefix `ansible_` may be left off.
    #[serde(default)]
    filter: List,
    /// The directory of the host's own `*.fact` files: JSON or INI, or programs that print one of these.
    #[serde(default = "facts_d")]
    fact_path: Text,
    /// Taken for Ansible's sake: nothing here waits longer than a second.
    #[serde(default, rename = "gather_timeout")]
    _gather_timeout: Option<Number>,
    /// Taken for Ansible's sake: there is one gatherer, and nothing to do beside it.
    #[serde(default, rename = "parallel")]
    _parallel: Option<Bool>,
}

fn facts_d() -> Text {
    "/etc/ansible/facts.d".into()
}

impl Task for Setup {
    const NAME: &'static str = "setup";
    const ALIASES: &'static [&'static str] = &["gather_facts"];

    fn check(&self) -> Result<(), ArgumentError> {
        self.wanted().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let wanted = self.wanted()?;
        let host = &*host;
        let probe = |argv: &[&str]| {
            host.probe(argv).ok().map(|output| Answer {
                ok: output.ok(),
                stdout: output.text(),
                stderr: output.error_text(),
            })
        };
        let user = host.user();
        let text = |path: &Path| path.display().to_string();
        let login = [
            ("HOME", text(&user.home)),
            ("USER", user.name.clone()),
            ("LOGNAME", user.name.clone()),
            ("SHELL", text(&user.shell)),
        ];
        let login = login.map(|(name, value)| (name.to_owned(), value));
        let environment = [&login[..], host.environment()].concat();
        let source = Source::new(Path::new("/"), (user.uid, user.gid), &environment, &probe);
        let facts = wanted.gather(&source, self.fact_path.trim_end_matches('/'));
        Ok(Report::of(
            json!({"ansible_facts": facts.named(&self.filter)}),
        ))
    }
}

impl Setup {
    fn wanted(&self) -> Result<Wanted, ArgumentError> {
        Wanted::parse(&self.gather_subset).map_err(|unknown| {
            let text = format!(
                "Bad subset '{unknown}' given to Ansible. gather_subset options allowed: {}",
                subsets()
            );
            ArgumentError::of("gather_subset", text)
        })
    }
}
