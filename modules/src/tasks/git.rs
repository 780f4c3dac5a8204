use std::path::{Path, PathBuf};

use fleet_wire::SettingKind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::args::{Bool, List, Number, Text};
use crate::host::{Entry, Fault, Host, Output, Setting};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Git>();

/// Brings a directory to a commit of a git repository, by the host's own git.
///
/// A plan asks the repository and shows the commits. An undo checks out the old commit, or removes what was cloned.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Git {
    /// The repository's address.
    repo: Text,
    /// The directory.
    dest: Option<Text>,
    /// The branch, tag or commit; `HEAD` for the repository's own branch.
    #[serde(default = "head")]
    version: Text,
    /// What the repository is called there.
    #[serde(default = "origin")]
    remote: Text,
    /// Clone where there is nothing yet.
    #[serde(default = "yes")]
    clone: Bool,
    /// Fetch where there is a clone already.
    #[serde(default = "yes")]
    update: Bool,
    /// Throw away local changes.
    #[serde(default)]
    force: Bool,
    /// A clone without files.
    #[serde(default)]
    bare: Bool,
    /// Only so many commits of its history.
    depth: Option<Number>,
    /// Only the history of the version.
    #[serde(default)]
    single_branch: Bool,
    /// One more reference to fetch.
    refspec: Option<Text>,
    /// Submodules, too.
    #[serde(default = "yes")]
    recursive: Bool,
    /// Submodules at the tips of their branches.
    #[serde(default)]
    track_submodules: Bool,
    /// A clone on the host to borrow objects from.
    reference: Option<Text>,
    /// Where the repository itself lies, apart from its files.
    separate_git_dir: Option<Text>,
    /// The private key to connect with.
    key_file: Option<Text>,
    /// More options for ssh.
    ssh_opts: Option<Text>,
    /// Take any key of the server: it could be anybody's.
    #[serde(default)]
    accept_hostkey: Bool,
    /// Take the key of a server that is not known yet.
    #[serde(default)]
    accept_newhostkey: Bool,
    /// Check the signature of the commit or tag.
    #[serde(default)]
    verify_commit: Bool,
    /// The git to run.
    executable: Option<Text>,
    /// The umask for files, such as `"0022"`.
    umask: Option<Text>,
    /// Not supported: run `git archive` by the module command.
    archive: Option<Value>,
    /// Not supported, as `archive`.
    archive_prefix: Option<Value>,
    /// Not supported: keep the trusted keys in the user's own keyring.
    gpg_allowlist: Option<List>,
}

fn head() -> Text {
    "HEAD".into()
}
fn origin() -> Text {
    "origin".into()
}
fn yes() -> Bool {
    Bool(true)
}

impl Task for Git {
    const NAME: &'static str = "git";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] =
        &[("name", "repo"), ("gpg_whitelist", "gpg_allowlist")];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.archive.is_some() || self.archive_prefix.is_some() {
            return Err(ArgumentError::of(
                "archive",
                "it is not supported: run `git archive` by the module command",
            ));
        }
        if self
            .gpg_allowlist
            .as_ref()
            .is_some_and(|list| !list.is_empty())
        {
            return Err(ArgumentError::of(
                "gpg_allowlist",
                "it is not supported: keep the trusted keys in the user's keyring",
            ));
        }
        if self.dest.is_none() && *self.clone {
            return Err(ArgumentError::of(
                "dest",
                "the destination directory must be specified unless clone=no",
            ));
        }
        if *self.bare && self.separate_git_dir.is_some() {
            return Err(ArgumentError::of(
                "separate_git_dir",
                "it does not go with bare",
            ));
        }
        let words = [
            Some(&self.repo),
            Some(&self.version),
            Some(&self.remote),
            self.refspec.as_ref(),
        ];
        match words
            .into_iter()
            .flatten()
            .find(|word| word.starts_with('-'))
        {
            Some(word) => Err(ArgumentError::of(
                "repo",
                format!("`{}` would be read as an option of git", &**word),
            )),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let Some(dest) = &self.dest else {
            let remote = self.remote_commit(host, None)?;
            return Ok(Report::of(json!({"before": null, "after": remote})));
        };
        let dest = host.resolve(Path::new(&**dest))?;
        let known = self.is_clone(host, &dest)?;
        let name = dest.display().to_string();
        let before = if known {
            host.setting(SettingKind::Checkout, &name)?
        } else {
            String::new()
        };
        let told = |before: &str| (!before.is_empty()).then(|| before.to_owned());
        if !known && !*self.clone {
            let remote = self.remote_commit(host, None)?;
            return Ok(Report::of(json!({"before": null, "after": remote})));
        }
        if known && !host.planning() && self.is_dirty(host, &name)? && !*self.force {
            return Err(Fault::new(format!(
                "Local modifications exist in the destination: {name} (force=no)."
            )));
        }
        let url = if known { self.url(host, &name)? } else { None };
        let other_url = url.as_deref().is_some_and(|url| url != &*self.repo);
        if known && !*self.update && !other_url {
            return Ok(Report::of(
                json!({"before": told(&before), "after": told(&before)}),
            ));
        }
        let wanted = self.remote_commit(host, known.then_some(name.as_str()))?;
        let dirty = known && *self.force && self.is_dirty(host, &name)?;
        let mut fields = json!({"before": told(&before), "after": wanted});
        if other_url {
            fields["remote_url_changed"] = true.into();
        }
        if before == wanted && !other_url && !dirty {
            return Ok(Report::of(fields));
        }
        let setting = Setting {
            kind: SettingKind::Checkout,
            name: name.clone(),
            value: wanted.clone(),
        };
        host.set_by(setting, &before, |host| {
            if known {
                self.fetch(host, &name, other_url)?;
                self.checkout(host, &name, &wanted)?;
            } else {
                self.clone_to(host, &dest)?;
                if !*self.bare {
                    self.checkout(host, &name, &wanted)?;
                }
            }
            self.verify(host, &name)
        })?;
        Ok(Report::of(fields))
    }
}

impl Git {
    /// Runs git; in a directory where one is named.
    fn git(&self, host: &Host, dir: Option<&str>, words: &[&str]) -> Result<Output, Fault> {
        let program = self.executable.as_deref().unwrap_or("git");
        let mut argv: Vec<String> = vec!["env".to_owned(), "GIT_TERMINAL_PROMPT=0".to_owned()];
        if let Some(ssh) = self.ssh() {
            argv.push(format!("GIT_SSH_COMMAND={ssh}"));
        }
        if let Some(umask) = &self.umask {
            let words = ["sh", "-c", "umask \"$1\"; shift; exec \"$@\"", "sh", umask];
            argv.extend(words.map(str::to_owned));
        }
        argv.push(program.to_owned());
        if let Some(dir) = dir {
            let safe = format!("safe.directory={dir}");
            argv.extend(["-c", &safe, "-C", dir].map(str::to_owned));
        }
        argv.extend(words.iter().map(|&word| word.to_owned()));
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        host.tool(&argv, None)
    }

    fn must(&self, host: &Host, dir: Option<&str>, words: &[&str]) -> Result<Output, Fault> {
        let output = self.git(host, dir, words)?;
        match output.ok() {
            true => Ok(output),
            false if output.rc == 127 => Err(Fault::new(
                "Failed to find required executable \"git\": install git before this task",
            )),
            false => Err(Fault::new(format!(
                "git {} failed: {}",
                words.first().unwrap_or(&""),
                output.complaint()
            ))
            .with("rc", output.rc)
            .with("stdout", output.text())
            .with("stderr", output.error_text())),
        }
    }

    fn ssh(&self) -> Option<String> {
        let mut words = vec!["ssh -o BatchMode=yes".to_owned()];
        if *self.accept_hostkey {
            words.push("-o StrictHostKeyChecking=no".to_owned());
        } else if *self.accept_newhostkey {
            words.push("-o StrictHostKeyChecking=accept-new".to_owned());
        }
        if let Some(key) = &self.key_file {
            words.push(format!(
                "-i '{}' -o IdentitiesOnly=yes",
                key.replace('\'', "'\\''")
            ));
        }
        words.extend(self.ssh_opts.as_ref().map(ToString::to_string));
        (words.len() > 1).then(|| words.join(" "))
    }

    fn is_clone(&self, host: &Host, dest: &Path) -> Result<bool, Fault> {
        let at = |path: PathBuf| Ok::<_, Fault>(host.entry(&path)? != Entry::Absent);
        if *self.bare {
            return at(dest.join("config"));
        }
        let known = at(dest.join(".git"))?
            || !host
                .setting(SettingKind::Checkout, &dest.display().to_string())?
                .is_empty();
        if !known && host.list(dest)?.is_some_and(|names| !names.is_empty()) && *self.clone {
            return Err(Fault::new(format!(
                "cannot clone into {}: it is no clone of a repository, and not empty",
                dest.display()
            )));
        }
        Ok(known)
    }

    fn is_dirty(&self, host: &Host, dest: &str) -> Result<bool, Fault> {
        if *self.bare || !Path::new(dest).exists() {
            return Ok(false);
        }
        let output = self.git(
            host,
            Some(dest),
            &["status", "--porcelain", "--untracked-files=no"],
        )?;
        Ok(!output.text().trim().is_empty())
    }

    fn url(&self, host: &Host, dest: &str) -> Result<Option<String>, Fault> {
        let output = self.git(host, Some(dest), &["remote", "get-url", &self.remote])?;
        Ok(output.ok().then(|| output.text().trim().to_owned()))
    }

    /// The commit that the version is in the repository.
    fn remote_commit(&self, host: &Host, dest: Option<&str>) -> Result<String, Fault> {
        let version = &*self.version;
        let is_commit = version.len() == 40 && version.bytes().all(|c| c.is_ascii_hexdigit());
        if is_commit {
            return Ok(version.to_lowercase());
        }
        let output = self.must(host, None, &["ls-remote", "--", &self.repo])?;
        let text = output.text();
        let references: Vec<(&str, &str)> = text
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        let named = |name: &str| {
            references
                .iter()
                .find(|(_, known)| *known == name)
                .map(|(commit, _)| (*commit).to_owned())
        };
        let found = match version {
            "HEAD" => named("HEAD"),
            _ => named(&format!("refs/heads/{version}"))
                .or_else(|| named(&format!("refs/tags/{version}^{{}}")))
                .or_else(|| named(&format!("refs/tags/{version}")))
                .or_else(|| named(version)),
        };
        if let Some(found) = found {
            return Ok(found);
        }
        // A short commit is known to whoever has it.
        let known = match dest.filter(|dest| Path::new(dest).exists()) {
            Some(dest) => {
                let name = format!("{version}^{{commit}}");
                let output = self.git(
                    host,
                    Some(dest),
                    &["rev-parse", "--verify", "--quiet", &name],
                )?;
                output.ok().then(|| output.text().trim().to_owned())
            }
            None => None,
        };
        known.ok_or_else(|| {
            Fault::new(format!("could not find the version `{version}` in {}: it is no branch, tag or commit there", &*self.repo))
        })
    }

    fn depth(&self) -> Vec<String> {
        let depth = self.depth.filter(|depth| **depth > 0);
        depth
            .map(|depth| format!("--depth={}", *depth))
            .into_iter()
            .collect()
    }

    fn clone_to(&self, host: &Host, dest: &Path) -> Result<(), Fault> {
        if let Some(parent) = dest.parent() {
            std::fs::create_dir_all(parent).map_err(|error| Fault::io("make", parent, error))?;
        }
        let commit =
            self.version.len() == 40 && self.version.bytes().all(|c| c.is_ascii_hexdigit());
        let mut words = vec!["clone".to_owned(), format!("--origin={}", &*self.remote)];
        if *self.bare {
            words.push("--bare".to_owned());
        }
        if &*self.version != "HEAD" && !commit && self.refspec.is_none() {
            words.push(format!("--branch={}", &*self.version));
        }
        if !commit {
            words.extend(self.depth());
        }
        if *self.single_branch {
            words.push("--single-branch".to_owned());
        }
        words.extend(
            self.reference
                .iter()
                .map(|reference| format!("--reference={}", &**reference)),
        );
        words.extend(
            self.separate_git_dir
                .iter()
                .map(|dir| format!("--separate-git-dir={}", &**dir)),
        );
        words.extend([
            "--".to_owned(),
            self.repo.to_string(),
            dest.display().to_string(),
        ]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.must(host, None, &words)?;
        if let Some(refspec) = &self.refspec {
            let dest = dest.display().to_string();
            self.must(host, Some(&dest), &["fetch", &self.remote, refspec])?;
        }
        Ok(())
    }

    fn fetch(&self, host: &Host, dest: &str, other_url: bool) -> Result<(), Fault> {
        if other_url {
            self.must(
                host,
                Some(dest),
                &["remote", "set-url", &self.remote, &self.repo],
            )?;
        }
        let depth = self.depth();
        let mut words = vec!["fetch", "--tags", "--force"];
        words.extend(depth.iter().map(String::as_str));
        words.push(&self.remote);
        self.must(host, Some(dest), &words)?;
        let version = &*self.version;
        let more = match &self.refspec {
            Some(refspec) => Some(&**refspec),
            None if !depth.is_empty() && version != "HEAD" => Some(version),
            None => None,
        };
        if let Some(more) = more {
            let mut words = vec!["fetch"];
            words.extend(depth.iter().map(String::as_str));
            words.extend([&*self.remote, more]);
            self.must(host, Some(dest), &words)?;
        }
        Ok(())
    }

    fn checkout(&self, host: &Host, dest: &str, commit: &str) -> Result<(), Fault> {
        if *self.bare {
            return Ok(());
        }
        let version = &*self.version;
        let tracked = format!("refs/remotes/{}/{version}", &*self.remote);
        let is_branch = self
            .git(
                host,
                Some(dest),
                &["rev-parse", "--verify", "--quiet", &tracked],
            )?
            .ok();
        if version == "HEAD" {
            self.must(host, Some(dest), &["reset", "--hard", commit])?;
        } else if is_branch {
            let remote = format!("{}/{version}", &*self.remote);
            self.must(
                host,
                Some(dest),
                &["checkout", "--force", "-B", version, &remote],
            )?;
            self.must(host, Some(dest), &["reset", "--hard", commit])?;
        } else {
            let known = self
                .git(host, Some(dest), &["cat-file", "-e", commit])?
                .ok();
            if !known {
                self.must(host, Some(dest), &["fetch", &self.remote, commit])?;
            }
            let name = if self
                .git(
                    host,
                    Some(dest),
                    &["rev-parse", "--verify", "--quiet", version],
                )?
                .ok()
            {
                version
            } else {
                commit
            };
            self.must(host, Some(dest), &["checkout", "--force", name])?;
        }
        if *self.recursive && Path::new(dest).join(".gitmodules").exists() {
            self.must(host, Some(dest), &["submodule", "sync"])?;
            let mut words = vec!["submodule", "update", "--init", "--recursive"];
            if *self.track_submodules {
                words.push("--remote");
            }
            if *self.force {
                words.push("--force");
            }
            self.must(host, Some(dest), &words)?;
        }
        Ok(())
    }

    fn verify(&self, host: &Host, dest: &str) -> Result<(), Fault> {
        if !*self.verify_commit {
            return Ok(());
        }
        let tag = format!("refs/tags/{}", &*self.version);
        let is_tag = self
            .git(
                host,
                Some(dest),
                &["rev-parse", "--verify", "--quiet", &tag],
            )?
            .ok();
        let verb = if is_tag {
            "verify-tag"
        } else {
            "verify-commit"
        };
        let output = self.git(host, Some(dest), &[verb, &self.version])?;
        match output.ok() {
            true => Ok(()),
            false => Err(Fault::new(format!(
                "Failed to verify GPG signature of commit/tag \"{}\"",
                &*self.version
            ))
            .with("rc", output.rc)
            .with("stderr", output.error_text())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use serde_json::json;

    use super::MODULE;
    use crate::host::{Host, State};

    #[test]
    fn a_clone_is_made_brought_forward_and_undone() {
        let dir = tempfile::tempdir().unwrap();
        let (repo, dest) = (dir.path().join("repo"), dir.path().join("dest"));
        let sh = |cmd: &str| {
            let output = Command::new("sh")
                .arg("-ec")
                .arg(cmd)
                .current_dir(dir.path())
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let commit = "git -c user.name=a -c user.email=a@b commit -qam";
        let one = sh(&format!(
            "git init -q -b main repo; cd repo; echo 1 > f; git add f; {commit} 1; git rev-parse HEAD"
        ));
        let args = json!({"repo": repo, "dest": dest, "version": "main"});
        let mut plan = Host::plan();
        let planned = (MODULE.run)(args.clone(), &mut plan).unwrap();
        assert_eq!(
            (&planned.fields["before"], &planned.fields["after"]),
            (&json!(null), &json!(one))
        );
        assert_eq!(
            plan.end()[0].summary(),
            format!("checkout {}", dest.display())
        );
        assert!(!dest.exists());

        let state = State::at(dir.path().join("state").to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state.clone(), "r1", "test");
        (MODULE.run)(args.clone(), &mut host).unwrap();
        (MODULE.run)(args.clone(), &mut host).unwrap();
        assert_eq!(host.end().len(), 1);
        host.keep().unwrap();
        let two = sh(&format!(
            "cd repo; echo 2 > f; {commit} 2; git rev-parse HEAD"
        ));
        let mut host = Host::apply(state, "r2", "test");
        let report = (MODULE.run)(args.clone(), &mut host).unwrap();
        assert_eq!(
            (&report.fields["before"], &report.fields["after"]),
            (&json!(one), &json!(two))
        );
        assert_eq!(std::fs::read_to_string(dest.join("f")).unwrap(), "2\n");
        std::fs::write(dest.join("f"), "mine").unwrap();
        let fault = (MODULE.run)(args, &mut host).unwrap_err();
        assert!(
            fault.message.starts_with("Local modifications exist"),
            "{fault}"
        );
        host.undo();
        assert_eq!(std::fs::read_to_string(dest.join("f")).unwrap(), "1\n");
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(refused(json!({"repo": "x"})).starts_with("argument `dest`"));
        assert!(
            refused(json!({"repo": "--upload-pack=x", "dest": "/y"})).contains("option of git")
        );
        assert!(
            refused(json!({"repo": "x", "dest": "/y", "archive": "/z"})).contains("not supported")
        );
    }
}
