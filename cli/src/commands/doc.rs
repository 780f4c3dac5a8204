use std::fmt::Write;

use anyhow::Result;
use fleet_engine::manual::{Argument, Page, pages};

use crate::{
    error::Invalid,
    paint::{HEADING, QUIET, paint},
};

/// Show the modules there are, or one with its arguments
#[derive(clap::Args)]
pub(crate) struct Doc {
    /// Print the manual of all modules as Markdown
    #[arg(long, conflicts_with = "module")]
    markdown: bool,
    /// Print the manual of `ansible.cfg` as Markdown
    #[arg(long, conflicts_with_all = ["module", "markdown"])]
    settings: bool,
    /// The module
    module: Option<String>,
}

impl Doc {
    pub(crate) fn run(self) -> Result<u8> {
        let pages = pages();
        let text = match &self.module {
            _ if self.markdown => markdown(&pages),
            _ if self.settings => fleet_engine::config::page(),
            Some(name) => one(find(&pages, name)?),
            None => list(&pages),
        };
        anstream::println!("{}", text.trim_end());
        Ok(0)
    }
}

fn find<'p>(pages: &'p [Page], name: &str) -> Result<&'p Page> {
    let bare = name.rsplit('.').next().unwrap_or(name);
    let names = pages
        .iter()
        .flat_map(|page| std::iter::once(page.name).chain(page.aliases.iter().copied()));
    let found = pages
        .iter()
        .find(|page| page.name == bare || page.aliases.contains(&bare));
    found.ok_or_else(|| {
        let hint = match fleet_engine::nearest(bare, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`fleetctl doc` lists them".to_owned(),
        };
        Invalid(format!("there is no module `{name}`; {hint}")).into()
    })
}

fn list(pages: &[Page]) -> String {
    let width = pages
        .iter()
        .map(|page| page.name.len())
        .max()
        .unwrap_or_default();
    pages.iter().fold(String::new(), |mut text, page| {
        let name = paint(HEADING, format!("{:width$}", page.name));
        let _ = writeln!(text, "{name}  {}", page.summary());
        text
    })
}

fn one(page: &Page) -> String {
    let mut text = paint(HEADING, page.name);
    if !page.aliases.is_empty() {
        let _ = write!(
            text,
            " {}",
            paint(QUIET, format!("(or {})", page.aliases.join(", ")))
        );
    }
    let _ = writeln!(text, "\n\n{}", page.text);
    if let Some(argument) = page.free_form {
        let _ = writeln!(
            text,
            "\n`{}: text` is short for its argument `{argument}`.",
            page.name
        );
    }
    for argument in &page.arguments {
        let _ = writeln!(
            text,
            "\n  {}  {}",
            paint(HEADING, &argument.name),
            paint(QUIET, terms(argument))
        );
        let _ = writeln!(text, "      {}", argument.text);
    }
    text
}

/// What an argument takes, whether it must be there, what it is without, and its other names.
fn terms(argument: &Argument) -> String {
    let mut terms = argument.takes.clone();
    if argument.required {
        terms.push_str("; required");
    }
    if let Some(default) = &argument.default {
        let _ = write!(terms, "; {default} where it is not given");
    }
    if !argument.aliases.is_empty() {
        let _ = write!(terms, "; or {}", argument.aliases.join(", "));
    }
    terms
}

fn markdown(pages: &[Page]) -> String {
    let mut text = String::from(
        "# Modules\n\n<!-- Made by `fleetctl doc --markdown`; a test compares them. -->\n\nThe modules of this version, under \
         Ansible's names; the collections `ansible.builtin`, `ansible.posix` and\n`community.general` may stand before them. \
         Every argument may be a template. `fleetctl doc MODULE` shows one of them.\n",
    );
    for page in pages {
        let _ = write!(text, "\n## {}\n\n", page.name);
        if !page.aliases.is_empty() {
            let _ = write!(text, "Also called `{}`. ", page.aliases.join("`, `"));
        }
        let _ = writeln!(text, "{}", page.text);
        if let Some(argument) = page.free_form {
            let _ = writeln!(
                text,
                "\n`{}: text` is short for its argument `{argument}`.",
                page.name
            );
        }
        if page.arguments.is_empty() {
            continue;
        }
        text.push_str("\n| argument | takes | default | meaning |\n|---|---|---|---|\n");
        for argument in &page.arguments {
            let aliases = argument
                .aliases
                .iter()
                .map(|alias| format!(", `{alias}`"))
                .collect::<String>();
            let default = match &argument.default {
                Some(default) => format!("`{default}`"),
                None if argument.required => "**required**".to_owned(),
                None => String::new(),
            };
            let meaning = argument.text.replace("\n\n", "<br>").replace('|', "\\|");
            let _ = writeln!(
                text,
                "| `{}`{aliases} | {} | {default} | {meaning} |",
                argument.name, argument.takes
            );
        }
    }
    text
}
