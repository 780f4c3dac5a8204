//! Connections to other machines, for the modules that fetch something.
//!
//! TLS is that of the host's own `openssl`, which is there wherever the certificates to trust are: the
//! helper needs no copy of a library that the host keeps up to date, and trusts what the host trusts.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{self as sys, Mode, OFlags};

use super::process::PATH;
use super::{Body, Fault, Host, body};

/// Larger contents than this do not lie in the helper's own memory.
const IN_MEMORY: u64 = 4 << 20;

/// Where to connect to, and how.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// The name or address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// With TLS.
    pub tls: Option<Tls>,
    /// A socket of this machine, in place of name and port.
    pub socket: Option<PathBuf>,
    /// A proxy, `name:port`, that is asked for the connection first. Only with TLS.
    pub proxy: Option<String>,
    /// How long to wait for the connection, and for each answer.
    pub timeout: Duration,
}

/// How TLS is spoken.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The other side must show a certificate of its name by somebody whom the host trusts.
    pub validate: bool,
    /// Whom to trust, a file; none for whom the host trusts.
    pub authorities: Option<String>,
    /// The own certificate, a file.
    pub certificate: Option<String>,
    /// The own certificate's key, a file.
    pub key: Option<String>,
    /// The ciphers that may be used, in OpenSSL's words.
    pub ciphers: Option<String>,
}

/// An open connection.
pub trait Connection: Read + Write {
    /// Why nothing more came, where the other side's end is not the whole story.
    fn complaint(&mut self) -> Option<String>;
}

impl Host {
    /// Opens a connection.
    ///
    /// # Errors
    /// When the name is not known, nobody answers, or TLS is not to be had.
    pub fn connect(&self, to: &Endpoint) -> Result<Box<dyn Connection>, Fault> {
        let refused = |error: io::Error| Fault::new(plain(&error));
        if let Some(path) = &to.socket {
            let stream =
                UnixStream::connect(path).map_err(|error| Fault::io("connect to", path, error))?;
            stream.set_read_timeout(Some(to.timeout)).map_err(refused)?;
            stream
                .set_write_timeout(Some(to.timeout))
                .map_err(refused)?;
            return Ok(Box::new(Plain(stream)));
        }
        if let Some(tls) = &to.tls {
            return Ok(Box::new(Secure::open(self, to, tls)?));
        }
        let mut last = Fault::new("no address is known");
        for address in self.addresses(&to.host)? {
            match TcpStream::connect_timeout(&SocketAddr::new(address, to.port), to.timeout) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(to.timeout)).map_err(refused)?;
                    stream
                        .set_write_timeout(Some(to.timeout))
                        .map_err(refused)?;
                    return Ok(Box::new(Plain(stream)));
                }
                Err(error) => last = refused(error),
            }
        }
        Err(last)
    }

    /// Keeps a stream to its end: in memory where it is small, else in a file without a name.
    ///
    /// # Errors
    /// When it breaks off, or there is no room.
    pub(crate) fn keep_stream(&self, from: &mut impl Read) -> io::Result<Body> {
        let mut memory = Vec::new();
        from.by_ref().take(IN_MEMORY).read_to_end(&mut memory)?;
        if (memory.len() as u64) < IN_MEMORY {
            return Ok(memory.into());
        }
        let mut file = self.unnamed_file()?;
        file.write_all(&memory)?;
        io::copy(from, &mut file)?;
        let file = Arc::new(file);
        let content = body::hash(Body::positioned(&file))?;
        Ok(Body::Spooled(file, content))
    }

    /// A file that is gone when it is closed: nothing is left of it, in a plan neither.
    fn unnamed_file(&self) -> io::Result<File> {
        if let Some(journal) = &self.journal {
            return journal.state().spool();
        }
        for dir in ["/var/tmp", "/tmp"] {
            let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
            if let Ok(file) = sys::open(dir, flags, Mode::from_raw_mode(0o600)) {
                return Ok(file.into());
            }
        }
        Ok(sys::memfd_create("fleetctl-content", sys::MemfdFlags::CLOEXEC)?.into())
    }

    /// The addresses of a name, as the host's own library knows them.
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Fault> {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Ok(vec![address]);
        }
        let unknown = || Fault::new(format!("Name or service not known: {name}"));
        if bare.is_empty() || bare.starts_with('-') {
            return Err(unknown());
        }
        let answer = self.probe(&["getent", "ahosts", bare])?;
        let mut addresses = Vec::new();
        for line in answer.text().lines() {
            let address = line
                .split_whitespace()
                .next()
                .and_then(|word| word.parse().ok());
            addresses.extend(address.filter(|address| !addresses.contains(address)));
        }
        match addresses.is_empty() {
            true => Err(unknown()),
            false => Ok(addresses),
        }
    }
}

/// The system's words without its number.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => "timed out".to_owned(),
        _ => error
            .to_string()
            .split(" (os error")
            .next()
            .unwrap_or_default()
            .to_owned(),
    }
}

struct Plain<S>(S);

impl<S: Read> Read for Plain<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<S: Write> Write for Plain<S> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.0.write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<S: Read + Write> Connection for Plain<S> {
    fn complaint(&mut self) -> Option<String> {
        None
    }
}

/// A connection through `openssl s_client`.
struct Secure {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    errors: Option<thread::JoinHandle<String>>,
    timeout: Duration,
}

impl Secure {
    fn open(host: &Host, to: &Endpoint, tls: &Tls) -> Result<Self, Fault> {
        let bare = to.host.trim_start_matches('[').trim_end_matches(']');
        let mut argv: Vec<String> = ["s_client", "-quiet", "-verify_quiet"]
            .map(str::to_owned)
            .into();
        let mut option = |name: &str, value: &str| argv.extend([name.to_owned(), value.to_owned()]);
        match &to.proxy {
            Some(proxy) => {
                option("-proxy", proxy);
                option("-connect", &format!("{}:{}", to.host, to.port));
            }
            None => {
                // The library behind openssl would ask as well; this tells an unknown name from a refused connection.
                let address = host.addresses(&to.host)?.first().copied();
                let address = address.map_or_else(
                    || bare.to_owned(),
                    |address| match address {
                        IpAddr::V4(address) => address.to_string(),
                        IpAddr::V6(address) => format!("[{address}]"),
                    },
                );
                option("-connect", &format!("{address}:{}", to.port));
            }
        }
        let is_address = bare.parse::<IpAddr>().is_ok();
        if !is_address {
            option("-servername", bare);
        }
        for (name, value) in [
            ("-CAfile", &tls.authorities),
            ("-cert", &tls.certificate),
            ("-key", &tls.key),
            ("-cipher", &tls.ciphers),
        ] {
            if let Some(value) = value {
                option(name, value);
            }
        }
        if tls.validate {
            option(
                if is_address {
                    "-verify_ip"
                } else {
                    "-verify_hostname"
                },
                bare,
            );
            argv.push("-verify_return_error".to_owned());
        }
        let mut child = Command::new("openssl")
            .args(&argv)
            .env("PATH", PATH)
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => Fault::new(
                    "https needs the program `openssl` on this host: install the package openssl (it comes with ca-certificates)",
                ),
                _ => Fault::new(format!("cannot run openssl: {}", plain(&error))),
            })?;
        let (Some(input), Some(output), Some(mut errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Fault::new("openssl has no streams"));
        };
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            // What could be read of it is what can be told of it.
            let _ = errors.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Ok(Self {
            child,
            input: Some(input),
            output,
            errors: Some(errors),
            timeout: to.timeout,
        })
    }
}

impl Read for Secure {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let output = self.output.as_fd();
        let mut waited = [PollFd::new(&output, PollFlags::IN)];
        let patience = Timespec {
            tv_sec: i64::try_from(self.timeout.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: 0,
        };
        if poll(&mut waited, Some(&patience))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.output.read(buffer)
    }
}

impl Write for Secure {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut self.input {
            Some(input) => input.write(buffer),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.input {
            Some(input) => input.flush(),
            None => Ok(()),
        }
    }
}

impl Connection for Secure {
    fn complaint(&mut self) -> Option<String> {
        self.input = None;
        // It may have ended by itself, and told why.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.errors.take()?.join().ok()?;
        told(&said)
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `openssl` complained of, in a few words.
fn told(said: &str) -> Option<String> {
    let mut fallback = None;
    for line in said.lines().map(str::trim) {
        if let Some((_, why)) = line
            .strip_prefix("verify error:")
            .and_then(|rest| rest.split_once(':'))
        {
            return Some(format!("certificate verify failed: {why}"));
        }
        if line.contains("certificate verify failed") {
            fallback = Some("certificate verify failed".to_owned());
        }
        // `C0:...:error:0A00042E:SSL routines:ssl3_read_bytes:tlsv1 alert protocol version:...`
        let parts: Vec<&str> = line.split(':').collect();
        if let (None, Some(at)) = (&fallback, parts.iter().position(|part| *part == "error")) {
            fallback = parts.get(at + 4).map(|why| (*why).to_owned());
        }
        if let (None, true) = (
            &fallback,
            line.contains("connect:errno") || line.contains("gethostbyname failure"),
        ) {
            fallback = Some("Connection refused".to_owned());
        }
    }
    fallback.filter(|why| !why.is_empty())
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn openssls_complaints_are_told_in_a_few_words() {
        for (said, short) in [
            (
                "verify error:num=18:self-signed certificate\n",
                Some("certificate verify failed: self-signed certificate"),
            ),
            (
                "verify error:num=62:hostname mismatch\n4037:error:0A000086:SSL routines:tls_post_process_server_certificate:certificate verify failed:../ssl/x.c:1889:",
                Some("certificate verify failed: hostname mismatch"),
            ),
            (
                "4037A1:error:0A00042E:SSL routines:ssl3_read_bytes:tlsv1 alert protocol version:../ssl/record/rec_layer_s3.c:1600:SSL alert number 70",
                Some("tlsv1 alert protocol version"),
            ),
            ("", None),
        ] {
            assert_eq!(told(said).as_deref(), short);
        }
    }
}
