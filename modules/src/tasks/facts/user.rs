use serde_json::{Map, Value};

use super::{Facts, source::Source};

/// The user that the task acts as.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let (uid, gid) = source.user();
    facts.put("real_user_id", uid);
    facts.put("effective_user_id", uid);
    facts.put("real_group_id", gid);
    facts.put("effective_group_id", gid);
    let passwd = source.text("/etc/passwd").unwrap_or_default();
    let account = passwd
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields.len() == 7 && fields[2].parse() == Ok(uid));
    facts.put("user_uid", uid);
    let Some(account) = account else {
        facts.put("user_id", uid.to_string());
        facts.put("user_gid", gid);
        return;
    };
    facts.put("user_id", account[0]);
    facts.put("user_gid", account[3].parse::<u32>().unwrap_or(gid));
    facts.put("user_gecos", account[4]);
    facts.put("user_dir", account[5]);
    facts.put("user_shell", account[6]);
}

/// The environment of the helper, with what the task sets on top.
pub(super) fn environment(source: &Source<'_>, facts: &mut Facts) {
    let own = source.text("/proc/self/environ").unwrap_or_default();
    let mut env: Map<String, Value> = own
        .split('\0')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    // What commands get.
    if let Some(path) = env.get("PATH").and_then(Value::as_str) {
        let path = crate::host::search_path(path);
        env.insert("PATH".to_owned(), path.into());
    }
    for (name, value) in source.environment() {
        env.insert(name.clone(), value.clone().into());
    }
    facts.put("env", env);
}

#[cfg(test)]
mod tests {
    use super::super::tests::gathered;

    #[test]
    fn the_acting_user_is_described_from_the_user_file() {
        let passwd = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nops:x:1000:1001:Ops:/home/ops:/bin/bash\n";
        let facts = gathered(super::gather, &[("/etc/passwd", passwd)]);
        assert_eq!(facts.get("user_id"), Some(&"ops".into()));
        assert_eq!(facts.get("user_dir"), Some(&"/home/ops".into()));
        assert_eq!(facts.get("user_gid"), Some(&1001.into()));
        assert_eq!(facts.get("effective_user_id"), Some(&1000.into()));
    }

    #[test]
    fn the_environment_is_that_of_the_process() {
        let facts = gathered(
            super::environment,
            &[("/proc/self/environ", "A=1\0B=x=y\0")],
        );
        assert_eq!(
            facts.get("env"),
            Some(&serde_json::json!({"A": "1", "B": "x=y"}))
        );
    }
}
