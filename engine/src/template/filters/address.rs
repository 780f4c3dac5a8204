//! IP addresses and networks, as `ansible.utils` has them.

use std::net::IpAddr;

use minijinja::value::ValueKind;
use minijinja::{Error, State, Value};

use crate::template::given::{Filter, Given, items};
use crate::template::python::text;

pub(super) const FILTERS: &[Filter] = &[
    Filter {
        names: "ipaddr ansible.utils.ipaddr ansible.netcommon.ipaddr",
        parameters: "query version",
        run: |_, value, given| answered(value, given, None),
    },
    Filter {
        names: "ipv4 ansible.utils.ipv4",
        parameters: "query",
        run: |_, value, given| answered(value, given, Some(4)),
    },
    Filter {
        names: "ipv6 ansible.utils.ipv6",
        parameters: "query",
        run: |_, value, given| answered(value, given, Some(6)),
    },
    Filter {
        names: "ipwrap ansible.utils.ipwrap",
        parameters: "query",
        run: ipwrap,
    },
    Filter {
        names: "ipsubnet ansible.utils.ipsubnet",
        parameters: "query index",
        run: ipsubnet,
    },
];

/// An address with the length of its network's prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Interface {
    bits: u128,
    prefix: u8,
    /// 32 or 128.
    width: u8,
    /// Whether a prefix was written.
    network: bool,
}

impl Interface {
    fn parse(written: &str) -> Option<Self> {
        let (address, prefix) = match written.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (written, None),
        };
        let (bits, width) = match address.parse::<IpAddr>().ok()? {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let prefix = match prefix {
            None => width,
            Some(written) => match written.parse::<u8>() {
                Ok(prefix) => prefix,
                Err(_) => {
                    let mask = written.parse::<std::net::Ipv4Addr>().ok()?;
                    let ones = u32::from(mask).leading_ones();
                    (u32::from(mask).count_ones() == ones).then_some(ones as u8)?
                }
            },
        };
        (prefix <= width).then_some(Self {
            bits,
            prefix,
            width,
            network: written.contains('/'),
        })
    }

    fn host_mask(self) -> u128 {
        let hosts = u32::from(self.width - self.prefix);
        if hosts == 128 {
            u128::MAX
        } else {
            (1 << hosts) - 1
        }
    }

    fn shown(self, bits: u128) -> String {
        match self.width {
            32 => std::net::Ipv4Addr::from(bits as u32).to_string(),
            _ => std::net::Ipv6Addr::from(bits).to_string(),
        }
    }

    fn with(self, bits: u128) -> Self {
        Self { bits, ..self }
    }

    fn first(self) -> u128 {
        self.bits & !self.host_mask()
    }

    fn last(self) -> u128 {
        self.bits | self.host_mask()
    }

    fn written(self) -> String {
        if self.network {
            format!("{}/{}", self.shown(self.bits), self.prefix)
        } else {
            self.shown(self.bits)
        }
    }

    fn holds(self, other: Self) -> bool {
        self.width == other.width
            && self.prefix <= other.prefix
            && other.bits & !self.host_mask() == self.first()
    }

    fn ip(self) -> IpAddr {
        match self.width {
            32 => IpAddr::V4((self.bits as u32).into()),
            _ => IpAddr::V6(self.bits.into()),
        }
    }

    fn is_private(self) -> bool {
        match self.ip() {
            IpAddr::V4(address) => address.is_private(),
            IpAddr::V6(address) => address.is_unique_local(),
        }
    }

    /// The n-th address of the network, from its end if n is below zero, with the prefix.
    fn nth(self, number: i64) -> Option<String> {
        let size = self.host_mask();
        let at = if number < 0 {
            size.checked_sub(u128::from(number.unsigned_abs()) - 1)?
        } else {
            number as u128
        };
        (at <= size).then(|| format!("{}/{}", self.shown(self.first() + at), self.prefix))
    }

    fn ask(self, query: &str) -> Option<Value> {
        let text = |text: String| Some(Value::from(text));
        let only = |holds: bool| holds.then(|| Value::from(self.written()));
        let is_network = self.network && self.bits == self.first() && self.prefix < self.width;
        // Networks of two and one have no address for the network itself.
        let small = self.width - self.prefix <= 1;
        match query {
            "" => text(self.written()),
            "bool" => Some(Value::from(true)),
            "address" | "ip" if !is_network || small => text(self.shown(self.bits)),
            "address" | "ip" => None,
            "host" if !is_network => text(format!("{}/{}", self.shown(self.bits), self.prefix)),
            "host" => None,
            "net" if is_network => text(self.written()),
            "net" => None,
            "network" | "network_id" => text(self.shown(self.first())),
            "subnet" | "cidr" if self.network => {
                text(format!("{}/{}", self.shown(self.first()), self.prefix))
            }
            "subnet" | "cidr" => text(format!("{}/{}", self.shown(self.bits), self.prefix)),
            "network/prefix" => text(format!("{}/{}", self.shown(self.first()), self.prefix)),
            "host/prefix" | "address/prefix" | "ip/prefix" | "gateway" | "gw" => {
                text(format!("{}/{}", self.shown(self.bits), self.prefix))
            }
            "prefix" => Some(Value::from(i64::from(self.prefix))),
            "netmask" => text(self.shown(if self.width == 32 {
                u128::from(!(self.host_mask() as u32))
            } else {
                !self.host_mask()
            })),
            "hostmask" | "wildcard" => text(self.shown(self.host_mask())),
            "broadcast" if !small => text(self.shown(self.last())),
            "broadcast" => None,
            "size" => Some(Value::from(self.host_mask().saturating_add(1))),
            "version" => Some(Value::from(if self.width == 32 { 4 } else { 6 })),
            "int" => Some(Value::from(self.bits)),
            "first_usable" => text(self.shown(self.first() + u128::from(!small))),
            "last_usable" => text(self.shown(self.last() - u128::from(!small))),
            "range_usable" => text(format!(
                "{}-{}",
                self.shown(self.first() + u128::from(!small)),
                self.shown(self.last() - u128::from(!small))
            )),
            "ipv4" => only(self.width == 32),
            "ipv6" => only(self.width == 128),
            "private" => only(self.is_private()),
            "public" | "unicast" => {
                only(!self.is_private() && !self.ip().is_loopback() && !self.ip().is_multicast())
            }
            "loopback" | "lo" => only(self.ip().is_loopback()),
            "multicast" => only(self.ip().is_multicast()),
            "link-local" | "lla" => only(match self.ip() {
                IpAddr::V4(address) => address.is_link_local(),
                IpAddr::V6(address) => address.is_unicast_link_local(),
            }),
            number if number.parse::<i64>().is_ok() => {
                self.nth(number.parse().ok()?).map(Value::from)
            }
            network => only(Self::parse(network)?.holds(self)),
        }
    }
}

fn answered(value: &Value, given: &Given, version: Option<u8>) -> Result<Value, Error> {
    let query = given.text(0, "")?;
    let version = match given.some(1) {
        Some(_) => u8::try_from(given.int(1, 0)?).ok(),
        None => version,
    };
    let answer = |value: &Value| -> Result<Option<Value>, Error> {
        let found = Interface::parse(text::str(value)?.trim()).filter(|found| {
            version.is_none_or(|version| found.width == if version == 4 { 32 } else { 128 })
        });
        Ok(found.and_then(|found| found.ask(&query)))
    };
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        let mut answers = Vec::new();
        for item in items(value)? {
            answers.extend(answer(&item)?);
        }
        return Ok(answers.into());
    }
    Ok(answer(value)?.unwrap_or_else(|| Value::from(false)))
}

/// IPv6 addresses in brackets, everything else as it is.
fn ipwrap(_: &mut State<'_, '_>, value: &Value, _: &Given) -> Result<Value, Error> {
    let wrapped = |value: &Value| -> Result<Value, Error> {
        let written = text::str(value)?;
        Ok(match Interface::parse(&written) {
            Some(found) if found.width == 128 => {
                let (address, prefix) = written
                    .split_once('/')
                    .map_or((&*written, String::new()), |(address, prefix)| {
                        (address, format!("/{prefix}"))
                    });
                Value::from(format!("[{address}]{prefix}"))
            }
            _ => value.clone(),
        })
    };
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Ok(items(value)?
            .iter()
            .map(wrapped)
            .collect::<Result<Vec<_>, _>>()?
            .into());
    }
    wrapped(value)
}

/// The number of subnets of a size, or the one at an index.
fn ipsubnet(_: &mut State<'_, '_>, value: &Value, given: &Given) -> Result<Value, Error> {
    let Some(found) = Interface::parse(text::str(value)?.trim()) else {
        return Ok(Value::from(false));
    };
    if given.some(0).is_none() {
        return Ok(found.ask("subnet").unwrap_or_else(|| Value::from(false)));
    }
    let Some(prefix) = u8::try_from(given.int(0, 0)?)
        .ok()
        .filter(|prefix| (found.prefix..=found.width).contains(prefix))
    else {
        return Ok(Value::from(false));
    };
    let count = 1_u128
        .checked_shl(u32::from(prefix - found.prefix))
        .unwrap_or(u128::MAX);
    let Some(_) = given.some(1) else {
        return Ok(Value::from(count.to_string()));
    };
    let index = given.int(1, 0)?;
    let index = if index < 0 {
        count.checked_sub(u128::from(index.unsigned_abs()))
    } else {
        Some(index as u128).filter(|index| *index < count)
    };
    let Some(index) = index else {
        return Ok(Value::from(false));
    };
    let subnet = Interface {
        prefix,
        network: true,
        ..found
    };
    let step = subnet.host_mask().saturating_add(1);
    Ok(Value::from(
        subnet.with(found.first() + index * step).written(),
    ))
}
