"""Classes that are known of a class."""

from ansible.module_utils.common.sys_info import _subclasses


def get_all_subclasses(cls):
    """All classes that are derived from it."""
    return set(_subclasses(cls))
