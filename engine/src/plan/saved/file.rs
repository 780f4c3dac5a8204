//! A plan's file, line by line: written whole or not at all, read only as it was written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_modules::base64;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Header, PlanFileError, SCHEMA, Saved, body::Body, hash_of, hex};
use crate::sources;

#[derive(Serialize, Deserialize)]
struct Blob {
    sha256: String,
    /// Base64.
    data: String,
}

#[derive(Serialize, Deserialize)]
struct End {
    /// SHA-256 of all lines before this one.
    sum: String,
}

#[derive(Deserialize)]
struct Schema {
    schema: String,
}

impl Saved {
    /// Writes the plan beside its place and puts it there, readable by its owner only.
    ///
    /// # Errors
    /// As the system says, or where a file that the plan was made from has changed meanwhile.
    pub fn write(&self, path: &Path) -> Result<(), PlanFileError> {
        let failed = |error| PlanFileError::Io {
            path: path.to_owned(),
            error,
        };
        let folder = path
            .parent()
            .filter(|dir| !dir.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        // Made with mode 0600.
        let fresh = tempfile::Builder::new()
            .prefix(".plan-")
            .tempfile_in(folder)
            .map_err(failed)?;
        let mut out = Summed {
            out: BufWriter::new(fresh),
            sum: Sha256::new(),
        };
        self.lines(&mut out).map_err(failed)?;
        let fresh = out
            .out
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        fresh.as_file().sync_all().map_err(failed)?;
        fresh.persist(path).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn lines(&self, out: &mut Summed<impl Write>) -> io::Result<()> {
        let (body, contents) = self.body();
        out.line(&self.header)?;
        out.line(&body)?;
        let mut written = BTreeSet::new();
        for (sha256, bytes) in contents {
            out.line(&Blob {
                sha256: sha256.clone(),
                data: base64::encode(&bytes),
            })?;
            written.insert(sha256);
        }
        for (path, about) in &self.sources.files {
            if about.sha256.is_empty() || about.size == 0 || !written.insert(about.sha256.clone()) {
                continue;
            }
            let mut bytes = Vec::new();
            sources::open(path)?.read_to_end(&mut bytes)?;
            if hex(Sha256::digest(&bytes)) != about.sha256 {
                let what = format!(
                    "{} has changed while the plan was made: plan again",
                    path.display()
                );
                return Err(io::Error::other(what));
            }
            out.line(&Blob {
                sha256: about.sha256.clone(),
                data: base64::encode(&bytes),
            })?;
        }
        let sum = hex(out.sum.clone().finalize());
        out.line(&End { sum })?;
        out.out.flush()
    }

    /// Reads a plan, and checks that it is whole and as it was written.
    ///
    /// # Errors
    /// When it is not.
    pub fn read(path: &Path) -> Result<(Self, Store), PlanFileError> {
        let failed = |error| PlanFileError::Io {
            path: path.to_owned(),
            error,
        };
        let damaged = |what: String| PlanFileError::Damaged {
            path: path.to_owned(),
            what,
        };
        let mut lines = Lines {
            reader: BufReader::new(File::open(path).map_err(failed)?),
            at: 0,
            sum: Sha256::new(),
        };
        let no_plan = || {
            damaged("this is no plan of fleetctl (`fleetctl plan --out FILE` makes one)".to_owned())
        };
        let (_, first) = lines.next().map_err(failed)?.ok_or_else(no_plan)?;
        let schema: Schema = serde_json::from_slice(&first).map_err(|_| no_plan())?;
        if schema.schema != SCHEMA {
            let what = format!(
                "it has the form `{}`, and this fleetctl reads `{SCHEMA}`",
                schema.schema
            );
            return Err(damaged(what));
        }
        let altered = |line: &str| {
            damaged(format!(
                "its {line} is not as it was written: the file was cut off or altered"
            ))
        };
        let header: Header = serde_json::from_slice(&first).map_err(|_| altered("first line"))?;
        let (_, second) = lines
            .next()
            .map_err(failed)?
            .ok_or_else(|| altered("second line"))?;
        let body: Body = serde_json::from_slice(&second).map_err(|_| altered("second line"))?;
        if hash_of(&second) != header.hash {
            return Err(damaged(format!(
                "its hash is not {}: the file was altered",
                header.hash
            )));
        }
        let mut places = BTreeMap::new();
        loop {
            let sum = lines.sum.clone();
            let Some((at, line)) = lines.next().map_err(failed)? else {
                return Err(damaged(
                    "its end is missing: the file was cut off".to_owned(),
                ));
            };
            if let Ok(end) = serde_json::from_slice::<End>(&line) {
                let rest = lines.next().map_err(failed)?;
                if rest.is_some() || end.sum != hex(sum.finalize()) {
                    return Err(damaged(
                        "its checksum is wrong: the file was altered".to_owned(),
                    ));
                }
                break;
            }
            let blob: Blob = serde_json::from_slice(&line).map_err(|_| altered("content"))?;
            let bytes = base64::decode(&blob.data).ok_or_else(|| altered("content"))?;
            if hex(Sha256::digest(&bytes)) != blob.sha256 {
                return Err(altered("content"));
            }
            places.insert(
                blob.sha256,
                Place {
                    at,
                    length: line.len(),
                },
            );
        }
        let store = Store {
            path: path.to_owned(),
            places: Arc::new(places),
        };
        let plan = body.plan(&store).map_err(failed)?;
        Ok((
            Self {
                header,
                words: body.words,
                sources: body.sources,
                waves: body.waves,
                plan,
            },
            store,
        ))
    }
}

/// The contents of a plan's file.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    places: Arc<BTreeMap<String, Place>>,
}

#[derive(Debug)]
struct Place {
    at: u64,
    length: usize,
}

impl sources::Contents for Store {
    fn open(&self, sha256: &str) -> io::Result<Box<dyn Read + Send>> {
        let gone = || {
            io::Error::new(
                io::ErrorKind::NotFound,
                format!("the plan has no content {sha256}"),
            )
        };
        let place = self.places.get(sha256).ok_or_else(gone)?;
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(place.at))?;
        let mut line = vec![0; place.length];
        file.read_exact(&mut line)?;
        let blob: Blob = serde_json::from_slice(&line)?;
        let bytes = base64::decode(&blob.data).ok_or_else(gone)?;
        Ok(Box::new(io::Cursor::new(bytes)))
    }
}

/// Writes lines, and keeps the checksum of all of them.
struct Summed<W: Write> {
    out: BufWriter<W>,
    sum: Sha256,
}

impl<W: Write> Summed<W> {
    fn line(&mut self, value: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        self.sum.update(&text);
        self.out.write_all(&text)
    }
}

/// Reads lines, and keeps the checksum of all of them.
struct Lines {
    reader: BufReader<File>,
    at: u64,
    sum: Sha256,
}

impl Lines {
    /// The next line without its end, and where it begins.
    fn next(&mut self) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut line = Vec::new();
        let length = self.reader.read_until(b'\n', &mut line)?;
        if length == 0 || line.last() != Some(&b'\n') {
            return Ok(None);
        }
        self.sum.update(&line);
        let at = self.at;
        self.at += length as u64;
        line.pop();
        Ok(Some((at, line)))
    }
}
