use serde_json::json;

use super::{Facts, source::Source};

/// Memory and swap, in MiB as `/proc/meminfo` has them (in a container this is lxcfs's or the machine's).
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let text = source.text("/proc/meminfo").unwrap_or_default();
    let mib = |key: &str| meminfo(&text, key).unwrap_or(0) / 1024;
    let (total, free) = (mib("MemTotal"), mib("MemFree"));
    let unused = free + mib("Cached") + mib("Buffers");
    let (swap_total, swap_free) = (mib("SwapTotal"), mib("SwapFree"));
    facts.put("memtotal_mb", total);
    facts.put("memfree_mb", free);
    facts.put("swaptotal_mb", swap_total);
    facts.put("swapfree_mb", swap_free);
    facts.put(
        "memory_mb",
        json!({
            "real": {"total": total, "used": total.saturating_sub(free), "free": free},
            "nocache": {"free": unused, "used": total.saturating_sub(unused)},
            "swap": {"total": swap_total, "free": swap_free, "used": swap_total.saturating_sub(swap_free), "cached": mib("SwapCached")},
        }),
    );
}

/// A value of `/proc/meminfo`, in KiB.
fn meminfo(text: &str, key: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::meminfo;

    #[test]
    fn keys_are_matched_whole() {
        let text =
            "MemTotal:       16303428 kB\nSwapCached:          4 kB\nCached:         800 kB\n";
        assert_eq!(meminfo(text, "MemTotal"), Some(16_303_428));
        assert_eq!(meminfo(text, "Cached"), Some(800));
        assert_eq!(meminfo(text, "SwapFree"), None);
    }
}
