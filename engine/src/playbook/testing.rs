//! Projects of a few files, for the tests beside the code.

use std::{path::Path, sync::Arc};

use tempfile::TempDir;

use super::{Around, BookSettings, Books, Play, Reading, Step, Task};
use crate::{
    template::{NoController, Templar, TemplateSettings},
    vault::Vault,
};

/// Files in a directory of their own.
pub(super) struct Project(TempDir);

impl Project {
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn books(&self) -> Books {
        let templar = Templar::new(TemplateSettings {
            search_path: Vec::new(),
            playbook_dir: self.path().to_owned(),
            controller: Arc::new(NoController),
            vault: Vault::default(),
            managed: String::new(),
        });
        Books::new(BookSettings::new(Arc::new(templar)))
    }

    pub(super) fn read(&self) -> Reading {
        self.books().playbook(&self.path().join("site.yml"))
    }

    /// Its only play, which must be without mistakes.
    pub(super) fn play(&self) -> Arc<Play> {
        let reading = self.read();
        assert_eq!(self.told(&reading), Vec::<String>::new());
        Arc::clone(&reading.playbook.plays[0])
    }

    /// All mistakes, with places relative to the project.
    pub(super) fn told(&self, reading: &Reading) -> Vec<String> {
        let all = reading.mistakes.iter().chain(&reading.late);
        all.map(|problem| self.plain(&problem.to_string()))
            .collect()
    }

    /// The same of a playbook of this text.
    pub(super) fn told_of(text: &str) -> Vec<String> {
        let project = Self::of(&[("site.yml", text)]);
        let reading = project.read();
        project.told(&reading)
    }

    pub(super) fn plain(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.path().display()), "")
            .replace(&self.path().display().to_string(), "PROJECT")
    }

    /// What stands around the first task of a play that is an include.
    pub(super) fn include(&self, play: &Play) -> (Arc<Task>, Around) {
        let include = play
            .all_tasks()
            .find(|task| matches!(task.action, super::Action::Include { .. }))
            .unwrap();
        let around = Around::of(include, false, self.path(), 7);
        (Arc::clone(include), around)
    }
}

/// The titles of tasks, with the blocks that they stand in.
pub(super) fn outline(steps: &[Step]) -> String {
    let texts = steps.iter().map(|step| match step {
        Step::Task(task) => task.full_title(),
        Step::Block(block) => {
            let mut text = format!("[{}", outline(&block.body));
            for (name, part) in [("rescue", &block.rescue), ("always", &block.always)] {
                if !part.is_empty() {
                    text.push_str(&format!(" {name}: {}", outline(part)));
                }
            }
            text + "]"
        }
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The texts of nodes.
pub(super) fn texts(nodes: &[fleet_yaml::Node]) -> Vec<String> {
    nodes
        .iter()
        .map(|node| node.scalar_text().unwrap_or_default().into_owned())
        .collect()
}
