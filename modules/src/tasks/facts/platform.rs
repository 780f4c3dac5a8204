use serde_json::json;

use super::{Facts, source::Source};

/// The kernel, the machine and its names.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let (machine, node) = (text(uname.machine()), text(uname.nodename()));
    facts.put("system", text(uname.sysname()));
    facts.put("kernel", text(uname.release()));
    facts.put("kernel_version", text(uname.version()));
    facts.put("architecture", architecture(&machine));
    facts.put("machine", machine);
    // A static helper is of the machine's own word size.
    facts.put("userspace_bits", usize::BITS.to_string());
    facts.put("userspace_architecture", std::env::consts::ARCH);
    let fqdn = fqdn(&node, &source.text("/etc/hosts").unwrap_or_default());
    facts.put(
        "domain",
        fqdn.split_once('.').map_or("", |(_, domain)| domain),
    );
    facts.put("hostname", node.split('.').next().unwrap_or_default());
    facts.put("nodename", node);
    facts.put("fqdn", fqdn);
    let machine_id = source.line("/var/lib/dbus/machine-id");
    let machine_id = machine_id.or_else(|| source.line("/etc/machine-id"));
    facts.put("machine_id", machine_id);
    python(source, facts);
}

fn architecture(machine: &str) -> &str {
    match machine {
        "i686" | "i586" | "i486" => "i386",
        other => other,
    }
}

/// The full name of the host as `/etc/hosts` has it: the first name with a dot on the line of its
/// own name. The resolver is not asked: a fact must not wait for a name server.
fn fqdn(node: &str, hosts: &str) -> String {
    if node.contains('.') {
        return node.to_owned();
    }
    hosts
        .lines()
        .filter_map(|line| {
            let mut words = line.split('#').next()?.split_whitespace();
            words.next()?;
            let names: Vec<&str> = words.collect();
            names.contains(&node).then_some(names)
        })
        .find_map(|names| names.into_iter().find(|name| name.contains('.')))
        .unwrap_or(node)
        .to_owned()
}

/// The machine's maker and model as its firmware has them; `NA` where it says nothing.
pub(super) fn firmware(source: &Source<'_>, facts: &mut Facts) {
    const NAMES: [&str; 17] = [
        "bios_date",
        "bios_vendor",
        "bios_version",
        "board_asset_tag",
        "board_name",
        "board_serial",
        "board_vendor",
        "board_version",
        "chassis_asset_tag",
        "chassis_serial",
        "chassis_vendor",
        "chassis_version",
        "product_name",
        "product_serial",
        "product_uuid",
        "product_version",
        "sys_vendor",
    ];
    for file in NAMES {
        let name = if file == "sys_vendor" {
            "system_vendor"
        } else {
            file
        };
        let text = source.line(&format!("/sys/devices/virtual/dmi/id/{file}"));
        facts.put(name, text.unwrap_or_else(|| "NA".to_owned()));
    }
    let chassis = source.number("/sys/devices/virtual/dmi/id/chassis_type");
    let form = chassis.and_then(|number| FORMS.get(usize::try_from(number).ok()?));
    facts.put("form_factor", *form.unwrap_or(&"NA"));
}

/// The kinds of chassis by their numbers in the firmware (SMBIOS).
const FORMS: [&str; 37] = [
    "Unknown",
    "Other",
    "Unknown",
    "Desktop",
    "Low Profile Desktop",
    "Pizza Box",
    "Mini Tower",
    "Tower",
    "Portable",
    "Laptop",
    "Notebook",
    "Hand Held",
    "Docking Station",
    "All In One",
    "Sub Notebook",
    "Space-saving",
    "Lunch Box",
    "Main Server Chassis",
    "Expansion Chassis",
    "Sub Chassis",
    "Bus Expansion Chassis",
    "Peripheral Chassis",
    "RAID Chassis",
    "Rack Mount Chassis",
    "Sealed-case PC",
    "Multi-system",
    "CompactPCI",
    "AdvancedTCA",
    "Blade",
    "Blade Enclosure",
    "Tablet",
    "Convertible",
    "Detachable",
    "IoT Gateway",
    "Embedded PC",
    "Mini PC",
    "Stick PC",
];

/// A Python on the host, from the names of its files: it is not started, so the micro version is not known.
fn python(source: &Source<'_>, facts: &mut Facts) {
    let executable = "/usr/bin/python3";
    let version = source.link_name(executable);
    let Some((major, minor)) = version
        .as_deref()
        .and_then(|name| name.strip_prefix("python"))
        .and_then(|version| version.split_once('.'))
    else {
        return;
    };
    let number = |part: &str| part.parse::<u32>().ok();
    facts.put(
        "python",
        json!({
            "executable": executable,
            "type": "cpython",
            "has_sslcontext": true,
            "version": {"major": number(major), "minor": number(minor)},
            "version_info": [number(major), number(minor)],
        }),
    );
    facts.put("python_version", format!("{major}.{minor}"));
}

#[cfg(test)]
mod tests {
    use super::fqdn;

    #[test]
    fn the_full_name_comes_from_the_hosts_file() {
        let hosts = "127.0.0.1 localhost\n# 10.0.0.1 web1.old.example web1\n10.0.0.1\tweb1 web1.example.org # front\n";
        assert_eq!(fqdn("web1", hosts), "web1.example.org");
        assert_eq!(fqdn("web2", hosts), "web2");
        assert_eq!(fqdn("web2.example.net", hosts), "web2.example.net");
    }
}
