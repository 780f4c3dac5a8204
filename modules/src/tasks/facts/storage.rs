//! What lies between the machine and its disks: volumes, and the names by which storage elsewhere knows the host. And what
//! this process may do.

use serde_json::{Map, Value, json};

use super::{Facts, source::Source};

/// The capabilities of the process, as `capsh` tells them.
pub(super) fn capabilities(source: &Source<'_>, facts: &mut Facts) {
    let places = ["/sbin/capsh", "/usr/sbin/capsh"];
    let capsh = places.into_iter().find(|path| source.exists(path));
    let answer = capsh
        .and_then(|capsh| source.probe(&[capsh, "--print"]))
        .filter(|answer| answer.ok);
    let (enforced, list) = answer.map_or(("NA", Vec::new()), |answer| current(&answer.stdout));
    facts.put("system_capabilities", list);
    facts.put("system_capabilities_enforced", enforced);
}

fn current(text: &str) -> (&'static str, Vec<String>) {
    let line = text.lines().find_map(|line| line.strip_prefix("Current:"));
    match line.map(str::trim) {
        None => ("NA", Vec::new()),
        Some("=ep") => ("False", Vec::new()),
        Some(line) => {
            let list = line.split_once('=').map_or(line, |(_, list)| list);
            (
                "True",
                list.split(',').map(|word| word.trim().to_owned()).collect(),
            )
        }
    }
}

/// The volumes of LVM.
pub(super) fn volumes(source: &Source<'_>, facts: &mut Facts) {
    let there = ["/sbin/vgs", "/usr/sbin/vgs"]
        .iter()
        .any(|path| source.exists(path));
    if source.user().0 != 0 || !there {
        facts.put("lvm", "N/A");
        return;
    }
    let rows = |program: &str, fields: &str| -> Vec<Vec<String>> {
        let options = [
            "--noheadings",
            "--nosuffix",
            "--units",
            "g",
            "--separator",
            ",",
            "-o",
            fields,
        ];
        let argv: Vec<&str> = std::iter::once(program).chain(options).collect();
        let text = source
            .probe(&argv)
            .filter(|answer| answer.ok)
            .map(|answer| answer.stdout)
            .unwrap_or_default();
        text.lines()
            .map(|line| {
                line.split(',')
                    .map(|field| field.trim().to_owned())
                    .collect()
            })
            .collect()
    };
    let table = |rows: Vec<Vec<String>>, names: &[&str]| -> Map<String, Value> {
        let rows = rows.into_iter().filter(|row| row.len() > names.len());
        let row = |row: Vec<String>| {
            let fields = names
                .iter()
                .zip(&row[1..])
                .map(|(name, field)| ((*name).to_owned(), json!(field)));
            (row[0].clone(), Value::Object(fields.collect()))
        };
        rows.map(row).collect()
    };
    facts.put(
        "lvm",
        json!({
            "vgs": table(
                rows("vgs", "vg_name,pv_count,lv_count,vg_size,vg_free"),
                &["num_pvs", "num_lvs", "size_g", "free_g"],
            ),
            "lvs": table(rows("lvs", "lv_name,vg_name,lv_size"), &["vg", "size_g"]),
            "pvs": table(rows("pvs", "pv_name,vg_name,pv_size,pv_free"), &["vg", "size_g", "free_g"]),
        }),
    );
}

/// The host's name to iSCSI.
pub(super) fn iscsi(source: &Source<'_>, facts: &mut Facts) {
    let text = source
        .text("/etc/iscsi/initiatorname.iscsi")
        .unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("InitiatorName="));
    facts.put("iscsi_iqn", name.unwrap_or_default());
}

/// The host's name to NVMe.
pub(super) fn nvme(source: &Source<'_>, facts: &mut Facts) {
    facts.put(
        "hostnqn",
        source.line("/etc/nvme/hostnqn").unwrap_or_default(),
    );
}

/// The host's names to Fibre Channel.
pub(super) fn fibre_channel(source: &Source<'_>, facts: &mut Facts) {
    let dir = "/sys/class/fc_host";
    let names = source.names(dir).into_iter();
    let names = names.filter_map(|host| source.line(&format!("{dir}/{host}/port_name")));
    let names: Vec<String> = names
        .map(|name| name.trim_start_matches("0x").to_owned())
        .collect();
    facts.put("fibre_channel_wwn", names);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::gathered;
    use super::{current, fibre_channel, iscsi};

    #[test]
    fn capabilities_are_told_as_capsh_prints_them() {
        assert_eq!(current("Current: =ep\n"), ("False", Vec::new()));
        let some = current("Current: cap_chown,cap_kill=ep\nBounding set =\n");
        assert_eq!(some, ("True", vec!["ep".to_owned()]));
        assert_eq!(current(""), ("NA", Vec::new()));
    }

    #[test]
    fn the_hosts_names_to_storage_are_read() {
        let facts = gathered(
            iscsi,
            &[(
                "/etc/iscsi/initiatorname.iscsi",
                "# x\nInitiatorName=iqn.1993-08.org:01\n",
            )],
        );
        assert_eq!(facts.get("iscsi_iqn"), Some(&json!("iqn.1993-08.org:01")));
        let facts = gathered(
            fibre_channel,
            &[("/sys/class/fc_host/host1/port_name", "0x21000014ff52a9bb\n")],
        );
        assert_eq!(
            facts.get("fibre_channel_wwn"),
            Some(&json!(["21000014ff52a9bb"]))
        );
    }
}
