use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Map;

use super::edited;
use super::file::report;
use super::web::{self, with_request};
use crate::args::{Bool, Number, Text};
use crate::checksum::Algorithm;
use crate::host::{Body, Entry, Fault, Host, Put, To};
use crate::http::{Answer, Request, Url};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<GetUrl>();

with_request! {
    /// Fetches a file from the web. A plan fetches it, too, and shows what would change.
    struct GetUrl {
        /// Where the file goes. In a directory it gets the name that the server or the address gives it.
        dest: Text,
        /// What the content's checksum must be, `sha256:…`, or where it is written, `sha256:https://…/SHA256SUMS`.
        /// A file that has it already is not fetched.
        #[serde(default)]
        checksum: Text,
        /// Fetch the file in any case. Without it a file that is there is fetched only if the server has a newer one.
        #[serde(default)]
        force: Bool,
        /// How many seconds to wait for the server.
        #[serde(default = "seconds")]
        timeout: Number,
        /// Say where the old content is kept. It is kept in any case, outside of the configuration.
        #[serde(default)]
        backup: Bool,
        /// Taken for Ansible's sake: no directory is needed on the way.
        #[serde(default, rename = "tmp_dest")]
        _tmp_dest: Option<Text>,
    }
}

fn seconds() -> Number {
    Number(10)
}

impl Task for GetUrl {
    const NAME: &'static str = "get_url";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("username", "url_username"),
        ("password", "url_password"),
        ("attr", "attributes"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        let wrong = |message: &str| Err(ArgumentError::of("checksum", message));
        match self.wanted_sum() {
            None if !self.checksum.is_empty() => wrong("it is not written as `sha256:…`"),
            Some((name, _)) if Algorithm::named(name).is_none() => {
                wrong("its algorithm is none of md5, sha1, sha224, sha256, sha384 and sha512")
            }
            _ => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let began = Instant::now();
        let mut fields = Map::new();
        fields.insert("url".to_owned(), (*self.url).into());
        fields.insert("dest".to_owned(), (*self.dest).into());
        let done = self.fetch(host, &mut fields);
        fields.insert("elapsed".to_owned(), began.elapsed().as_secs().into());
        match done {
            Ok(status) => {
                let report = Report::of(fields.into());
                Ok(match status {
                    Some(status) => report.with_status(status),
                    None => report,
                })
            }
            Err(mut fault) => {
                for (name, value) in fields {
                    fault.fields.entry(name).or_insert(value);
                }
                Err(fault)
            }
        }
    }
}

impl GetUrl {
    /// The algorithm's name, and the sum or where it is written.
    fn wanted_sum(&self) -> Option<(&str, &str)> {
        self.checksum
            .split_once(':')
            .map(|(name, sum)| (name.trim(), sum.trim()))
    }

    fn fetch(
        &self,
        host: &mut Host,
        fields: &mut Map<String, serde_json::Value>,
    ) -> Result<Option<Status>, Fault> {
        let mut request = self.request(*self.timeout)?;
        if *self.force {
            request
                .headers
                .push(("Cache-Control".to_owned(), "no-cache".to_owned()));
        }
        let sum = self.sum(host, &request)?;
        let mut dest = host.resolve(&host.expand(&self.dest))?;
        let is_dir = matches!(host.entry(&dest)?, Entry::Dir(_));
        if !is_dir && let Some((algorithm, wanted)) = &sum {
            let there = host.read(&dest)?;
            if there.is_some_and(|content| algorithm.sum(&content).eq_ignore_ascii_case(wanted)) {
                fields.insert("msg".to_owned(), "file already exists".into());
                return self.finish(host, &dest, None, fields).map(|()| None);
            }
        }
        if !is_dir
            && !*self.force
            && sum.is_none()
            && let Some(since) = web::since(host, &dest)?
        {
            request
                .headers
                .push(("If-Modified-Since".to_owned(), since));
        }
        let answer = match self.answer(host, &request) {
            Ok(answer) => answer,
            // What comes before in a plan may be what makes it reachable.
            Err(_) if host.open() => return Ok(Some(Status::Unknown)),
            Err(fault) => {
                let message = web::unanswered(&fault);
                return Err(Fault::new(message).with("status_code", -1));
            }
        };
        let size = answer.body.content().size;
        fields.insert("status_code".to_owned(), answer.status.into());
        match answer.status {
            200..=299 => fields.insert("msg".to_owned(), format!("OK ({size} bytes)").into()),
            304 => {
                let message = "HTTP Error 304: Not Modified";
                fields.insert("msg".to_owned(), message.into());
                return self.finish(host, &dest, None, fields).map(|()| None);
            }
            status => {
                let said = format!("HTTP Error {status}: {}", answer.reason);
                return Err(Fault::new("Request failed").with("response", said));
            }
        };
        if is_dir {
            dest = dest.join(web::file_name(&answer, &request.url));
        }
        let body = web::unpacked(host, &answer, *self.decompress)?;
        if let Some((algorithm, wanted)) = &sum {
            let is = sum_of(&body, *algorithm)?;
            if !is.eq_ignore_ascii_case(wanted) {
                return Err(Fault::new(format!(
                    "The checksum for {} did not match {wanted}; it was {is}.",
                    dest.display()
                )));
            }
        }
        self.finish(host, &dest, Some(body), fields).map(|()| None)
    }

    fn answer(&self, host: &Host, request: &Request) -> Result<Answer, Fault> {
        if request.url.scheme != "file" {
            return request.send(host);
        }
        let path = PathBuf::from(request.url.file());
        let content = host.read(&path)?;
        let content =
            content.ok_or_else(|| Fault::new(format!("{} does not exist", path.display())))?;
        Ok(Answer {
            status: 200,
            reason: "OK".to_owned(),
            url: request.url.clone(),
            headers: Vec::new(),
            body: content.into(),
        })
    }

    /// Puts the content in place, where there is a new one, and sees to the attributes.
    fn finish(
        &self,
        host: &mut Host,
        dest: &Path,
        body: Option<Body>,
        fields: &mut Map<String, serde_json::Value>,
    ) -> Result<(), Fault> {
        let before = host.entry(dest)?;
        if let (Some(above), Some(_)) = (dest.parent(), &body)
            && !host.open()
            && host.entry(above)? == Entry::Absent
        {
            return Err(Fault::new(format!(
                "Destination {} does not exist",
                above.display()
            )));
        }
        let old = match &before {
            Entry::File(..) => Some(Body::from(host.read(dest)?.unwrap_or_default())),
            _ => None,
        };
        let old = old.map(|old| sum_of(&old, Algorithm::Sha1)).transpose()?;
        let (new, md5) = match &body {
            Some(body) => (
                Some(sum_of(body, Algorithm::Sha1)?),
                Some(sum_of(body, Algorithm::Md5)?),
            ),
            None => (old.clone(), None),
        };
        if body.is_some() {
            host.put(Put {
                path: dest.to_owned(),
                to: To::File {
                    content: body,
                    mode: self.mode.clone(),
                    owner: self.owner.as_deref().map(str::to_owned),
                    group: self.group.as_deref().map(str::to_owned),
                },
                validate: None,
            })?;
        }
        edited::write(host, dest, None, &self.attributes())?;
        let told = report(host, &dest.to_string_lossy(), dest)?;
        fields.extend(told.fields);
        fields.remove("path");
        fields.insert("dest".to_owned(), dest.to_string_lossy().into());
        fields.insert("src".to_owned(), (*self.url).into());
        fields.insert("checksum_dest".to_owned(), old.into());
        fields.insert("checksum_src".to_owned(), new.into());
        if let Some(md5) = md5 {
            fields.insert("md5sum".to_owned(), md5.into());
        }
        if *self.backup {
            edited::tell_backup(host, dest, "backup_file", fields);
        }
        Ok(())
    }

    /// The checksum that the content must have; fetched where it is written elsewhere.
    fn sum(&self, host: &Host, request: &Request) -> Result<Option<(Algorithm, String)>, Fault> {
        let Some((name, sum)) = self.wanted_sum() else {
            return Ok(None);
        };
        let Some(algorithm) = Algorithm::named(name) else {
            return Err(Fault::new("The checksum format is invalid"));
        };
        if !sum.contains("://") {
            return Ok(Some((algorithm, sum.to_ascii_lowercase())));
        }
        let from = Request {
            url: Url::parse(sum)?,
            ..request.clone()
        };
        let unread =
            |why: String| Fault::new(format!("Unable to download the checksum file {sum}: {why}"));
        let answer = self
            .answer(host, &from)
            .map_err(|fault| unread(web::unanswered(&fault)))?;
        if !(200..300).contains(&answer.status) {
            return Err(unread(format!(
                "HTTP Error {}: {}",
                answer.status, answer.reason
            )));
        }
        let text = answer
            .body
            .bytes()
            .map_err(|error| unread(error.to_string()))?;
        let text = String::from_utf8_lossy(&text);
        let name = request.url.name();
        let found = written(&text, &name);
        found.map(|sum| Some((algorithm, sum))).ok_or_else(|| {
            Fault::new(format!(
                "Unable to find a checksum for file '{name}' in '{sum}'"
            ))
        })
    }
}

/// A file's sum in a list of sums. One that stands alone is the file's, whatever its name is.
fn written(text: &str, name: &str) -> Option<String> {
    let is_sum = |word: &str| word.len() >= 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .filter(|words| !words.is_empty())
        .collect();
    if let [only] = lines.as_slice()
        && let [sum] = only.as_slice()
        && is_sum(sum)
    {
        return Some(sum.to_ascii_lowercase());
    }
    lines.iter().find_map(|words| match words.as_slice() {
        // `SHA256 (name) = sum`, as BSD writes it.
        [_, bracketed, "=", sum] if bracketed.trim_matches(['(', ')']) == name && is_sum(sum) => {
            Some(sum.to_ascii_lowercase())
        }
        [sum, rest @ ..] if is_sum(sum) => {
            let own = rest.join(" ");
            let own = own.trim_start_matches('*');
            let own = own.strip_prefix("./").unwrap_or(own);
            (own == name).then(|| sum.to_ascii_lowercase())
        }
        _ => None,
    })
}

fn sum_of(body: &Body, algorithm: Algorithm) -> Result<String, Fault> {
    body.reader()
        .and_then(|mut reader| algorithm.of(&mut reader))
        .map(|(_, sum)| sum)
        .map_err(|error| Fault::new(format!("cannot read what came: {error}")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value, json};

    use super::{MODULE, written};
    use crate::host::Host;

    #[test]
    fn a_plan_knows_what_would_be_fetched() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("from"), "data\n").unwrap();
        let url = format!("file://{}", at("from").display());
        let mut host = Host::plan();
        let mut run = |args: Value| {
            let mut args = args;
            args["url"] = url.as_str().into();
            (MODULE.run)(args, &mut host).map_err(|fault| fault.message)
        };
        let sum = "sha1:b7d2c4cbb3b0ff2ab0b42c0f8ba3ea4b0c8cb8ee";
        assert!(
            run(json!({"dest": at("to"), "checksum": sum}))
                .unwrap_err()
                .contains("did not match")
        );
        let done = run(json!({"dest": at("to"), "mode": "0600"}))
            .unwrap()
            .fields;
        assert_eq!(
            (&done["msg"], &done["mode"], &done["md5sum"]),
            (
                &json!("OK (5 bytes)"),
                &json!("0600"),
                &json!("6137cde4893c59f76f005a8123d8e8e6")
            )
        );
        let right = json!({"dest": at("to"), "checksum": "md5:6137cde4893c59f76f005a8123d8e8e6"});
        assert_eq!(run(right).unwrap().fields["msg"], "file already exists");
        let named = run(json!({"dest": dir.path()})).unwrap().fields;
        assert_eq!(named["dest"], json!(at("from")));
        let fault = run(json!({"dest": at("no/to")})).unwrap_err();
        assert_eq!(
            fault,
            format!("Destination {} does not exist", at("no").display())
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn sums_are_found_in_their_lists() {
        let sum = "6137cde4893c59f76f005a8123d8e8e6";
        for (text, found) in [
            (format!("{sum}\n"), true),
            (format!("{sum}  other\n{sum} *./x.tgz\n"), true),
            (format!("MD5 (x.tgz) = {sum}\n"), true),
            (format!("{sum}  other\n"), false),
            (String::new(), false),
        ] {
            assert_eq!(written(&text, "x.tgz").is_some(), found, "{text}");
        }
        let refused = |sum: &str| {
            (MODULE.check)(&json!({"url": "http://x/", "dest": "/x", "checksum": sum})).is_err()
        };
        assert!(refused("abc") && refused("crc:abc") && !refused("sha256:abc"));
    }
}
