use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    os::fd::OwnedFd,
    time::Duration,
};

use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType,
    netlink::{self, SocketAddrNetlink},
    recv, sendto, socket_with,
    sockopt::{Timeout, set_socket_timeout},
};

const FAMILY_INET: u8 = 2;
const FAMILY_INET6: u8 = 10;

/// An address of an interface.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Address {
    /// The interface's number.
    pub(crate) interface: u32,
    /// The interface's name, or the old-style alias that the address was given (`eth0:1`); IPv4 only.
    pub(crate) label: Option<String>,
    pub(crate) address: IpAddr,
    pub(crate) prefix: u8,
    pub(crate) broadcast: Option<Ipv4Addr>,
    /// 0 global, 253 link, 254 host.
    pub(crate) scope: u8,
    pub(crate) secondary: bool,
}

/// Where packets to an address would go.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Route {
    pub(crate) interface: Option<u32>,
    pub(crate) gateway: Option<IpAddr>,
    pub(crate) source: Option<IpAddr>,
}

/// A TCP socket that listens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listener {
    pub(crate) address: IpAddr,
    pub(crate) port: u16,
    /// Connections that wait to be accepted.
    pub(crate) queued: u32,
    /// The longest that queue may get: the backlog that is in force.
    pub(crate) backlog: u32,
}

/// The addresses of all interfaces of this network namespace.
///
/// # Errors
/// When the kernel does not answer.
pub(crate) fn addresses() -> io::Result<Vec<Address>> {
    const GET_ADDRESSES: u16 = 22;
    let answers = ask(None, GET_ADDRESSES, DUMP, &[0; 8])?;
    Ok(answers
        .iter()
        .filter_map(|answer| address(answer))
        .collect())
}

/// The route that the kernel would take to an address; none where there is no way.
///
/// # Errors
/// When the kernel does not answer.
pub(crate) fn route(to: IpAddr) -> io::Result<Option<Route>> {
    const GET_ROUTE: u16 = 26;
    let (family, bytes) = match to {
        IpAddr::V4(ip) => (FAMILY_INET, ip.octets().to_vec()),
        IpAddr::V6(ip) => (FAMILY_INET6, ip.octets().to_vec()),
    };
    let mut body = vec![0; 12];
    body[0] = family;
    body[1] = u8::try_from(bytes.len() * 8).unwrap_or(0);
    let length = u16::try_from(4 + bytes.len()).unwrap_or(0);
    body.extend(length.to_ne_bytes());
    body.extend(1_u16.to_ne_bytes());
    body.extend(bytes);
    let answers = match ask(None, GET_ROUTE, 0, &body) {
        Err(error) if error.raw_os_error().is_some() => return Ok(None),
        other => other?,
    };
    Ok(answers.first().and_then(|answer| {
        let mut route = Route::default();
        for (kind, value) in Attributes(answer.get(12..)?) {
            match kind {
                4 => route.interface = word(value, 0),
                5 => route.gateway = ip(value),
                7 => route.source = ip(value),
                _ => {}
            }
        }
        Some(route)
    }))
}

/// The TCP sockets that listen in this network namespace, one by one: a port shared by
/// `reuseport` is listed as often as it has sockets.
///
/// # Errors
/// When the kernel does not answer, or was built without socket diagnosis.
pub(crate) fn listeners() -> io::Result<Vec<Listener>> {
    const BY_FAMILY: u16 = 20;
    const TCP: u8 = 6;
    const LISTEN: u32 = 1 << 10;
    let mut found = Vec::new();
    for family in [FAMILY_INET, FAMILY_INET6] {
        let mut body = vec![family, TCP, 0, 0];
        body.extend(LISTEN.to_ne_bytes());
        body.extend([0; 48]);
        let answers = ask(Some(netlink::SOCK_DIAG), BY_FAMILY, DUMP, &body)?;
        found.extend(answers.iter().filter_map(|answer| listener(answer)));
    }
    Ok(found)
}

fn address(answer: &[u8]) -> Option<Address> {
    const SECONDARY: u8 = 1;
    let [family, prefix, flags, scope, ..] = *answer.get(..8)? else {
        return None;
    };
    let (mut local, mut peer, mut label, mut broadcast) = (None, None, None, None);
    for (kind, value) in Attributes(&answer[8..]) {
        match kind {
            1 => peer = ip(value),
            2 => local = ip(value),
            3 => {
                label = Some(
                    String::from_utf8_lossy(value)
                        .trim_end_matches('\0')
                        .to_owned(),
                )
            }
            4 => {
                if let Some(IpAddr::V4(ip)) = ip(value) {
                    broadcast = Some(ip);
                }
            }
            _ => {}
        }
    }
    Some(Address {
        interface: word(answer, 4)?,
        label,
        address: local.or(peer)?,
        prefix,
        broadcast,
        scope,
        // On IPv6 the same bit means a temporary address.
        secondary: family == FAMILY_INET && flags & SECONDARY != 0,
    })
}

fn listener(answer: &[u8]) -> Option<Listener> {
    let address = match *answer.first()? {
        FAMILY_INET => ip(answer.get(8..12)?)?,
        _ => ip(answer.get(8..24)?)?,
    };
    let port = answer.get(4..6)?;
    Some(Listener {
        address,
        port: u16::from_be_bytes([port[0], port[1]]),
        queued: word(answer, 56)?,
        backlog: word(answer, 60)?,
    })
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(four).into());
    }
    <[u8; 16]>::try_from(bytes)
        .ok()
        .map(|bytes| Ipv6Addr::from(bytes).into())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

/// The attributes that follow a message's head: a kind and a value each.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.0.get(..4)?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]);
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
const HEAD: usize = 16;

/// Sends one request and gives the bodies of all its answers.
fn ask(protocol: Option<Protocol>, kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let socket: OwnedFd = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        protocol,
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(Duration::from_secs(2)))?;
    let length = u32::try_from(HEAD + body.len()).unwrap_or(u32::MAX);
    let mut message = Vec::with_capacity(HEAD + body.len());
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    sendto(
        &socket,
        &message,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;

    let mut answers = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let (received, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        let mut rest = &buffer[..received];
        while let Some((kind, body, more)) = split(rest) {
            match kind {
                DONE => return Ok(answers),
                ERROR => {
                    let code = word(body, 0).unwrap_or(0).cast_signed();
                    return Err(io::Error::from_raw_os_error(-code));
                }
                _ => answers.push(body.to_vec()),
            }
            rest = more;
        }
        if flags & DUMP == 0 {
            return Ok(answers);
        }
    }
}

const ERROR: u16 = 2;
const DONE: u16 = 3;

/// The first message of a packet: its kind, its body and what follows it.
fn split(packet: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(word(packet, 0)?).ok()?;
    let kind = packet.get(4..6)?;
    let body = packet.get(HEAD..length)?;
    let more = packet.get(length.next_multiple_of(4)..).unwrap_or_default();
    Some((u16::from_ne_bytes([kind[0], kind[1]]), body, more))
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use super::{Attributes, addresses, listeners, route};

    #[test]
    fn the_loopback_address_is_found() {
        let loopback = addresses()
            .unwrap()
            .into_iter()
            .find(|address| address.address == Ipv4Addr::LOCALHOST)
            .unwrap();
        assert_eq!((loopback.prefix, loopback.scope), (8, 254));
        assert_eq!(loopback.label.as_deref(), Some("lo"));
    }

    #[test]
    fn a_route_to_the_machine_itself_has_no_gateway() {
        let route = route(Ipv4Addr::new(127, 0, 0, 9).into()).unwrap().unwrap();
        assert_eq!(route.gateway, None);
        assert!(route.interface.is_some());
    }

    #[test]
    fn a_listening_socket_shows_the_backlog_in_force() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let most: u32 = std::fs::read_to_string("/proc/sys/net/core/somaxconn")
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let found = listeners().unwrap();
        let found = found.iter().find(|listener| listener.port == port).unwrap();
        assert_eq!(found.address, Ipv4Addr::LOCALHOST);
        assert!(found.backlog > 0 && found.backlog <= most, "{found:?}");
    }

    #[test]
    fn a_torn_attribute_ends_the_list() {
        assert_eq!(Attributes(&[9, 0, 1, 0, 7]).next(), None);
        assert_eq!(Attributes(&[5, 0, 1, 0, 7]).next(), Some((1, &[7][..])));
    }
}
