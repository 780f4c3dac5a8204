use crate::playbook::Task;

/// `--tags` and `--skip-tags`, with Ansible's special words `all`, `always`, `never`, `tagged` and `untagged`.
#[derive(Clone, Debug, Default)]
pub struct TagFilter {
    /// Tags to run; empty for all.
    pub only: Vec<String>,
    /// Tags to leave out.
    pub skip: Vec<String>,
}

impl TagFilter {
    /// Splits comma-separated lists, as on a command line.
    #[must_use]
    pub fn parse(only: &[String], skip: &[String]) -> Self {
        let split = |lists: &[String]| {
            lists
                .iter()
                .flat_map(|list| list.split(','))
                .map(|tag| tag.trim().to_owned())
                .filter(|tag| !tag.is_empty())
                .collect()
        };
        Self {
            only: split(only),
            skip: split(skip),
        }
    }

    /// Whether a task is to run; templates among its tags stand for themselves.
    #[must_use]
    pub fn takes(&self, task: &Task) -> bool {
        let tags = task.directives.tags.iter();
        self.takes_tags(
            &tags
                .map(|tag| tag.as_str().unwrap_or_else(|| tag.raw()).to_owned())
                .collect::<Vec<_>>(),
        )
    }

    /// Whether something with these tags is to run.
    #[must_use]
    pub fn takes_tags(&self, tags: &[String]) -> bool {
        let has = |tag: &str| tags.iter().any(|own| own == tag);
        let named = |list: &[String]| list.iter().any(|tag| has(tag));
        let word = |list: &[String], word: &str| list.iter().any(|tag| tag == word);

        let wanted = if self.only.is_empty() {
            !has("never")
        } else if has("always") || named(&self.only) {
            true
        } else if has("never") {
            false
        } else {
            word(&self.only, "all")
                || (word(&self.only, "tagged") && !tags.is_empty())
                || (word(&self.only, "untagged") && tags.is_empty())
        };
        let skipped = named(&self.skip)
            || (word(&self.skip, "all") && !has("always"))
            || (word(&self.skip, "tagged") && !tags.is_empty())
            || (word(&self.skip, "untagged") && tags.is_empty());
        wanted && !skipped
    }
}

#[cfg(test)]
mod tests {
    use super::TagFilter;

    fn takes(only: &[&str], skip: &[&str], tags: &[&str]) -> bool {
        let own = |list: &[&str]| list.iter().map(ToString::to_string).collect::<Vec<_>>();
        TagFilter::parse(&own(only), &own(skip)).takes_tags(&own(tags))
    }

    #[test]
    fn without_a_filter_all_but_never_runs() {
        assert!(takes(&[], &[], &[]));
        assert!(takes(&[], &[], &["web"]));
        assert!(!takes(&[], &[], &["never", "web"]));
    }

    #[test]
    fn only_named_tags_and_always_run() {
        assert!(takes(&["web,db"], &[], &["db"]));
        assert!(takes(&["web"], &[], &["always"]));
        assert!(!takes(&["web"], &[], &["db"]));
        assert!(!takes(&["web"], &[], &[]));
        assert!(takes(&["web"], &[], &["never", "web"]));
    }

    #[test]
    fn special_words_choose_by_being_tagged() {
        assert!(takes(&["tagged"], &[], &["x"]));
        assert!(!takes(&["tagged"], &[], &[]));
        assert!(takes(&["untagged"], &[], &[]));
        assert!(!takes(&["tagged"], &[], &["never"]));
        assert!(takes(&["all"], &[], &[]));
    }

    #[test]
    fn skipped_tags_win() {
        assert!(!takes(&["web"], &["slow"], &["web", "slow"]));
        assert!(!takes(&[], &["always"], &["always"]));
        assert!(!takes(&[], &["all"], &["web"]));
        assert!(takes(&[], &["all"], &["always"]));
        assert!(!takes(&[], &["untagged"], &[]));
    }
}
