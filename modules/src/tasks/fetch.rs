use std::io::{Read, Seek, SeekFrom};

use serde::Deserialize;
use serde_json::json;

use crate::args::{Bool, Number, Text};
use crate::base64;
use crate::checksum::Algorithm;
use crate::host::{Body, Entry, Fault, Host};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<Fetch>();

/// How much of a file one result carries, in bytes.
const PART: u64 = 3 << 20;

/// Brings a file of the host to the controller. Nothing on the host changes.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Fetch {
    /// The file.
    src: Option<Text>,
    /// The directory of the controller that it goes to, under the host's name and its whole path.
    dest: Option<Text>,
    /// `dest` is the file itself, or, where it ends with `/`, its directory.
    #[serde(default, rename = "flat")]
    _flat: Option<Bool>,
    /// A file that is not there is a failure.
    #[serde(default, rename = "fail_on_missing")]
    _fail_on_missing: Option<Bool>,
    /// Taken for Ansible's sake: what came is always compared.
    #[serde(default, rename = "validate_checksum")]
    _validate_checksum: Option<Bool>,
    /// Where in the file the part begins that is asked for, in bytes: the controller asks until it has the whole.
    #[serde(default, rename = "_from")]
    from: Number,
}

impl Task for Fetch {
    const NAME: &'static str = "fetch";

    fn check(&self) -> Result<(), ArgumentError> {
        match self.src.is_some() && self.dest.is_some() {
            true => Ok(()),
            false => Err(ArgumentError::of("src, dest", "src and dest are required")),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let src = self.src.unwrap_or_default();
        let path = host.resolve(&host.expand(&src))?;
        let shown = path.display();
        match host.entry(&path) {
            Ok(Entry::Absent) => {
                let message = "the remote file does not exist";
                return Err(Fault::new(message)
                    .with("file", &*src)
                    .with("missing", true));
            }
            Ok(Entry::Dir(_)) => {
                let message = "remote file is a directory, fetch cannot work on directories";
                return Err(Fault::new(message).with("file", &*src));
            }
            Ok(_) => {}
            Err(fault) if fault.message.contains("permission denied") => {
                return Err(
                    Fault::new(format!("File is not readable: {shown}")).with("file", &*src)
                );
            }
            Err(fault) => return Err(fault),
        }
        let body = host.content(&path)?.unwrap_or_else(|| Vec::new().into());
        let from = u64::try_from(*self.from).unwrap_or(0);
        let wrong = |error: std::io::Error| Fault::io("read", &path, error);
        let part = part(&body, from).map_err(wrong)?;
        let mut fields = json!({
            "content": base64::encode(&part),
            "encoding": "base64",
            "size": body.content().size,
            "source": path.to_string_lossy(),
        });
        if from == 0 {
            let (_, sum) = Algorithm::Sha1
                .of(&mut body.reader().map_err(wrong)?)
                .map_err(wrong)?;
            fields["checksum"] = sum.into();
        }
        Ok(Report::of(fields))
    }
}

fn part(body: &Body, from: u64) -> std::io::Result<Vec<u8>> {
    let mut part = Vec::new();
    if let Body::Spooled(file, _) = body {
        let mut file = file.as_ref();
        file.seek(SeekFrom::Start(from))?;
        file.take(PART).read_to_end(&mut part)?;
        return Ok(part);
    }
    let mut reader = body.reader()?;
    std::io::copy(&mut reader.by_ref().take(from), &mut std::io::sink())?;
    reader.take(PART).read_to_end(&mut part)?;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::{MODULE, PART};
    use crate::base64;
    use crate::host::Host;

    #[test]
    fn a_file_comes_in_parts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        let whole: Vec<u8> = (0..PART + 5).map(|at| (at % 251) as u8).collect();
        fs::write(&path, &whole).unwrap();
        let mut host = Host::plan();
        let mut got = Vec::new();
        let mut parts = 0;
        loop {
            let args = json!({"src": path, "dest": "/d", "_from": got.len()});
            let fields = (MODULE.run)(args, &mut host).unwrap().fields;
            got.extend(base64::decode(fields["content"].as_str().unwrap()).unwrap());
            parts += 1;
            assert_eq!(fields.contains_key("checksum"), parts == 1);
            if got.len() as u64 >= fields["size"].as_u64().unwrap() {
                break;
            }
        }
        assert!(parts == 2 && got == whole);
        let fault = (MODULE.run)(json!({"src": "/no/such", "dest": "/d"}), &mut host).unwrap_err();
        assert_eq!(fault.fields["missing"], true);
        assert!((MODULE.run)(json!({"src": dir.path(), "dest": "/d"}), &mut host).is_err());
    }
}
