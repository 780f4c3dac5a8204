//! Modules that other people have and fleetctl has not: named so, rather than taken for a slip of the pen.

/// What kind of module it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// It is for Windows.
    Windows,
    /// It is for switches and routers.
    Network,
    /// It is for Linux, and is not here yet.
    Known,
}

/// Modules that go by a short name in roles, though most of them live in collections.
const KNOWN: &str = "
    acl add_host alternatives apk apt apt_key apt_repository apt_rpm archive assemble assert async_status at
    authorized_key blockinfile bower bundler capabilities command composer copy cpanm cron cronvar crypttab dconf
    deb deb822_repository debconf debug django_manage dnf dnf5 docker_compose docker_compose_v2 docker_container
    docker_host_info docker_image docker_image_info docker_login docker_network docker_prune docker_stack
    docker_swarm docker_swarm_service docker_volume dpkg_divert dpkg_selections easy_install ejabberd_user expect
    fail fetch file filesystem find firewalld flatpak gather_facts gem get_url getent git git_config
    github_release gluster_volume group group_by gunicorn haproxy hg homebrew homebrew_cask homebrew_tap hostname
    htpasswd icinga2_feature include_vars ini_file interfaces_file iptables iso_extract java_cert java_keystore
    jenkins_job jenkins_plugin kernel_blacklist known_hosts layman ldap_attr ldap_entry lineinfile locale_gen
    logrotate lvg lvol lxc_container macports make maven_artifact meta modprobe mongodb_user monit mount
    mount_facts mysql_db mysql_info mysql_query mysql_replication mysql_user mysql_variables nagios netplan nmcli
    npm openbsd_pkg openssh_keypair openssl_certificate openssl_csr openssl_dhparam openssl_pkcs12
    openssl_privatekey openssl_publickey opkg osx_defaults package package_facts pacman pam_limits pamd parted
    patch pause pear ping pip pkg5 pkgin pkgng pkgutil portage postgresql_db postgresql_ext postgresql_info
    postgresql_lang postgresql_owner postgresql_pg_hba postgresql_ping postgresql_privs postgresql_query
    postgresql_schema postgresql_set postgresql_user proxysql_backend_servers rabbitmq_exchange rabbitmq_parameter
    rabbitmq_plugin rabbitmq_policy rabbitmq_queue rabbitmq_user rabbitmq_vhost raw reboot redhat_subscription
    redis replace rhsm_release rhsm_repository rpm_key runit script seboolean sefcontext selinux
    selinux_permissive selogin seport service service_facts set_fact set_stats setup shell slackpkg slurp snap
    sorcery ssh_config stat subversion sudoers supervisorctl svr4pkg swupd synchronize sysctl syslogger systemd
    systemd_service sysvinit tempfile template timezone ufw unarchive uri urpmi user validate_argument_spec
    wait_for wait_for_connection x509_certificate xattr xbps xfs_quota xml yarn yum yum_repository zabbix_host zfs
    zypper zypper_repository";

/// Collections of network devices.
const NETWORK: &[&str] = &[
    "arista.",
    "check_point.",
    "cisco.",
    "dellemc.os",
    "f5networks.",
    "fortinet.",
    "frr.",
    "ibm.qradar.",
    "junipernetworks.",
    "mellanox.",
    "openvswitch.",
    "vyos.",
];

/// What is known of a module's name; nothing where it is nobody's.
pub(super) fn find(name: &str) -> Option<Elsewhere> {
    let last = name.rsplit('.').next().unwrap_or(name);
    if last.starts_with("win_")
        || name.starts_with("ansible.windows.")
        || name.starts_with("microsoft.")
    {
        return Some(Elsewhere::Windows);
    }
    if NETWORK.iter().any(|network| name.starts_with(network)) {
        return Some(Elsewhere::Network);
    }
    let own = super::call::short(name);
    if KNOWN.split_whitespace().any(|known| known == own) {
        return Some(Elsewhere::Known);
    }
    // A full name says where the module is; whether it is there is not for fleetctl to know.
    let full = own == name && name.split('.').count() >= 3 && !name.contains(' ');
    full.then_some(Elsewhere::Known)
}

#[cfg(test)]
mod tests {
    use super::{Elsewhere, find};

    #[test]
    fn a_name_is_somebody_elses_or_nobodys() {
        assert_eq!(find("win_copy"), Some(Elsewhere::Windows));
        assert_eq!(find("cisco.ios.ios_config"), Some(Elsewhere::Network));
        assert_eq!(find("mysql_user"), Some(Elsewhere::Known));
        assert_eq!(find("ansible.builtin.expect"), Some(Elsewhere::Known));
        assert_eq!(
            find("community.docker.docker_container"),
            Some(Elsewhere::Known)
        );
        assert_eq!(find("ansible.builtin.coppy"), None);
        assert_eq!(find("tempalte"), None);
    }
}
