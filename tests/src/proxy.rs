//! A slow line: a TCP proxy that holds every chunk back for a while, and counts what goes through.
//!
//! It stands where a network emulator is missing. The delay is that of a long cable, not of a narrow one: each chunk is
//! let go when its own time has come, however many are on their way. The handshake of TCP itself is not delayed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What has gone through a proxy so far, over all connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections accepted.
    pub connections: u64,
    /// Bytes that clients have sent.
    pub bytes_to_server: u64,
    /// Bytes that servers have sent.
    pub bytes_to_client: u64,
    /// How often a client's sending was followed by a server's: the number of times that somebody had to wait for the
    /// whole way there and back.
    ///
    /// In a dialogue of questions and answers this is the number of changes from client to server. When both send at
    /// once, chunks cross on the line and change places without anyone waiting; so a client's chunk starts a new turn
    /// only if the server's answer in the last turn has reached the client before it.
    pub turns: u64,
}

/// A proxy that runs in threads of its own until it is dropped. Connections that are open then run on to their end.
#[derive(Debug)]
pub struct DelayProxy {
    address: SocketAddr,
    counts: Arc<Mutex<Counts>>,
    stopped: Arc<AtomicBool>,
}

impl DelayProxy {
    /// Listens at `listen` (port 0 for a free one), and passes everything on to `target`, `delay` later each way.
    ///
    /// # Errors
    ///
    /// When one of the addresses makes no sense, or `listen` is taken. A target that does not answer is no error: its
    /// clients' connections end.
    pub fn start(
        listen: impl ToSocketAddrs,
        target: impl ToSocketAddrs,
        delay: Duration,
    ) -> io::Result<DelayProxy> {
        let listener = TcpListener::bind(listen)?;
        let target = target.to_socket_addrs()?.next().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "the target has no address")
        })?;
        let proxy = DelayProxy {
            address: listener.local_addr()?,
            counts: Arc::default(),
            stopped: Arc::default(),
        };
        let (counts, stopped) = (Arc::clone(&proxy.counts), Arc::clone(&proxy.stopped));
        thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(client) = client else { continue };
                let counts = Arc::clone(&counts);
                // Connecting may take its time; the next client must not wait for it.
                thread::spawn(move || {
                    lock(&counts).connections += 1;
                    // A client sees the end of its connection, which is all there is to say.
                    let _ = join(client, target, delay, &counts);
                });
            }
        });
        Ok(proxy)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What has gone through so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *lock(&self.counts)
    }
}

impl Drop for DelayProxy {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for the next connection.
        let _ = TcpStream::connect(self.address);
    }
}

/// A piece of a stream on its way. An empty one is the stream's end.
struct Chunk {
    due: Instant,
    turn: u64,
    bytes: Vec<u8>,
}

/// How far the dialogue of one connection has come.
#[derive(Default)]
struct Dialogue {
    /// The turn of the last question that has reached the server.
    asked: u64,
    /// The turn of the last answer that has reached the client.
    answered: u64,
    /// The last turn in which the server has sent something.
    counted: u64,
}

#[derive(Clone, Copy)]
enum Way {
    ToServer,
    ToClient,
}

fn join(
    client: TcpStream,
    target: SocketAddr,
    delay: Duration,
    counts: &Arc<Mutex<Counts>>,
) -> io::Result<()> {
    let server = TcpStream::connect(target)?;
    // Small packets must not wait for each other: this line is to add its own delay and no other.
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let dialogue = Arc::default();
    for (from, to, way) in [
        (client.try_clone()?, server.try_clone()?, Way::ToServer),
        (server, client, Way::ToClient),
    ] {
        // The bound is far beyond what a test sends in one delay; it keeps a server that does not read from filling
        // the memory.
        let (sender, receiver) = sync_channel(4096);
        let source = from.try_clone()?;
        let (counts, dialogue) = (Arc::clone(counts), Arc::clone(&dialogue));
        let arrivals = Arc::clone(&dialogue);
        thread::spawn(move || take_in(from, &sender, delay, way, &arrivals, &counts));
        thread::spawn(move || let_out(&receiver, to, &source, way, &dialogue));
    }
    Ok(())
}

/// Reads what one side sends, notes its time, and puts it on the line.
fn take_in(
    mut from: TcpStream,
    line: &SyncSender<Chunk>,
    delay: Duration,
    way: Way,
    dialogue: &Mutex<Dialogue>,
    counts: &Mutex<Counts>,
) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        // A connection that breaks ends like one that is closed.
        let length = from.read(&mut buffer).unwrap_or(0);
        let due = Instant::now() + delay;
        let turn = note(way, length as u64, &mut lock(dialogue), &mut lock(counts));
        let bytes = buffer[..length].to_vec();
        if line.send(Chunk { due, turn, bytes }).is_err() || length == 0 {
            return;
        }
    }
}

/// Counts a chunk that has come in, and says to which turn it belongs.
fn note(way: Way, length: u64, dialogue: &mut Dialogue, counts: &mut Counts) -> u64 {
    match way {
        Way::ToServer => {
            counts.bytes_to_server += length;
            dialogue.answered + 1
        }
        Way::ToClient => {
            counts.bytes_to_client += length;
            if length > 0 && dialogue.asked > dialogue.counted {
                counts.turns += dialogue.asked - dialogue.counted;
                dialogue.counted = dialogue.asked;
            }
            dialogue.asked
        }
    }
}

/// Takes chunks off the line, each at its time, and gives them to the other side.
fn let_out(
    line: &Receiver<Chunk>,
    mut to: TcpStream,
    source: &TcpStream,
    way: Way,
    dialogue: &Mutex<Dialogue>,
) {
    while let Ok(chunk) = line.recv() {
        thread::sleep(chunk.due.saturating_duration_since(Instant::now()));
        if chunk.bytes.is_empty() {
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
        {
            // Before it is written: the other side may answer at once.
            let mut dialogue = lock(dialogue);
            let reached = match way {
                Way::ToServer => &mut dialogue.asked,
                Way::ToClient => &mut dialogue.answered,
            };
            *reached = chunk.turn.max(*reached);
        }
        if to.write_all(&chunk.bytes).is_err() {
            // Nobody is there any more, so the side that sends must hear of it.
            let _ = source.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that greets with `hello`, then answers each line with the same line.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                thread::spawn(move || {
                    stream.write_all(b"hello\n").unwrap();
                    let mut reader = stream.try_clone().unwrap();
                    io::copy(&mut reader, &mut stream).unwrap();
                });
            }
        });
        address
    }

    fn through(delay: u64) -> (DelayProxy, TcpStream) {
        let proxy = DelayProxy::start("127.0.0.1:0", echo(), Duration::from_millis(delay)).unwrap();
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        client.set_nodelay(true).unwrap();
        assert_eq!(receive(&mut client, 6), "hello\n");
        (proxy, client)
    }

    fn receive(stream: &mut TcpStream, length: usize) -> String {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_dialogue_takes_a_turn_for_each_answer() {
        let (proxy, mut client) = through(1);
        for _ in 0..5 {
            client.write_all(b"a question\n").unwrap();
            assert_eq!(receive(&mut client, 11), "a question\n");
        }
        let expected = Counts {
            connections: 1,
            bytes_to_server: 55,
            bytes_to_client: 61,
            turns: 5,
        };
        assert_eq!(proxy.counts(), expected);
    }

    #[test]
    fn what_is_sent_ahead_takes_one_turn() {
        let (proxy, mut client) = through(200);
        for _ in 0..5 {
            client.write_all(b"a question\n").unwrap();
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(receive(&mut client, 55), "a question\n".repeat(5));
        assert_eq!(proxy.counts().turns, 1);
    }

    #[test]
    fn a_greeting_is_no_turn() {
        let (proxy, _client) = through(1);
        assert_eq!(proxy.counts().turns, 0);
        assert_eq!(proxy.counts().bytes_to_client, 6);
    }

    #[test]
    fn a_question_and_its_answer_are_both_held_back() {
        let (_proxy, mut client) = through(40);
        let start = Instant::now();
        client.write_all(b"x").unwrap();
        receive(&mut client, 1);
        assert!(start.elapsed() >= Duration::from_millis(80));
    }

    #[test]
    fn chunks_do_not_wait_for_each_other() {
        let (_proxy, mut client) = through(1000);
        client.write_all(b"a").unwrap();
        thread::sleep(Duration::from_millis(50));
        client.write_all(b"b").unwrap();
        receive(&mut client, 1);
        let first = Instant::now();
        receive(&mut client, 1);
        // One after the other they would be a second apart.
        assert!(first.elapsed() < Duration::from_millis(700));
    }

    #[test]
    fn the_end_of_a_stream_comes_through() {
        let (_proxy, mut client) = through(1);
        client.write_all(b"bye").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut rest = String::new();
        client.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "bye");
    }

    #[test]
    fn a_target_that_does_not_listen_ends_the_connection() {
        let gone = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let proxy = DelayProxy::start("127.0.0.1:0", gone, Duration::ZERO).unwrap();
        let mut client = TcpStream::connect(proxy.address()).unwrap();
        assert_eq!(client.read(&mut [0; 1]).unwrap(), 0);
    }
}
