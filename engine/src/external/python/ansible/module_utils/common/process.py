"""Programs of this machine."""

import os

from ansible.module_utils.common.file import is_executable


def get_bin_path(arg, opt_dirs=None, required=None):
    """Where a program is: in `opt_dirs`, in PATH, or where administrators' programs are.

    Raises ValueError where it is nowhere.
    """
    paths = [path for path in opt_dirs or [] if path is not None and os.path.exists(path)]
    paths += [path for path in os.environ.get('PATH', '').split(os.pathsep) if path]
    for path in ('/sbin', '/usr/sbin', '/usr/local/sbin'):
        if path not in paths and os.path.exists(path):
            paths.append(path)
    for directory in paths:
        path = os.path.join(directory, arg)
        if os.path.exists(path) and not os.path.isdir(path) and is_executable(path):
            return path
    raise ValueError('Failed to find required executable "%s" in paths: %s' % (arg, os.pathsep.join(paths)))
