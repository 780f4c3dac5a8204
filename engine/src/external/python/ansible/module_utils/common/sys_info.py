"""Which system this is."""

import platform

from ansible.module_utils import distro


def get_distribution():
    """The distribution's name, `Debian`; `OtherLinux` where it does not say."""
    if platform.system() != 'Linux':
        return platform.system()
    name = distro.id().capitalize()
    return {'Rhel': 'Redhat', 'Amzn': 'Amazon', '': 'OtherLinux'}.get(name, name)


def get_distribution_version():
    """The distribution's version, `12.5`."""
    if platform.system() != 'Linux':
        return None
    if distro.id() in ('centos', 'debian'):
        return distro.version(best=True)
    return distro.version() or ''


def get_distribution_codename():
    """The distribution's code name, `bookworm`."""
    return distro.codename() or None if platform.system() == 'Linux' else None


def get_platform_subclass(cls):
    """The subclass that is made for this system and distribution, else the one for this system, else the class."""
    system, name = platform.system(), get_distribution()
    known = _subclasses(cls)
    for wanted in (lambda sub: sub.distribution is not None and sub.distribution == name and sub.platform == system,
                   lambda sub: sub.platform == system and sub.distribution is None):
        found = next((sub for sub in known if wanted(sub)), None)
        if found:
            return found
    return cls


def _subclasses(cls):
    direct = cls.__subclasses__()
    return direct + [deeper for sub in direct for deeper in _subclasses(sub)]
