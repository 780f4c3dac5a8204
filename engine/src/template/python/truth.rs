//! What counts as true.

use minijinja::Value;

/// What Ansible takes for a boolean when it reads one from text (`| bool`, `when: "yes"`).
pub(crate) fn from_text(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "on" | "1" | "true" | "t" | "1.0" => Some(true),
        "n" | "no" | "off" | "0" | "false" | "f" | "0.0" => Some(false),
        _ => None,
    }
}

/// The truth of the outcome of a condition: Python's, except that the texts `true` and `false` in any case mean what
/// they say, as in every Ansible before 2.19 (where a condition that gives a text is an error).
pub(crate) fn of_condition(value: &Value) -> bool {
    match value.as_str() {
        Some(text) if text.eq_ignore_ascii_case("false") => false,
        Some(text) if text.eq_ignore_ascii_case("true") => true,
        Some(text) => !text.is_empty(),
        None => value.is_true(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_say_true_or_false_are_taken_at_their_word() {
        assert!(!of_condition(&Value::from("False")));
        assert!(of_condition(&Value::from("true")));
        assert!(of_condition(&Value::from("no")));
        assert!(!of_condition(&Value::from("")));
        assert!(!of_condition(&Value::from(0)));
        assert!(!of_condition(&Value::from(Vec::<Value>::new())));
    }

    #[test]
    fn bool_reads_what_ansible_reads() {
        assert_eq!(from_text("Yes"), Some(true));
        assert_eq!(from_text("off"), Some(false));
        assert_eq!(from_text("maybe"), None);
    }
}
