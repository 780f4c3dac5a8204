use std::path::PathBuf;

use serde_json::json;

use super::edited::{self, with_attributes};
use super::file::report;
use crate::args::{Bool, Text};
use crate::checksum::Algorithm;
use crate::host::{Entry, Fault, Host, words};
use crate::module::{ArgumentError, Module, Report, Task};
use crate::parts::{Chosen, joined};

pub(super) static MODULE: Module = Module::of::<Assemble>();

with_attributes! {
    /// Makes a file of the files in a directory, in the order of their names.
    struct Assemble {
        /// The directory with the parts: of the host, or of the controller with `remote_src: false`.
        src: Text,
        /// The file to make.
        dest: Text,
        /// A line to put between the parts.
        delimiter: Option<Text>,
        /// Take the parts whose names begin as this expression says.
        regexp: Option<Text>,
        /// Leave parts out whose names begin with a dot.
        #[serde(default)]
        ignore_hidden: Bool,
        /// The parts are on the host.
        #[serde(default, rename = "remote_src")]
        _remote_src: Option<Bool>,
        /// Decrypt parts of the controller that are encrypted: decided there.
        #[serde(default, rename = "decrypt")]
        _decrypt: Option<Bool>,
        /// Say where the old content is kept. It is kept in any case, outside of the configuration.
        #[serde(default)]
        backup: Bool,
        /// A command that must accept the new file before it is put in place; `%s` stands for it.
        validate: Option<Text>,
    }
}

impl Task for Assemble {
    const NAME: &'static str = "assemble";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[("attr", "attributes")];

    fn check(&self) -> Result<(), ArgumentError> {
        self.chosen().map(drop)
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if let Some(command) = &self.validate {
            words(command)
                .map_err(|problem| Fault::new(format!("Invalid command syntax: {problem}")))?;
            edited::check_validate(Some(command))?;
        }
        // Where the controller has the parts, it has put them together.
        let content = match host.blob()? {
            Some(content) => content,
            None => self.assembled(host)?,
        };
        let dest = host.resolve(&host.expand(&self.dest))?;
        let checksum = Algorithm::Sha1.sum(&content);
        let md5 = Algorithm::Md5.sum(&content);
        let attributes = self.attributes().validated(self.validate.as_deref());
        edited::write(host, &dest, Some(content), &attributes)?;
        let mut told = report(host, &self.dest, &dest)?;
        told.fields.remove("path");
        let own = json!({"dest": *self.dest, "src": *self.src, "checksum": checksum, "md5sum": md5, "msg": "OK"});
        for (name, value) in Report::of(own).fields {
            told.fields.insert(name, value);
        }
        if *self.backup {
            edited::tell_backup(host, &dest, "backup_file", &mut told.fields);
        }
        Ok(told)
    }
}

impl Assemble {
    fn chosen(&self) -> Result<Chosen, ArgumentError> {
        Chosen::new(self.regexp.as_deref(), *self.ignore_hidden)
            .map_err(|problem| ArgumentError::of("regexp", problem))
    }

    fn assembled(&self, host: &Host) -> Result<Vec<u8>, Fault> {
        let src = host.resolve(&host.expand(&self.src))?;
        match host.entry(&src)? {
            Entry::Dir(_) => {}
            Entry::Absent => return Err(self.wrong("does not exist")),
            _ => return Err(self.wrong("is not a directory")),
        }
        let chosen = self.chosen()?;
        let mut parts = Vec::new();
        for name in host
            .list(&src)?
            .unwrap_or_default()
            .iter()
            .filter(|name| chosen.has(name))
        {
            let part: PathBuf = host.resolve(&src.join(name))?;
            if let Entry::File(..) = host.entry(&part)? {
                parts.push(host.read(&part)?.unwrap_or_default());
            }
        }
        Ok(joined(parts, self.delimiter.as_deref()))
    }

    fn wrong(&self, how: &str) -> Fault {
        Fault::new(format!("Source ({}) {how}", self.src))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::MODULE;
    use crate::host::Host;

    #[test]
    fn a_directory_becomes_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let (src, dest) = (dir.path().join("d"), dir.path().join("f"));
        fs::create_dir(&src).unwrap();
        for name in ["2", "10", ".hidden", "x1"] {
            fs::write(src.join(name), name).unwrap();
        }
        let mut host = Host::plan();
        let mut made = |args: serde_json::Value| {
            let mut args = args;
            args["src"] = json!(src);
            args["dest"] = json!(dest);
            let report = (MODULE.run)(args, &mut host).unwrap();
            assert_eq!(report.fields["dest"], json!(dest));
            String::from_utf8(host.read(&dest).unwrap().unwrap()).unwrap()
        };
        assert_eq!(made(json!({})), ".hidden\n10\n2\nx1");
        assert_eq!(
            made(json!({"ignore_hidden": true, "regexp": "[0-9]"})),
            "10\n2"
        );
        let fault = |src: &str| {
            let args = json!({"src": src, "dest": "/tmp/x"});
            (MODULE.run)(args, &mut Host::plan()).unwrap_err().message
        };
        assert_eq!(fault("/no/such"), "Source (/no/such) does not exist");
        assert_eq!(
            fault("/etc/passwd"),
            "Source (/etc/passwd) is not a directory"
        );
    }
}
