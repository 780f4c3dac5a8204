use std::path::PathBuf;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::edited;
use super::file::report;
use super::web::{self, with_request};
use crate::args::{Bool, List, Number, Text};
use crate::glob;
use crate::host::{Body, Entry, Fault, Host, Put, To};
use crate::http::{Answer, Follow, Request};
use crate::module::{ArgumentError, Module, Report, Status, Task};

pub(super) static MODULE: Module = Module::of::<Uri>();

mod form;

with_request! {
    /// Asks a service of the web something, and checks its answer.
    ///
    /// What it answers is not known before it is asked: in a plan the result is unknown.
    struct Uri {
        /// `GET`, `POST`, `PUT` and so on.
        #[serde(default = "get")]
        method: Text,
        /// What to send: a text, or a mapping or a list that `body_format` makes one of.
        body: Option<Value>,
        /// How `body` is written: `raw`, `json`, `form-urlencoded` or `form-multipart`.
        #[serde(default)]
        body_format: Format,
        /// A file to send; of the host with `remote_src`, else of the controller.
        src: Option<Text>,
        /// `src` is on the host.
        #[serde(default)]
        remote_src: Bool,
        /// The statuses that are right.
        #[serde(default = "fine")]
        status_code: List,
        /// Give the content of the answer, in the field `content`.
        #[serde(default)]
        return_content: Bool,
        /// A file for the content of the answer. In a directory it gets the name that the server or the address gives it.
        dest: Option<Text>,
        /// Fetch the file of `dest` though it be as new as the server's.
        #[serde(default)]
        force: Bool,
        /// Which redirects are followed: `all`, `safe` (those of GET and HEAD), `urllib2` or `none`.
        #[serde(default)]
        follow_redirects: Redirects,
        /// A path or shell pattern: where something matches, nothing is asked.
        creates: Option<Text>,
        /// A path or shell pattern: where nothing matches, nothing is asked.
        removes: Option<Text>,
        /// A socket of the host, in place of the address's host and port.
        unix_socket: Option<Text>,
        /// Whose certificates are trusted, a file of the host.
        ca_path: Option<Text>,
        /// How many seconds to wait for the server.
        #[serde(default = "seconds")]
        timeout: Number,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "kebab-case")]
enum Format {
    #[default]
    Raw,
    Json,
    FormUrlencoded,
    FormMultipart,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, serde::Serialize))]
#[serde(rename_all = "lowercase")]
enum Redirects {
    #[serde(alias = "yes", alias = "True")]
    All,
    #[default]
    Safe,
    #[serde(alias = "no", alias = "False")]
    None,
    Urllib2,
}

fn get() -> Text {
    "GET".into()
}

fn fine() -> List {
    List(vec!["200".to_owned()])
}

fn seconds() -> Number {
    Number(30)
}

impl Task for Uri {
    const NAME: &'static str = "uri";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("user", "url_username"),
        ("password", "url_password"),
        ("attr", "attributes"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.body.is_some() && self.src.is_some() {
            return Err(ArgumentError::of(
                "src",
                "parameters are mutually exclusive: body|src",
            ));
        }
        if !self
            .method
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
        {
            return Err(ArgumentError::of(
                "method",
                "it is no method of HTTP, such as GET or POST",
            ));
        }
        match self
            .status_code
            .iter()
            .find(|code| code.parse::<i32>().is_err())
        {
            Some(code) => Err(ArgumentError::of(
                "status_code",
                format!("`{code}` is no number"),
            )),
            None => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        if let Some(because) = self.skips(host)? {
            let said = format!("skipped, since '{because}");
            return Ok(Report::of(json!({"stdout": said, "stdout_lines": [said]})));
        }
        let request = self.asked(host)?;
        let began = Instant::now();
        let reads = matches!(request.method.as_str(), "GET" | "HEAD" | "OPTIONS");
        let answer = match (reads, host.planning()) {
            (true, true) => None,
            (true, false) => Some(request.send(host)),
            (false, _) => {
                let line = format!("{} {}", request.method, request.url);
                // An answer that is not right may have changed something all the same.
                host.beyond(&line, |host| Ok(request.send(host)))?
            }
        };
        let Some(answer) = answer else {
            let message = "This action (uri) does not support check mode.";
            return Ok(
                Report::of(json!({"skipped": true, "msg": message})).with_status(Status::Unknown)
            );
        };
        let elapsed = began.elapsed().as_secs();
        let (answer, mut fields) = match answer {
            Ok(answer) => {
                let fields = self.told(host, &request, &answer)?;
                (Some(answer), fields)
            }
            Err(fault) => {
                let fields = json!({"status": -1, "msg": web::unanswered(&fault), "url": *self.url, "redirected": false});
                (None, Report::of(fields).fields)
            }
        };
        fields.insert("elapsed".to_owned(), elapsed.into());
        let status = answer
            .as_ref()
            .map_or(-1, |answer| i32::from(answer.status));
        let right = self
            .status_code
            .iter()
            .any(|code| code.parse() == Ok(status));
        if !right {
            let said = fields
                .get("msg")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let mut fault = Fault::new(format!(
                "Status code was {status} and not [{}]: {said}",
                self.status_code.join(", ")
            ));
            fault.fields = fields;
            return Err(fault);
        }
        let kept = match &answer {
            Some(answer) => self.keep(host, &request, answer, &mut fields)?,
            None => false,
        };
        let report = Report::of(fields.into());
        // As in Ansible, a request is no change of the host; a file is.
        Ok(match kept {
            true => report,
            false => report.with_status(Status::Ok),
        })
    }
}

impl Uri {
    fn skips(&self, host: &Host) -> Result<Option<String>, Fault> {
        let found = |path: &str| {
            let path = PathBuf::from(host.filled(path));
            glob::first(host, &host.user().home.join(path))
        };
        if let Some(path) = &self.creates
            && found(path)?.is_some()
        {
            return Ok(Some(format!("{path}' exists")));
        }
        if let Some(path) = &self.removes
            && !host.open()
            && found(path)?.is_none()
        {
            return Ok(Some(format!("{path}' does not exist")));
        }
        Ok(None)
    }

    fn asked(&self, host: &Host) -> Result<Request, Fault> {
        let mut request = self.request(*self.timeout)?;
        request.method = self.method.to_ascii_uppercase();
        request.follow = match self.follow_redirects {
            Redirects::All => Follow::All,
            Redirects::Safe => Follow::Safe,
            Redirects::None => Follow::None,
            Redirects::Urllib2 => Follow::AsGet,
        };
        request.socket = self.unix_socket.as_ref().map(|path| PathBuf::from(&**path));
        request.tls.authorities = self.ca_path.as_ref().map(ToString::to_string);
        let (body, kind) = match (&self.src, &self.body) {
            (Some(src), _) => (Some(self.source(host, src)?), None),
            (None, None) => (None, None),
            (None, Some(body)) => match self.body_format {
                Format::Raw => (
                    Some(form::raw(body)),
                    Some("application/x-www-form-urlencoded".to_owned()),
                ),
                Format::Json => (Some(form::json(body)), Some("application/json".to_owned())),
                Format::FormUrlencoded => (
                    Some(form::urlencoded(body)?),
                    Some("application/x-www-form-urlencoded".to_owned()),
                ),
                Format::FormMultipart => {
                    let (body, kind) = form::multipart(host, body)?;
                    (Some(body), Some(kind))
                }
            },
        };
        let named = request
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if let (Some(kind), false) = (kind, named) {
            request.headers.push(("Content-Type".to_owned(), kind));
        }
        request.body = body;
        if let (Some(dest), false) = (&self.dest, *self.force)
            && let Some(since) = web::since(host, &host.expand(dest))?
        {
            request
                .headers
                .push(("If-Modified-Since".to_owned(), since));
        }
        Ok(request)
    }

    fn source(&self, host: &Host, src: &str) -> Result<Vec<u8>, Fault> {
        match *self.remote_src {
            false => host
                .blob()?
                .ok_or_else(|| Fault::new("the content of `src` did not come with the task")),
            true => host.read(&host.expand(src))?.ok_or_else(|| {
                Fault::new(format!("Unable to open source file: {src} does not exist"))
            }),
        }
    }

    /// What `register` sees of an answer.
    fn told(
        &self,
        host: &Host,
        request: &Request,
        answer: &Answer,
    ) -> Result<Map<String, Value>, Fault> {
        let mut fields = Map::new();
        for (name, value) in &answer.headers {
            let name = name.to_ascii_lowercase().replace('-', "_");
            let joined = match fields.get(&name).and_then(Value::as_str) {
                Some(before) => format!("{before}, {value}"),
                None => value.clone(),
            };
            fields.insert(name, joined.into());
        }
        if let Some(location) = answer.header("location") {
            let there = answer
                .url
                .join(location)
                .map_or_else(|_| location.to_owned(), |url| url.to_string());
            fields.insert("location".to_owned(), there.into());
        }
        let body = web::unpacked(host, answer, *self.decompress)?;
        let size = body.content().size;
        let right = (200..300).contains(&answer.status);
        let message = match right {
            true => format!(
                "OK ({} bytes)",
                answer
                    .header("content-length")
                    .map_or_else(|| size.to_string(), str::to_owned)
            ),
            false => format!("HTTP Error {}: {}", answer.status, answer.reason),
        };
        let own = json!({
            "status": answer.status,
            "msg": message,
            "url": answer.url.to_string(),
            "redirected": answer.url != request.url,
        });
        fields.extend(Report::of(own).fields);
        if right {
            let (cookies, line) = cookies(answer);
            fields.insert("cookies".to_owned(), cookies.into());
            fields.insert("cookies_string".to_owned(), line.into());
        }
        let kind = answer
            .header("content-type")
            .unwrap_or_default()
            .to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let is_json = kind == "application/json" || kind == "text/json" || kind.ends_with("+json");
        if (is_json && self.dest.is_none()) || *self.return_content || !right {
            let bytes = body
                .bytes()
                .map_err(|error| Fault::new(format!("cannot read what came: {error}")))?;
            if is_json && let Ok(value) = serde_json::from_slice::<Value>(&bytes) {
                fields.insert("json".to_owned(), value);
            }
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if *self.return_content {
                fields.insert("content".to_owned(), text.clone().into());
            }
            if !right {
                fields.insert("body".to_owned(), text.into());
            }
        }
        Ok(fields)
    }

    /// Puts the content into the file of `dest`; true where that was a change.
    fn keep(
        &self,
        host: &mut Host,
        request: &Request,
        answer: &Answer,
        fields: &mut Map<String, Value>,
    ) -> Result<bool, Fault> {
        let Some(dest) = &self.dest else {
            return Ok(false);
        };
        let mut dest = host.resolve(&host.expand(dest))?;
        if let Entry::Dir(_) = host.entry(&dest)? {
            dest = dest.join(web::file_name(answer, &request.url));
        }
        let body: Option<Body> = match answer.status {
            304 => None,
            _ => Some(web::unpacked(host, answer, *self.decompress)?),
        };
        let mut changed = false;
        if body.is_some() {
            changed = host.put(Put {
                path: dest.clone(),
                to: To::File {
                    content: body,
                    mode: self.mode.clone(),
                    owner: self.owner.as_deref().map(str::to_owned),
                    group: self.group.as_deref().map(str::to_owned),
                },
                validate: None,
            })?;
        }
        changed |= edited::write(host, &dest, None, &self.attributes())?.any();
        fields.extend(report(host, &dest.to_string_lossy(), &dest)?.fields);
        Ok(changed)
    }
}

/// The cookies that an answer sets: by name, and as the header that gives them back.
fn cookies(answer: &Answer) -> (Map<String, Value>, String) {
    let set = answer
        .headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie"));
    let pairs: Vec<(String, String)> = set
        .filter_map(|(_, cookie)| {
            let (name, value) = cookie.split(';').next()?.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        })
        .collect();
    let line: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let map = pairs
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    (map, line.join("; "))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use serde_json::{Value, json};

    use super::MODULE;
    use crate::host::{Host, State};
    use crate::module::{Report, Status};

    /// Runs the module against a server that answers once; the report, and what was asked.
    fn ask(answer: &'static str, args: Value) -> (Result<Report, crate::host::Fault>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 4096];
            let mut length = 0;
            // The body may come behind the head.
            for _ in 0..2 {
                stream
                    .set_read_timeout(Some(std::time::Duration::from_millis(200)))
                    .unwrap();
                length += stream.read(&mut asked[length..]).unwrap_or(0);
            }
            stream
                .write_all(answer.replace('\n', "\r\n").as_bytes())
                .unwrap();
            String::from_utf8_lossy(&asked[..length]).into_owned()
        });
        let dir = tempfile::tempdir().unwrap();
        let state = State::at(dir.path().to_str());
        state.prepare().unwrap();
        let mut host = Host::apply(state, "r1", "test");
        let mut args = args;
        args["url"] = format!("http://{address}/x").into();
        let done = (MODULE.run)(args, &mut host);
        (done, server.join().unwrap())
    }

    #[test]
    fn an_answer_is_told_in_ansibles_fields() {
        let answer = "HTTP/1.1 200 OK\nContent-Type: application/json\nSet-Cookie: a=b; Path=/\nSet-Cookie: c=d\nContent-Length: 9\n\n{\"k\": 1}\n";
        let (done, asked) = ask(
            answer,
            json!({"method": "post", "body": {"a": [1, "é"]}, "body_format": "json", "return_content": true}),
        );
        let report = done.unwrap();
        assert_eq!(report.status, Some(Status::Ok));
        let fields = Value::Object(report.fields);
        assert_eq!(fields["json"], json!({"k": 1}));
        assert_eq!(
            (&fields["status"], &fields["msg"]),
            (&json!(200), &json!("OK (9 bytes)"))
        );
        assert_eq!(
            (&fields["cookies"], &fields["cookies_string"]),
            (&json!({"a": "b", "c": "d"}), &json!("a=b; c=d"))
        );
        assert_eq!(
            (&fields["set_cookie"], &fields["redirected"]),
            (&json!("a=b; Path=/, c=d"), &json!(false))
        );
        assert!(asked.starts_with("POST /x HTTP/1.1"), "{asked}");
        assert!(
            asked.contains("Content-Type: application/json\r\n")
                && asked.ends_with("{\"a\": [1, \"\\u00e9\"]}"),
            "{asked}"
        );
    }

    #[test]
    fn another_status_than_the_right_ones_is_a_failure() {
        let answer = "HTTP/1.1 404 Not Found\nContent-Length: 4\n\ncode";
        let fault = ask(answer, json!({})).0.unwrap_err();
        assert_eq!(
            fault.message,
            "Status code was 404 and not [200]: HTTP Error 404: Not Found"
        );
        assert_eq!(fault.fields["status"], 404);
        let fine = ask(answer, json!({"status_code": [404, 200]})).0.unwrap();
        assert_eq!(fine.fields["body"], "code");
    }

    #[test]
    fn a_plan_asks_nothing() {
        let report =
            (MODULE.run)(json!({"url": "http://127.0.0.1:1/"}), &mut Host::plan()).unwrap();
        assert_eq!(report.status, Some(Status::Unknown));
        let args = json!({"url": "http://127.0.0.1:1/", "creates": "/etc/passwd"});
        let report = (MODULE.run)(args, &mut Host::plan()).unwrap();
        assert_eq!(
            report.fields["stdout"],
            "skipped, since '/etc/passwd' exists"
        );
    }
}
