//! A small client of HTTP/1.1: one request a connection, redirects, and the two ways to say who one is.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use crate::base64;
use crate::checksum::Algorithm;
use crate::host::{Body, Connection, Endpoint, Fault, Host, Tls};

pub(crate) use url::Url;

mod url;

/// Redirects that are followed one after the other before it is called a loop.
const REDIRECTS: usize = 10;
/// The longest line of an answer's head, in bytes, and the most lines.
const LINE: u64 = 64 << 10;
const LINES: usize = 200;

/// What is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) url: Url,
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) timeout: Duration,
    pub(crate) tls: Tls,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) follow: Follow,
    /// Headers that are not sent to where a redirect leads.
    pub(crate) unredirected: Vec<String>,
    /// Name and password.
    pub(crate) login: Option<(String, String)>,
    /// Say who one is before one is asked.
    pub(crate) login_at_once: bool,
    /// Go by the proxies of the task's environment.
    pub(crate) proxied: bool,
    pub(crate) netrc: bool,
}

/// Which redirects are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follow {
    All,
    /// Those of requests that change nothing.
    Safe,
    /// As Python does: the method becomes GET.
    AsGet,
    None,
}

/// An answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `Not Found`
    pub(crate) reason: String,
    /// Where the answer came from in the end.
    pub(crate) url: Url,
    /// In their order, names as they were written.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

impl Answer {
    /// A header by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let mut found = headers
        .iter()
        .filter(|(own, _)| own.eq_ignore_ascii_case(name));
    found.next().map(|(_, value)| value.as_str())
}

impl Request {
    pub(crate) fn get(url: Url) -> Self {
        Self {
            url,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
            timeout: Duration::from_secs(30),
            tls: Tls {
                validate: true,
                ..Tls::default()
            },
            socket: None,
            follow: Follow::Safe,
            unredirected: Vec::new(),
            login: None,
            login_at_once: false,
            proxied: true,
            netrc: true,
        }
    }

    /// Asks, and asks again where the answer says so.
    ///
    /// # Errors
    /// When there is no answer. One that says that something is wrong is an answer.
    pub(crate) fn send(&self, host: &Host) -> Result<Answer, Fault> {
        let mut request = self.clone();
        if request.login.is_none() {
            request.login.clone_from(&request.url.login);
        }
        if request.login.is_none() && request.netrc {
            request.login = netrc(host, &request.url.host);
            request.login_at_once |= request.login.is_some();
        }
        let mut authorization = match (&request.login, request.login_at_once) {
            (Some((user, password)), true) => Some(basic(user, password)),
            _ => None,
        };
        let mut asked_who = false;
        for _ in 0..=REDIRECTS {
            let answer = request.once(host, authorization.as_deref())?;
            if answer.status == 401
                && !asked_who
                && let Some((user, password)) = &request.login
                && let Some(asked) = answer.header("www-authenticate")
            {
                asked_who = true;
                let digest = || {
                    digest(
                        asked,
                        &request.method,
                        &request.url.target(),
                        user,
                        password,
                    )
                };
                let known = match asked.trim().to_ascii_lowercase().starts_with("digest") {
                    true => digest(),
                    false => {
                        Some(basic(user, password)).filter(|it| authorization.as_ref() != Some(it))
                    }
                };
                if known.is_some() {
                    authorization = known;
                    continue;
                }
            }
            let Some(next) = request.redirected(&answer)? else {
                return Ok(answer);
            };
            if (&next.url.host, next.url.port) != (&request.url.host, request.url.port) {
                authorization = None;
            }
            request = next;
        }
        Err(Fault::new(format!(
            "too many redirects follow each other from {}",
            self.url
        )))
    }

    /// What an answer sends one to; none where it is the last.
    fn redirected(&self, answer: &Answer) -> Result<Option<Self>, Fault> {
        let Some(location) = answer.header("location") else {
            return Ok(None);
        };
        let reads = matches!(self.method.as_str(), "GET" | "HEAD");
        let follows = matches!(answer.status, 301 | 302 | 303 | 307 | 308)
            && match self.follow {
                Follow::None => false,
                Follow::Safe => reads,
                Follow::All => true,
                Follow::AsGet => reads || (self.method == "POST" && answer.status < 307),
            };
        if !follows {
            return Ok(None);
        }
        let mut next = self.clone();
        next.url = self.url.join(location)?;
        let becomes_get = match self.follow {
            Follow::AsGet => !reads,
            _ => {
                (answer.status == 303 && self.method != "HEAD")
                    || (matches!(answer.status, 301 | 302) && self.method == "POST")
            }
        };
        if becomes_get {
            next.method = "GET".to_owned();
            next.body = None;
            next.headers
                .retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
        }
        let kept = |name: &String| {
            !self
                .unredirected
                .iter()
                .any(|own| own.eq_ignore_ascii_case(name))
        };
        next.headers.retain(|(name, _)| kept(name));
        Ok(Some(next))
    }

    fn once(&self, host: &Host, authorization: Option<&str>) -> Result<Answer, Fault> {
        let secure = self.url.scheme == "https";
        let proxy = self.proxy(host, secure)?;
        let mut endpoint = Endpoint {
            host: self.url.host.clone(),
            port: self.url.port,
            tls: secure.then(|| self.tls.clone()),
            socket: self.socket.clone(),
            proxy: None,
            timeout: self.timeout,
        };
        if let Some(proxy) = &proxy {
            match secure {
                true => endpoint.proxy = Some(format!("{}:{}", proxy.host, proxy.port)),
                false => (endpoint.host, endpoint.port) = (proxy.host.clone(), proxy.port),
            }
        }
        let mut connection = host.connect(&endpoint)?;
        let target = match &proxy {
            Some(_) if !secure => self.url.to_string(),
            _ => self.url.target(),
        };
        let head = self.head(&target, authorization);
        let wrong = |connection: &mut dyn Connection, error: io::Error| {
            let why = connection
                .complaint()
                .unwrap_or_else(|| match error.kind() {
                    io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "timed out".to_owned(),
                    io::ErrorKind::UnexpectedEof => {
                        "Remote end closed connection without response".to_owned()
                    }
                    _ => error.to_string(),
                });
            Fault::new(why)
        };
        let sent = connection
            .write_all(head.as_bytes())
            .and_then(|()| connection.write_all(self.body.as_deref().unwrap_or_default()))
            .and_then(|()| connection.flush());
        // Who is refused may still have been answered.
        let mut reader = BufReader::new(Stream(&mut *connection));
        let answer = read_head(&mut reader).and_then(|(status, reason, headers)| {
            let body = self.body_of(host, &mut reader, status, &headers)?;
            Ok(Answer {
                status,
                reason,
                url: self.url.clone(),
                headers,
                body,
            })
        });
        drop(reader);
        match (answer, sent) {
            (Ok(answer), _) => Ok(answer),
            (Err(_), Err(error)) | (Err(error), Ok(())) => Err(wrong(&mut *connection, error)),
        }
    }

    fn head(&self, target: &str, authorization: Option<&str>) -> String {
        let mut head = format!("{} {target} HTTP/1.1\r\n", self.method);
        let mut line = |name: &str, value: &str| {
            // A line's end within would begin a header of its own.
            let clean = |text: &str| text.replace(['\r', '\n'], " ");
            head.push_str(&format!("{}: {}\r\n", clean(name), clean(value)));
        };
        let given = |name: &str| header(&self.headers, name).is_some();
        if !given("host") {
            line("Host", &self.url.authority());
        }
        if !given("accept-encoding") {
            line("Accept-Encoding", "identity");
        }
        for (name, value) in &self.headers {
            line(name, value);
        }
        if let (Some(value), false) = (authorization, given("authorization")) {
            line("Authorization", value);
        }
        let length = self.body.as_ref().map(Vec::len);
        let length = length
            .or_else(|| matches!(self.method.as_str(), "POST" | "PUT" | "PATCH").then_some(0));
        if let (Some(length), false) = (length, given("content-length")) {
            line("Content-Length", &length.to_string());
        }
        line("Connection", "close");
        head + "\r\n"
    }

    fn body_of(
        &self,
        host: &Host,
        reader: &mut impl BufRead,
        status: u16,
        headers: &[(String, String)],
    ) -> io::Result<Body> {
        if self.method == "HEAD" || matches!(status, 100..=199 | 204 | 304) {
            return Ok(Vec::new().into());
        }
        let chunked = header(headers, "transfer-encoding")
            .is_some_and(|it| it.to_ascii_lowercase().contains("chunked"));
        if chunked {
            return host.keep_stream(&mut Chunked::new(reader));
        }
        match header(headers, "content-length").and_then(|length| length.trim().parse::<u64>().ok())
        {
            Some(length) => {
                let mut limited = reader.take(length);
                let body = host.keep_stream(&mut limited)?;
                match limited.limit() {
                    0 => Ok(body),
                    _ => Err(io::Error::other("the connection ended before all had come")),
                }
            }
            None => host.keep_stream(reader),
        }
    }

    /// The proxy that the task's environment names for this.
    fn proxy(&self, host: &Host, secure: bool) -> Result<Option<Url>, Fault> {
        if !self.proxied || self.socket.is_some() {
            return Ok(None);
        }
        let set = |name: &str| {
            let variables = host.environment().iter();
            let mut found = variables
                .filter(|(own, value)| own.eq_ignore_ascii_case(name) && !value.is_empty());
            found.next().map(|(_, value)| value.clone())
        };
        let spared = set("no_proxy").unwrap_or_default();
        let is_spared = spared.split(',').map(str::trim).any(|name| {
            let bare = name.trim_start_matches("*.").trim_start_matches('.');
            name == "*"
                || (!bare.is_empty()
                    && (self.url.host == bare || self.url.host.ends_with(&format!(".{bare}"))))
        });
        let proxy = set(if secure { "https_proxy" } else { "http_proxy" });
        let proxy = proxy.filter(|_| !is_spared);
        let with_scheme = |proxy: String| match proxy.contains("://") {
            true => proxy,
            false => format!("http://{proxy}"),
        };
        proxy
            .map(|proxy| Url::parse(&with_scheme(proxy)))
            .transpose()
    }
}

/// A connection as a stream that can be wrapped.
struct Stream<'a>(&'a mut dyn Connection);

impl Read for Stream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

type Head = (u16, String, Vec<(String, String)>);

fn read_head(reader: &mut impl BufRead) -> io::Result<Head> {
    loop {
        let first = line(reader)?;
        let mut words = first.splitn(3, ' ');
        let status = match (words.next(), words.next().map(str::parse::<u16>)) {
            (Some(version), Some(Ok(status))) if version.starts_with("HTTP/") => status,
            _ => return Err(io::Error::other("the answer is not HTTP")),
        };
        let reason = words.next().unwrap_or_default().trim().to_owned();
        let mut headers: Vec<(String, String)> = Vec::new();
        loop {
            let line = line(reader)?;
            if line.is_empty() {
                break;
            }
            if headers.len() == LINES {
                return Err(io::Error::other("the answer has too many headers"));
            }
            if let Some((name, value)) = line.split_once(':') {
                headers.push((name.trim().to_owned(), value.trim().to_owned()));
            }
        }
        // `100 Continue` only announces the answer.
        if !(100..200).contains(&status) {
            return Ok((status, reason, headers));
        }
    }
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    if reader.take(LINE).read_until(b'\n', &mut bytes)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A body that comes in parts.
struct Chunked<'a, R> {
    from: &'a mut R,
    left: u64,
    ended: bool,
}

impl<'a, R: BufRead> Chunked<'a, R> {
    fn new(from: &'a mut R) -> Self {
        Self {
            from,
            left: 0,
            ended: false,
        }
    }
}

impl<R: BufRead> Read for Chunked<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.ended {
            let size = line(self.from)?;
            let size = size.split(';').next().unwrap_or_default().trim();
            self.left = u64::from_str_radix(size, 16)
                .map_err(|_| io::Error::other("a part of the answer has no length"))?;
            if self.left == 0 {
                self.ended = true;
                while !line(self.from)?.is_empty() {}
            }
        }
        if self.ended || buffer.is_empty() {
            return Ok(0);
        }
        let most = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let count = self.from.read(&mut buffer[..most])?;
        if count == 0 {
            return Err(io::Error::other("the connection ended before all had come"));
        }
        self.left -= count as u64;
        if self.left == 0 {
            line(self.from)?;
        }
        Ok(count)
    }
}

fn basic(user: &str, password: &str) -> String {
    format!(
        "Basic {}",
        base64::encode(format!("{user}:{password}").as_bytes())
    )
}

/// The answer to `WWW-Authenticate: Digest …`; none where it asks for what is not known here.
fn digest(asked: &str, method: &str, target: &str, user: &str, password: &str) -> Option<String> {
    let fields = asked.trim().get("digest".len()..)?;
    let field = |name: &str| {
        fields.split(',').find_map(|part| {
            let (own, value) = part.trim().split_once('=')?;
            own.trim()
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().trim_matches('"').to_owned())
        })
    };
    let (realm, nonce) = (field("realm")?, field("nonce")?);
    let name = field("algorithm").unwrap_or_else(|| "MD5".to_owned());
    let algorithm = match name.to_ascii_uppercase().as_str() {
        "MD5" => Algorithm::Md5,
        "SHA-256" => Algorithm::Sha256,
        _ => return None,
    };
    let sum = |text: String| algorithm.sum(text.as_bytes());
    let (who, what) = (
        sum(format!("{user}:{realm}:{password}")),
        sum(format!("{method}:{target}")),
    );
    // One request a connection, so that any client nonce is a fresh one.
    let own = sum(format!("{nonce}{target}{user}"));
    let own = own.get(..16)?;
    let mut said = format!(
        r#"Digest username="{user}", realm="{realm}", nonce="{nonce}", uri="{target}", algorithm={name}"#
    );
    match fields.contains("auth") && field("qop").is_some() {
        true => {
            let response = sum(format!("{who}:{nonce}:00000001:{own}:auth:{what}"));
            said += &format!(r#", response="{response}", qop=auth, nc=00000001, cnonce="{own}""#);
        }
        false => said += &format!(r#", response="{}""#, sum(format!("{who}:{nonce}:{what}"))),
    }
    if let Some(opaque) = field("opaque") {
        said += &format!(r#", opaque="{opaque}""#);
    }
    Some(said)
}

/// Name and password of a machine in the acting user's `.netrc`.
fn netrc(host: &Host, machine: &str) -> Option<(String, String)> {
    let set = host.environment().iter().find(|(name, _)| name == "NETRC");
    let path = set.map_or_else(|| host.user().home.join(".netrc"), |(_, path)| path.into());
    let text = host.read(&path).ok()??;
    login_of(&String::from_utf8_lossy(&text), machine)
}

fn login_of(netrc: &str, machine: &str) -> Option<(String, String)> {
    let mut words = netrc.split_whitespace();
    let (mut ours, mut user, mut password) = (false, None, None);
    while let Some(word) = words.next() {
        match word {
            "machine" | "default" if ours => break,
            "machine" => ours = words.next() == Some(machine),
            "default" => ours = true,
            "login" if ours => user = words.next(),
            "password" if ours => password = words.next(),
            _ => {}
        }
    }
    Some((user?.to_owned(), password?.to_owned())).filter(|_| ours)
}

#[cfg(test)]
mod tests;
