//! What the modules have in common that fetch from the web.

use std::collections::BTreeMap;
use std::path::Path;

use crate::args::Text;
use crate::host::{Body, Entry, Fault, Host};
use crate::http::{Answer, Request, Url};

/// Adds the arguments of a request to a module's struct, and a function that makes one of them.
macro_rules! with_request {
    ($(#[$meta:meta])* struct $name:ident { $($fields:tt)* }) => {
        crate::tasks::edited::with_attributes! {
            $(#[$meta])*
            struct $name {
                $($fields)*
                /// The address: http, https, or a file of the host.
                url: crate::args::Text,
                /// Headers to send.
                #[serde(default)]
                headers: std::collections::BTreeMap<String, crate::args::Text>,
                /// Headers that are not sent to where a redirect leads.
                #[serde(default)]
                unredirected_headers: crate::args::List,
                /// Name to log in with.
                url_username: Option<crate::args::Text>,
                /// Password to log in with.
                url_password: Option<crate::args::Text>,
                /// Log in before being asked to.
                #[serde(default)]
                force_basic_auth: crate::args::Bool,
                /// The other side must show a certificate that the host trusts. TLS is that of the host's `openssl`.
                #[serde(default = "crate::tasks::web::yes")]
                validate_certs: crate::args::Bool,
                /// The own certificate, a file of the host.
                client_cert: Option<crate::args::Text>,
                /// The own certificate's key, a file of the host.
                client_key: Option<crate::args::Text>,
                /// The ciphers that may be used, in OpenSSL's words.
                ciphers: Option<crate::args::List>,
                /// Go by the proxies of the task's environment (`http_proxy`, `https_proxy`, `no_proxy`).
                #[serde(default = "crate::tasks::web::yes")]
                use_proxy: crate::args::Bool,
                /// Take name and password from the user's `.netrc`, where it has some.
                #[serde(default = "crate::tasks::web::yes")]
                use_netrc: crate::args::Bool,
                /// What the request says that it comes from.
                #[serde(default = "crate::tasks::web::agent")]
                http_agent: crate::args::Text,
                /// Unpack a content that came packed by gzip.
                #[serde(default = "crate::tasks::web::yes")]
                decompress: crate::args::Bool,
                /// Not supported: Kerberos.
                #[serde(default)]
                use_gssapi: crate::args::Bool,
            }
        }

        impl $name {
            /// The request of the arguments, as GET.
            fn request(&self, seconds: i64) -> Result<crate::http::Request, crate::host::Fault> {
                if *self.use_gssapi {
                    return Err(crate::host::Fault::new("use_gssapi: Kerberos is not supported"));
                }
                let mut request = crate::http::Request::get(crate::http::Url::parse(&self.url)?);
                request.timeout = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0).max(1));
                crate::tasks::web::headers(&mut request, &self.http_agent, &self.headers);
                request.unredirected = self.unredirected_headers.0.clone();
                if let Some(user) = &self.url_username {
                    let password = self.url_password.as_deref().unwrap_or_default();
                    request.login = Some((user.to_string(), password.to_owned()));
                }
                request.login_at_once = *self.force_basic_auth;
                request.proxied = *self.use_proxy;
                request.netrc = *self.use_netrc;
                let text = |text: &Option<crate::args::Text>| text.as_ref().map(ToString::to_string);
                request.tls = crate::host::Tls {
                    validate: *self.validate_certs,
                    authorities: None,
                    certificate: text(&self.client_cert),
                    key: text(&self.client_key).or_else(|| text(&self.client_cert)),
                    ciphers: self.ciphers.as_ref().map(|ciphers| ciphers.join(":")),
                };
                Ok(request)
            }
        }
    };
}
pub(super) use with_request;

pub(super) fn yes() -> crate::args::Bool {
    crate::args::Bool(true)
}

pub(super) fn agent() -> Text {
    "ansible-httpget".into()
}

pub(super) fn headers(request: &mut Request, agent: &str, headers: &BTreeMap<String, Text>) {
    let named = headers
        .keys()
        .any(|name| name.eq_ignore_ascii_case("user-agent"));
    if !named {
        request
            .headers
            .push(("User-Agent".to_owned(), agent.to_owned()));
    }
    let given = headers
        .iter()
        .map(|(name, value)| (name.clone(), value.to_string()));
    request.headers.extend(given);
}

/// The content of an answer, unpacked.
pub(super) fn unpacked(host: &Host, answer: &Answer, decompress: bool) -> Result<Body, Fault> {
    let packed = answer
        .header("content-encoding")
        .is_some_and(|how| how.eq_ignore_ascii_case("gzip") || how.eq_ignore_ascii_case("x-gzip"));
    if !packed || !decompress {
        return Ok(answer.body.clone());
    }
    let bytes = answer.body.bytes();
    let bytes = bytes.map_err(|error| Fault::new(format!("cannot read what came: {error}")))?;
    host.filter(&["gzip", "-dc"], &bytes).map(Into::into)
}

/// The name for a file of this answer: as the answer says, else as the address ends.
pub(super) fn file_name(answer: &Answer, url: &Url) -> String {
    let said = answer.header("content-disposition").and_then(|said| {
        let named = said.split(';').map(str::trim);
        let mut named = named.filter_map(|part| part.split_once('='));
        let (_, name) = named.find(|(field, _)| field.trim().eq_ignore_ascii_case("filename"))?;
        Some(name.trim().trim_matches('"').to_owned())
    });
    // No directories: a server does not say where on this host a file goes.
    let said = said.map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
    let fine = |name: &String| !name.is_empty() && name != "." && name != "..";
    said.filter(fine)
        .or_else(|| Some(answer.url.name()).filter(fine))
        .or_else(|| Some(url.name()).filter(fine))
        .unwrap_or_else(|| "index.html".to_owned())
}

/// When a file was last changed, as a header says it; none where there is no file.
pub(super) fn since(host: &Host, path: &Path) -> Result<Option<String>, Fault> {
    if !matches!(host.entry(&host.resolve(path)?)?, Entry::File(..)) {
        return Ok(None);
    }
    let changed = std::fs::metadata(path).and_then(|meta| meta.modified());
    let seconds = changed.ok().and_then(|time| {
        let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok()
    });
    Ok(seconds.map(super::facts::date_time::http_date))
}

/// A failure to get an answer at all, in the words that Ansible has from Python.
pub(super) fn unanswered(fault: &Fault) -> String {
    match fault.message.starts_with("https needs") || fault.message.starts_with("the address") {
        true => format!("Request failed: {fault}"),
        false => format!("Request failed: <urlopen error {fault}>"),
    }
}
