use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{Facts, source::Source};

/// Block devices with their partitions, from `/sys/block`. Empty loop and RAM devices are left out.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let mut devices = Map::new();
    let links = Links::read(source);
    for name in source.names("/sys/block") {
        let dir = format!("/sys/block/{name}");
        let sectors = source.number(&format!("{dir}/size")).unwrap_or(0);
        if sectors == 0 && (name.starts_with("loop") || name.starts_with("ram")) {
            continue;
        }
        devices.insert(name.clone(), device(source, &name, &dir, sectors, &links));
    }
    facts.put("devices", devices);
    facts.put("device_links", links.all());
}

/// The names that lead to each device.
struct Links {
    ids: BTreeMap<String, Vec<String>>,
    labels: BTreeMap<String, Vec<String>>,
    uuids: BTreeMap<String, Vec<String>>,
    /// Devices that are made of others.
    masters: BTreeMap<String, Vec<String>>,
}

impl Links {
    fn read(source: &Source<'_>) -> Self {
        let names = |kind: &str| {
            let dir = format!("/dev/disk/by-{kind}");
            let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for name in source.names(&dir) {
                if let Some(device) = source.link_name(&format!("{dir}/{name}")) {
                    found.entry(device).or_default().push(name);
                }
            }
            found
        };
        let mut masters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for master in source.names("/sys/block") {
            for device in source.names(&format!("/sys/block/{master}/slaves")) {
                masters.entry(device).or_default().push(master.clone());
            }
        }
        Self {
            ids: names("id"),
            labels: names("label"),
            uuids: names("uuid"),
            masters,
        }
    }

    fn all(&self) -> Value {
        json!({"ids": self.ids, "labels": self.labels, "masters": self.masters, "uuids": self.uuids})
    }

    fn of(&self, device: &str) -> Value {
        let none = Vec::new();
        let names =
            |links: &BTreeMap<String, Vec<String>>| links.get(device).unwrap_or(&none).clone();
        json!({
            "ids": names(&self.ids),
            "labels": names(&self.labels),
            "masters": names(&self.masters),
            "uuids": names(&self.uuids),
        })
    }
}

fn device(source: &Source<'_>, name: &str, dir: &str, sectors: i64, links: &Links) -> Value {
    let text = |file: &str| source.line(&format!("{dir}/{file}"));
    let sector_size = text("queue/logical_block_size").unwrap_or_else(|| "512".to_owned());
    let partitions: Map<String, Value> = source
        .names(dir)
        .into_iter()
        .filter(|part| part.starts_with(name) && source.exists(&format!("{dir}/{part}/partition")))
        .map(|part| {
            let number = |file: &str| source.number(&format!("{dir}/{part}/{file}"));
            let sectors = number("size").unwrap_or(0);
            let value = json!({
                "start": number("start").unwrap_or(0).to_string(),
                "sectors": sectors,
                "sectorsize": sector_size,
                "size": human(sectors),
                "holders": source.names(&format!("{dir}/{part}/holders")),
                "links": links.of(&part),
                "uuid": links.uuids.get(&part).and_then(|uuids| uuids.first()),
            });
            (part, value)
        })
        .collect();
    json!({
        "model": text("device/model"),
        "vendor": text("device/vendor"),
        "removable": text("removable"),
        "rotational": text("queue/rotational"),
        "scheduler_mode": scheduler(&text("queue/scheduler").unwrap_or_default()),
        "sectors": sectors,
        "sectorsize": sector_size,
        "size": human(sectors),
        "support_discard": text("queue/discard_granularity"),
        "virtual": i32::from(!source.exists(&format!("{dir}/device"))),
        "holders": source.names(&format!("{dir}/holders")),
        "partitions": partitions,
        "links": links.of(name),
        "host": "",
        "sas_address": null,
        "sas_device_handle": null,
    })
}

/// The scheduler in brackets: `none [mq-deadline] kyber`.
fn scheduler(text: &str) -> &str {
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    chosen.map_or(text, |(name, _)| name)
}

/// A size in the largest unit that fits, of 512-byte sectors: the kernel counts in these whatever the device's own are.
fn human(sectors: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
    let mut size = sectors as f64 * 512.0;
    let mut unit = "Bytes";
    for next in ["KB", "MB", "GB", "TB", "PB"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = next;
    }
    format!("{size:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::{human, scheduler};

    #[test]
    fn sizes_are_in_the_largest_unit() {
        assert_eq!(human(0), "0.00 Bytes");
        assert_eq!(human(2), "1.00 KB");
        assert_eq!(human(41_943_040), "20.00 GB");
    }

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        assert_eq!(scheduler("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(scheduler("none"), "none");
    }
}
