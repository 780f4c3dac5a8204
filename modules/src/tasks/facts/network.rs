use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Map, Value, json};

use super::{
    Facts,
    netlink::{self, Address, Route},
    source::Source,
};

/// Interfaces, their addresses, and the ones that packets to the outside leave by.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let addresses = netlink::addresses().unwrap_or_default();
    let interfaces: Vec<Interface> = source
        .names("/sys/class/net")
        .iter()
        .map(|name| Interface::read(source, name, &addresses))
        .collect();
    facts.put(
        "interfaces",
        interfaces.iter().map(|i| key(&i.name)).collect::<Vec<_>>(),
    );
    let outside = |ip: &IpAddr| !ip.is_loopback();
    let texts = |wanted: fn(&IpAddr) -> bool| -> Vec<String> {
        let all = addresses.iter().map(|a| a.address);
        all.filter(wanted)
            .filter(outside)
            .map(|ip| ip.to_string())
            .collect()
    };
    facts.put("all_ipv4_addresses", texts(IpAddr::is_ipv4));
    facts.put("all_ipv6_addresses", texts(IpAddr::is_ipv6));
    facts.put("locally_reachable_ips", local(&addresses));
    // Any address of the outside will do: nothing is sent.
    let default = |to: IpAddr| {
        let route = netlink::route(to).ok().flatten().unwrap_or_default();
        default(&route, &interfaces, &addresses)
    };
    facts.put("default_ipv4", default(Ipv4Addr::new(8, 8, 8, 8).into()));
    facts.put(
        "default_ipv6",
        default(Ipv6Addr::new(0x2404, 0x6800, 0x400a, 0x800, 0, 0, 0, 0x1012).into()),
    );
    for interface in interfaces {
        facts.put(&key(&interface.name), interface.fact);
    }
}

/// What the host itself answers to: its addresses, and the whole network of the loopback interface.
fn local(addresses: &[Address]) -> Value {
    let (mut four, mut six) = (Vec::new(), Vec::new());
    for address in addresses {
        match address.address {
            IpAddr::V4(ip) => {
                if ip.is_loopback() && address.prefix < 32 {
                    let mask = u32::MAX
                        .checked_shl(32 - u32::from(address.prefix))
                        .unwrap_or(0);
                    let network = Ipv4Addr::from(u32::from(ip) & mask);
                    four.push(format!("{network}/{}", address.prefix));
                }
                four.push(ip.to_string());
            }
            IpAddr::V6(ip) => six.push(ip.to_string()),
        }
    }
    json!({"ipv4": four, "ipv6": six})
}

/// A name as it can stand in a variable's: Ansible replaces colons, and fleetctl what else a template cannot spell.
fn key(name: &str) -> String {
    name.replace([':', '-', '.'], "_")
}

struct Interface {
    name: String,
    index: u32,
    fact: Map<String, Value>,
}

impl Interface {
    fn read(source: &Source<'_>, name: &str, addresses: &[Address]) -> Self {
        let dir = format!("/sys/class/net/{name}");
        let text = |file: &str| source.line(&format!("{dir}/{file}"));
        let number = |file: &str| source.number(&format!("{dir}/{file}"));
        let mut fact = Map::new();
        fact.insert("device".to_owned(), name.into());
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                fact.insert(key.to_owned(), value);
            }
        };
        let mac = text("address").filter(|mac| mac != "00:00:00:00:00:00");
        put("macaddress", mac.map(Value::from));
        put("mtu", number("mtu").map(Value::from));
        put(
            "active",
            text("operstate").map(|state| (state != "down").into()),
        );
        put("type", Some(kind(source, &dir).into()));
        put(
            "module",
            source
                .link_name(&format!("{dir}/device/driver/module"))
                .map(Value::from),
        );
        put(
            "pciid",
            source.link_name(&format!("{dir}/device")).map(Value::from),
        );
        put("speed", number("speed").map(Value::from));
        let flags = text("flags")
            .and_then(|hex| i64::from_str_radix(hex.trim_start_matches("0x"), 16).ok());
        put("promisc", flags.map(|flags| (flags & 0x100 != 0).into()));
        if source.exists(&format!("{dir}/bridge")) {
            put(
                "interfaces",
                Some(source.names(&format!("{dir}/brif")).into()),
            );
            put("id", text("bridge/bridge_id").map(Value::from));
            put("stp", text("bridge/stp_state").map(|on| (on == "1").into()));
        }
        if let Some(slaves) = text("bonding/slaves") {
            put("slaves", Some(slaves.split_whitespace().collect()));
            put(
                "mode",
                text("bonding/mode").and_then(|mode| Some(mode.split_whitespace().next()?.into())),
            );
        }
        let index = number("ifindex")
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(0);
        let (mut first, mut others, mut six) = (None, Vec::new(), Vec::new());
        for address in addresses
            .iter()
            .filter(|address| address.interface == index)
        {
            match address.address {
                IpAddr::V4(ip) if first.is_none() && !address.secondary => {
                    first = Some(ipv4(ip, address))
                }
                IpAddr::V4(ip) => others.push(ipv4(ip, address)),
                IpAddr::V6(ip) => six.push(ipv6(ip, address)),
            }
        }
        put("ipv4", first);
        put(
            "ipv4_secondaries",
            (!others.is_empty()).then(|| others.into()),
        );
        put("ipv6", (!six.is_empty()).then(|| six.into()));
        Self {
            name: name.to_owned(),
            index,
            fact,
        }
    }
}

fn kind(source: &Source<'_>, dir: &str) -> &'static str {
    if source.exists(&format!("{dir}/bridge")) {
        return "bridge";
    }
    if source.exists(&format!("{dir}/bonding")) {
        return "bonding";
    }
    match source.number(&format!("{dir}/type")) {
        Some(1) => "ether",
        Some(32) => "infiniband",
        Some(512) => "ppp",
        Some(772) => "loopback",
        Some(65534) => "tunnel",
        _ => "unknown",
    }
}

fn ipv4(ip: Ipv4Addr, address: &Address) -> Value {
    let mask = u32::MAX
        .checked_shl(32 - u32::from(address.prefix))
        .unwrap_or(0);
    json!({
        "address": ip.to_string(),
        "netmask": Ipv4Addr::from(mask).to_string(),
        "network": Ipv4Addr::from(u32::from(ip) & mask).to_string(),
        "broadcast": address.broadcast.map_or_else(String::new, |ip| ip.to_string()),
        "prefix": address.prefix.to_string(),
    })
}

fn ipv6(ip: Ipv6Addr, address: &Address) -> Value {
    let scope = match address.scope {
        0 => "global",
        200 => "site",
        253 => "link",
        254 => "host",
        _ => "unknown",
    };
    json!({"address": ip.to_string(), "prefix": address.prefix.to_string(), "scope": scope})
}

/// The way out: its interface, the address it has there, and the gateway. Empty where there is none.
fn default(route: &Route, interfaces: &[Interface], addresses: &[Address]) -> Map<String, Value> {
    let mut fact = Map::new();
    let interface = interfaces.iter().find(|i| Some(i.index) == route.interface);
    let (Some(interface), Some(source)) = (interface, route.source) else {
        return fact;
    };
    let own = addresses.iter().find(|address| address.address == source);
    let described = match (source, own) {
        (IpAddr::V4(ip), Some(address)) => ipv4(ip, address),
        (IpAddr::V6(ip), Some(address)) => ipv6(ip, address),
        (ip, None) => json!({"address": ip.to_string()}),
    };
    if let Value::Object(described) = described {
        fact.extend(described);
    }
    if let Some(label) = own.and_then(|address| address.label.clone()) {
        fact.insert("alias".to_owned(), label.into());
    }
    fact.insert("interface".to_owned(), interface.name.clone().into());
    if let Some(gateway) = route.gateway {
        fact.insert("gateway".to_owned(), gateway.to_string().into());
    }
    for key in ["macaddress", "mtu", "type"] {
        if let Some(value) = interface.fact.get(key) {
            fact.insert(key.to_owned(), value.clone());
        }
    }
    fact
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use serde_json::json;

    use super::{Address, ipv4};

    #[test]
    fn an_address_is_described_with_its_network() {
        let ip = Ipv4Addr::new(10, 77, 3, 11);
        let address = Address {
            interface: 2,
            label: Some("host0".to_owned()),
            address: ip.into(),
            prefix: 16,
            broadcast: Some(Ipv4Addr::new(10, 77, 255, 255)),
            scope: 0,
            secondary: false,
        };
        assert_eq!(
            ipv4(ip, &address),
            json!({"address": "10.77.3.11", "netmask": "255.255.0.0", "network": "10.77.0.0", "broadcast": "10.77.255.255", "prefix": "16"})
        );
        let all = Address {
            prefix: 0,
            ..address
        };
        assert_eq!(ipv4(ip, &all)["netmask"], "0.0.0.0");
    }
}
