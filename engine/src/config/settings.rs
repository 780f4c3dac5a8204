//! All settings that Ansible 2.21 knows, and what becomes of each here: the one table.

use std::path::PathBuf;

use crate::secret::Secret;

use super::{
    Config, Given, Reader, Row,
    kind::{
        DuplicateKey, FactCaching, Gathering, GroupNames, HashBehaviour, List, Many, Mismatch,
        ResultFormat, SearchPath, StdoutCallback, Strategy, Typed, VarsLevel, VarsRoot,
    },
};

/// Where a type has no default that can be written down.
const NONE: &str = "";

/// Makes [`Config`], its getters, and the rows of the table for what fleetctl honours.
macro_rules! honoured {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident: $kind:ty = $default:expr; [$($key:literal),*]; [$($variable:literal),*];
    )*) => {
        /// The values of the settings, each with its origin.
        #[derive(Debug)]
        pub(super) struct Values {
            $(pub(super) $name: Given<$kind>,)*
        }

        impl Values {
            pub(super) fn read(reader: &mut Reader<'_>) -> Self {
                let mut rows = HONOURED.iter();
                // There are as many rows as fields; they are made by one macro.
                Self {
                    $($name: reader.setting(rows.next().unwrap_or(&HONOURED[0])),)*
                }
            }
        }

        impl Config {
            $(
                $(#[doc = $doc])*
                #[must_use]
                pub fn $name(&self) -> <$kind as Typed>::Seen<'_> {
                    self.values.$name.value.seen()
                }
            )*

            /// Where a setting's value is from, by the getter's name. None if it is at its default.
            #[must_use]
            pub fn origin(&self, getter: &str) -> Option<&super::Origin> {
                match getter {
                    $(stringify!($name) => self.values.$name.origin.as_ref(),)*
                    _ => None,
                }
            }
        }

        /// The settings that fleetctl honours.
        pub(super) static HONOURED: &[Row] = &[$(
            Row {
                name: stringify!($name),
                keys: &[$($key),*],
                variables: &[$($variable),*],
                default: $default,
                words: <$kind as Typed>::words,
                about: concat!($($doc),*),
            },
        )*];
    };
}

honoured! {
    /// The directory that other defaults are in.
    home: PathBuf = "~/.ansible"; ["defaults.home"]; ["ANSIBLE_HOME"];

    /// Inventories, where no `-i` names any.
    inventory: List<PathBuf> = "/etc/ansible/hosts"; ["defaults.inventory"]; ["ANSIBLE_INVENTORY"];
    /// Endings of files in an inventory's directory that are no sources.
    inventory_ignore_extensions: List<String> = ".pyc, .pyo, .swp, .bak, ~, .rpm, .md, .txt, .rst, .orig, .cfg, .retry"; ["defaults.inventory_ignore_extensions", "inventory.ignore_extensions"]; ["ANSIBLE_INVENTORY_IGNORE"];
    /// Regular expressions for names in an inventory's directory that are no sources.
    inventory_ignore_patterns: List<String> = NONE; ["defaults.inventory_ignore_patterns", "inventory.ignore_patterns"]; ["ANSIBLE_INVENTORY_IGNORE_REGEX"];
    /// The formats that an inventory may have, in the order in which they are tried.
    inventory_enabled: List<String> = "host_list, script, auto, yaml, ini, toml"; ["inventory.enable_plugins"]; ["ANSIBLE_INVENTORY_ENABLED"];
    /// Whether one source that cannot be read is an error.
    inventory_any_unparsed_is_failed: bool = "false"; ["inventory.any_unparsed_is_failed"]; ["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"];
    /// Whether it is an error if no source can be read.
    inventory_unparsed_is_failed: bool = "false"; ["inventory.unparsed_is_failed"]; ["ANSIBLE_INVENTORY_UNPARSED_FAILED"];
    /// Whether it is warned of that no source could be read.
    inventory_unparsed_warning: bool = "true"; ["inventory.inventory_unparsed_warning"]; ["ANSIBLE_INVENTORY_UNPARSED_WARNING"];
    /// Whether `inventory --list` leaves variables with their groups.
    inventory_export: bool = "false"; ["inventory.export"]; ["ANSIBLE_INVENTORY_EXPORT"];
    /// Whether constructed inventories see the extra variables.
    inventory_use_extra_vars: bool = "false"; ["inventory_plugins.use_extra_vars", "inventory_plugin_generator.use_extra_vars"]; ["ANSIBLE_INVENTORY_USE_EXTRA_VARS", "ANSIBLE_GENERATOR_USE_EXTRA_VARS"];
    /// Endings of files that are YAML.
    yaml_valid_extensions: List<String> = ".yml, .yaml, .json"; ["defaults.yaml_valid_extensions", "inventory_plugin_yaml.yaml_valid_extensions"]; ["ANSIBLE_YAML_FILENAME_EXT", "ANSIBLE_INVENTORY_PLUGIN_EXTS"];
    /// What happens where a pattern names a host or group that there is not.
    host_pattern_mismatch: Mismatch = "warning"; ["inventory.host_pattern_mismatch"]; ["ANSIBLE_HOST_PATTERN_MISMATCH"];
    /// What is done to names of groups that are no names of variables.
    force_valid_group_names: GroupNames = "never"; ["defaults.force_valid_group_names"]; ["ANSIBLE_TRANSFORM_INVALID_GROUP_CHARS"];
    /// The order of the variables that come with the inventory, low to high.
    precedence: List<VarsLevel> = "all_inventory, groups_inventory, all_plugins_inventory, all_plugins_play, groups_plugins_inventory, groups_plugins_play"; ["defaults.precedence"]; ["ANSIBLE_PRECEDENCE"];
    /// Where `group_vars` and `host_vars` are looked for.
    playbook_vars_root: VarsRoot = "top"; ["defaults.playbook_vars_root"]; ["ANSIBLE_PLAYBOOK_VARS_ROOT"];
    /// The directory that stands for the playbook's where there is none.
    playbook_dir: Option<PathBuf> = NONE; ["defaults.playbook_dir"]; ["ANSIBLE_PLAYBOOK_DIR"];
    /// Whether it is warned of that only this machine is there to work on.
    localhost_warning: bool = "true"; ["defaults.localhost_warning"]; ["ANSIBLE_LOCALHOST_WARNING"];

    /// Where roles are looked for besides the playbook's directory.
    roles_path: SearchPath = "{{ANSIBLE_HOME}}/roles:/usr/share/ansible/roles:/etc/ansible/roles"; ["defaults.roles_path"]; ["ANSIBLE_ROLES_PATH"];
    /// Where modules of one's own are looked for.
    library: SearchPath = "{{ANSIBLE_HOME}}/plugins/modules:/usr/share/ansible/plugins/modules"; ["defaults.library"]; ["ANSIBLE_LIBRARY"];
    /// Where Python that such modules import is looked for.
    module_utils: SearchPath = "{{ANSIBLE_HOME}}/plugins/module_utils:/usr/share/ansible/plugins/module_utils"; ["defaults.module_utils"]; ["ANSIBLE_MODULE_UTILS"];
    /// Where collections are looked for.
    collections_path: SearchPath = "{{ANSIBLE_HOME}}/collections:/usr/share/ansible/collections"; ["defaults.collections_path"]; ["ANSIBLE_COLLECTIONS_PATH"];

    /// The user to log in as.
    remote_user: Option<String> = NONE; ["defaults.remote_user"]; ["ANSIBLE_REMOTE_USER"];
    /// The port to log in at.
    remote_port: Option<u16> = NONE; ["defaults.remote_port"]; ["ANSIBLE_REMOTE_PORT"];
    /// The key to log in with.
    private_key_file: Option<PathBuf> = NONE; ["defaults.private_key_file"]; ["ANSIBLE_PRIVATE_KEY_FILE"];
    /// Whether the password to log in with is asked for.
    ask_pass: bool = "false"; ["defaults.ask_pass"]; ["ANSIBLE_ASK_PASS"];
    /// A file with the password to log in with.
    connection_password_file: Option<PathBuf> = NONE; ["defaults.connection_password_file"]; ["ANSIBLE_CONNECTION_PASSWORD_FILE"];
    /// How hosts are reached.
    transport: String = "ssh"; ["defaults.transport"]; ["ANSIBLE_TRANSPORT"];
    /// Seconds to wait for a connection.
    timeout: u64 = "10"; ["defaults.timeout", "ssh_connection.timeout"]; ["ANSIBLE_TIMEOUT", "ANSIBLE_SSH_TIMEOUT"];
    /// Whether a host must show a key that is known.
    host_key_checking: bool = "true"; ["defaults.host_key_checking", "ssh_connection.host_key_checking"]; ["ANSIBLE_HOST_KEY_CHECKING", "ANSIBLE_SSH_HOST_KEY_CHECKING"];
    /// Arguments of ssh that replace those for kept connections.
    ssh_args: Option<String> = NONE; ["ssh_connection.ssh_args"]; ["ANSIBLE_SSH_ARGS"];
    /// More arguments of ssh.
    ssh_common_args: Option<String> = NONE; ["ssh_connection.ssh_common_args"]; ["ANSIBLE_SSH_COMMON_ARGS"];
    /// More arguments of ssh, after those.
    ssh_extra_args: Option<String> = NONE; ["ssh_connection.ssh_extra_args"]; ["ANSIBLE_SSH_EXTRA_ARGS"];
    /// The program that is ssh.
    ssh_executable: String = "ssh"; ["ssh_connection.ssh_executable"]; ["ANSIBLE_SSH_EXECUTABLE"];
    /// How often a connection is tried again.
    ssh_retries: usize = "0"; ["connection.retries", "ssh_connection.retries"]; ["ANSIBLE_SSH_RETRIES"];
    /// Where the sockets of kept connections are.
    ssh_control_path_dir: Option<PathBuf> = NONE; ["ssh_connection.control_path_dir"]; ["ANSIBLE_SSH_CONTROL_PATH_DIR"];

    /// Whether tasks run as another user.
    r#become: bool = "false"; ["privilege_escalation.become"]; ["ANSIBLE_BECOME"];
    /// How to become another user.
    become_method: String = "sudo"; ["privilege_escalation.become_method"]; ["ANSIBLE_BECOME_METHOD"];
    /// The user to become.
    become_user: String = "root"; ["privilege_escalation.become_user"]; ["ANSIBLE_BECOME_USER"];
    /// The program to become another user with.
    become_exe: Option<String> = NONE; ["privilege_escalation.become_exe"]; ["ANSIBLE_BECOME_EXE"];
    /// Its arguments.
    become_flags: Option<String> = NONE; ["privilege_escalation.become_flags"]; ["ANSIBLE_BECOME_FLAGS"];
    /// Whether the password for it is asked for.
    become_ask_pass: bool = "false"; ["privilege_escalation.become_ask_pass"]; ["ANSIBLE_BECOME_ASK_PASS"];
    /// A file with the password for it.
    become_password_file: Option<PathBuf> = NONE; ["defaults.become_password_file"]; ["ANSIBLE_BECOME_PASSWORD_FILE"];
    /// The password for it.
    become_pass: Option<Secret> = NONE; []; ["ANSIBLE_BECOME_PASS"];
    /// The user to become by sudo.
    sudo_user: Option<String> = NONE; ["sudo_become_plugin.user"]; ["ANSIBLE_SUDO_USER"];
    /// The program that is sudo.
    sudo_exe: Option<String> = NONE; ["sudo_become_plugin.executable"]; ["ANSIBLE_SUDO_EXE"];
    /// The arguments of sudo.
    sudo_flags: Option<String> = NONE; ["sudo_become_plugin.flags"]; ["ANSIBLE_SUDO_FLAGS"];
    /// The password for sudo.
    sudo_pass: Option<Secret> = NONE; ["sudo_become_plugin.password"]; ["ANSIBLE_SUDO_PASS"];
    /// The user to become by su.
    su_user: Option<String> = NONE; ["su_become_plugin.user"]; ["ANSIBLE_SU_USER"];
    /// The program that is su.
    su_exe: Option<String> = NONE; ["su_become_plugin.executable"]; ["ANSIBLE_SU_EXE"];
    /// The arguments of su.
    su_flags: Option<String> = NONE; ["su_become_plugin.flags"]; ["ANSIBLE_SU_FLAGS"];
    /// The password for su.
    su_pass: Option<Secret> = NONE; ["su_become_plugin.password"]; ["ANSIBLE_SU_PASS"];

    /// A file with the vault's password, or a program that prints it.
    vault_password_file: Option<PathBuf> = NONE; ["defaults.vault_password_file"]; ["ANSIBLE_VAULT_PASSWORD_FILE"];
    /// Vault passwords, each as `label@source`.
    vault_identity_list: List<String> = NONE; ["defaults.vault_identity_list"]; ["ANSIBLE_VAULT_IDENTITY_LIST"];
    /// The label of a vault password that has none.
    vault_identity: String = "default"; ["defaults.vault_identity"]; ["ANSIBLE_VAULT_IDENTITY"];
    /// The label to encrypt with.
    vault_encrypt_identity: Option<String> = NONE; ["defaults.vault_encrypt_identity"]; ["ANSIBLE_VAULT_ENCRYPT_IDENTITY"];
    /// A salt to encrypt with, instead of a random one.
    vault_encrypt_salt: Option<String> = NONE; ["defaults.vault_encrypt_salt"]; ["ANSIBLE_VAULT_ENCRYPT_SALT"];
    /// Whether only the password with the label of a text is tried.
    vault_id_match: bool = "false"; ["defaults.vault_id_match"]; ["ANSIBLE_VAULT_ID_MATCH"];
    /// Whether the vault's password is asked for.
    ask_vault_pass: bool = "false"; ["defaults.ask_vault_pass"]; ["ANSIBLE_ASK_VAULT_PASS"];

    /// How many hosts are worked on at the same time. Ansible's default is 5.
    forks: Many = "50"; ["defaults.forks"]; ["ANSIBLE_FORKS"];
    /// How hosts go through a play.
    strategy: Strategy = "linear"; ["defaults.strategy"]; ["ANSIBLE_STRATEGY"];
    /// Whether one failed host ends the play for all.
    any_errors_fatal: bool = "false"; ["defaults.any_errors_fatal"]; ["ANSIBLE_ANY_ERRORS_FATAL"];
    /// Whether handlers run on hosts that failed.
    force_handlers: bool = "false"; ["defaults.force_handlers"]; ["ANSIBLE_FORCE_HANDLERS"];
    /// Whether a handler that there is not is an error.
    error_on_missing_handler: bool = "true"; ["defaults.error_on_missing_handler"]; ["ANSIBLE_ERROR_ON_MISSING_HANDLER"];
    /// Whether a keyword that there is not is an error.
    invalid_task_attribute_failed: bool = "true"; ["defaults.invalid_task_attribute_failed"]; ["ANSIBLE_INVALID_TASK_ATTRIBUTE_FAILED"];
    /// Seconds that a task may take; 0 for ever.
    task_timeout: u64 = "0"; ["defaults.task_timeout"]; ["ANSIBLE_TASK_TIMEOUT"];
    /// Seconds between two looks at a task in the background.
    poll_interval: u64 = "15"; ["defaults.poll_interval"]; ["ANSIBLE_POLL_INTERVAL"];
    /// The module of `exec` where none is said.
    module_name: String = "command"; ["defaults.module_name"]; [];
    /// Its arguments where none are said.
    module_args: Option<String> = NONE; ["defaults.module_args"]; ["ANSIBLE_MODULE_ARGS"];
    /// The shell that commands run in.
    executable: String = "/bin/sh"; ["defaults.executable"]; ["ANSIBLE_EXECUTABLE"];
    /// Where files lie for a moment on this machine.
    local_tmp: PathBuf = "{{ANSIBLE_HOME}}/tmp"; ["defaults.local_tmp"]; ["ANSIBLE_LOCAL_TEMP"];
    /// Where files lie for a moment on hosts.
    remote_tmp: String = "~/.ansible/tmp"; ["defaults.remote_tmp"]; ["ANSIBLE_REMOTE_TEMP", "ANSIBLE_REMOTE_TMP"];
    /// Where tasks in the background keep their results.
    async_dir: String = "~/.ansible_async"; ["defaults.async_dir"]; ["ANSIBLE_ASYNC_DIR"];
    /// Whether files for another user may be readable by all for a moment.
    allow_world_readable_tmpfiles: bool = "false"; ["defaults.allow_world_readable_tmpfiles"]; ["ANSIBLE_SHELL_ALLOW_WORLD_READABLE_TEMP"];
    /// The Python that modules of one's own run with.
    interpreter_python: String = "auto"; ["defaults.interpreter_python"]; ["ANSIBLE_PYTHON_INTERPRETER"];
    /// Only tasks with one of these tags.
    tags_run: List<String> = NONE; ["tags.run"]; ["ANSIBLE_RUN_TAGS"];
    /// No task with one of these tags.
    tags_skip: List<String> = NONE; ["tags.skip"]; ["ANSIBLE_SKIP_TAGS"];
    /// Whether results tell what their modules were called with.
    inject_invocation: bool = "false"; ["defaults.inject_invocation"]; ["ANSIBLE_INJECT_INVOCATION"];
    /// Whether nothing of any task is shown.
    no_log: bool = "false"; ["defaults.no_log"]; ["ANSIBLE_NO_LOG"];

    /// When facts are gathered.
    gathering: Gathering = "implicit"; ["defaults.gathering"]; ["ANSIBLE_GATHERING"];
    /// Which facts are gathered.
    gather_subset: List<String> = NONE; ["defaults.gather_subset"]; ["ANSIBLE_GATHER_SUBSET"];
    /// Seconds that gathering may take.
    gather_timeout: Option<u64> = NONE; ["defaults.gather_timeout"]; ["ANSIBLE_GATHER_TIMEOUT"];
    /// Where facts are kept between runs.
    fact_caching: FactCaching = "memory"; ["defaults.fact_caching"]; ["ANSIBLE_CACHE_PLUGIN"];
    /// The directory that they are kept in.
    fact_caching_connection: Option<PathBuf> = NONE; ["defaults.fact_caching_connection"]; ["ANSIBLE_CACHE_PLUGIN_CONNECTION"];
    /// What their files' names begin with.
    fact_caching_prefix: String = NONE; ["defaults.fact_caching_prefix"]; ["ANSIBLE_CACHE_PLUGIN_PREFIX"];
    /// Seconds for which they count; 0 for ever.
    fact_caching_timeout: u64 = "86400"; ["defaults.fact_caching_timeout"]; ["ANSIBLE_CACHE_PLUGIN_TIMEOUT"];
    /// Whether facts are variables of their own, too: `ansible_hostname`.
    inject_facts_as_vars: bool = "true"; ["defaults.inject_facts_as_vars"]; ["ANSIBLE_INJECT_FACT_VARS"];

    /// What becomes of a mapping that is set at two levels.
    hash_behaviour: HashBehaviour = "replace"; ["defaults.hash_behaviour"]; ["ANSIBLE_HASH_BEHAVIOUR"];
    /// Whether a role's variables are seen in that role only.
    private_role_vars: bool = "false"; ["defaults.private_role_vars"]; ["ANSIBLE_PRIVATE_ROLE_VARS"];
    /// Whether an undefined variable is an error.
    error_on_undefined_vars: bool = "true"; ["defaults.error_on_undefined_vars"]; ["ANSIBLE_ERROR_ON_UNDEFINED_VARS"];
    /// Whether a condition may be something else than true or false.
    allow_broken_conditionals: bool = "false"; ["defaults.allow_broken_conditionals"]; ["ANSIBLE_ALLOW_BROKEN_CONDITIONALS"];
    /// What happens where a key is twice in a mapping.
    duplicate_dict_key: DuplicateKey = "warn"; ["defaults.duplicate_dict_key"]; ["ANSIBLE_DUPLICATE_YAML_DICT_KEY"];
    /// The value of the variable `ansible_managed`.
    ansible_managed: String = "Ansible managed"; ["defaults.ansible_managed"]; [];

    /// Whether what differs is always shown.
    diff_always: bool = "false"; ["diff.always"]; ["ANSIBLE_DIFF_ALWAYS"];
    /// How many lines around are shown.
    diff_context: usize = "3"; ["diff.context"]; ["ANSIBLE_DIFF_CONTEXT"];
    /// The size in bytes from which on a file's difference is not shown.
    max_diff_size: u64 = "104448"; ["defaults.max_diff_size"]; ["ANSIBLE_MAX_DIFF_SIZE"];

    /// What a run looks like on the terminal.
    stdout_callback: StdoutCallback = "default"; ["defaults.stdout_callback"]; ["ANSIBLE_STDOUT_CALLBACK"];
    /// How results are written out.
    callback_result_format: ResultFormat = "json"; ["defaults.callback_result_format"]; ["ANSIBLE_CALLBACK_RESULT_FORMAT"];
    /// How far they are indented.
    callback_result_indentation: usize = "4"; ["defaults.callback_result_indentation"]; ["ANSIBLE_CALLBACK_RESULT_INDENTATION"];
    /// Whether they are always written over several lines, or never.
    callback_format_pretty: Option<bool> = NONE; ["defaults.callback_format_pretty"]; ["ANSIBLE_CALLBACK_FORMAT_PRETTY"];
    /// Whether hosts that a task was skipped on are shown.
    display_skipped_hosts: bool = "true"; ["defaults.display_skipped_hosts"]; ["ANSIBLE_DISPLAY_SKIPPED_HOSTS"];
    /// Whether hosts are shown on which nothing changed.
    display_ok_hosts: bool = "true"; ["defaults.display_ok_hosts"]; ["ANSIBLE_DISPLAY_OK_HOSTS"];
    /// Whether it is shown for which hosts a file was included.
    display_included_hosts: bool = "true"; ["defaults.display_included_hosts"]; ["ANSIBLE_DISPLAY_INCLUDED_HOSTS"];
    /// Whether failures go to the standard error.
    display_failed_stderr: bool = "false"; ["defaults.display_failed_stderr"]; ["ANSIBLE_DISPLAY_FAILED_STDERR"];
    /// Whether a task's arguments are shown beside its name.
    display_args_to_stdout: bool = "false"; ["defaults.display_args_to_stdout"]; ["ANSIBLE_DISPLAY_ARGS_TO_STDOUT"];
    /// Whether it is shown that a host begins with a task.
    show_per_host_start: bool = "false"; ["defaults.show_per_host_start"]; ["ANSIBLE_SHOW_PER_HOST_START"];
    /// Whether a failed task's place is shown.
    show_task_path_on_failure: bool = "false"; ["defaults.show_task_path_on_failure"]; ["ANSIBLE_SHOW_TASK_PATH_ON_FAILURE"];
    /// Whether check mode is marked in the output.
    check_mode_markers: bool = "false"; ["defaults.check_mode_markers"]; ["ANSIBLE_CHECK_MODE_MARKERS"];
    /// Whether the recap shows what `set_stats` set.
    show_custom_stats: bool = "false"; ["defaults.show_custom_stats"]; ["ANSIBLE_SHOW_CUSTOM_STATS"];
    /// Whether there are colours even where nobody looks.
    force_color: bool = "false"; ["defaults.force_color"]; ["ANSIBLE_FORCE_COLOR"];
    /// Whether there are no colours.
    nocolor: bool = "false"; ["defaults.nocolor"]; ["ANSIBLE_NOCOLOR"];
    /// How much is said, as with so many `-v`.
    verbosity: usize = "0"; ["defaults.verbosity"]; ["ANSIBLE_VERBOSITY"];
    /// Whether what `-v` adds goes to the standard error.
    verbose_to_stderr: bool = "false"; ["defaults.verbose_to_stderr"]; ["ANSIBLE_VERBOSE_TO_STDERR"];
    /// A file that the output is kept in, too.
    log_path: Option<PathBuf> = NONE; ["defaults.log_path"]; ["ANSIBLE_LOG_PATH"];
    /// Whether warnings about this machine are shown.
    system_warnings: bool = "true"; ["defaults.system_warnings"]; ["ANSIBLE_SYSTEM_WARNINGS"];
    /// Whether it is warned of what will go away.
    deprecation_warnings: bool = "true"; ["defaults.deprecation_warnings"]; ["ANSIBLE_DEPRECATION_WARNINGS"];
    /// Whether results' own warnings are shown.
    action_warnings: bool = "true"; ["defaults.action_warnings"]; ["ANSIBLE_ACTION_WARNINGS"];
    /// The editor of `vault edit`.
    editor: String = "vi"; ["defaults.editor"]; ["ANSIBLE_EDITOR", "EDITOR"];
}
