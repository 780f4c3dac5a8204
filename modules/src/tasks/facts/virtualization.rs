use super::{Facts, source::Source};

/// What kind of machine this is: the first sign found wins, in Ansible's order.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let (kind, role) = container(source)
        .or_else(|| hypervisor(source))
        .map_or_else(|| host(source), |kind| (kind, "guest"));
    facts.put("virtualization_type", kind.as_str());
    facts.put("virtualization_role", role);
    let mut guest: Vec<&str> = if role == "guest" {
        vec![&kind]
    } else {
        Vec::new()
    };
    let containers = ["docker", "podman", "lxc", "containerd", "systemd-nspawn"];
    if role == "guest" && containers.contains(&kind.as_str()) {
        guest.push("container");
    }
    let mut tech: Vec<&str> = if role == "host" {
        vec![&kind]
    } else {
        Vec::new()
    };
    // A guest may have guests of its own.
    if source.exists("/dev/kvm") && !tech.contains(&"kvm") {
        tech.push("kvm");
    }
    facts.put("virtualization_tech_guest", guest);
    facts.put("virtualization_tech_host", tech);
}

fn container(source: &Source<'_>) -> Option<String> {
    let cgroup = source.text("/proc/1/cgroup").unwrap_or_default();
    let signs = [
        ("/docker/", "docker"),
        ("/docker-", "docker"),
        ("/lxc/", "lxc"),
        ("/machine.slice/machine-lxc", "lxc"),
        ("/system.slice/containerd.service", "containerd"),
    ];
    if let Some((_, kind)) = signs.iter().find(|(sign, _)| cgroup.contains(sign)) {
        return Some((*kind).to_owned());
    }
    let environment = source.text("/proc/1/environ").unwrap_or_default();
    let named = environment
        .split('\0')
        .find_map(|pair| pair.strip_prefix("container="));
    if let Some(name) = named.filter(|name| !name.is_empty()) {
        let kind = ["lxc", "podman"]
            .into_iter()
            .find(|kind| name.starts_with(kind));
        return Some(kind.unwrap_or("container").to_owned());
    }
    if source.exists("/proc/vz") && !source.exists("/proc/lve") && !source.exists("/proc/bc") {
        return Some("openvz".to_owned());
    }
    if let Some(name) = source.line("/run/systemd/container") {
        return Some(name);
    }
    let docker = source.exists("/.dockerenv") || source.exists("/.dockerinit");
    docker.then(|| "docker".to_owned())
}

fn hypervisor(source: &Source<'_>) -> Option<String> {
    if source.exists("/proc/xen") && !is_xen_host(source) {
        return Some("xen".to_owned());
    }
    let dmi = |file: &str| {
        source
            .line(&format!("/sys/devices/virtual/dmi/id/{file}"))
            .unwrap_or_default()
    };
    let (product, vendor, bios) = (dmi("product_name"), dmi("sys_vendor"), dmi("bios_vendor"));
    let kind = match (product.as_str(), vendor.as_str(), bios.as_str()) {
        ("KVM" | "KVM Server" | "Bochs" | "AHV" | "CloudStack KVM Hypervisor", ..) => "kvm",
        (_, "oVirt", _) => "oVirt",
        ("RHEV Hypervisor", "Red Hat", _) => "RHEV",
        (name, ..) if name.starts_with("VMware") => "VMware",
        ("OpenStack Compute" | "OpenStack Nova", ..) => "openstack",
        (.., "Xen") => "xen",
        (.., "innotek GmbH") => "virtualbox",
        (.., "Amazon EC2" | "DigitalOcean" | "Hetzner" | "Linode") => "kvm",
        (_, "QEMU" | "Amazon EC2" | "DigitalOcean" | "Google" | "Scaleway" | "Nutanix", _) => "kvm",
        (_, "KubeVirt", _) => "KubeVirt",
        (_, "Microsoft Corporation", _) => "VirtualPC",
        (_, "Parallels Software International Inc.", _) => "parallels",
        (_, "OpenStack Foundation", _) => "openstack",
        _ => {
            let cpus = source.text("/proc/cpuinfo").unwrap_or_default();
            return cpus.contains("QEMU Virtual CPU").then(|| "kvm".to_owned());
        }
    };
    Some(kind.to_owned())
}

/// Not a guest: a host of guests, or neither.
fn host(source: &Source<'_>) -> (String, &'static str) {
    let modules = source.text("/proc/modules").unwrap_or_default();
    let loaded = |name: &str| {
        modules
            .lines()
            .any(|line| line.split(' ').next() == Some(name))
    };
    if is_xen_host(source) {
        ("xen".to_owned(), "host")
    } else if loaded("kvm") || source.exists("/dev/kvm") {
        ("kvm".to_owned(), "host")
    } else if loaded("vboxdrv") {
        ("virtualbox".to_owned(), "host")
    } else if loaded("virtio") {
        ("kvm".to_owned(), "guest")
    } else {
        ("NA".to_owned(), "NA")
    }
}

fn is_xen_host(source: &Source<'_>) -> bool {
    let capabilities = source.text("/proc/xen/capabilities");
    capabilities.is_some_and(|text| text.contains("control_d"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Files, gathered};

    #[test]
    fn the_first_sign_says_what_the_machine_is() {
        let cases: &[(Files<'_>, &str, &str)] = &[
            (
                &[("/proc/1/environ", "PATH=/bin\0container=systemd-nspawn\0")],
                "container",
                "guest",
            ),
            (&[("/proc/1/environ", "container=lxc\0")], "lxc", "guest"),
            (
                &[("/run/systemd/container", "systemd-nspawn\n")],
                "systemd-nspawn",
                "guest",
            ),
            (
                &[
                    ("/.dockerenv", ""),
                    ("/sys/devices/virtual/dmi/id/sys_vendor", "QEMU\n"),
                ],
                "docker",
                "guest",
            ),
            (
                &[("/sys/devices/virtual/dmi/id/product_name", "VMware7,1\n")],
                "VMware",
                "guest",
            ),
            (
                &[("/sys/devices/virtual/dmi/id/sys_vendor", "Amazon EC2\n")],
                "kvm",
                "guest",
            ),
            (
                &[("/proc/modules", "kvm_intel 1 0 - Live\nkvm 1 1 - Live\n")],
                "kvm",
                "host",
            ),
            (&[("/proc/modules", "ext4 1 0 - Live\n")], "NA", "NA"),
        ];
        for (files, kind, role) in cases {
            let facts = gathered(super::gather, files);
            assert_eq!(
                facts.get("virtualization_type"),
                Some(&(*kind).into()),
                "{files:?}"
            );
            assert_eq!(
                facts.get("virtualization_role"),
                Some(&(*role).into()),
                "{files:?}"
            );
        }
    }
}
