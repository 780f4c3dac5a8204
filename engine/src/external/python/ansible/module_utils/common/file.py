"""Modes and locks of files."""

import fcntl
import os
import re
import stat
import sys
import time
from contextlib import contextmanager

FILE_ATTRIBUTES = {
    'A': 'noatime',
    'a': 'append',
    'c': 'compressed',
    'C': 'nocow',
    'd': 'nodump',
    'D': 'dirsync',
    'e': 'extents',
    'E': 'encrypted',
    'h': 'blocksize',
    'i': 'immutable',
    'I': 'indexed',
    'j': 'journalled',
    'N': 'inline',
    's': 'zero',
    'S': 'synchronous',
    't': 'notail',
    'T': 'blockroot',
    'u': 'undelete',
    'X': 'compressedraw',
    'Z': 'compresseddirty',
}
USERS_RE = re.compile(r'[^ugo]')
PERMS_RE = re.compile(r'[^rwxXstugo]')
_PERM_BITS = 0o7777
_EXEC_PERM_BITS = 0o0111
_DEFAULT_PERM = 0o0666

S_IRANGE = _PERM_BITS
S_IRWU_RWG_RWO = stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH
S_IRWU_RG_RO = stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP | stat.S_IROTH
S_IRWXU_RXG_RXO = stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH


def is_executable(path):
    """Whether anybody may execute it."""
    return (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH) & os.stat(path)[stat.ST_MODE]


def format_attributes(attributes):
    """Letters of file attributes as their names."""
    return [FILE_ATTRIBUTES[letter] for letter in attributes if letter in FILE_ATTRIBUTES]


def get_flags_from_attributes(attributes):
    """Names of file attributes as their letters."""
    return ''.join(letter for letter, name in FILE_ATTRIBUTES.items() if name in attributes)


def get_file_arg_spec():
    """The arguments that `add_file_common_args` adds."""
    from ansible.module_utils.common.parameters import env_fallback

    return dict(
        mode=dict(type='raw'),
        owner=dict(type='str'),
        group=dict(type='str'),
        seuser=dict(type='str'),
        serole=dict(type='str'),
        selevel=dict(type='str'),
        setype=dict(type='str'),
        unsafe_writes=dict(type='bool', default=False, fallback=(env_fallback, ['ANSIBLE_UNSAFE_WRITES'])),
        attributes=dict(type='str', aliases=['attr']),
    )


class LockTimeout(Exception):
    """A lock that others held for too long."""


class FileLock(object):
    """A lock on a path, held by a file beside it."""

    def __init__(self):
        self.lockfd = None

    @contextmanager
    def lock_file(self, path, tmpdir, lock_timeout=None):
        """The lock while a block runs."""
        self.set_lock(path, tmpdir, lock_timeout)
        try:
            yield
        finally:
            self.unlock()

    def set_lock(self, path, tmpdir, lock_timeout=None):
        """Takes the lock; `lock_timeout` is in seconds, none for ever and 0 for one try."""
        name = 'ansible-%s.lock' % re.sub(r'[/.]', '_', os.path.abspath(path))
        self.lockfd = open(os.path.join(tmpdir, name), 'w')
        if lock_timeout is None:
            fcntl.flock(self.lockfd, fcntl.LOCK_EX)
            return True
        deadline = time.time() + lock_timeout
        while True:
            try:
                fcntl.flock(self.lockfd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except OSError:
                if time.time() >= deadline:
                    self.lockfd.close()
                    raise LockTimeout('{0} sec'.format(lock_timeout))
                time.sleep(0.1)

    def unlock(self):
        """Gives the lock back."""
        if not self.lockfd:
            return True
        fcntl.flock(self.lockfd, fcntl.LOCK_UN)
        self.lockfd.close()
        return True
