//! The lines of a crontab.

/// What stands before a job that has a name.
const MARK: &str = "#Ansible: ";

/// A crontab in hand.
pub(super) struct Crontab {
    lines: Vec<String>,
}

/// A job that is wanted.
pub(super) struct Job<'a> {
    pub(super) name: &'a str,
    pub(super) line: String,
}

/// Where a new variable goes.
pub(super) enum Place<'a> {
    First,
    After(&'a str),
    Before(&'a str),
}

impl Crontab {
    pub(super) fn parse(text: &str) -> Self {
        Self {
            lines: text.lines().map(str::to_owned).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        match self.lines.is_empty() {
            true => String::new(),
            false => format!("{}\n", self.lines.join("\n")),
        }
    }

    /// The names of the jobs that have one.
    pub(super) fn jobs(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| line.strip_prefix(MARK))
            .collect()
    }

    /// The names of the variables.
    pub(super) fn variables(&self) -> Vec<&str> {
        self.lines
            .iter()
            .filter_map(|line| variable(line))
            .collect()
    }

    fn job_at(&self, name: &str) -> Option<usize> {
        self.lines
            .iter()
            .position(|line| line.strip_prefix(MARK) == Some(name))
    }

    fn variable_at(&self, name: &str) -> Option<usize> {
        self.lines
            .iter()
            .position(|line| variable(line) == Some(name))
    }

    pub(super) fn set_job(&mut self, job: &Job<'_>) {
        let mark = format!("{MARK}{}", job.name);
        if let Some(at) = self.job_at(job.name) {
            match self.lines.get_mut(at + 1) {
                Some(line) => line.clone_from(&job.line),
                None => self.lines.push(job.line.clone()),
            }
        } else if let Some(at) = self.lines.iter().position(|line| *line == job.line)
            && (at == 0 || !self.lines[at - 1].starts_with(MARK))
        {
            // The very job without a name gets one.
            self.lines.insert(at, mark);
        } else {
            self.lines.extend([mark, job.line.clone()]);
        }
    }

    pub(super) fn remove_job(&mut self, name: &str) {
        if let Some(at) = self.job_at(name) {
            let to = (at + 2).min(self.lines.len());
            self.lines.drain(at..to);
        }
    }

    pub(super) fn set_variable(
        &mut self,
        name: &str,
        value: &str,
        place: Place<'_>,
    ) -> Result<(), String> {
        let line = format!("{name}=\"{value}\"");
        if let Some(at) = self.variable_at(name) {
            self.lines[at] = line;
            return Ok(());
        }
        let at = match place {
            Place::First => 0,
            Place::After(other) => self.other(other)? + 1,
            Place::Before(other) => self.other(other)?,
        };
        self.lines.insert(at, line);
        Ok(())
    }

    fn other(&self, name: &str) -> Result<usize, String> {
        self.variable_at(name)
            .ok_or_else(|| format!("Variable named '{name}' not found."))
    }

    pub(super) fn remove_variable(&mut self, name: &str) {
        if let Some(at) = self.variable_at(name) {
            self.lines.remove(at);
        }
    }
}

/// The name of the variable that a line sets.
fn variable(line: &str) -> Option<&str> {
    let (name, _) = line.split_once('=')?;
    let name = name.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (!name.is_empty() && name.chars().all(plain)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_told_by_their_names_and_others_stay() {
        let mut tab = Crontab::parse("# mine\n0 1 * * * theirs\n");
        tab.set_job(&Job {
            name: "a",
            line: "@daily x".to_owned(),
        });
        tab.set_job(&Job {
            name: "b",
            line: "0 1 * * * theirs".to_owned(),
        });
        assert_eq!(
            tab.text(),
            "# mine\n#Ansible: b\n0 1 * * * theirs\n#Ansible: a\n@daily x\n"
        );
        assert_eq!(tab.jobs(), ["b", "a"]);
        tab.remove_job("b");
        tab.remove_job("none");
        assert_eq!(tab.text(), "# mine\n#Ansible: a\n@daily x\n");
    }

    #[test]
    fn variables_go_where_they_are_asked_to() {
        let mut tab = Crontab::parse("A=\"1\"\n* * * * * x=1 y\n");
        tab.set_variable("B", "2", Place::After("A")).unwrap();
        tab.set_variable("C", "3", Place::Before("B")).unwrap();
        tab.set_variable("D", "4", Place::First).unwrap();
        tab.set_variable("A", "5", Place::First).unwrap();
        assert_eq!(tab.variables(), ["D", "A", "C", "B"]);
        assert!(tab.text().contains("A=\"5\"\n"));
        let problem = tab.set_variable("E", "", Place::After("Z")).unwrap_err();
        assert_eq!(problem, "Variable named 'Z' not found.");
    }
}
