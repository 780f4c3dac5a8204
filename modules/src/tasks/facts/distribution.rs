use serde_json::json;

use super::{
    Facts,
    source::{Source, assignments},
};

/// The distribution in Ansible's words, from `os-release` and the version files beside it.
pub(super) fn gather(source: &Source<'_>, facts: &mut Facts) {
    let found = ["/etc/os-release", "/usr/lib/os-release"]
        .into_iter()
        .find_map(|path| Some((path, source.text(path)?)));
    let (path, text) = found.unwrap_or(("", String::new()));
    let release = Release::parse(&text, |path| source.line(path));
    facts.put("os_family", release.family());
    facts.put("distribution", release.name.as_str());
    facts.put("distribution_version", release.version.as_str());
    facts.put(
        "distribution_major_version",
        release.part(0).unwrap_or("NA"),
    );
    if let Some(minor) = release.part(1) {
        facts.put("distribution_minor_version", minor);
    }
    facts.put("distribution_release", release.codename.as_str());
    facts.put("distribution_file_path", path);
    facts.put("distribution_file_variety", release.variety());
    facts.put("distribution_file_parsed", !path.is_empty());
}

/// What `lsb_release -a` would say; empty where neither it nor `/etc/lsb-release` is installed.
pub(super) fn lsb(source: &Source<'_>, facts: &mut Facts) {
    let file = |path: &str| source.text(path).unwrap_or_default();
    let (text, keys) = if source.exists("/etc/lsb-release") {
        let keys = [
            "DISTRIB_ID",
            "DISTRIB_RELEASE",
            "DISTRIB_DESCRIPTION",
            "DISTRIB_CODENAME",
        ];
        (file("/etc/lsb-release"), keys)
    } else if source.exists("/usr/bin/lsb_release") {
        let keys = ["ID", "VERSION_ID", "PRETTY_NAME", "VERSION_CODENAME"];
        (file("/etc/os-release"), keys)
    } else {
        facts.put("lsb", json!({}));
        return;
    };
    let pairs = assignments(&text);
    let get = |key: &str| {
        pairs
            .iter()
            .find(|(k, _)| *k == key)
            .map_or("", |(_, value)| *value)
    };
    let [id, release, description, codename] = keys.map(get);
    facts.put(
        "lsb",
        json!({
            "id": capitalised(id),
            "release": release,
            "major_release": release.split('.').next(),
            "description": description,
            "codename": codename,
        }),
    );
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

#[derive(Debug, PartialEq)]
struct Release {
    name: String,
    version: String,
    codename: String,
}

/// Ansible's names of distributions by the `ID` of `os-release`, with the family of each.
const DISTRIBUTIONS: &[(&str, &str, &str)] = &[
    ("debian", "Debian", "Debian"),
    ("raspbian", "Debian", "Debian"),
    ("ubuntu", "Ubuntu", "Debian"),
    ("devuan", "Devuan", "Debian"),
    ("kali", "Kali", "Debian"),
    ("linuxmint", "Linux Mint", "Debian"),
    ("pop", "Pop!_OS", "Debian"),
    ("deepin", "Deepin", "Debian"),
    ("uos", "Uos", "Debian"),
    ("rhel", "RedHat", "RedHat"),
    ("centos", "CentOS", "RedHat"),
    ("fedora", "Fedora", "RedHat"),
    ("rocky", "Rocky", "RedHat"),
    ("almalinux", "AlmaLinux", "RedHat"),
    ("ol", "OracleLinux", "RedHat"),
    ("amzn", "Amazon", "RedHat"),
    ("scientific", "Scientific", "RedHat"),
    ("cloudlinux", "CloudLinux", "RedHat"),
    ("virtuozzo", "Virtuozzo", "RedHat"),
    ("openEuler", "openEuler", "RedHat"),
    ("opencloudos", "OpenCloudOS", "RedHat"),
    ("tencentos", "TencentOS", "RedHat"),
    ("alinux", "Alibaba", "RedHat"),
    ("kylin", "Kylin Linux Advanced Server", "RedHat"),
    ("opensuse-leap", "openSUSE Leap", "Suse"),
    ("opensuse-tumbleweed", "openSUSE Tumbleweed", "Suse"),
    ("sles", "SLES", "Suse"),
    ("sled", "SLED", "Suse"),
    ("sl-micro", "SL-Micro", "Suse"),
    ("arch", "Archlinux", "Archlinux"),
    ("manjaro", "Manjaro", "Archlinux"),
    ("alpine", "Alpine", "Alpine"),
    ("gentoo", "Gentoo", "Gentoo"),
    ("slackware", "Slackware", "Slackware"),
    ("altlinux", "Altlinux", "Altlinux"),
    ("clear-linux-os", "Clear Linux OS", "ClearLinux"),
    ("openwrt", "OpenWrt", "OpenWrt"),
    ("flatcar", "Flatcar", "Flatcar"),
];

impl Release {
    /// `line` reads a file of one line: the point release is in a file of its own on some.
    fn parse(os_release: &str, line: impl Fn(&str) -> Option<String>) -> Self {
        let pairs = assignments(os_release);
        let get = |key: &str| {
            let found = pairs.iter().find(|(k, _)| *k == key);
            found
                .map(|(_, value)| *value)
                .filter(|value| !value.is_empty())
        };
        let id = get("ID").unwrap_or("linux");
        let known = DISTRIBUTIONS.iter().find(|(known, ..)| *known == id);
        let name = known.map_or_else(|| get("NAME").unwrap_or("NA"), |(_, name, _)| name);
        let in_brackets = get("VERSION")
            .and_then(|version| version.split_once('('))
            .and_then(|(_, rest)| rest.split_once(')'))
            .map(|(inner, _)| inner);
        let version = get("VERSION_ID").unwrap_or("NA");
        let (version, codename) = match name {
            // The point release is only there; on testing it reads `trixie/sid`.
            "Debian" => (
                line("/etc/debian_version")
                    .filter(|text| text.starts_with(|c: char| c.is_ascii_digit()))
                    .unwrap_or_else(|| version.to_owned()),
                get("VERSION_CODENAME").or(in_brackets).unwrap_or("NA"),
            ),
            "CentOS" if line("/etc/centos-release").is_some_and(|l| l.contains("Stream")) => {
                (version.to_owned(), "Stream")
            }
            "openSUSE Leap" | "SLES" | "SLED" => (
                version.to_owned(),
                version.split_once('.').map_or("0", |(_, minor)| minor),
            ),
            "Alpine" => (
                line("/etc/alpine-release").unwrap_or_else(|| version.to_owned()),
                "NA",
            ),
            _ => {
                let codename = get("VERSION_CODENAME").or(in_brackets);
                (version.to_owned(), codename.unwrap_or(""))
            }
        };
        Self {
            name: name.to_owned(),
            version,
            codename: codename.to_owned(),
        }
    }

    fn family(&self) -> &str {
        let known = DISTRIBUTIONS.iter().find(|(_, name, _)| *name == self.name);
        known.map_or(&self.name, |(_, _, family)| family)
    }

    /// The kind of release file as Ansible names it.
    fn variety(&self) -> &str {
        match (self.family(), self.name.as_str()) {
            (_, name @ ("Amazon" | "OracleLinux" | "CentOS")) => name,
            ("Suse", _) => "SUSE",
            (family, _) => family,
        }
    }

    fn part(&self, index: usize) -> Option<&str> {
        self.version.split('.').nth(index)
    }
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn distributions_have_the_names_and_versions_that_ansible_gives_them() {
        let no_file = |_: &str| None;
        type Line = fn(&str) -> Option<String>;
        let debian_12_11: Line = |path| (path == "/etc/debian_version").then(|| "12.11".to_owned());
        let testing: Line = |path| (path == "/etc/debian_version").then(|| "trixie/sid".to_owned());
        let stream: Line =
            |path| (path == "/etc/centos-release").then(|| "CentOS Stream release 9".to_owned());
        let cases: &[(&str, Line, [&str; 5])] = &[
            (
                "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"12\"\nVERSION=\"12 (bookworm)\"\nVERSION_CODENAME=bookworm\nID=debian\n",
                debian_12_11,
                ["Debian", "12.11", "12", "bookworm", "Debian"],
            ),
            (
                "NAME=\"Debian GNU/Linux\"\nVERSION_CODENAME=trixie\nID=debian\n",
                testing,
                ["Debian", "NA", "NA", "trixie", "Debian"],
            ),
            (
                "NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nVERSION=\"24.04.1 LTS (Noble Numbat)\"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n",
                no_file,
                ["Ubuntu", "24.04", "24", "noble", "Debian"],
            ),
            (
                "NAME=\"Rocky Linux\"\nVERSION=\"9.4 (Blue Onyx)\"\nID=\"rocky\"\nVERSION_ID=\"9.4\"\n",
                no_file,
                ["Rocky", "9.4", "9", "Blue Onyx", "RedHat"],
            ),
            (
                "NAME=\"CentOS Stream\"\nVERSION=\"9\"\nID=\"centos\"\nVERSION_ID=\"9\"\n",
                stream,
                ["CentOS", "9", "9", "Stream", "RedHat"],
            ),
            (
                "NAME=\"openEuler\"\nVERSION=\"22.03 (LTS-SP3)\"\nID=\"openEuler\"\nVERSION_ID=\"22.03\"\n",
                no_file,
                ["openEuler", "22.03", "22", "LTS-SP3", "RedHat"],
            ),
            (
                "NAME=\"Void\"\nID=\"void\"\n",
                no_file,
                ["Void", "NA", "NA", "", "Void"],
            ),
        ];
        for (text, line, [name, version, major, codename, family]) in cases {
            let release = Release::parse(text, line);
            assert_eq!(
                (
                    release.name.as_str(),
                    release.version.as_str(),
                    release.part(0),
                    release.codename.as_str(),
                    release.family()
                ),
                (*name, *version, Some(*major), *codename, *family)
            );
        }
    }
}
