//! Values that are only ever raised.

/// The numbers of a value; none where it is not made of numbers.
pub(super) fn numbers(value: &str) -> Option<Vec<i128>> {
    let numbers: Option<Vec<i128>> = value
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect();
    numbers.filter(|numbers| !numbers.is_empty())
}

/// The larger of two values, number by number; none where they cannot be compared.
pub(super) fn raised(key: &str, wanted: &str, current: &str) -> Option<String> {
    let (wanted, current) = (numbers(wanted)?, numbers(current)?);
    if wanted.len() != current.len() {
        return None;
    }
    // A range is raised by widening it.
    let widens = key == "net.ipv4.ip_local_port_range";
    let larger: Vec<String> = wanted
        .into_iter()
        .zip(current)
        .enumerate()
        .map(|(at, (wanted, current))| match widens && at == 0 {
            true => wanted.min(current).to_string(),
            false => wanted.max(current).to_string(),
        })
        .collect();
    Some(larger.join(" "))
}

#[cfg(test)]
mod tests {
    use super::raised;

    #[test]
    fn each_number_is_raised_by_itself() {
        assert_eq!(raised("a", "4096", "128").as_deref(), Some("4096"));
        assert_eq!(
            raised("fs.file-max", "2097152", "9223372036854775807").as_deref(),
            Some("9223372036854775807")
        );
        assert_eq!(raised("a", "1 9 1", "2 8 1").as_deref(), Some("2 9 1"));
        assert_eq!(raised("a", "1 2", "1 2 3"), None);
        assert_eq!(raised("a", "bbr", "cubic"), None);
        assert_eq!(
            raised("net.ipv4.ip_local_port_range", "1024 65000", "32768 60999").as_deref(),
            Some("1024 65000")
        );
        assert_eq!(
            raised("net.ipv4.ip_local_port_range", "10000 50000", "1024 60999").as_deref(),
            Some("1024 60999")
        );
    }
}
