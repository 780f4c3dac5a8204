//! A channel to a host's helper: frames in both directions.

use std::{
    ops::Range,
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use fleet_wire::{FRAME_LIMIT, FromHost, ToHost};
use openssh::Session;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

use super::{
    diagnosis::readable,
    error::{ChannelError, ConnectError, Said, Target},
};

/// What is kept of what a host says beside the protocol, in bytes.
const TAIL: usize = 4096;
/// Frames wait for each other up to so many bytes before they are sent.
const BUFFER: usize = 64 << 10;
/// A line of noise before the first frame is read up to here.
const LINE: usize = 64 << 10;
/// How long the end of a process may follow the end of its output.
const END: Duration = Duration::from_secs(2);
/// How long the end of a host's stderr may follow that.
const LAST_WORDS: Duration = Duration::from_millis(500);

type Reader = BufReader<Box<dyn AsyncRead + Send + Unpin>>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// What runs on the other end, kept alive with the channel.
pub(crate) enum Process {
    Remote(Option<openssh::Child<Arc<Session>>>),
    Local(tokio::process::Child),
}

/// A channel whose helper is running.
pub struct Channel {
    pub(crate) host: Target,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) tail: Tail,
    /// Ends with the host's stderr.
    pub(crate) listening: JoinHandle<()>,
    pub(crate) process: Process,
    /// The helper had to be sent first.
    pub uploaded: bool,
}

/// The end to send into.
pub struct Sender {
    host: Target,
    writer: Writer,
    buffer: Vec<u8>,
    tail: Tail,
}

/// The end to receive from.
pub struct Receiver {
    host: Target,
    reader: Reader,
    /// What was read and not taken yet.
    arrived: Vec<u8>,
    /// Up to where it was taken.
    taken: usize,
    tail: Tail,
    listening: JoinHandle<()>,
    process: Process,
}

impl Channel {
    /// Takes the two directions apart.
    #[must_use]
    pub fn split(self) -> (Sender, Receiver) {
        let sender = Sender {
            host: self.host.clone(),
            writer: self.writer,
            buffer: Vec::new(),
            tail: self.tail.clone(),
        };
        let receiver = Receiver {
            host: self.host,
            reader: self.reader,
            arrived: Vec::new(),
            taken: 0,
            tail: self.tail,
            listening: self.listening,
            process: self.process,
        };
        (sender, receiver)
    }
}

impl Sender {
    /// Puts a message into the buffer, and sends the buffer when it is full.
    ///
    /// # Errors
    /// When the message is too large, or the channel is gone.
    pub async fn send(&mut self, message: &ToHost) -> Result<(), ChannelError> {
        let frame = fleet_wire::encode(message).map_err(|source| ChannelError::Unsendable {
            host: self.host.clone(),
            source,
        })?;
        self.buffer.extend(frame);
        if self.buffer.len() >= BUFFER {
            self.flush().await
        } else {
            Ok(())
        }
    }

    /// Sends what is in the buffer.
    ///
    /// # Errors
    /// When the channel is gone.
    pub async fn flush(&mut self) -> Result<(), ChannelError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let sent = async {
            self.writer.write_all(&self.buffer).await?;
            self.writer.flush().await
        };
        let sent = sent.await;
        self.buffer.clear();
        sent.map_err(|_| ChannelError::Lost {
            host: self.host.clone(),
            said: self.tail.said(),
        })
    }
}

impl Receiver {
    /// The next message; none when the helper has ended in good order. Nothing is lost when the future is dropped.
    ///
    /// # Errors
    /// When the channel is gone, or what arrives is not of this protocol.
    pub async fn next(&mut self) -> Result<Option<FromHost>, ChannelError> {
        loop {
            if let Some(body) = self.frame()? {
                let message = fleet_wire::decode(&self.arrived[body]);
                return message.map(Some).map_err(|source| ChannelError::Frame {
                    host: self.host.clone(),
                    source,
                });
            }
            self.arrived.drain(..self.taken);
            self.taken = 0;
            self.arrived.reserve(BUFFER);
            match self.reader.read_buf(&mut self.arrived).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return self.ended().await,
            }
        }
    }

    /// Where the body of the next whole frame is in what has arrived.
    fn frame(&mut self) -> Result<Option<Range<usize>>, ChannelError> {
        let rest = &self.arrived[self.taken..];
        let Some(prefix) = rest.first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length > FRAME_LIMIT {
            let source = fleet_wire::FrameError::TooLarge(length);
            return Err(ChannelError::Frame {
                host: self.host.clone(),
                source,
            });
        }
        if rest.len() < 4 + length {
            return Ok(None);
        }
        let body = self.taken + 4..self.taken + 4 + length;
        self.taken = body.end;
        Ok(Some(body))
    }

    /// Why nothing more arrives.
    async fn ended(&mut self) -> Result<Option<FromHost>, ChannelError> {
        let host = self.host.clone();
        let status = match &mut self.process {
            Process::Local(child) => timeout(END, child.wait()).await.ok().and_then(Result::ok),
            Process::Remote(child) => match child.take() {
                Some(child) => remote_end(child).await,
                None => None,
            },
        };
        if status.is_some_and(|status| status.success()) && self.arrived.is_empty() {
            return Ok(None);
        }
        // Its last words may still be on their way; or somebody whom it left behind holds the line open.
        let _ = timeout(LAST_WORDS, &mut self.listening).await;
        let said = self.tail.said();
        match status {
            Some(status) if status.code().is_some() => {
                Err(ChannelError::Died { host, status, said })
            }
            Some(_) => Err(ChannelError::Killed { host, said }),
            None => Err(ChannelError::Lost { host, said }),
        }
    }
}

/// How a remote helper ended; none where the connection did.
async fn remote_end(child: openssh::Child<Arc<Session>>) -> Option<ExitStatus> {
    let session = child.session();
    match timeout(END, child.wait()).await {
        Ok(Ok(status)) => Some(status),
        // The crate takes the shell's word for "no such command" out of the exit status.
        Ok(Err(openssh::Error::Remote(_))) => Some(ExitStatus::from_raw(127 << 8)),
        // ssh hands no signal on. Where its master still answers, it was not the connection.
        Ok(Err(_)) => match timeout(END, session.check()).await {
            Ok(Ok(())) => Some(ExitStatus::from_raw(9)),
            _ => None,
        },
        Err(_) => None,
    }
}

/// The last that a host said beside the protocol.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<Vec<u8>>>);

impl Tail {
    pub(crate) fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(bytes);
        let excess = kept.len().saturating_sub(TAIL);
        kept.drain(..excess);
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    pub(crate) fn said(&self) -> Said {
        let text = self.text();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let from = lines.len().saturating_sub(4);
        Said(lines[from..].iter().map(|line| readable(line)).collect())
    }
}

/// Reads a host's stderr into `tail`, and tells each time that `prompt` appears in it.
pub(crate) fn listen(
    mut stderr: impl AsyncRead + Send + Unpin + 'static,
    tail: Tail,
    prompt: String,
) -> (mpsc::Receiver<()>, JoinHandle<()>) {
    let (asked, asks) = mpsc::channel(4);
    let listening = tokio::spawn(async move {
        let mut buffer = vec![0; 4096];
        let mut seen = String::new();
        loop {
            match stderr.read(&mut buffer).await {
                Ok(0) | Err(_) => break,
                Ok(read) => {
                    seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
                    while let Some(at) = seen.find(&prompt) {
                        seen.drain(..at + prompt.len());
                        if asked.send(()).await.is_err() {
                            break;
                        }
                    }
                    tail.add(&buffer[..read]);
                    // Only a prompt that is split over two reads needs what came before.
                    let keep = seen.len().saturating_sub(prompt.len());
                    let keep = (keep..seen.len())
                        .find(|at| seen.is_char_boundary(*at))
                        .unwrap_or(seen.len());
                    seen.drain(..keep);
                }
            }
        }
    });
    (asks, listening)
}

/// The next line that is one of ours; what comes before it is noise of a login shell.
pub(crate) async fn marker(reader: &mut Reader, noise: &Tail) -> std::io::Result<Option<String>> {
    loop {
        let mut line = Vec::new();
        if (&mut *reader)
            .take(LINE as u64)
            .read_until(b'\n', &mut line)
            .await?
            == 0
        {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(at) = text.find("FLEETCTL-") {
            return Ok(Some(text[at..].trim_end().to_owned()));
        }
        noise.add(&line);
    }
}

/// A helper that could not be started, in words.
pub(crate) fn not_started(host: &Target, reason: &str, tail: &Tail) -> ConnectError {
    ConnectError::Helper {
        host: host.clone(),
        reason: reason.to_owned(),
        said: tail.said(),
    }
}
