use std::path::Path;

use serde_json::{Map, Value, json};

use super::edited::with_attributes;
use crate::args::{Bool, List, Text};
use crate::host::{Entry, Fault, Host, Put, To};
use crate::module::{ArgumentError, Module, Report, Task};

pub(super) static MODULE: Module = Module::of::<YumRepository>();

with_attributes! {
/// Adds a repository of dnf or yum, or takes it out.
///
/// It is a section of a file, so the plan shows it and an undo puts it back.
struct YumRepository {
    /// The repository's id: the section's name.
    name: Text,
    /// What it is called; required unless it is to be absent.
    description: Option<Text>,
    /// `present` or `absent`.
    #[serde(default)]
    state: super::group::State,
    /// The file without `.repo`; the id where it is not given.
    file: Option<Text>,
    /// The directory of the files.
    #[serde(default = "directory")]
    reposdir: Text,
    /// Addresses of the repository.
    baseurl: Option<List>,
    /// An address of a list of mirrors.
    mirrorlist: Option<Text>,
    /// An address of a metalink.
    metalink: Option<Text>,
    /// Whether it is used.
    enabled: Option<Bool>,
    /// Whether packages must be signed.
    gpgcheck: Option<Bool>,
    /// Addresses of the keys.
    gpgkey: Option<List>,
    /// Whether the index must be signed.
    repo_gpgcheck: Option<Bool>,
    /// Fetch in the background where yum can.
    r#async: Option<Bool>,
    /// Packages not to take from it.
    exclude: Option<List>,
    /// The only packages to take from it.
    includepkgs: Option<List>,
    /// All other settings of dnf.conf(5) for a repository.
    bandwidth: Option<Text>,
    /// `cost` of dnf.conf(5).
    cost: Option<Text>,
    /// `countme` of dnf.conf(5).
    countme: Option<Bool>,
    /// `deltarpm_percentage` of dnf.conf(5).
    deltarpm_percentage: Option<Text>,
    /// `deltarpm_metadata_percentage` of yum.conf(5).
    deltarpm_metadata_percentage: Option<Text>,
    /// `enablegroups` of dnf.conf(5).
    enablegroups: Option<Bool>,
    /// `failovermethod` of yum.conf(5).
    failovermethod: Option<Text>,
    /// `gpgcakey` of yum.conf(5).
    gpgcakey: Option<Text>,
    /// `http_caching` of yum.conf(5).
    http_caching: Option<Text>,
    /// `include` of yum.conf(5).
    include: Option<Text>,
    /// `ip_resolve` of dnf.conf(5).
    ip_resolve: Option<Text>,
    /// `keepalive` of yum.conf(5).
    keepalive: Option<Bool>,
    /// `keepcache` of dnf.conf(5).
    keepcache: Option<Text>,
    /// `metadata_expire` of dnf.conf(5).
    metadata_expire: Option<Text>,
    /// `metadata_expire_filter` of yum.conf(5).
    metadata_expire_filter: Option<Text>,
    /// `mirrorlist_expire` of yum.conf(5).
    mirrorlist_expire: Option<Text>,
    /// `module_hotfixes` of dnf.conf(5).
    module_hotfixes: Option<Bool>,
    /// `password` of dnf.conf(5).
    password: Option<Text>,
    /// `priority` of dnf.conf(5).
    priority: Option<Text>,
    /// `protect` of yum.conf(5).
    protect: Option<Bool>,
    /// `proxy` of dnf.conf(5).
    proxy: Option<Text>,
    /// `proxy_password` of dnf.conf(5).
    proxy_password: Option<Text>,
    /// `proxy_username` of dnf.conf(5).
    proxy_username: Option<Text>,
    /// `retries` of dnf.conf(5).
    retries: Option<Text>,
    /// `s3_enabled` of yum.conf(5).
    s3_enabled: Option<Bool>,
    /// `skip_if_unavailable` of dnf.conf(5).
    skip_if_unavailable: Option<Bool>,
    /// `ssl_check_cert_permissions` of yum.conf(5).
    ssl_check_cert_permissions: Option<Bool>,
    /// `sslcacert` of dnf.conf(5).
    sslcacert: Option<Text>,
    /// `sslclientcert` of dnf.conf(5).
    sslclientcert: Option<Text>,
    /// `sslclientkey` of dnf.conf(5).
    sslclientkey: Option<Text>,
    /// `sslverify` of dnf.conf(5).
    sslverify: Option<Bool>,
    /// `throttle` of dnf.conf(5).
    throttle: Option<Text>,
    /// `timeout` of dnf.conf(5).
    timeout: Option<Text>,
    /// `ui_repoid_vars` of yum.conf(5).
    ui_repoid_vars: Option<Text>,
    /// `username` of dnf.conf(5).
    username: Option<Text>,
}
}

fn directory() -> Text {
    "/etc/yum.repos.d".into()
}

impl Task for YumRepository {
    const NAME: &'static str = "yum_repository";
    const ARGUMENT_ALIASES: &'static [(&'static str, &'static str)] = &[
        ("ca_cert", "sslcacert"),
        ("client_cert", "sslclientcert"),
        ("client_key", "sslclientkey"),
        ("validate_certs", "sslverify"),
        ("excludepkgs", "exclude"),
    ];

    fn check(&self) -> Result<(), ArgumentError> {
        if self.name.is_empty() || self.name.contains([']', '\n']) {
            return Err(ArgumentError::of(
                "name",
                "it cannot be the id of a repository",
            ));
        }
        if self.file.as_ref().is_some_and(|file| file.contains('/')) {
            return Err(ArgumentError::of(
                "file",
                "it is a name without directories",
            ));
        }
        if self.state == super::group::State::Absent {
            return Ok(());
        }
        if self.description.is_none() {
            return Err(ArgumentError::of(
                "description",
                "it is required where the repository is to be present",
            ));
        }
        match self.baseurl.is_none() && self.mirrorlist.is_none() && self.metalink.is_none() {
            true => Err(ArgumentError::of(
                "baseurl",
                "one of baseurl, mirrorlist and metalink is required",
            )),
            false => Ok(()),
        }
    }

    fn run(self, host: &mut Host) -> Result<Report, Fault> {
        let dir = Path::new(&*self.reposdir);
        if !matches!(host.entry(&host.resolve(dir)?)?, Entry::Dir(_)) && !host.open() {
            return Err(Fault::new(format!(
                "Repo directory '{}' does not exist.",
                dir.display()
            )));
        }
        let file = self.file.as_ref().unwrap_or(&self.name);
        let path = dir.join(format!("{file}.repo"));
        let text = host.read(&path)?;
        let known = text.is_some();
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let mut sections = parse(&text);
        let absent = self.state == super::group::State::Absent;
        sections.retain(|(name, _)| *name != *self.name);
        if !absent {
            sections.push((self.name.to_string(), self.settings()));
            sections.sort_by(|a, b| a.0.cmp(&b.0));
        }
        if sections.is_empty() {
            host.put(Put::absent(&path))?;
        } else if !absent || known && parse(&text).len() != sections.len() {
            let attributes = self.attributes();
            let new = written(&sections);
            let same = parse(&text) == sections;
            host.put(Put {
                path,
                to: To::File {
                    content: (!same).then(|| new.into()),
                    mode: attributes.mode,
                    owner: attributes.owner.map(str::to_owned),
                    group: attributes.group.map(str::to_owned),
                },
                validate: None,
            })?;
        }
        let state = if absent { "absent" } else { "present" };
        Ok(Report::of(json!({"repo": &*self.name, "state": state})))
    }
}

type Section = (String, Vec<(String, String)>);

impl YumRepository {
    /// The section's lines, sorted.
    fn settings(&self) -> Vec<(String, String)> {
        let flag = |flag: Option<Bool>| flag.map(|flag| Value::from(if *flag { "1" } else { "0" }));
        let text = |text: &Option<Text>| text.as_deref().map(Value::from);
        let lines = |list: &Option<List>| list.as_ref().map(|list| Value::from(list.join("\n")));
        let words = |list: &Option<List>| list.as_ref().map(|list| Value::from(list.join(" ")));
        let all: [(&str, Option<Value>); 46] = [
            ("async", flag(self.r#async)),
            ("bandwidth", text(&self.bandwidth)),
            ("baseurl", lines(&self.baseurl)),
            ("cost", text(&self.cost)),
            ("countme", flag(self.countme)),
            (
                "deltarpm_metadata_percentage",
                text(&self.deltarpm_metadata_percentage),
            ),
            ("deltarpm_percentage", text(&self.deltarpm_percentage)),
            ("enabled", flag(self.enabled)),
            ("enablegroups", flag(self.enablegroups)),
            ("exclude", words(&self.exclude)),
            ("failovermethod", text(&self.failovermethod)),
            ("gpgcakey", text(&self.gpgcakey)),
            ("gpgcheck", flag(self.gpgcheck)),
            ("gpgkey", lines(&self.gpgkey)),
            ("http_caching", text(&self.http_caching)),
            ("include", text(&self.include)),
            ("includepkgs", words(&self.includepkgs)),
            ("ip_resolve", text(&self.ip_resolve)),
            ("keepalive", flag(self.keepalive)),
            ("keepcache", text(&self.keepcache)),
            ("metadata_expire", text(&self.metadata_expire)),
            ("metadata_expire_filter", text(&self.metadata_expire_filter)),
            ("metalink", text(&self.metalink)),
            ("mirrorlist", text(&self.mirrorlist)),
            ("mirrorlist_expire", text(&self.mirrorlist_expire)),
            ("module_hotfixes", flag(self.module_hotfixes)),
            ("name", text(&self.description)),
            ("password", text(&self.password)),
            ("priority", text(&self.priority)),
            ("protect", flag(self.protect)),
            ("proxy", text(&self.proxy)),
            ("proxy_password", text(&self.proxy_password)),
            ("proxy_username", text(&self.proxy_username)),
            ("repo_gpgcheck", flag(self.repo_gpgcheck)),
            ("retries", text(&self.retries)),
            ("s3_enabled", flag(self.s3_enabled)),
            ("skip_if_unavailable", flag(self.skip_if_unavailable)),
            (
                "ssl_check_cert_permissions",
                flag(self.ssl_check_cert_permissions),
            ),
            ("sslcacert", text(&self.sslcacert)),
            ("sslclientcert", text(&self.sslclientcert)),
            ("sslclientkey", text(&self.sslclientkey)),
            ("sslverify", flag(self.sslverify)),
            ("throttle", text(&self.throttle)),
            ("timeout", text(&self.timeout)),
            ("ui_repoid_vars", text(&self.ui_repoid_vars)),
            ("username", text(&self.username)),
        ];
        let set: Map<String, Value> = all
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect();
        let set = set
            .into_iter()
            .map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned()));
        set.collect()
    }
}

/// The sections of a file with their settings; a line that is indented goes on with the one before it.
fn parse(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            sections.push((name.to_owned(), Vec::new()));
            continue;
        }
        let Some((_, settings)) = sections.last_mut() else {
            continue;
        };
        if line.starts_with([' ', '\t'])
            && let Some((_, value)) = settings.last_mut()
        {
            value.push('\n');
            value.push_str(trimmed);
        } else if let Some((name, value)) = trimmed.split_once('=') {
            settings.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    sections
}

fn written(sections: &[Section]) -> String {
    let mut text = String::new();
    for (name, settings) in sections {
        text.push_str(&format!("[{name}]\n"));
        for (name, value) in settings {
            text.push_str(&format!("{name} = {}\n", value.replace('\n', "\n\t")));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MODULE, parse};
    use crate::host::Host;

    #[test]
    fn a_repository_is_a_section_of_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("epel.repo");
        let mut host = Host::plan();
        let mut run = |more: Value| {
            let mut args = json!({"name": "epel", "reposdir": dir.path()});
            for (name, value) in more.as_object().unwrap() {
                args[name.as_str()] = value.clone();
            }
            (MODULE.run)(args, &mut host).unwrap();
            let changed = !host.end().is_empty();
            (
                changed,
                host.read(&path)
                    .unwrap()
                    .map(|text| String::from_utf8(text).unwrap()),
            )
        };
        let args = json!({"description": "EPEL", "baseurl": ["https://a/", "https://b/"], "gpgcheck": false, "enabled": "yes"});
        let (changed, text) = run(args.clone());
        assert!(changed);
        assert_eq!(
            text.unwrap(),
            "[epel]\nbaseurl = https://a/\n\thttps://b/\nenabled = 1\ngpgcheck = 0\nname = EPEL\n\n"
        );
        assert!(!run(args).0);
        let (_, text) =
            run(json!({"name": "a", "file": "epel", "description": "A", "metalink": "https://m/"}));
        assert!(
            text.as_deref()
                .unwrap()
                .starts_with("[a]\nmetalink = https://m/\nname = A\n\n[epel]\n")
        );
        let sections = parse(&text.unwrap());
        assert_eq!(sections[1].1[0].1, "https://a/\nhttps://b/");
        run(json!({"name": "a", "file": "epel", "state": "absent"}));
        let (changed, text) = run(json!({"state": "absent"}));
        assert_eq!((changed, text), (true, None));
        assert!(!run(json!({"state": "absent"})).0);
    }

    #[test]
    fn arguments_are_checked() {
        let refused = |args| (MODULE.check)(&args).unwrap_err().to_string();
        assert!(
            refused(json!({"name": "x", "baseurl": "y"})).starts_with("argument `description`")
        );
        assert!(
            refused(json!({"name": "x", "description": "y"})).starts_with("argument `baseurl`")
        );
        let fault = (MODULE.run)(
            json!({"name": "x", "description": "y", "baseurl": "z", "reposdir": "/no/such"}),
            &mut Host::plan(),
        );
        assert_eq!(
            fault.unwrap_err().message,
            "Repo directory '/no/such' does not exist."
        );
    }
}
