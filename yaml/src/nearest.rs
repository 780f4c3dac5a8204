//! Did you mean …?

/// Names are not longer; the comparison takes time with the square of the length.
const LONGEST: usize = 100;

/// The candidate that `word` was most likely meant to be, where one is near enough.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let wanted = word.to_lowercase();
    // One slip in a short word, a third of a longer one.
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != word && candidate.len() <= LONGEST)
        .map(|candidate| (distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, candidate)| {
            let length = candidate.len().abs_diff(word.len());
            (*distance, foreign(&wanted, candidate), length)
        })
        .map(|(_, candidate)| candidate)
}

/// How many letters of a word a candidate has not got: letters are dropped more easily than invented.
fn foreign(word: &str, candidate: &str) -> usize {
    let mut left: Vec<char> = candidate.to_lowercase().chars().collect();
    let mut taken = |letter: char| match left.iter().position(|other| *other == letter) {
        Some(at) => {
            left.swap_remove(at);
            true
        }
        None => false,
    };
    word.chars().filter(|letter| !taken(*letter)).count()
}

/// How many letters have to be changed, added, dropped or swapped with their neighbour
/// (Damerau-Levenshtein, optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_is_seen_and_a_different_word_is_not() {
        let words = ["template", "file", "copy", "become"];
        assert_eq!(nearest("tempalte", words), Some("template"));
        assert_eq!(nearest("fiel", words), Some("file"));
        assert_eq!(nearest("Become", words), Some("become"));
        assert_eq!(nearest("docker_container", words), None);
        assert_eq!(nearest("x", words), None);
        assert_eq!(
            nearest("copy", ["copy"]),
            None,
            "a word is not meant where it stands itself"
        );
    }

    #[test]
    fn of_several_the_nearest_is_meant() {
        assert_eq!(nearest("stats", ["state", "stat"]), Some("state"));
        assert_eq!(
            nearest("taks", ["tags", "tasks"]),
            Some("tasks"),
            "a letter was dropped"
        );
        assert_eq!(
            nearest("become-user", ["become", "become_user"]),
            Some("become_user")
        );
    }

    #[test]
    fn what_is_no_name_is_not_compared() {
        let long = "a".repeat(1_000_000);
        assert_eq!(nearest(&long, [long[1..].as_ref()]), None);
        assert_eq!(nearest("a", [long.as_ref()]), None);
    }
}
