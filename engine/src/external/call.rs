//! A task's arguments as the helper's module `_external` takes them.

use serde_json::{Map, Value, json};

use super::{External, Interpreter};

/// The helper's module that runs what comes along.
pub const MODULE: &str = "_external";

/// The release of ansible-core whose interface modules see.
const VERSION: &str = "2.21.5";

/// What a task says of the way in which its module is run. The helper itself adds whether it plans or applies.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The module's name as the task has it.
    pub written: String,
    /// `check_mode: true`: what it says that it would do is the task's result, as in Ansible.
    pub check: bool,
    /// `diff: true`, or `--diff`.
    pub diff: bool,
    /// How often `-v` was said.
    pub verbosity: u8,
    /// `no_log: true`.
    pub no_log: bool,
    /// The value of [`External::interpreter_variable`] on the host, rendered: none or `auto…` to look for one there.
    pub interpreter: Option<String>,
    /// The variable `ansible_inject_invocation`: the result tells what the module was called with.
    pub invocation: bool,
    /// `ansible_shell_executable`, where it is set.
    pub shell: Option<String>,
}

impl External {
    /// The arguments of [`MODULE`], from the task's own, rendered.
    ///
    /// # Errors
    /// A message for people where nothing says what runs the module.
    pub fn call(
        &self,
        arguments: &Map<String, Value>,
        context: &Context,
    ) -> Result<Map<String, Value>, String> {
        let mut given = arguments.clone();
        // Modules know themselves by the name that the task has.
        let name = context.written.strip_prefix("ansible.legacy.");
        let name = name.unwrap_or(&context.written);
        let own = [
            ("no_log", context.no_log.into()),
            ("debug", false.into()),
            ("diff", context.diff.into()),
            ("verbosity", context.verbosity.into()),
            ("version", VERSION.into()),
            ("module_name", name.into()),
            ("syslog_facility", "LOG_USER".into()),
            (
                "selinux_special_fs",
                json!(["fuse", "nfs", "vboxsf", "ramfs", "9p", "vfat"]),
            ),
            ("socket", Value::Null),
            (
                "shell_executable",
                context
                    .shell
                    .clone()
                    .unwrap_or_else(|| "/bin/sh".to_owned())
                    .into(),
            ),
            ("keep_remote_files", false.into()),
            ("ignore_unknown_opts", false.into()),
            ("target_log_info", Value::Null),
            (
                "inject_invocation",
                (context.invocation || context.verbosity >= 3).into(),
            ),
        ];
        given.extend(own.map(|(name, value): (_, Value)| (format!("_ansible_{name}"), value)));
        let mut call = Map::new();
        call.insert("name".to_owned(), name.into());
        call.insert("as_check".to_owned(), context.check.into());
        call.insert("kind".to_owned(), self.kind.word().into());
        call.insert("arguments".to_owned(), given.into());
        call.insert("checkable".to_owned(), self.checkable.into());
        if let Some(words) = self.run_by(context)? {
            call.insert("interpreter".to_owned(), words.into());
        }
        if let Interpreter::Python(options) = &self.interpreter {
            call.insert("python".to_owned(), options.clone().into());
        }
        Ok(call)
    }

    /// The program that runs it and its options; none where the helper looks for a Python, or it runs by itself.
    fn run_by(&self, context: &Context) -> Result<Option<Vec<String>>, String> {
        let chosen = context
            .interpreter
            .as_deref()
            .map(str::trim)
            .filter(|chosen| !chosen.is_empty() && !chosen.starts_with("auto"))
            .map(|chosen| {
                shlex::split(chosen)
                    .ok_or_else(|| format!("the interpreter `{chosen}` is no command"))
            })
            .transpose()?;
        match (&self.interpreter, chosen) {
            (Interpreter::Missing, _) => Err(format!(
                "Task failed: module ({}) is missing interpreter line",
                context.written.trim_start_matches("ansible.legacy.")
            )),
            (Interpreter::None, _) | (Interpreter::Python(_), None) => Ok(None),
            (Interpreter::Python(_), Some(chosen)) => Ok(Some(chosen)),
            (Interpreter::Program(words), None) => Ok(Some(words.clone())),
            // Another program takes the options of the first line.
            (Interpreter::Program(words), Some(mut chosen)) => {
                let by_env = usize::from(words[0].ends_with("/env"));
                chosen.extend_from_slice(words.get(1 + by_env..).unwrap_or_default());
                Ok(Some(chosen))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::Context;
    use crate::external::Search;

    fn interpreter(text: &str, chosen: Option<&str>) -> Result<serde_json::Value, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("library")).unwrap();
        std::fs::write(dir.path().join("library/m"), text).unwrap();
        let search = Search::beside(dir.path(), &[], &[], &[]);
        let module = search.find("m", &[], false).unwrap().unwrap();
        let context = Context {
            written: "m".to_owned(),
            interpreter: chosen.map(str::to_owned),
            ..Context::default()
        };
        let call = module.call(&Map::new(), &context)?;
        Ok(json!([
            call["kind"],
            call.get("interpreter"),
            call.get("python")
        ]))
    }

    #[test]
    fn the_first_line_and_the_host_say_what_runs_a_module() {
        for (text, chosen, call) in [
            (
                "#!/bin/sh -e\n",
                None,
                json!(["keys_and_values", ["/bin/sh", "-e"], null]),
            ),
            (
                "#!/bin/sh -e\n",
                Some("/bin/dash"),
                json!(["keys_and_values", ["/bin/dash", "-e"], null]),
            ),
            (
                "#!/usr/bin/env ruby\n# WANT_JSON",
                Some("/opt/ruby"),
                json!(["want_json", ["/opt/ruby"], null]),
            ),
            (
                "#!/usr/bin/python -u\n# WANT_JSON",
                None,
                json!(["want_json", null, ["-u"]]),
            ),
            (
                "#!/usr/bin/python\nfrom ansible.module_utils.basic import *",
                Some("auto_silent"),
                json!(["python", null, []]),
            ),
            (
                "#!/usr/bin/python\nfrom ansible.module_utils.basic import *",
                Some("/usr/bin/env python3"),
                json!(["python", ["/usr/bin/env", "python3"], []]),
            ),
            ("\u{1}\u{2}", Some("/bin/sh"), json!(["binary", null, null])),
        ] {
            assert_eq!(interpreter(text, chosen).unwrap(), call, "{text}");
        }
        assert_eq!(
            interpreter("print(1)\n", None).unwrap_err(),
            "Task failed: module (m) is missing interpreter line"
        );
    }
}
