use sha2::{Digest, Sha256};

/// Stands in the place of the line before the first.
const NONE: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The next line of an audit log: the record, a JSON object, with its number and the SHA-256 of the line before it. Nobody
/// takes a line out or alters one without all lines behind it telling so.
#[must_use]
pub fn chain(last: Option<&str>, record: &str) -> String {
    let (number, before) = match last {
        Some(line) => (number(line).map_or(0, |number| number + 1), sum(line)),
        None => (0, NONE.to_owned()),
    };
    format!("{{\"seq\":{number},\"prev\":\"{before}\",\"record\":{record}}}")
}

/// How many lines of a log follow one another as they were written.
///
/// # Errors
/// The first line, from 1 on, that does not follow the one before it, and why.
pub fn verify_chain<'a>(lines: impl Iterator<Item = &'a str>) -> Result<u64, (u64, &'static str)> {
    let (mut at, mut before) = (0, NONE.to_owned());
    for line in lines {
        if number(line) != Some(at) {
            return Err((
                at + 1,
                "its number is not the next one: lines are missing or were put in",
            ));
        }
        if previous(line) != Some(before.as_str()) {
            return Err((
                at + 1,
                "the line before it is not as it was when this one was written",
            ));
        }
        before = sum(line);
        at += 1;
    }
    Ok(at)
}

fn number(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("{\"seq\":")?;
    rest.split(',').next()?.parse().ok()
}

fn previous(line: &str) -> Option<&str> {
    line.split("\"prev\":\"").nth(1)?.split('"').next()
}

fn sum(line: &str) -> String {
    Sha256::digest(line)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{chain, verify_chain};

    #[test]
    fn a_line_that_was_altered_taken_out_or_put_in_is_found() {
        let mut lines: Vec<String> = Vec::new();
        for number in 0..4 {
            let last = lines.last().map(String::as_str);
            lines.push(chain(last, &format!("{{\"run\":\"r{number}\"}}")));
        }
        let verify = |lines: &[String]| verify_chain(lines.iter().map(String::as_str));
        assert_eq!(verify(&lines), Ok(4));
        let mut altered = lines.clone();
        altered[1] = altered[1].replace("r1", "r9");
        assert_eq!(verify(&altered).unwrap_err().0, 3);
        let mut shorter = lines.clone();
        shorter.remove(1);
        assert_eq!(verify(&shorter).unwrap_err().0, 2);
    }
}
