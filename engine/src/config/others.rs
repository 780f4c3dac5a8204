//! The settings that fleetctl does not honour.

/// Settings with one fate.
pub(super) struct Others {
    /// Why they are passed over, or what fleetctl does not do: a part of a sentence.
    pub(super) why: &'static str,
    /// Each with its key in the file, its variable, and its default, where that
    /// matters; what it has not got is empty.
    pub(super) settings: &'static [(&'static str, &'static str, &'static str)],
}

/// Without a meaning here, and harmless.
pub(super) static PASSED_OVER: &[Others] = &[
    Others {
        why: "fleetctl has no cows",
        settings: &[
            (
                "defaults.cowsay_enabled_stencils",
                "ANSIBLE_COW_ACCEPTLIST",
                "",
            ),
            ("defaults.cowpath", "ANSIBLE_COW_PATH", ""),
            ("defaults.cow_selection", "ANSIBLE_COW_SELECTION", ""),
            ("defaults.nocows", "ANSIBLE_NOCOWS", ""),
        ],
    },
    Others {
        why: "the colours are fleetctl's own",
        settings: &[
            ("colors.changed", "ANSIBLE_COLOR_CHANGED", ""),
            ("colors.console_prompt", "ANSIBLE_COLOR_CONSOLE_PROMPT", ""),
            ("colors.debug", "ANSIBLE_COLOR_DEBUG", ""),
            ("colors.deprecate", "ANSIBLE_COLOR_DEPRECATE", ""),
            ("colors.diff_add", "ANSIBLE_COLOR_DIFF_ADD", ""),
            ("colors.diff_lines", "ANSIBLE_COLOR_DIFF_LINES", ""),
            ("colors.diff_remove", "ANSIBLE_COLOR_DIFF_REMOVE", ""),
            ("colors.doc_constant", "ANSIBLE_COLOR_DOC_CONSTANT", ""),
            ("colors.doc_deprecated", "ANSIBLE_COLOR_DOC_DEPRECATED", ""),
            ("colors.doc_link", "ANSIBLE_COLOR_DOC_LINK", ""),
            ("colors.doc_module", "ANSIBLE_COLOR_DOC_MODULE", ""),
            ("colors.doc_plugin", "ANSIBLE_COLOR_DOC_PLUGIN", ""),
            ("colors.doc_reference", "ANSIBLE_COLOR_DOC_REFERENCE", ""),
            ("colors.error", "ANSIBLE_COLOR_ERROR", ""),
            ("colors.highlight", "ANSIBLE_COLOR_HIGHLIGHT", ""),
            ("colors.included", "ANSIBLE_COLOR_INCLUDED", ""),
            ("colors.ok", "ANSIBLE_COLOR_OK", ""),
            ("colors.skip", "ANSIBLE_COLOR_SKIP", ""),
            ("colors.unreachable", "ANSIBLE_COLOR_UNREACHABLE", ""),
            ("colors.verbose", "ANSIBLE_COLOR_VERBOSE", ""),
            ("colors.warn", "ANSIBLE_COLOR_WARN", ""),
        ],
    },
    Others {
        why: "fleetctl always works so, or has no need to",
        settings: &[
            ("defaults.pipelining", "ANSIBLE_PIPELINING", ""),
            ("connection.pipelining", "", ""),
            ("defaults.internal_poll_interval", "", ""),
            (
                "defaults.keep_remote_files",
                "ANSIBLE_KEEP_REMOTE_FILES",
                "",
            ),
            ("defaults.module_compression", "", ""),
            (
                "defaults.old_plugin_cache_clear",
                "ANSIBLE_OLD_PLUGIN_CACHE_CLEAR",
                "",
            ),
            (
                "defaults.python_module_rlimit_nofile",
                "ANSIBLE_PYTHON_MODULE_RLIMIT_NOFILE",
                "",
            ),
            (
                "defaults.worker_session_isolation",
                "ANSIBLE_WORKER_SESSION_ISOLATION",
                "",
            ),
            ("", "ANSIBLE_WORKER_SHUTDOWN_POLL_COUNT", ""),
            ("", "ANSIBLE_WORKER_SHUTDOWN_POLL_DELAY", ""),
            ("ssh_connection.pipelining", "ANSIBLE_SSH_PIPELINING", ""),
        ],
    },
    Others {
        why: "it belongs to `ansible-galaxy`",
        settings: &[
            (
                "defaults.collections_on_ansible_version_mismatch",
                "ANSIBLE_COLLECTIONS_ON_ANSIBLE_VERSION_MISMATCH",
                "",
            ),
            (
                "defaults.collections_scan_sys_path",
                "ANSIBLE_COLLECTIONS_SCAN_SYS_PATH",
                "",
            ),
            ("galaxy.cache_dir", "ANSIBLE_GALAXY_CACHE_DIR", ""),
            (
                "galaxy.collections_path_warning",
                "ANSIBLE_GALAXY_COLLECTIONS_PATH_WARNING",
                "",
            ),
            ("", "ANSIBLE_GALAXY_COLLECTION_IMPORT_POLL_FACTOR", ""),
            ("", "ANSIBLE_GALAXY_COLLECTION_IMPORT_POLL_INTERVAL", ""),
            (
                "galaxy.collection_skeleton",
                "ANSIBLE_GALAXY_COLLECTION_SKELETON",
                "",
            ),
            (
                "galaxy.collection_skeleton_ignore",
                "ANSIBLE_GALAXY_COLLECTION_SKELETON_IGNORE",
                "",
            ),
            (
                "galaxy.disable_gpg_verify",
                "ANSIBLE_GALAXY_DISABLE_GPG_VERIFY",
                "",
            ),
            (
                "galaxy.display_progress",
                "ANSIBLE_GALAXY_DISPLAY_PROGRESS",
                "",
            ),
            ("galaxy.gpg_keyring", "ANSIBLE_GALAXY_GPG_KEYRING", ""),
            ("galaxy.ignore_certs", "ANSIBLE_GALAXY_IGNORE", ""),
            (
                "galaxy.ignore_signature_status_codes",
                "ANSIBLE_GALAXY_IGNORE_SIGNATURE_STATUS_CODES",
                "",
            ),
            (
                "galaxy.required_valid_signature_count",
                "ANSIBLE_GALAXY_REQUIRED_VALID_SIGNATURE_COUNT",
                "",
            ),
            ("galaxy.role_skeleton", "ANSIBLE_GALAXY_ROLE_SKELETON", ""),
            (
                "galaxy.role_skeleton_ignore",
                "ANSIBLE_GALAXY_ROLE_SKELETON_IGNORE",
                "",
            ),
            ("galaxy.server", "ANSIBLE_GALAXY_SERVER", ""),
            ("galaxy.server_list", "ANSIBLE_GALAXY_SERVER_LIST", ""),
            ("galaxy.server_timeout", "ANSIBLE_GALAXY_SERVER_TIMEOUT", ""),
            ("galaxy.token_path", "ANSIBLE_GALAXY_TOKEN_PATH", ""),
        ],
    },
    Others {
        why: "it belongs to devices that are no Linux hosts",
        settings: &[
            (
                "persistent_connection.ansible_connection_path",
                "ANSIBLE_CONNECTION_PATH",
                "",
            ),
            ("defaults.cliconf_plugins", "ANSIBLE_CLICONF_PLUGINS", ""),
            ("defaults.httpapi_plugins", "ANSIBLE_HTTPAPI_PLUGINS", ""),
            (
                "selinux.libvirt_lxc_noseclabel",
                "ANSIBLE_LIBVIRT_LXC_NOSECLABEL",
                "",
            ),
            ("defaults.netconf_plugins", "ANSIBLE_NETCONF_PLUGINS", ""),
            ("defaults.terminal_plugins", "ANSIBLE_TERMINAL_PLUGINS", ""),
            (
                "netconf_connection.ssh_config",
                "ANSIBLE_NETCONF_SSH_CONFIG",
                "",
            ),
            (
                "defaults.network_group_modules",
                "ANSIBLE_NETWORK_GROUP_MODULES",
                "",
            ),
            (
                "persistent_connection.command_timeout",
                "ANSIBLE_PERSISTENT_COMMAND_TIMEOUT",
                "",
            ),
            (
                "persistent_connection.connect_retry_timeout",
                "ANSIBLE_PERSISTENT_CONNECT_RETRY_TIMEOUT",
                "",
            ),
            (
                "persistent_connection.connect_timeout",
                "ANSIBLE_PERSISTENT_CONNECT_TIMEOUT",
                "",
            ),
            (
                "persistent_connection.control_path_dir",
                "ANSIBLE_PERSISTENT_CONTROL_PATH_DIR",
                "",
            ),
            (
                "defaults.use_persistent_connections",
                "ANSIBLE_USE_PERSISTENT_CONNECTIONS",
                "",
            ),
            (
                "defaults.win_async_startup_timeout",
                "ANSIBLE_WIN_ASYNC_STARTUP_TIMEOUT",
                "",
            ),
            ("runas_become_plugin.flags", "ANSIBLE_RUNAS_FLAGS", ""),
            ("runas_become_plugin.password", "ANSIBLE_RUNAS_PASS", ""),
            ("runas_become_plugin.user", "ANSIBLE_RUNAS_USER", ""),
            ("winrm.kinit_env_vars", "", ""),
            ("powershell.async_dir", "", ""),
            ("powershell.remote_tmp", "", ""),
        ],
    },
    Others {
        why: "files go to hosts through fleetctl's own channel and lie nowhere in between",
        settings: &[
            (
                "ssh_connection.scp_executable",
                "ANSIBLE_SCP_EXECUTABLE",
                "",
            ),
            (
                "ssh_connection.scp_extra_args",
                "ANSIBLE_SCP_EXTRA_ARGS",
                "",
            ),
            (
                "ssh_connection.sftp_batch_mode",
                "ANSIBLE_SFTP_BATCH_MODE",
                "",
            ),
            (
                "ssh_connection.sftp_executable",
                "ANSIBLE_SFTP_EXECUTABLE",
                "",
            ),
            (
                "ssh_connection.sftp_extra_args",
                "ANSIBLE_SFTP_EXTRA_ARGS",
                "",
            ),
            (
                "ssh_connection.transfer_method",
                "ANSIBLE_SSH_TRANSFER_METHOD",
                "",
            ),
            ("defaults.admin_users", "ANSIBLE_ADMIN_USERS", ""),
            (
                "defaults.common_remote_group",
                "ANSIBLE_COMMON_REMOTE_GROUP",
                "",
            ),
            ("defaults.system_tmpdirs", "ANSIBLE_SYSTEM_TMPDIRS", ""),
        ],
    },
    Others {
        why: "fleetctl sets it up itself",
        settings: &[
            (
                "privilege_escalation.agnostic_become_prompt",
                "ANSIBLE_AGNOSTIC_BECOME_PROMPT",
                "",
            ),
            (
                "privilege_escalation.become_allow_same_user",
                "ANSIBLE_BECOME_ALLOW_SAME_USER",
                "",
            ),
            (
                "connection.ssh_agent_executable",
                "ANSIBLE_SSH_AGENT_EXECUTABLE",
                "",
            ),
            (
                "connection.ssh_agent_key_lifetime",
                "ANSIBLE_SSH_AGENT_KEY_LIFETIME",
                "",
            ),
            (
                "su_become_plugin.localized_prompts",
                "ANSIBLE_SU_PROMPT_L10N",
                "",
            ),
            (
                "ssh_connection.password_mechanism",
                "ANSIBLE_SSH_PASSWORD_MECHANISM",
                "",
            ),
            (
                "ssh_connection.sshpass_prompt",
                "ANSIBLE_SSHPASS_PROMPT",
                "",
            ),
            ("ssh_connection.usetty", "ANSIBLE_SSH_USETTY", ""),
            ("ssh_connection.verbosity", "ANSIBLE_SSH_VERBOSITY", ""),
        ],
    },
    Others {
        why: "it is about messages that fleetctl has not got",
        settings: &[
            ("defaults.debug", "ANSIBLE_DEBUG", ""),
            ("defaults.no_target_syslog", "ANSIBLE_NO_TARGET_SYSLOG", ""),
            ("defaults.syslog_facility", "ANSIBLE_SYSLOG_FACILITY", ""),
            ("defaults.devel_warning", "ANSIBLE_DEVEL_WARNING", ""),
            (
                "defaults.display_traceback",
                "ANSIBLE_DISPLAY_TRACEBACK",
                "",
            ),
            ("defaults.docsite_root_url", "", ""),
            ("defaults.pager", "ANSIBLE_PAGER", ""),
            (
                "defaults.retry_files_save_path",
                "ANSIBLE_RETRY_FILES_SAVE_PATH",
                "",
            ),
            ("defaults.target_log_info", "ANSIBLE_TARGET_LOG_INFO", ""),
            (
                "defaults.task_debugger_ignore_errors",
                "ANSIBLE_TASK_DEBUGGER_IGNORE_ERRORS",
                "",
            ),
            (
                "defaults.callback_result_yaml_line_width",
                "ANSIBLE_CALLBACK_YAML_LINE_WIDTH",
                "",
            ),
            (
                "inventory_plugin_script.always_show_stderr",
                "ANSIBLE_INVENTORY_PLUGIN_SCRIPT_STDERR",
                "",
            ),
        ],
    },
    Others {
        why: "it is about Ansible's own Python",
        settings: &[
            ("defaults.allow_unsafe_lookups", "", ""),
            ("defaults.jinja2_native", "ANSIBLE_JINJA2_NATIVE", ""),
            (
                "defaults.bin_ansible_callbacks",
                "ANSIBLE_LOAD_CALLBACK_PLUGINS",
                "",
            ),
            (
                "defaults.doc_fragment_plugins",
                "ANSIBLE_DOC_FRAGMENT_PLUGINS",
                "",
            ),
            (
                "defaults.module_ignore_exts",
                "ANSIBLE_MODULE_IGNORE_EXTS",
                "",
            ),
            (
                "defaults.module_strict_utf8_response",
                "ANSIBLE_MODULE_STRICT_UTF8_RESPONSE",
                "",
            ),
            (
                "jinja2.dont_type_filters",
                "ANSIBLE_STRING_TYPE_FILTERS",
                "",
            ),
            (
                "defaults.validate_action_group_metadata",
                "ANSIBLE_VALIDATE_ACTION_GROUP_METADATA",
                "",
            ),
        ],
    },
];

/// What is asked for does not happen, which is told: "fleetctl does not …".
pub(super) static UNSUPPORTED: &[Others] = &[
    Others {
        why: "run plugins of one's own, which are Python",
        settings: &[
            ("defaults.become_plugins", "ANSIBLE_BECOME_PLUGINS", ""),
            ("defaults.action_plugins", "ANSIBLE_ACTION_PLUGINS", ""),
            ("defaults.cache_plugins", "ANSIBLE_CACHE_PLUGINS", ""),
            ("defaults.callback_plugins", "ANSIBLE_CALLBACK_PLUGINS", ""),
            (
                "defaults.connection_plugins",
                "ANSIBLE_CONNECTION_PLUGINS",
                "",
            ),
            ("defaults.filter_plugins", "ANSIBLE_FILTER_PLUGINS", ""),
            (
                "defaults.inventory_plugins",
                "ANSIBLE_INVENTORY_PLUGINS",
                "",
            ),
            ("defaults.lookup_plugins", "ANSIBLE_LOOKUP_PLUGINS", ""),
            ("defaults.strategy_plugins", "ANSIBLE_STRATEGY_PLUGINS", ""),
            ("defaults.test_plugins", "ANSIBLE_TEST_PLUGINS", ""),
            ("defaults.vars_plugins", "ANSIBLE_VARS_PLUGINS", ""),
            ("defaults.plugin_filters_cfg", "", ""),
            (
                "defaults.vars_plugins_enabled",
                "ANSIBLE_VARS_ENABLED",
                "host_group_vars",
            ),
        ],
    },
    Others {
        why: "run callbacks: `fleetctl runs` and `--json` tell what happened",
        settings: &[
            (
                "defaults.callbacks_enabled",
                "ANSIBLE_CALLBACKS_ENABLED",
                "",
            ),
            (
                "callback_tree.directory",
                "ANSIBLE_CALLBACK_TREE_DIR",
                "~/.ansible/tree",
            ),
        ],
    },
    Others {
        why: "load extensions of Jinja2",
        settings: &[(
            "defaults.jinja2_extensions",
            "ANSIBLE_JINJA2_EXTENSIONS",
            "",
        )],
    },
    Others {
        why: "render anything else than null as null",
        settings: &[(
            "defaults.null_representation",
            "ANSIBLE_NULL_REPRESENTATION",
            "",
        )],
    },
    Others {
        why: "leave templates in strings of expressions alone",
        settings: &[(
            "defaults.allow_embedded_templates",
            "ANSIBLE_ALLOW_EMBEDDED_TEMPLATES",
            "True",
        )],
    },
    Others {
        why: "filter its log",
        settings: &[
            ("defaults.log_filter", "ANSIBLE_LOG_FILTER", ""),
            ("defaults.log_verbosity", "ANSIBLE_LOG_VERBOSITY", ""),
        ],
    },
    Others {
        why: "stop at failed tasks to ask",
        settings: &[(
            "defaults.enable_task_debugger",
            "ANSIBLE_ENABLE_TASK_DEBUGGER",
            "False",
        )],
    },
    Others {
        why: "gather facts by other modules",
        settings: &[("defaults.facts_modules", "ANSIBLE_FACTS_MODULES", "smart")],
    },
    Others {
        why: "write retry files: `fleetctl runs` knows the hosts that failed",
        settings: &[(
            "defaults.retry_files_enabled",
            "ANSIBLE_RETRY_FILES_ENABLED",
            "False",
        )],
    },
    Others {
        why: "start an agent for keys: start `ssh-agent` yourself",
        settings: &[
            ("connection.ssh_agent", "ANSIBLE_SSH_AGENT", "none"),
            (
                "ssh_connection.pkcs11_provider",
                "ANSIBLE_PKCS11_PROVIDER",
                "",
            ),
            ("", "ANSIBLE_PRIVATE_KEY", ""),
            ("", "ANSIBLE_PRIVATE_KEY_PASSPHRASE", ""),
        ],
    },
    Others {
        why: "put sockets under names of one's own: set `control_path_dir`",
        settings: &[(
            "ssh_connection.control_path",
            "ANSIBLE_SSH_CONTROL_PATH",
            "",
        )],
    },
    Others {
        why: "change the directory for sudo",
        settings: &[("sudo_become_plugin.chdir", "ANSIBLE_SUDO_CHDIR", "")],
    },
    Others {
        why: "know this old spelling: set `become_method = su`",
        settings: &[("defaults.su", "ANSIBLE_SU", "False")],
    },
    Others {
        why: "set how the lookup `url` fetches: say it at the lookup",
        settings: &[
            ("url_lookup.ca_path", "ANSIBLE_LOOKUP_URL_CA_PATH", ""),
            ("url_lookup.ciphers", "ANSIBLE_LOOKUP_URL_CIPHERS", ""),
            (
                "url_lookup.follow_redirects",
                "ANSIBLE_LOOKUP_URL_FOLLOW_REDIRECTS",
                "urllib2",
            ),
            ("url_lookup.force", "ANSIBLE_LOOKUP_URL_FORCE", "False"),
            (
                "url_lookup.force_basic_auth",
                "ANSIBLE_LOOKUP_URL_FORCE_BASIC_AUTH",
                "False",
            ),
            (
                "url_lookup.agent",
                "ANSIBLE_LOOKUP_URL_AGENT",
                "ansible-httpget",
            ),
            ("url_lookup.timeout", "ANSIBLE_LOOKUP_URL_TIMEOUT", "10"),
            (
                "url_lookup.unix_socket",
                "ANSIBLE_LOOKUP_URL_UNIX_SOCKET",
                "",
            ),
            (
                "url_lookup.unredirected_headers",
                "ANSIBLE_LOOKUP_URL_UNREDIR_HEADERS",
                "",
            ),
            (
                "url_lookup.use_gssapi",
                "ANSIBLE_LOOKUP_URL_USE_GSSAPI",
                "False",
            ),
            (
                "url_lookup.use_netrc",
                "ANSIBLE_LOOKUP_URL_USE_NETRC",
                "True",
            ),
        ],
    },
    Others {
        why: "treat file systems without SELinux labels in a way of their own",
        settings: &[(
            "selinux.special_context_filesystems",
            "ANSIBLE_SELINUX_SPECIAL_FS",
            "fuse, nfs, vboxsf, ramfs, 9p, vfat",
        )],
    },
    Others {
        why: "read variables at another time than when they are used",
        settings: &[
            (
                "defaults.run_vars_plugins",
                "ANSIBLE_RUN_VARS_PLUGINS",
                "demand",
            ),
            (
                "vars_host_group_vars.stage",
                "ANSIBLE_VARS_PLUGIN_STAGE",
                "",
            ),
        ],
    },
];
