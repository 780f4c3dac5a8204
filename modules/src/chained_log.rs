//! A log of which each line is bound to the one before it, for both sides: what a host and a controller write down of runs.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use fleet_wire::chain;

/// How much of the file is looked through at once for where its last line begins, in bytes.
const PART: u64 = 64 << 10;

/// Adds a record, a JSON object, to a log that its owner alone can read; made where it is missing. On disk when this
/// returns, and behind what others write at the same time.
///
/// # Errors
/// As the system says.
pub fn append(path: &Path, record: &str) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let mut file = OpenOptions::new()
        .read(true)
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)?;
    file.lock()?;
    let last = last_line(&mut file)?;
    let line = chain(last.as_deref(), record);
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}

/// The last line without its end, however long it is.
fn last_line(file: &mut File) -> io::Result<Option<String>> {
    let mut start = file.seek(SeekFrom::End(0))?;
    let mut text: Vec<u8> = Vec::new();
    while start > 0 {
        let from = start.saturating_sub(PART);
        let mut part = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        Read::by_ref(file)
            .take(start - from)
            .read_to_end(&mut part)?;
        part.extend(text);
        (text, start) = (part, from);
        let body = text.strip_suffix(b"\n").unwrap_or(&text);
        if let Some(end) = body.iter().rposition(|byte| *byte == b'\n') {
            return Ok(Some(String::from_utf8_lossy(&body[end + 1..]).into_owned()));
        }
    }
    let body = text.strip_suffix(b"\n").unwrap_or(&text);
    Ok((!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::{PART, append};

    #[test]
    fn lines_of_any_length_follow_one_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("logs/audit.jsonl");
        for length in [10, 3 * PART as usize, 20, 30] {
            append(&path, &format!("{{\"text\":\"{}\"}}", "x".repeat(length))).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(fleet_wire::verify_chain(text.lines()), Ok(4));
    }
}
