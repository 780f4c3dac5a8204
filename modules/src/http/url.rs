use std::fmt;

use crate::host::Fault;

/// An address of the web, in its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Url {
    /// `http`, `https` or `file`, in lower case.
    pub(crate) scheme: String,
    /// Name and password, where the address has them.
    pub(crate) login: Option<(String, String)>,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// From the first `/` on, with what is asked, without a `#` and what follows.
    path: String,
}

impl Url {
    /// Reads an address.
    ///
    /// # Errors
    /// When it is none, or of a kind that is not fetched.
    pub(crate) fn parse(text: &str) -> Result<Self, Fault> {
        let wrong = |why: &str| Fault::new(format!("the address `{text}` {why}"));
        let (scheme, rest) = text
            .trim()
            .split_once("://")
            .ok_or_else(|| wrong("has no scheme: it must begin with http:// or https://"))?;
        let scheme = scheme.to_ascii_lowercase();
        let usual = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            "file" => 0,
            _ => return Err(wrong("is not fetched: only http, https and file are")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("/{path}")
        };
        let (login, place) = match authority.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, authority),
        };
        let login = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            (decoded(user), decoded(password))
        });
        // An address of six is in brackets, and has colons of its own.
        let colon = match place.rfind(']') {
            Some(end) => place[end..].find(':').map(|at| end + at),
            None => place.find(':'),
        };
        let (host, port) = match colon {
            Some(at) => (&place[..at], Some(&place[at + 1..])),
            None => (place, None),
        };
        let port = match port.filter(|port| !port.is_empty()) {
            Some(port) => port
                .parse()
                .map_err(|_| wrong("has no number for a port"))?,
            None => usual,
        };
        if host.is_empty() && scheme != "file" {
            return Err(wrong("names no host"));
        }
        Ok(Self {
            scheme,
            login,
            host: host.to_ascii_lowercase(),
            port,
            path: encoded(&path),
        })
    }

    /// The address that another one means, seen from here.
    pub(crate) fn join(&self, other: &str) -> Result<Self, Fault> {
        let other = other.trim();
        if other.contains("://") {
            return Self::parse(other);
        }
        if let Some(rest) = other.strip_prefix("//") {
            return Self::parse(&format!("{}://{rest}", self.scheme));
        }
        let path = match other.chars().next() {
            Some('/') => other.to_owned(),
            Some('?') => format!("{}{other}", self.path.split('?').next().unwrap_or_default()),
            _ => {
                let here = self.path.split('?').next().unwrap_or_default();
                format!(
                    "{}/{other}",
                    here.rsplit_once('/').map_or("", |(dir, _)| dir)
                )
            }
        };
        Ok(Self {
            path: encoded(path.split('#').next().unwrap_or_default()),
            ..self.clone()
        })
    }

    /// What stands in a request's first line.
    pub(crate) fn target(&self) -> String {
        self.path.clone()
    }

    /// The path of a `file` address.
    pub(crate) fn file(&self) -> String {
        decoded(&self.path)
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        decoded(path.rsplit('/').next().unwrap_or_default())
    }

    /// Host and port, the usual one left out.
    pub(crate) fn authority(&self) -> String {
        match (self.scheme.as_str(), self.port) {
            ("http", 80) | ("https", 443) | ("file", _) => self.host.clone(),
            (_, port) => format!("{}:{port}", self.host),
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority(), self.path)
    }
}

/// What may not stand in a request as it is, in its place `%20`.
fn encoded(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            0x21..=0x7e if !b"\"<>\\^`{|}".contains(&byte) => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The other way round.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn addresses_have_their_parts() {
        let url = Url::parse("HTTPS://Ann:p%40ss@Example.org:8443/a b/c.txt?x=1#top").unwrap();
        assert_eq!(url.to_string(), "https://example.org:8443/a%20b/c.txt?x=1");
        assert_eq!(url.login, Some(("Ann".to_owned(), "p@ss".to_owned())));
        assert_eq!(url.name(), "c.txt");
        assert_eq!(Url::parse("http://x").unwrap().to_string(), "http://x/");
        let six = Url::parse("http://[::1]:80/").unwrap();
        assert_eq!((six.host.as_str(), six.port), ("[::1]", 80));
        for wrong in ["example.org", "ftp://x/", "http:///x", "http://x:y/"] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_is_seen_from_another() {
        let here = Url::parse("http://x:81/a/b?c").unwrap();
        for (other, there) in [
            ("/d", "http://x:81/d"),
            ("d", "http://x:81/a/d"),
            ("?e", "http://x:81/a/b?e"),
            ("//y/z", "http://y/z"),
            ("https://y/", "https://y/"),
        ] {
            assert_eq!(here.join(other).unwrap().to_string(), there);
        }
    }
}
