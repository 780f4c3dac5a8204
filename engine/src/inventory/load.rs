//! From sources to an inventory: which format each one has, and what lies beside it.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Diagnostic, Node, Severity, Source};
use indexmap::IndexMap;
use regex::Regex;

use super::{
    Inventory,
    beside::Beside,
    build::Build,
    graph::{Graph, Mention, UNGROUPED},
    ini,
    mistake::{code, mistake, placeless, placeless_oddity},
    plugin, script, toml, yaml,
};
use crate::{
    config::{Config, GroupNames, VarsLevel},
    template::{NoController, Templar, TemplateSettings},
    vault::Vault,
};

/// What an inventory is loaded with besides its sources.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The folders of playbooks, whose `group_vars` and `host_vars` count, too.
    pub playbook_dirs: Vec<PathBuf>,
    /// Whether executable sources may be run.
    pub run_scripts: bool,
    /// What becomes of a source that cannot be read.
    pub unparsed: Unparsed,
    /// The formats that a source may have, by the names of Ansible's plugins.
    pub enabled: Vec<String>,
    /// Endings of files in a folder that are no sources.
    pub ignore_endings: Vec<String>,
    /// Regular expressions for names in a folder that are no sources.
    pub ignore_patterns: Vec<String>,
    /// Endings of files that are YAML.
    pub yaml_endings: Vec<String>,
    /// What is done to names of groups that are no names of variables.
    pub group_names: GroupNames,
    /// The order of the variables of groups, low to high.
    pub precedence: Vec<VarsLevel>,
    /// Opens what is encrypted: see [`LoadOptions::with_vault`].
    pub vault: Vault,
    /// Renders the expressions of constructed inventories.
    pub templar: Templar,
    /// Extra variables that such expressions see, where the inventory asks for them.
    pub extra_vars: IndexMap<String, Node>,
    /// Whether they see them even if it does not.
    pub use_extra_vars: bool,
}

/// What becomes of a source that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unparsed {
    /// It is an error.
    Error,
    /// It is warned of, as Ansible does, and nothing of it counts.
    Warning {
        /// Whether it is an error, still, if no source can be read.
        unless_all: bool,
        /// Whether it is warned of that no source could be read.
        tell: bool,
    },
}

impl LoadOptions {
    /// As the settings want it, with the defaults of Ansible: what cannot be read is warned of.
    #[must_use]
    pub fn as_ansible(config: &Config) -> Self {
        Self {
            unparsed: if config.inventory_any_unparsed_is_failed() {
                Unparsed::Error
            } else {
                Unparsed::Warning {
                    unless_all: config.inventory_unparsed_is_failed(),
                    tell: config.inventory_unparsed_warning(),
                }
            },
            group_names: config.force_valid_group_names(),
            ..Self::strict(config)
        }
    }

    /// As the settings want it, except that every source must be readable.
    #[must_use]
    pub fn strict(config: &Config) -> Self {
        let controller = Arc::new(NoController);
        Self {
            playbook_dirs: Vec::new(),
            run_scripts: true,
            unparsed: Unparsed::Error,
            enabled: config.inventory_enabled().to_vec(),
            ignore_endings: config.inventory_ignore_extensions().to_vec(),
            ignore_patterns: config.inventory_ignore_patterns().to_vec(),
            yaml_endings: config.yaml_valid_extensions().to_vec(),
            group_names: match config.force_valid_group_names() {
                GroupNames::Never => GroupNames::Ignore,
                other => other,
            },
            precedence: config.precedence().to_vec(),
            templar: Templar::new(TemplateSettings {
                search_path: Vec::new(),
                playbook_dir: PathBuf::new(),
                controller,
                vault: Vault::default(),
                managed: "Ansible managed".to_owned(),
            }),
            vault: Vault::default(),
            extra_vars: IndexMap::new(),
            use_extra_vars: config.inventory_use_extra_vars(),
        }
    }

    /// The same with what opens encrypted files and values.
    #[must_use]
    pub fn with_vault(mut self, vault: &Vault) -> LoadOptions {
        self.vault = vault.clone();
        self.templar = self.templar.with_vault(vault);
        self
    }

    /// Whether one of these formats may be read.
    fn enables(&self, plugins: &[&str]) -> bool {
        self.enabled.iter().any(|enabled| {
            let enabled = enabled.strip_prefix("ansible.builtin.").unwrap_or(enabled);
            plugins.contains(&enabled)
        })
    }
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions::strict(&Config::default())
    }
}

/// The inventories that the settings name. Where they name none, and there is none at the usual place, there are none.
#[must_use]
pub fn sources(config: &Config) -> Vec<String> {
    let written = config.origin("inventory").is_some();
    config
        .inventory()
        .iter()
        .filter(|path| written || crate::sources::exists(path))
        .map(|path| path.to_string_lossy().into_owned())
        .collect()
}

/// Names in a folder of sources that are none.
const NO_SOURCES: [&str; 3] = ["group_vars", "host_vars", "vars_plugins"];

impl Inventory {
    /// Reads sources in order (a file, a script, a folder of both, or hosts with commas:
    /// `web1,web2,`), and gives back what is odd about them besides.
    ///
    /// # Errors
    ///
    /// All mistakes found, each at its place.
    pub fn load(
        sources: &[String],
        options: &LoadOptions,
    ) -> Result<(Inventory, Vec<Diagnostic>), Vec<Diagnostic>> {
        let mut build = Build::new(options);
        let mut loader = Loader {
            options,
            ignored: patterns(&options.ignore_patterns, &mut build.errors),
            dirs: Vec::new(),
        };
        let mut any = false;
        for source in sources {
            let before = build.errors.len();
            let parsed = loader.source(&mut build, source);
            any |= parsed;
            if !parsed {
                loader.unparsed(&mut build, source);
            }
            if !parsed && !build.lenient && build.errors.len() == before {
                build.errors.push(placeless(
                    code::SOURCE,
                    format!("there is no source in the inventory folder `{source}`"),
                ));
            }
        }
        if !any {
            loader.none(&mut build);
        }
        build.told_names();
        for host in build.graph.hosts.values() {
            if build.graph.groups.contains_key(&host.name) {
                let warning = placeless_oddity(
                    code::GROUP,
                    format!("`{}` is a host and a group", host.name),
                )
                .with_help("as a pattern it means the host alone");
                build.warnings.push(match &host.span {
                    Some(span) => warning.at(span.clone()),
                    None => warning,
                });
            }
        }
        let (beside, errors) = Beside::find(&loader.dirs, &options.playbook_dirs, &options.vault);
        let mut failed = build.errors;
        failed.extend(errors);
        match Inventory::over(build.graph, beside, options.precedence.clone()) {
            Ok(mut inventory) if failed.is_empty() => {
                let mut warnings = build.warnings;
                warnings.append(&mut inventory.beside.warnings);
                Ok((inventory, warnings))
            }
            Ok(_) => Err(failed),
            Err(errors) => {
                failed.extend(errors);
                Err(failed)
            }
        }
    }
}

/// The expressions among texts.
fn patterns(texts: &[String], errors: &mut Vec<Diagnostic>) -> Vec<Regex> {
    let mut patterns = Vec::new();
    for text in texts {
        match Regex::new(text) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => errors.push(
                Diagnostic::error(
                    Source::new("inventory_ignore_patterns", text.as_str()).span(0, text.len()),
                    format!("`{text}` is no regular expression"),
                )
                .with_code(code::SOURCE)
                .with_help(error.to_string()),
            ),
        }
    }
    patterns
}

/// How things were before a source was read.
struct Before {
    errors: usize,
    /// Where a source that cannot be read is no error.
    graph: Option<Graph>,
}

impl Before {
    fn reading(build: &Build) -> Before {
        Before {
            errors: build.errors.len(),
            graph: build.lenient.then(|| build.graph.clone()),
        }
    }
}

/// Reads sources.
struct Loader<'a> {
    options: &'a LoadOptions,
    ignored: Vec<Regex>,
    /// The folders that may have files of variables in them, so far.
    dirs: Vec<PathBuf>,
}

impl Loader<'_> {
    /// Reads a source; says whether it could be read.
    fn source(&mut self, build: &mut Build, source: &str) -> bool {
        let path = Path::new(source);
        if crate::sources::exists(path) {
            let dir = if crate::sources::is_dir(path) {
                Some(path)
            } else {
                path.parent()
            };
            self.dirs.extend(dir.map(Path::to_owned));
            return self.read(build, path);
        }
        let before = Before::reading(build);
        if source.contains(',') && self.options.enables(&["host_list", "advanced_host_list"]) {
            list(build, source);
            let advanced = self.options.enables(&["advanced_host_list"]);
            let plugin = if advanced {
                "advanced_host_list"
            } else {
                "host_list"
            };
            return self.judged(build, before, plugin);
        }
        if self.options.unparsed == Unparsed::Error {
            build.errors.push(
                placeless(code::SOURCE, format!("no inventory source `{source}`")).with_help(
                    format!("to name a host, write a comma behind it: `{source},`"),
                ),
            );
        }
        false
    }

    /// Whether nothing has gone wrong since. Where that is no error, what has is warned of, and nothing of the source counts.
    fn judged(&self, build: &mut Build, before: Before, plugin: &str) -> bool {
        let failed = build.errors.len() > before.errors;
        if let Some(graph) = before.graph.filter(|_| failed) {
            build.graph = graph;
            for mut mistake in build.errors.drain(before.errors..) {
                mistake.severity = Severity::Warning;
                mistake.message = format!(
                    "Failed to parse inventory with '{plugin}' plugin: {}",
                    mistake.message
                );
                build.warnings.push(mistake);
            }
        }
        !failed
    }

    /// A source could not be read.
    fn unparsed(&self, build: &mut Build, source: &str) {
        if self.options.unparsed != Unparsed::Error {
            build.warnings.push(placeless_oddity(
                code::SOURCE,
                format!(
                    "Unable to parse {} as an inventory source",
                    absolute(source)
                ),
            ));
        }
    }

    /// No source could be read.
    fn none(&self, build: &mut Build) {
        let Unparsed::Warning { unless_all, tell } = self.options.unparsed else {
            return;
        };
        if unless_all {
            build.errors.push(placeless(
                code::SOURCE,
                "No inventory was parsed, please check your configuration and options",
            ));
        } else if tell {
            build.warnings.push(placeless_oddity(
                code::SOURCE,
                "No inventory was parsed, only implicit localhost is available",
            ));
        }
    }

    /// Reads a file or a folder; says whether it, or something in it, could be read.
    fn read(&mut self, build: &mut Build, path: &Path) -> bool {
        let read = if crate::sources::is_dir(path) {
            self.folder(build, path)
        } else {
            self.file(build, path)
        };
        read.unwrap_or_else(|error| {
            let before = Before::reading(build);
            build.errors.push(placeless(
                code::SOURCE,
                format!("cannot read inventory source `{}`: {error}", path.display()),
            ));
            self.judged(build, before, "auto")
        })
    }

    /// Reads all sources in a folder, sorted by name.
    fn folder(&mut self, build: &mut Build, path: &Path) -> io::Result<bool> {
        let mut any = false;
        for text in crate::sources::list(path)? {
            let endings = &self.options.ignore_endings;
            let ignored = text.starts_with('.')
                || NO_SOURCES.contains(&text.as_str())
                || endings.iter().any(|ending| text.ends_with(ending.as_str()))
                || self.ignored.iter().any(|pattern| pattern.is_match(&text));
            if !ignored {
                let entry = path.join(&text);
                let parsed = self.read(build, &entry);
                any |= parsed;
                if !parsed {
                    self.unparsed(build, &entry.to_string_lossy());
                }
            }
        }
        Ok(any)
    }

    fn file(&mut self, build: &mut Build, path: &Path) -> io::Result<bool> {
        let full = crate::sources::rooted(path)?;
        let mention = Arc::new(Mention {
            dir: full.parent().map(Path::to_owned),
            file: full.to_string_lossy().into_owned(),
        });
        let before = Before::reading(build);
        if self.options.enables(&["script"]) && is_script(path)? {
            if self.options.run_scripts {
                script::run(build, path, &mention);
            } else {
                build.errors.push(placeless(
                    code::SCRIPT,
                    format!(
                        "inventory source `{}` is a script, and none may be run",
                        path.display()
                    ),
                ));
            }
            return Ok(self.judged(build, before, "script"));
        }
        let bytes = crate::sources::read(path)?;
        let plain = self.options.vault.plain(path, bytes);
        let plugin = match plain.and_then(|bytes| Source::from_bytes(path, bytes)) {
            Ok(source) => self.text(build, path, &source, &mention),
            Err(mistake) => {
                build.errors.push(mistake);
                "auto"
            }
        };
        Ok(self.judged(build, before, plugin))
    }

    /// Reads a text in the format that its name says, or else in the one that fits. Gives the format's name.
    fn text(
        &mut self,
        build: &mut Build,
        path: &Path,
        source: &Arc<Source>,
        mention: &Arc<Mention>,
    ) -> &'static str {
        let ending = path
            .extension()
            .map(|ending| format!(".{}", ending.to_string_lossy().to_ascii_lowercase()));
        let ending = ending.as_deref().unwrap_or_default();
        let plugins = ["constructed", "generator"];
        let yaml = self.options.enables(&["yaml", "auto"]) || self.options.enables(&plugins);
        let ini = self.options.enables(&["ini"]);
        if yaml
            && self
                .options
                .yaml_endings
                .iter()
                .any(|known| known == ending)
        {
            if let Err(mistake) = self.structured(build, source, mention, true) {
                build.errors.push(mistake);
            }
            return "yaml";
        }
        if ending == ".toml" && self.options.enables(&["toml"]) {
            toml::read(build, source, mention);
            return "toml";
        }
        if ini && ([".ini", ".cfg"].contains(&ending) || ini::has_heading(&source.text)) {
            ini::read(build, source, mention);
            return "ini";
        }
        if !yaml && !ini {
            build.errors.push(placeless(
                code::SOURCE,
                format!(
                    "inventory source `{}` has none of the formats that are enabled: {}",
                    path.display(),
                    self.options.enabled.join(", ")
                ),
            ));
            return "auto";
        }
        let as_yaml = if yaml {
            self.structured(build, source, mention, false)
        } else {
            Ok(false)
        };
        match as_yaml {
            Ok(true) => "yaml",
            Err(mistake) if !ini => {
                build.errors.push(mistake);
                "yaml"
            }
            Ok(false) => {
                ini::read(build, source, mention);
                "ini"
            }
            Err(as_yaml) => {
                let before = build.errors.len();
                ini::read(build, source, mention);
                if build.errors.len() > before {
                    let as_ini = build.errors.split_off(before);
                    build.errors.push(neither(path, &as_yaml, &as_ini[0]));
                }
                "ini"
            }
        }
    }

    /// Reads YAML or JSON. `false`: it is a text of another format.
    fn structured(
        &mut self,
        build: &mut Build,
        source: &Arc<Source>,
        mention: &Arc<Mention>,
        must: bool,
    ) -> Result<bool, Diagnostic> {
        let loaded = match fleet_yaml::load(Arc::clone(source)) {
            Ok(loaded) => loaded,
            // JSON allows what YAML does not, such as tabs.
            Err(mistake) => match script::json(source) {
                Ok(root) => fleet_yaml::Loaded {
                    documents: vec![root],
                    warnings: Vec::new(),
                },
                Err(_) => return Err(mistake),
            },
        };
        let mut documents = loaded.documents.iter();
        let Some(root) = documents.next().filter(|root| !root.is_null()) else {
            return self.nothing(source);
        };
        let Some(map) = root.as_map() else {
            if !must {
                return Ok(false);
            }
            return Err(mistake(
                code::SOURCE,
                &root.span,
                format!("the inventory is {}", root.kind_name()),
            )
            .with_label("expected groups as keys: `all:`"));
        };
        if let Some(second) = documents.next() {
            return Err(mistake(
                code::SOURCE,
                &second.span,
                "a second document in an inventory",
            )
            .with_label("expected the end of the file"));
        }
        build.warnings.extend(loaded.warnings);
        if plugin::is_one(map) {
            plugin::read(build, map, mention, self.options, &self.dirs);
        } else if source.text.trim_start().starts_with('{') && script::is_script_form(map) {
            script::read(build, map, mention);
        } else {
            yaml::read(build, map, mention);
        }
        Ok(true)
    }

    /// A file without anything in it: an inventory without hosts, except where a plugin needs to be told what to do.
    fn nothing(&self, source: &Arc<Source>) -> Result<bool, Diagnostic> {
        if self.options.enables(&["yaml", "auto", "ini"]) {
            return Ok(true);
        }
        Err(placeless(
            code::SOURCE,
            format!("inventory source `{}` is empty", source.name.display()),
        ))
    }
}

/// A path from the root on.
fn absolute(source: &str) -> String {
    match crate::sources::rooted(source) {
        Ok(path) if !source.contains(',') => path.to_string_lossy().into_owned(),
        _ => source.to_owned(),
    }
}

/// Hosts with commas between.
fn list(build: &mut Build, text: &str) {
    let source = Source::new("--inventory", text);
    let mention = Arc::new(Mention {
        file: text.to_owned(),
        dir: None,
    });
    let ungrouped = build.graph.group(UNGROUPED);
    let mut start = 0;
    for part in text.split(',') {
        let name = part.trim();
        if !name.is_empty() {
            let from = start + (part.len() - part.trim_start().len());
            match build.hosts(name, &source.span(from, from + name.len()), &mention) {
                Ok(hosts) => hosts
                    .into_iter()
                    .for_each(|host| build.graph.join(host, ungrouped)),
                Err(mut mistake) if build.lenient && name.ends_with(":]") => {
                    mistake.severity = Severity::Warning;
                    mistake.message = "Unable to parse address from hostname, leaving unchanged: host range must specify end value".to_owned();
                    let host =
                        build.host(name, None, &source.span(from, from + name.len()), &mention);
                    build.graph.join(host, ungrouped);
                    build.warnings.push(mistake);
                }
                Err(mistake) => build.errors.push(mistake),
            }
        }
        start += part.len() + 1;
    }
}

/// Whether a file is to be run: executable, and a program. An executable bit alone, as some file
/// systems give to every file, does not make one.
fn is_script(path: &Path) -> io::Result<bool> {
    if !crate::sources::is_file(path) || crate::sources::about(path)?.mode & 0o111 == 0 {
        return Ok(false);
    }
    let head = crate::sources::read(path)?;
    Ok(head.starts_with(b"#!") || head.starts_with(b"\x7fELF"))
}

/// What each format said of a text that is neither.
fn neither(path: &Path, as_yaml: &Diagnostic, as_ini: &Diagnostic) -> Diagnostic {
    let said = |mistake: &Diagnostic| match &mistake.span {
        Some(span) => format!("{} (line {})", mistake.message, span.line_col().0),
        None => mistake.message.clone(),
    };
    let mistake = placeless(
        code::SOURCE,
        format!("`{}` is no inventory that can be read", path.display()),
    )
    .with_label(format!("as INI: {}", as_ini.message))
    .with_help(format!(
        "as YAML: {}; name the file `.yml` or `.ini` to see all mistakes of one format",
        said(as_yaml)
    ));
    match &as_ini.span {
        Some(span) => mistake.at(span.clone()),
        None => mistake,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lab::{Lab, errors, hosts, load, members, var};
    use super::*;

    #[test]
    fn a_list_of_hosts_needs_no_file() {
        let inventory = Lab::new(&[]).load(&["web1, web2:2222,w[1:2]"]);
        assert_eq!(hosts(&inventory), ["web1", "web2", "w1", "w2"]);
        assert_eq!(var(&inventory, "web2", "ansible_port"), json!(2222));
        assert_eq!(members(&inventory, "ungrouped").len(), 4);
        assert_eq!(hosts(&Lab::new(&[]).load(&["localhost,"])), ["localhost"]);
        insta::assert_snapshot!(Lab::new(&[]).errors(&["h1,h:,"]), @"
        error[F0204]: the host name `h:` ends with `:`
         --> --inventory:1:4
          |
        1 | h1,h:,
          |    ^^ expected a host name, or a name and a port (`web1:2222`)
        ");
    }

    #[test]
    fn a_folder_is_all_its_sources_in_sorted_order() {
        let lab = Lab::new(&[
            ("inv/20.ini", "[web]\nw2\n[web:vars]\nx=late\n"),
            ("inv/10.yml", "web:\n  hosts: {w1: }\n  vars: {x: early}\n"),
            ("inv/30/deep", "[web]\nw3\n"),
            ("inv/.hidden", "[web]\nno1\n"),
            ("inv/notes.txt", "no2"),
            ("inv/readme.md", "no3"),
            ("inv/old.bak", "no4"),
            ("inv/old~", "no5"),
            ("inv/ansible.cfg", "[defaults]\nno=6\n"),
            ("inv/site.retry", "no7"),
            ("inv/group_vars/web", "y: 1"),
            ("inv/host_vars/w1.yml", "z: 1"),
        ]);
        let inventory = lab.load(&["inv"]);
        assert_eq!(hosts(&inventory), ["w1", "w2", "w3"]);
        assert_eq!(var(&inventory, "w1", "x"), json!("late"));
        assert_eq!(var(&inventory, "w3", "y"), json!(1));
        assert_eq!(var(&inventory, "w1", "z"), json!(1));
    }

    #[test]
    fn the_format_is_found_by_the_text_where_the_name_does_not_say() {
        assert_eq!(hosts(&load("hosts", "[web]\nw1\n")), ["w1"]);
        assert_eq!(hosts(&load("hosts", "w1\nw2 a=1\n")), ["w1", "w2"]);
        assert_eq!(hosts(&load("hosts", "web:\n  hosts:\n    w1:\n")), ["w1"]);
        assert_eq!(
            hosts(&load("hosts", "{\"web\": {\"hosts\": {\"w1\": {}}}}")),
            ["w1"]
        );
        assert_eq!(
            hosts(&load("i.json", "{\"web\":\t{\"hosts\":\t{\"w1\":\t{}}}}")),
            ["w1"]
        );
    }

    #[test]
    fn an_empty_source_has_no_hosts() {
        for name in ["hosts", "i.yml", "i.ini", "i.json"] {
            assert_eq!(hosts(&load(name, "")), [""; 0], "{name}");
            assert_eq!(hosts(&load(name, "\n# nothing\n")), [""; 0], "{name}");
        }
    }

    #[test]
    fn later_sources_win() {
        let lab = Lab::new(&[("a.ini", "h x=1 y=1\n"), ("b.ini", "h x=2\n")]);
        let inventory = lab.load(&["a.ini", "b.ini"]);
        assert_eq!(
            (var(&inventory, "h", "x"), var(&inventory, "h", "y")),
            (json!(2), json!(1))
        );
        assert_eq!(
            inventory.host("h").unwrap().mention().unwrap().file,
            lab.path("a.ini").to_str().unwrap()
        );
    }

    #[test]
    fn a_text_of_no_format_is_told_what_each_says() {
        insta::assert_snapshot!(errors("hosts", "h1 a=b c\n: : [\n"), @"
        error[F0201]: `hosts` is no inventory that can be read
         --> hosts:1:8
          |
        1 | h1 a=b c
          |        ^ as INI: `c` sets no variable
          |
          = help: as YAML: this is no YAML: did not find expected <document start> (line 2); name the file `.yml` or `.ini` to see all mistakes of one format
        ");
    }

    #[test]
    fn sources_that_cannot_be_read_are_told() {
        insta::assert_snapshot!(Lab::new(&[]).errors(&["web1"]), @"
        error[F0201]: no inventory source `web1`
         |
         = help: to name a host, write a comma behind it: `web1,`
        ");
        insta::assert_snapshot!(errors("i.yml", "- web1\n"), @"
        error[F0201]: the inventory is a list
         --> i.yml:1:1
          |
        1 | - web1
          | ^^^^^^ expected groups as keys: `all:`
        ");
        insta::assert_snapshot!(errors("i.yml", "web: [\n"), @"
        error[F0101]: this `[` is never closed
         --> i.yml:1:6
          |
        1 | web: [
          |      ^
        ");
        insta::assert_snapshot!(errors("hosts", "$ANSIBLE_VAULT;1.1;AES256\n6162\n"), @"
        error[F0802]: the vault is damaged: the hex does not hold salt, check sum and text: a part is missing
         --> hosts:2:1
          |
        2 | 6162
          | ^^^^
        ");
    }

    #[test]
    fn scripts_are_not_run_where_none_may_be() {
        let lab = Lab::new(&[("i", "#!/bin/sh\necho '{}'\n")]);
        let source = lab.path("i").to_str().unwrap().to_owned();
        let options = LoadOptions {
            run_scripts: false,
            ..LoadOptions::default()
        };
        let errors = Inventory::load(&[source], &options).unwrap_err();
        insta::assert_snapshot!(lab.shown(&errors), @"error[F0209]: inventory source `i` is a script, and none may be run");
    }

    #[test]
    fn mistakes_of_all_sources_come_together() {
        let lab = Lab::new(&[("a.ini", "[x:y]\n"), ("b.yml", "web: 5\n")]);
        assert_eq!(
            lab.errors(&["a.ini", "b.yml", "c"])
                .matches("error[")
                .count(),
            3
        );
    }

    #[test]
    fn a_host_named_as_a_group_is_warned_of() {
        insta::assert_snapshot!(super::super::lab::warnings("i.ini", "[web]\nweb\n"), @"
        warning[F0205]: `web` is a host and a group
         --> i.ini:2:1
          |
        2 | web
          | ^^^
          |
          = help: as a pattern it means the host alone
        ");
    }

    /// What Ansible's way of loading makes of the sources: the hosts, and the warnings.
    fn as_ansible(lab: &Lab, sources: &[&str], settings: &[(&str, &str)]) -> (Vec<String>, String) {
        let (inventory, warnings) = try_as_ansible(lab, sources, settings).unwrap();
        let hosts = inventory.hosts().map(|host| host.name.clone()).collect();
        (hosts, lab.shown(&warnings))
    }

    fn try_as_ansible(
        lab: &Lab,
        sources: &[&str],
        settings: &[(&str, &str)],
    ) -> Result<(Inventory, Vec<Diagnostic>), Vec<Diagnostic>> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let settings = settings.iter().map(pair);
        let config = crate::config::read(crate::config::Written::default(), settings).config;
        let full = |source: &&str| match source.contains(',') {
            true => (*source).to_owned(),
            false => lab.path(source).to_string_lossy().into_owned(),
        };
        let sources: Vec<String> = sources.iter().map(full).collect();
        Inventory::load(&sources, &LoadOptions::as_ansible(&config))
    }

    #[test]
    fn as_ansible_what_cannot_be_read_is_warned_of_and_nothing_of_it_counts() {
        let lab = Lab::new(&[
            ("good.ini", "h1\n"),
            ("bad.yml", "all:\n  hosts:\n    h2:\n    1234:\n"),
            ("odd.yml", "web: {hosts: {h3: }}\nzz: 5\n"),
        ]);
        let (hosts, warnings) = as_ansible(&lab, &["good.ini", "bad.yml", "odd.yml"], &[]);
        assert_eq!(hosts, ["h1", "h3"]);
        insta::assert_snapshot!(warnings, @"
        warning[F0204]: Failed to parse inventory with 'yaml' plugin: Host pattern 1234 must be a string
         --> bad.yml:4:5
          |
        4 |     1234:
          |     ^^^^ put it in quotes

        warning[F0201]: Unable to parse bad.yml as an inventory source

        warning[F0205]: Skipping 'zz' as this is not a valid group definition
         --> odd.yml:2:5
          |
        2 | zz: 5
          |     ^
        ");
    }

    #[test]
    fn as_ansible_no_source_at_all_is_warned_of() {
        let lab = Lab::new(&[]);
        insta::assert_snapshot!(as_ansible(&lab, &["nowhere"], &[]).1, @"
        warning[F0201]: Unable to parse nowhere as an inventory source

        warning[F0201]: No inventory was parsed, only implicit localhost is available
        ");
        let quiet = [("ANSIBLE_INVENTORY_UNPARSED_WARNING", "no")];
        let warnings = as_ansible(&lab, &["nowhere"], &quiet).1;
        assert!(!warnings.contains("No inventory was parsed"), "{warnings}");
    }

    #[test]
    fn settings_make_errors_of_what_cannot_be_read() {
        let lab = Lab::new(&[("good.ini", "h1\n"), ("empty/.keep", "")]);
        let any = [("ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED", "yes")];
        let all = [("ANSIBLE_INVENTORY_UNPARSED_FAILED", "yes")];
        let fails = |sources: &[&str], settings| try_as_ansible(&lab, sources, settings).is_err();
        assert!(fails(&["good.ini", "nowhere"], &any));
        assert!(fails(&["empty"], &any));
        assert!(fails(&["nowhere"], &all));
        assert!(!fails(&["good.ini", "nowhere"], &all));
        assert!(!fails(&["empty"], &[]));
    }

    #[test]
    fn only_the_formats_that_are_enabled_are_read() {
        let lab = Lab::new(&[
            ("h.ini", "[web]\nh1\n"),
            ("h.yml", "web: {hosts: {h2: }}\n"),
            ("e.yml", ""),
        ]);
        let only = |plugins| [("ANSIBLE_INVENTORY_ENABLED", plugins)];
        let hosts = |plugins, source| as_ansible(&lab, &[source], &only(plugins)).0;
        assert_eq!(hosts("ini", "h.ini"), ["h1"]);
        assert_eq!(hosts("yaml", "h.ini"), [""; 0]);
        assert_eq!(hosts("ansible.builtin.yaml", "h.yml"), ["h2"]);
        assert_eq!(hosts("ini", "h.yml"), [""; 0]);
        assert_eq!(hosts("yaml", "a,b"), [""; 0]);
        assert_eq!(hosts("advanced_host_list", "a[1:2],b"), ["a1", "a2", "b"]);
        assert_eq!(hosts("advanced_host_list", "a[1:],b"), ["a[1:]", "b"]);
        assert_eq!(hosts("advanced_host_list", "a[1:j],"), [""; 0]);
        insta::assert_snapshot!(as_ansible(&lab, &["e.yml"], &only("constructed")).1, @"
        warning[F0201]: Failed to parse inventory with 'yaml' plugin: inventory source `e.yml` is empty

        warning[F0201]: Unable to parse e.yml as an inventory source

        warning[F0201]: No inventory was parsed, only implicit localhost is available
        ");
    }

    #[test]
    fn settings_say_which_files_of_a_folder_are_no_sources() {
        let lab = Lab::new(&[
            ("inv/a.ini", "h1\n"),
            ("inv/b.no", "h2\n"),
            ("inv/c_old.ini", "h3\n"),
            ("inv/d.md", "h4\n"),
        ]);
        let settings = [
            ("ANSIBLE_INVENTORY_IGNORE", ".no"),
            ("ANSIBLE_INVENTORY_IGNORE_REGEX", "_old"),
        ];
        assert_eq!(as_ansible(&lab, &["inv"], &settings).0, ["h1", "h4"]);
    }

    #[test]
    fn names_of_groups_are_made_safe_where_that_is_wanted() {
        let lab = Lab::new(&[
            ("i.ini", "[a-b:children]\n1c\n[1c]\nh\n[a-b:vars]\nx=1\n"),
            ("i.yml", "d e: {hosts: {h: }}\n"),
        ]);
        let names = |how| {
            let settings = [("ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS", how)];
            let (inventory, warnings) =
                try_as_ansible(&lab, &["i.ini", "i.yml"], &settings).unwrap();
            let host = inventory.host("h").unwrap();
            assert_eq!(var(&inventory, "h", "x"), json!(1));
            (inventory.group_names(host).join(" "), lab.shown(&warnings))
        };
        let (raw, safe) = ("1c a-b d e", "_c a_b d_e");
        assert_eq!(names("ignore"), (raw.to_owned(), String::new()));
        assert_eq!(names("silently"), (safe.to_owned(), String::new()));
        assert_eq!(names("never").0, raw);
        assert_eq!(names("always").0, safe);
        insta::assert_snapshot!(names("never").1, @"
        warning[F0205]: Invalid characters were found in group names but not replaced: a-b, 1c, d e
         |
         = help: use letters, digits and `_`, or set `force_valid_group_names = ignore`
        ");
        assert!(names("always").1.contains(
            "Invalid characters were found in group names and automatically replaced: a-b, 1c, d e"
        ));
    }

    #[test]
    fn the_order_of_group_variables_can_be_set() {
        let lab = Lab::new(&[
            (
                "i.yml",
                "all: {vars: {v: all}, children: {web: {vars: {v: web}, hosts: {h: }}}}",
            ),
            ("group_vars/all", "v: file\n"),
        ]);
        let value = |precedence| {
            let settings = [("ANSIBLE_PRECEDENCE", precedence)];
            let (inventory, _) = try_as_ansible(&lab, &["i.yml"], &settings).unwrap();
            var(&inventory, "h", "v")
        };
        assert_eq!(
            value("all_inventory, groups_inventory, all_plugins_inventory"),
            json!("file")
        );
        assert_eq!(
            value("all_plugins_inventory, groups_inventory, all_inventory"),
            json!("all")
        );
        assert_eq!(value("all_inventory"), json!("all"));
    }

    #[test]
    fn ten_thousand_hosts_are_no_work() {
        let hosts: String = (0..10_000)
            .map(|n| format!("h{n} rack={}\n", n % 40))
            .collect();
        let groups: String = (1..1000)
            .map(|n| format!("[g{n}]\nh[{n}0:{n}9]\n"))
            .collect();
        let inventory = load("i.ini", &format!("[web]\n{hosts}{groups}"));
        assert_eq!(inventory.hosts().len(), 10_000);
        assert_eq!(members(&inventory, "g7").len(), 10);
        assert_eq!(
            inventory.select("all:!g7:&h*", None).unwrap().hosts.len(),
            9_990
        );
    }
}
