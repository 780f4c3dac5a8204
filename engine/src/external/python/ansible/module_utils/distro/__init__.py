"""The distribution, from `/etc/os-release` and what lies beside it."""

import re
import shlex

_RELEASE_FILES = ('/etc/os-release', '/usr/lib/os-release')


def os_release_info():
    """The fields of `/etc/os-release`, in lower case."""
    for path in _RELEASE_FILES:
        try:
            with open(path, encoding='utf-8', errors='replace') as release:
                pairs = (word.partition('=') for word in shlex.split(release.read(), comments=True) if '=' in word)
                return {name.lower(): value for name, _sep, value in pairs}
        except (OSError, ValueError):
            continue
    return {}


def os_release_attr(attribute):
    return os_release_info().get(attribute, '')


def id():
    return {'ol': 'oracle', 'opensuse-leap': 'opensuse'}.get(os_release_attr('id'), os_release_attr('id'))


def name(pretty=False):
    return os_release_attr('pretty_name') if pretty else os_release_attr('name')


def version(pretty=False, best=False):
    number = os_release_attr('version_id')
    if best and id() == 'debian':
        number = _first_line('/etc/debian_version') or number
    elif best and id() == 'centos':
        exact = re.search(r'\d+(\.\d+)+', _first_line('/etc/centos-release'))
        number = exact.group(0) if exact else number
    return '%s (%s)' % (number, codename()) if pretty and codename() else number


def _first_line(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as text:
            return text.readline().strip()
    except OSError:
        return ''


def version_parts(best=False):
    parts = (version(best=best).split('.') + ['', ''])[:3]
    return tuple(parts)


def major_version(best=False):
    return version_parts(best)[0]


def minor_version(best=False):
    return version_parts(best)[1]


def build_number(best=False):
    return version_parts(best)[2]


def like():
    return os_release_attr('id_like')


def codename():
    in_brackets = re.search(r'\(([^)]+)\)', os_release_attr('version'))
    return os_release_attr('version_codename') or (in_brackets.group(1).split()[0].lower() if in_brackets else '')


def info(pretty=False, best=False):
    return dict(
        id=id(),
        version=version(pretty, best),
        version_parts=dict(major=major_version(best), minor=minor_version(best), build_number=build_number(best)),
        like=like(),
        codename=codename(),
    )


def linux_distribution(full_distribution_name=True):
    return (name() if full_distribution_name else id(), version(), codename())


def lsb_release_info():
    return {}


def lsb_release_attr(attribute):
    return ''


def distro_release_info():
    return {}


def distro_release_attr(attribute):
    return ''
