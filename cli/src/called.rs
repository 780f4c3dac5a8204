//! The names that fleetctl answers to: called as one of Ansible's programs, it is the verb that stands in for it.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// The version of Ansible whose ways these forms follow.
const ANSIBLE: &str = "2.21.5";

/// The version of Jinja whose language fleetctl's templates follow.
const JINJA: &str = "3.1";

/// A program of Ansible, and the verb that stands in for it.
const PROGRAMS: [(&str, &str); 4] = [
    ("ansible-playbook", "play"),
    ("ansible", "exec"),
    ("ansible-inventory", "inventory"),
    ("ansible-vault", "vault"),
];

/// A program of Ansible that no verb stands in for: it only lists what is there.
const GALAXY: &str = "ansible-galaxy";

/// How the program was called.
pub(crate) struct Call {
    /// The words, with the verb where a name stood for it.
    pub(crate) words: Vec<OsString>,
    /// The program of Ansible that is stood in for.
    program: Option<&'static str>,
}

impl Call {
    pub(crate) fn new(mut words: Vec<OsString>) -> Self {
        let name = words
            .first()
            .and_then(|own| Path::new(own).file_name())
            .and_then(|own| own.to_str());
        if let Some((program, verb)) = PROGRAMS.iter().find(|(own, _)| Some(*own) == name) {
            words[0] = "fleetctl".into();
            words.insert(1, (*verb).into());
            return Self {
                words,
                program: Some(program),
            };
        }
        if name == Some(GALAXY) {
            let program = Some(GALAXY);
            return Self { words, program };
        }
        let verb = words.get(1).and_then(|word| word.to_str());
        let program = PROGRAMS
            .iter()
            .find(|(_, own)| Some(*own) == verb)
            .map(|(program, _)| *program);
        Self { words, program }
    }

    /// Whether it stands in for `ansible-galaxy`.
    pub(crate) fn is_galaxy(&self) -> bool {
        self.program == Some(GALAXY)
    }

    /// The exit code of a call that cannot be understood.
    pub(crate) fn misuse(&self) -> u8 {
        if self.program.is_some() { 2 } else { 64 }
    }

    /// What `--version` prints in place of an Ansible program: scripts take its version from the first line.
    pub(crate) fn version(&self) -> Option<String> {
        let program = self.program?;
        let asks = |word: &OsString| word == "--version";
        let verb = usize::from(!self.is_galaxy());
        let options = self
            .words
            .iter()
            .skip(1 + verb)
            .take_while(|word| *word != "--");
        if !options.into_iter().any(asks) {
            return None;
        }
        let config = crate::ansible_cfg::read();
        let file = config
            .config
            .file()
            .map_or_else(|| "None".to_owned(), |path| path.display().to_string());
        let own = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("fleetctl"));
        let collections = config.config.collections_path().iter();
        let collections: Vec<_> = collections.map(|dir| dir.display().to_string()).collect();
        Some(format!(
            "{program} [core {ANSIBLE}]\n  config file = {file}\n  ansible collection location = {}\n  \
             executable location = {}\n  fleetctl version = {}\n  \
             jinja version = {JINJA} (the language that fleetctl's own templates follow)",
            collections.join(":"),
            own.display(),
            env!("CARGO_PKG_VERSION"),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::Call;

    fn words(text: &str) -> Vec<std::ffi::OsString> {
        text.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_program_of_ansible_is_its_verb() {
        let call = Call::new(words("/usr/bin/ansible-playbook -i hosts site.yml"));
        assert_eq!(call.words, words("fleetctl play -i hosts site.yml"));
        assert_eq!(call.misuse(), 2);
        assert_eq!(
            Call::new(words("ansible all")).words,
            words("fleetctl exec all")
        );
    }

    #[test]
    fn a_verb_that_stands_in_fails_as_the_program_does() {
        assert_eq!(Call::new(words("fleetctl play x.yml")).misuse(), 2);
        assert_eq!(Call::new(words("fleetctl plan x.yml")).misuse(), 64);
    }

    #[test]
    fn the_version_is_told_in_the_first_line() {
        let text = Call::new(words("fleetctl play --version")).version();
        let text = text.unwrap();
        assert!(text.starts_with("ansible-playbook [core 2."));
        // Roles look for this line.
        assert!(text.contains("\n  jinja version = 3.1 (the language that fleetctl's own"));
        assert_eq!(Call::new(words("fleetctl plan --version")).version(), None);
        assert_eq!(
            Call::new(words("fleetctl exec -- --version")).version(),
            None
        );
    }
}
