"""A module that goes on in another Python, which has what it needs."""

import os
import subprocess
import sys

from ansible.module_utils.common.text.converters import to_native


def has_respawned():
    return bool(os.environ.get('_FLEETCTL_RESPAWNED'))


def get_env_with_pythonpath():
    """An environment in which another Python finds what this one does."""
    return dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path))


def respawn_module(interpreter_path):
    """Runs this module in another Python, and ends with it."""
    from ansible.module_utils import basic

    if has_respawned():
        raise Exception('module has already been respawned')
    environment = dict(os.environ, _FLEETCTL_RESPAWNED='1')
    process = subprocess.Popen(
        [interpreter_path, sys.path[0]], stdin=subprocess.PIPE, env=environment
    )
    process.communicate(basic._ANSIBLE_ARGS)
    sys.exit(process.returncode)


def probe_interpreters_for_module(interpreter_paths, module_name):
    """The first of these Pythons that can import a module; none where none can."""
    for path in interpreter_paths:
        if not os.path.exists(path):
            continue
        try:
            rc = subprocess.call(
                [path, '-c', 'import {0}'.format(to_native(module_name))],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=get_env_with_pythonpath(),
            )
        except OSError:
            continue
        if rc == 0:
            return path
    return None
