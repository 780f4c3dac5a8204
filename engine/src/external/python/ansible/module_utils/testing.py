"""Tests of modules: arguments without a controller."""

import contextlib
import json

from ansible.module_utils import basic


@contextlib.contextmanager
def patch_module_args(module_args=None):
    """These are the module's arguments while a block runs."""
    if not isinstance(module_args, (dict, type(None))):
        raise TypeError('module_args must be a mapping or None')
    before = basic._ANSIBLE_ARGS
    basic._ANSIBLE_ARGS = json.dumps({'ANSIBLE_MODULE_ARGS': module_args or {}}).encode('utf-8')
    try:
        yield
    finally:
        basic._ANSIBLE_ARGS = before
