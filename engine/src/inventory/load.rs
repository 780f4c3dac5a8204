//! From sources to an inventory: which format each one has, and what lies beside it.

use std::{
    fs,
    io::{self, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use fleet_yaml::{Diagnostic, Source};

use super::{
    Inventory,
    beside::{self, Beside},
    build::Build,
    graph::{Mention, UNGROUPED},
    ini,
    mistake::{code, mistake, placeless, placeless_oddity},
    script, yaml,
};

/// What an inventory is loaded with besides its sources.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// The folders of playbooks, whose `group_vars` and `host_vars` count, too.
    pub playbook_dirs: Vec<PathBuf>,
    /// Whether executable sources may be run.
    pub run_scripts: bool,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions {
            playbook_dirs: Vec::new(),
            run_scripts: true,
        }
    }
}

/// Files in a folder of sources that are none: by name, then by ending.
const NO_SOURCES: [&str; 3] = ["group_vars", "host_vars", "vars_plugins"];
const NO_SOURCE_ENDINGS: [&str; 12] = [
    ".pyc", ".pyo", ".swp", ".bak", "~", ".rpm", ".md", ".txt", ".rst", ".orig", ".cfg", ".retry",
];

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
        let mut build = Build::default();
        let mut dirs = Vec::new();
        for source in sources {
            let path = Path::new(source);
            if path.exists() {
                read(&mut build, path, options);
                let dir = if path.is_dir() {
                    Some(path)
                } else {
                    path.parent()
                };
                dirs.extend(dir.map(Path::to_owned));
            } else if source.contains(',') {
                list(&mut build, source);
            } else {
                build.errors.push(
                    placeless(code::SOURCE, format!("no inventory source `{source}`")).with_help(
                        format!("to name a host, write a comma behind it: `{source},`"),
                    ),
                );
            }
        }
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
        let (beside, errors) = Beside::find(&dirs, &options.playbook_dirs);
        let mut failed = build.errors;
        failed.extend(errors);
        match Inventory::over(build.graph, beside) {
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
                Err(mistake) => build.errors.push(mistake),
            }
        }
        start += part.len() + 1;
    }
}

/// A file or a folder.
fn read(build: &mut Build, path: &Path, options: &LoadOptions) {
    let read = if path.is_dir() {
        folder(build, path, options)
    } else {
        file(build, path, options)
    };
    if let Err(error) = read {
        build.errors.push(placeless(
            code::SOURCE,
            format!("cannot read inventory source `{}`: {error}", path.display()),
        ));
    }
}

/// All sources in a folder, sorted by name.
fn folder(build: &mut Build, path: &Path, options: &LoadOptions) -> io::Result<()> {
    let mut names = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        let text = name.to_string_lossy();
        let ignored = text.starts_with('.')
            || NO_SOURCES.contains(&&*text)
            || NO_SOURCE_ENDINGS
                .iter()
                .any(|ending| text.ends_with(ending));
        if !ignored {
            read(build, &path.join(&name), options);
        }
    }
    Ok(())
}

fn file(build: &mut Build, path: &Path, options: &LoadOptions) -> io::Result<()> {
    let full = std::path::absolute(path)?;
    let mention = Arc::new(Mention {
        dir: full.parent().map(Path::to_owned),
        file: full.to_string_lossy().into_owned(),
    });
    if is_script(path)? {
        if options.run_scripts {
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
        return Ok(());
    }
    let bytes = fs::read(path)?;
    match beside::plain_bytes(path, bytes).and_then(|bytes| Source::from_bytes(path, bytes)) {
        Ok(source) => text(build, path, &source, &mention),
        Err(mistake) => build.errors.push(mistake),
    }
    Ok(())
}

/// Whether a file is to be run: executable, and a program. An executable bit alone, as some file
/// systems give to every file, does not make one.
fn is_script(path: &Path) -> io::Result<bool> {
    let meta = fs::metadata(path)?;
    if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
        return Ok(false);
    }
    let mut head = [0; 4];
    let mut file = fs::File::open(path)?;
    let mut got = 0;
    while got < head.len() {
        match file.read(&mut head[got..])? {
            0 => break,
            more => got += more,
        }
    }
    Ok(head.starts_with(b"#!") || head == *b"\x7fELF")
}

/// A text in the format that its name says, or else in the one that fits.
fn text(build: &mut Build, path: &Path, source: &Arc<Source>, mention: &Arc<Mention>) {
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    match ending.as_deref() {
        Some("yml" | "yaml" | "json") => {
            if let Err(mistake) = structured(build, source, mention, true) {
                build.errors.push(mistake);
            }
        }
        Some("toml") => build.errors.push(
            placeless(
                code::SOURCE,
                format!(
                    "inventory source `{}` is TOML, which is not supported",
                    path.display()
                ),
            )
            .with_help("`ansible-inventory --list --yaml --export` writes it as YAML"),
        ),
        Some("ini" | "cfg") => ini::read(build, source, mention),
        _ if ini::has_heading(&source.text) => ini::read(build, source, mention),
        _ => match structured(build, source, mention, false) {
            Ok(true) => {}
            Ok(false) => ini::read(build, source, mention),
            Err(as_yaml) => {
                let before = build.errors.len();
                ini::read(build, source, mention);
                if build.errors.len() > before {
                    let as_ini = build.errors.split_off(before);
                    build.errors.push(neither(path, &as_yaml, &as_ini[0]));
                }
            }
        },
    }
}

/// Reads YAML or JSON. `false`: it is a text of another format.
fn structured(
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
        return Ok(true);
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
    if source.text.trim_start().starts_with('{') && script::is_script_form(map) {
        script::read(build, map, mention);
    } else {
        yaml::read(build, map, mention);
    }
    Ok(true)
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
        insta::assert_snapshot!(errors("i.toml", "[web]\n"), @"
        error[F0201]: inventory source `i.toml` is TOML, which is not supported
         |
         = help: `ansible-inventory --list --yaml --export` writes it as YAML
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
        error[F0208]: the file is encrypted by ansible-vault, which is not supported yet
         --> hosts:1:1
          |
        1 | $ANSIBLE_VAULT;1.1;AES256
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: decrypt it with `ansible-vault decrypt` to use it
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
