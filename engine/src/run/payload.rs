//! What goes to a host beside a task: a text that was made here, or a file that is read again for each host, for
//! no file is too large to be sent and many are too large to be held.

use std::{
    io::{self, Read},
    path::Path,
    sync::Arc,
};

use sha2::{Digest, Sha256};

use crate::sources;

/// Contents up to this size are held, in bytes.
const HELD: u64 = 1 << 20;
/// A content goes to the host in parts of this size, in bytes.
const PART: usize = 1 << 20;

/// A content and what it is known by.
#[derive(Clone)]
pub(super) struct Payload {
    /// SHA-256 in lower-case hex.
    pub(super) sha256: String,
    /// In bytes.
    pub(super) size: u64,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Held(Arc<[u8]>),
    File(Arc<Path>),
}

impl Payload {
    pub(super) fn held(bytes: Vec<u8>) -> Self {
        Self {
            sha256: super::content::sha256(&bytes),
            size: bytes.len() as u64,
            source: Source::Held(bytes.into()),
        }
    }

    /// A file of this machine, hashed now and read again when it is asked for.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn file(path: &Path) -> io::Result<Self> {
        if sources::about(path)?.size <= HELD {
            return sources::read(path).map(Self::held);
        }
        let (mut file, mut hasher, mut size) = (sources::open(path)?, Sha256::new(), 0);
        let mut part = vec![0; PART];
        loop {
            let length = file.read(&mut part)?;
            if length == 0 {
                break;
            }
            hasher.update(&part[..length]);
            size += length as u64;
        }
        let sha256: String = hasher
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        sources::hashed(path, &sha256);
        Ok(Self {
            sha256,
            size,
            source: Source::File(path.into()),
        })
    }

    /// The whole of it, where it is small enough to travel with its task.
    pub(super) fn whole(&self, limit: usize) -> Option<Vec<u8>> {
        match &self.source {
            Source::Held(bytes) => (bytes.len() <= limit).then(|| bytes.to_vec()),
            Source::File(_) => None,
        }
    }

    /// Its parts in order; an empty content has one empty part. A file that has grown ends where it ended when it
    /// was hashed: whatever else has become of it, the host notices by the hash.
    ///
    /// # Errors
    /// When its file cannot be opened any more.
    pub(super) fn parts(&self) -> io::Result<Parts> {
        let reader: Box<dyn Read + Send> = match &self.source {
            Source::Held(bytes) => Box::new(io::Cursor::new(Arc::clone(bytes))),
            Source::File(path) => sources::open(path).map_err(|problem| {
                io::Error::new(
                    problem.kind(),
                    format!("{}: cannot be read: {problem}", path.display()),
                )
            })?,
        };
        Ok(Parts {
            reader,
            left: self.size,
            ended: false,
        })
    }
}

/// A content, part by part, each with whether it is the last.
pub(super) struct Parts {
    reader: Box<dyn Read + Send>,
    left: u64,
    ended: bool,
}

impl Iterator for Parts {
    type Item = io::Result<(Vec<u8>, bool)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let length = usize::try_from(self.left).map_or(PART, |left| left.min(PART));
        let mut bytes = vec![0; length];
        let read = self.reader.read_exact(&mut bytes);
        self.left -= length as u64;
        self.ended = self.left == 0 || read.is_err();
        Some(read.map(|()| (bytes, self.ended)))
    }
}

#[cfg(test)]
mod tests {
    use super::{PART, Payload};

    fn joined(payload: &Payload) -> (Vec<u8>, Vec<bool>) {
        let parts: Vec<_> = payload.parts().unwrap().map(Result::unwrap).collect();
        (
            parts.iter().flat_map(|(bytes, _)| bytes.clone()).collect(),
            parts.iter().map(|(_, last)| *last).collect(),
        )
    }

    #[test]
    fn a_large_file_travels_in_parts_as_a_held_one_does() {
        let bytes: Vec<u8> = (0..2 * PART + 5)
            .map(|number| (number % 251) as u8)
            .collect();
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), &bytes).unwrap();
        let (file, held) = (
            Payload::file(path.path()).unwrap(),
            Payload::held(bytes.clone()),
        );
        assert_eq!((&file.sha256, file.size), (&held.sha256, held.size));
        assert_eq!(joined(&file), (bytes.clone(), vec![false, false, true]));
        assert_eq!(joined(&held), (bytes.clone(), vec![false, false, true]));
        assert_eq!(
            (file.whole(usize::MAX), held.whole(usize::MAX)),
            (None, Some(bytes))
        );
    }

    #[test]
    fn an_empty_content_has_one_empty_part() {
        assert_eq!(joined(&Payload::held(Vec::new())), (Vec::new(), vec![true]));
    }

    #[test]
    fn a_file_that_has_shrunk_is_a_failure() {
        let path = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(path.path(), vec![7; PART + 1]).unwrap();
        let payload = Payload::file(path.path()).unwrap();
        std::fs::write(path.path(), "short").unwrap();
        let parts: Vec<_> = payload.parts().unwrap().collect();
        assert!(parts.len() == 1 && parts[0].is_err());
    }
}
