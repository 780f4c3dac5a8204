//! How Ansible's output looks: the configuration, the flags, the terminal.

use std::{io::IsTerminal, path::PathBuf};

use fleet_engine::config::{Config, ResultFormat, StdoutCallback};

use super::result::Format;

/// The columns of a terminal that is none, or that does not say; no banner is shorter.
const COLUMNS: usize = 79;

/// How the output looks.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) format: Format,
    /// How many lines around a change are shown.
    pub(crate) context: usize,
    /// `--check`, and whether it is marked.
    pub(crate) check: bool,
    pub(crate) markers: bool,
    pub(crate) color: bool,
    /// The columns that a banner fills.
    pub(crate) width: usize,
    /// Which hosts are shown.
    pub(crate) ok: bool,
    pub(crate) skipped: bool,
    pub(crate) included: bool,
    pub(crate) failed_to_stderr: bool,
    /// Whether what `set_stats` set stands below the recap.
    pub(crate) custom_stats: bool,
    pub(crate) path_on_failure: bool,
    /// Where relative names of files begin.
    pub(crate) directory: PathBuf,
    /// Hosts that are worked on at the same time.
    pub(crate) forks: usize,
}

impl Look {
    /// As the configuration says.
    pub(crate) fn new(config: &Config, verbose: u8, forks: usize) -> Self {
        let yaml = config.stdout_callback() == StdoutCallback::Yaml
            || config.callback_result_format() == ResultFormat::Yaml;
        Self {
            format: Format {
                yaml,
                indentation: config.callback_result_indentation(),
                pretty: config.callback_format_pretty(),
                verbose,
            },
            context: config.diff_context(),
            check: false,
            markers: config.check_mode_markers(),
            color: colored(config),
            width: columns(),
            ok: config.display_ok_hosts(),
            skipped: config.display_skipped_hosts(),
            included: config.display_included_hosts(),
            custom_stats: config.show_custom_stats(),
            failed_to_stderr: config.display_failed_stderr(),
            path_on_failure: config.show_task_path_on_failure(),
            directory: std::env::current_dir().unwrap_or_default(),
            forks,
        }
    }
}

/// Whether there are colours.
fn colored(config: &Config) -> bool {
    let unwanted = config.nocolor() || std::env::var_os("NO_COLOR").is_some();
    config.force_color() || (!unwanted && std::io::stdout().is_terminal())
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    columns.saturating_sub(1).max(COLUMNS)
}

#[cfg(test)]
impl Look {
    /// As where nothing is configured and nobody looks.
    pub(crate) fn plain() -> Self {
        Self {
            width: COLUMNS,
            color: false,
            directory: PathBuf::from("/work"),
            ..Self::new(&Config::default(), 0, 50)
        }
    }
}
