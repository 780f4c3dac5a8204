use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use fleet_wire::{Content, INLINE_LIMIT};
use sha2::{Digest, Sha256};

/// A file's content, in memory where it is small and in an open file where it is not.
#[derive(Clone, Debug)]
pub enum Body {
    /// In memory.
    Bytes(Arc<[u8]>),
    /// In an open file, read by position from its start; with its hash and size.
    Spooled(Arc<File>, Content),
    /// At the controller: asked for only if it turns out to be needed.
    Remote(Content),
}

impl Body {
    /// Hash and size, and the bytes where they are few and here.
    pub(crate) fn content(&self) -> Content {
        match self {
            Self::Bytes(bytes) => Content {
                sha256: hex(&Sha256::digest(bytes)),
                size: bytes.len() as u64,
                bytes: (bytes.len() <= INLINE_LIMIT).then(|| bytes.to_vec()),
            },
            Self::Spooled(_, content) | Self::Remote(content) => content.clone(),
        }
    }

    /// The content as a stream.
    pub(crate) fn reader(&self) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::Bytes(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            Self::Spooled(file, _) => Ok(Box::new(Positioned {
                file: file.clone(),
                at: 0,
            })),
            Self::Remote(_) => Err(io::Error::other("its content was not fetched")),
        }
    }

    /// An open file as a stream from its start, wherever it stands.
    pub(super) fn positioned(file: &Arc<File>) -> impl Read + Send + use<> {
        Positioned {
            file: file.clone(),
            at: 0,
        }
    }

    /// The whole content in memory.
    pub(crate) fn bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader()?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// Reads a shared file from a place of its own.
struct Positioned {
    file: Arc<File>,
    at: u64,
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Hashes a stream to its end; keeps the bytes where they are few.
pub(super) fn hash(mut from: impl Read) -> io::Result<Content> {
    let mut hasher = Sha256::new();
    let mut kept = Some(Vec::new());
    let mut buffer = vec![0; 64 << 10];
    let mut size = 0;
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Ok(Content {
                sha256: hex(&hasher.finalize()),
                size,
                bytes: kept,
            });
        }
        size += count as u64;
        hasher.update(&buffer[..count]);
        kept = kept.filter(|_| size <= INLINE_LIMIT as u64);
        if let Some(bytes) = &mut kept {
            bytes.extend_from_slice(&buffer[..count]);
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

impl From<Vec<u8>> for Body {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<String> for Body {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Body {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}
