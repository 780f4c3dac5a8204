"""Facts by the old functions."""

import os
import platform
import pwd
import socket
import sys

from ansible.module_utils import distro
from ansible.module_utils.common.sys_info import get_distribution, get_distribution_version

_FAMILIES = {
    'Debian': ('debian', 'ubuntu', 'linuxmint', 'raspbian', 'kali', 'devuan'),
    'RedHat': ('rhel', 'centos', 'fedora', 'rocky', 'almalinux', 'oracle', 'amzn', 'scientific'),
    'Suse': ('sles', 'opensuse', 'opensuse-tumbleweed'),
    'Archlinux': ('arch', 'manjaro'),
    'Alpine': ('alpine',),
    'Gentoo': ('gentoo',),
}
_PACKAGERS = (('apt', '/usr/bin/apt-get'), ('dnf', '/usr/bin/dnf'), ('yum', '/usr/bin/yum'), ('zypper', '/usr/bin/zypper'),
              ('pacman', '/usr/bin/pacman'), ('apk', '/sbin/apk'), ('portage', '/usr/bin/emerge'))


def ansible_facts(module, gather_subset=None):
    """What is easily known, by names without a prefix."""
    version = get_distribution_version() or ''
    user = pwd.getpwuid(os.geteuid())
    like = [distro.id()] + distro.like().split()
    family = next((name for name, ids in _FAMILIES.items() if any(word in ids for word in like)), get_distribution())
    return {
        'system': platform.system(),
        'kernel': platform.release(),
        'architecture': platform.machine(),
        'machine': platform.machine(),
        'hostname': platform.node().split('.')[0],
        'nodename': platform.node(),
        'fqdn': socket.getfqdn(),
        'distribution': get_distribution(),
        'distribution_version': version,
        'distribution_major_version': version.split('.')[0],
        'distribution_release': distro.codename(),
        'os_family': family,
        'python': {
            'executable': sys.executable,
            'has_sslcontext': True,
            'type': sys.implementation.name,
            'version': dict(zip(('major', 'minor', 'micro', 'releaselevel', 'serial'), sys.version_info)),
            'version_info': list(sys.version_info),
        },
        'python_version': platform.python_version(),
        'pkg_mgr': next((name for name, path in _PACKAGERS if os.path.exists(path)), 'unknown'),
        'service_mgr': 'systemd' if os.path.isdir('/run/systemd/system') else 'service',
        'user_id': user.pw_name,
        'user_uid': user.pw_uid,
        'user_gid': user.pw_gid,
        'user_dir': user.pw_dir,
        'user_shell': user.pw_shell,
        'effective_user_id': os.geteuid(),
        'real_user_id': os.getuid(),
        'env': dict(os.environ),
    }


def get_all_facts(module):
    """The same by names with `ansible_`."""
    return {'ansible_' + name: value for name, value in ansible_facts(module).items()}
