use std::{
    collections::HashMap,
    io::Write,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use sha2::{Digest, Sha256};

use super::error::ConnectError;

/// The helpers that can be sent, one an architecture.
#[derive(Debug)]
pub struct Helpers {
    dirs: Vec<PathBuf>,
    loaded: Mutex<HashMap<String, Option<Arc<Helper>>>>,
}

/// A helper's file.
#[derive(Debug)]
pub(crate) struct Helper {
    pub(crate) path: PathBuf,
    pub(crate) bytes: Vec<u8>,
    /// SHA-256 in lower-case hex: its name on a host.
    pub(crate) sha256: String,
    gzip: OnceLock<Vec<u8>>,
}

/// The architectures that helpers are looked for, as `uname -m` names them.
const ARCHITECTURES: [&str; 2] = ["x86_64", "aarch64"];

impl Helpers {
    /// Helpers in these directories, the first that has one wins: `fleet-helper-ARCH`, or
    /// `fleet-helper` for this machine's own architecture.
    #[must_use]
    pub fn new(dirs: Vec<PathBuf>) -> Self {
        Self {
            dirs,
            loaded: Mutex::default(),
        }
    }

    /// Where they are looked for.
    pub(crate) fn looked(&self) -> Vec<PathBuf> {
        self.dirs.clone()
    }

    /// Every helper that there is, with its architecture.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn all(&self) -> Result<Vec<(&'static str, Arc<Helper>)>, ConnectError> {
        let mut all = Vec::new();
        for arch in ARCHITECTURES {
            if let Some(helper) = self.helper(arch)? {
                all.push((arch, helper));
            }
        }
        Ok(all)
    }

    /// The helper for an architecture; read and hashed once.
    pub(crate) fn helper(&self, arch: &str) -> Result<Option<Arc<Helper>>, ConnectError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = loaded.get(arch) {
            return Ok(known.clone());
        }
        let mut names = vec![format!("fleet-helper-{arch}")];
        if arch == std::env::consts::ARCH {
            names.push("fleet-helper".to_owned());
        }
        let candidates = self
            .dirs
            .iter()
            .flat_map(|dir| names.iter().map(|name| dir.join(name)));
        let found = match candidates.into_iter().find(|path| path.is_file()) {
            Some(path) => {
                let bytes = std::fs::read(&path).map_err(|source| ConnectError::HelperFile {
                    path: path.clone(),
                    source,
                })?;
                let sha256 = Sha256::digest(&bytes)
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                Some(Arc::new(Helper {
                    path,
                    bytes,
                    sha256,
                    gzip: OnceLock::new(),
                }))
            }
            None => None,
        };
        loaded.insert(arch.to_owned(), found.clone());
        Ok(found)
    }
}

impl Helper {
    /// The file, gzipped: less than half of it.
    pub(crate) fn gzip(&self) -> &[u8] {
        self.gzip.get_or_init(|| {
            if let Some(made) = self.made_gzip() {
                return made;
            }
            // The fastest level: the others take longer than the few per cent that they spare take to send.
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            // Writing into memory does not fail.
            let written = encoder
                .write_all(&self.bytes)
                .and_then(|()| encoder.finish());
            written.unwrap_or_default()
        })
    }

    /// The gzipped file that the build left beside the helper, if it is of this very helper: its last
    /// eight bytes are the checksum and the size of what it holds (RFC 1952, section 2.3.1).
    fn made_gzip(&self) -> Option<Vec<u8>> {
        let made = std::fs::read(self.path.with_extension("gz")).ok()?;
        let trailer = made.last_chunk::<8>()?;
        let mut crc = flate2::Crc::new();
        crc.update(&self.bytes);
        let held = [crc.sum().to_le_bytes(), crc.amount().to_le_bytes()].concat();
        (held == *trailer).then_some(made)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::Helpers;

    fn unpacked(helpers: &Helpers) -> Vec<u8> {
        let helper = helpers.helper(std::env::consts::ARCH).unwrap().unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(helper.gzip())
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    #[test]
    fn a_gzipped_file_of_another_helper_is_not_sent() {
        let dir = tempfile::tempdir().unwrap();
        let write =
            |name: &str, content: &[u8]| std::fs::write(dir.path().join(name), content).unwrap();
        write("fleet-helper", b"the old helper");
        let old = Helpers::new(vec![dir.path().to_owned()]);
        let gzip = old
            .helper(std::env::consts::ARCH)
            .unwrap()
            .unwrap()
            .gzip()
            .to_vec();
        write("fleet-helper.gz", &gzip);
        assert_eq!(
            unpacked(&Helpers::new(vec![dir.path().to_owned()])),
            b"the old helper"
        );
        write("fleet-helper", b"the new helper");
        assert_eq!(
            unpacked(&Helpers::new(vec![dir.path().to_owned()])),
            b"the new helper"
        );
    }
}
