"""`AnsibleModule`: what a module reads its arguments by and gives its result with.

The interface is that of Ansible's documentation for developers of modules; the code is fleetctl's own.
"""

import errno
import grp
import hashlib
import json
import locale
import os
import platform
import pwd
import re
import selectors
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import traceback
import types
from collections.abc import KeysView, Mapping, MutableMapping, Sequence, Set
from itertools import chain, repeat

try:
    import syslog

    HAS_SYSLOG = True
except ImportError:
    HAS_SYSLOG = False

try:
    import selinux

    HAVE_SELINUX = True
except ImportError:
    HAVE_SELINUX = False

from ansible.module_utils.common.arg_spec import ModuleArgumentSpecValidator
from ansible.module_utils.common.file import (
    FILE_ATTRIBUTES,
    _DEFAULT_PERM as DEFAULT_PERM,
    _EXEC_PERM_BITS as EXEC_PERM_BITS,
    _PERM_BITS as PERM_BITS,
    PERMS_RE,
    USERS_RE,
    format_attributes,
    get_file_arg_spec,
    get_flags_from_attributes,
    is_executable,
)
from ansible.module_utils.common.locale import get_best_parsable_locale
from ansible.module_utils.common.parameters import (
    DEFAULT_TYPE_VALIDATORS,
    PASS_BOOLS,
    PASS_VARS,
    AnsibleFallbackNotFound,
    env_fallback,
    get_type_validator,
    remove_values,
    sanitize_keys,
)
from ansible.module_utils.common.process import get_bin_path
from ansible.module_utils.common.sys_info import get_distribution, get_distribution_version, get_platform_subclass
from ansible.module_utils.common.text.converters import (
    container_to_bytes as json_dict_unicode_to_bytes,
    container_to_text as json_dict_bytes_to_unicode,
    jsonify,
    to_bytes,
    to_native,
    to_text,
)
from ansible.module_utils.common.text.formatters import (
    SIZE_RANGES,
    bytes_to_human,
    human_to_bytes,
    lenient_lowercase,
)
from ansible.module_utils.common.validation import check_missing_parameters, safe_eval
from ansible.module_utils.common.warnings import deprecate, get_deprecation_messages, get_warning_messages, warn
from ansible.module_utils.errors import AnsibleValidationErrorMultiple, UnsupportedError
from ansible.module_utils.parsing.convert_bool import BOOLEANS, BOOLEANS_FALSE, BOOLEANS_TRUE, boolean
from ansible.module_utils.six import binary_type, integer_types, string_types, text_type

PY2, PY3 = False, True
NoneType = type(None)
unicode, basestring = str, str
_literal_eval = safe_eval
imap = map
get_platform = platform.system
SEQUENCETYPE = frozenset, KeysView, Sequence
NUMBERTYPES = (int, float)
AVAILABLE_HASH_ALGORITHMS = {
    name: getattr(hashlib, name) for name in ('sha1', 'sha224', 'sha256', 'sha384', 'sha512', 'md5') if hasattr(hashlib, name)
}
FILE_COMMON_ARGUMENTS = get_file_arg_spec()
PASSWORD_MATCH = re.compile(r'(?:^|[_-])pass(?:$|[_-]|word|phrase|wrd|wd)', re.I)

# The arguments as JSON in bytes, with `ANSIBLE_MODULE_ARGS` around them; set before the module is run.
_ANSIBLE_ARGS = None


def load_platform_subclass(cls, *args, **kwargs):
    """An object of the class for this platform."""
    return super(cls, get_platform_subclass(cls)).__new__(get_platform_subclass(cls))


def get_all_subclasses(cls):
    from ansible.module_utils.common._utils import get_all_subclasses as known

    return list(known(cls))


def missing_required_lib(library, reason=None, url=None):
    """What to say where a library of Python is missing."""
    text = 'Failed to import the required Python library (%s) on %s\'s Python %s.' % (
        library,
        platform.node(),
        sys.executable,
    )
    if reason:
        text += ' This is required %s.' % reason
    if url:
        text += ' See %s for more info.' % url
    return text + (
        ' Please read the module documentation and install it in the appropriate location.'
        ' If the required library is installed, but Ansible is using the wrong Python interpreter,'
        ' please consult the documentation on ansible_python_interpreter'
    )


def heuristic_log_sanitize(data, no_log_values=None):
    """A text without what looks like a password: `user:********@host`."""
    data = re.sub(r'(\w+://[^\s/@]*?:)[^\s@]*(@)', r'\1********\2', to_native(data))
    data = re.sub(r'(^|\s)([^\s/:@]+:)[^\s/@]+(@)', r'\1\2********\3', data)
    return remove_values(data, no_log_values) if no_log_values else data


def _load_params():
    """The arguments, from what was given before the module, from a file that is named, or from standard input."""
    global _ANSIBLE_ARGS
    if _ANSIBLE_ARGS is None:
        if len(sys.argv) > 1:
            if os.path.isfile(sys.argv[1]):
                with open(sys.argv[1], 'rb') as given:
                    _ANSIBLE_ARGS = given.read()
            else:
                _ANSIBLE_ARGS = sys.argv[1].encode('utf-8', 'surrogateescape')
        else:
            _ANSIBLE_ARGS = sys.stdin.buffer.read()
    try:
        given = json.loads(_ANSIBLE_ARGS.decode('utf-8'))
        return given['ANSIBLE_MODULE_ARGS']
    except (ValueError, UnicodeError, KeyError, TypeError):
        print('\n{"msg": "Error: Module unable to locate ANSIBLE_MODULE_ARGS in JSON data from stdin.", "failed": true}')
        sys.exit(1)


class AnsibleModule(object):
    """A module's arguments, its ways to act, and its end."""

    def __init__(
        self,
        argument_spec,
        bypass_checks=False,
        no_log=False,
        mutually_exclusive=None,
        required_together=None,
        required_one_of=None,
        add_file_common_args=False,
        supports_check_mode=False,
        required_if=None,
        required_by=None,
    ):
        self._name = os.path.basename(__file__)
        self.argument_spec = argument_spec
        self.supports_check_mode = supports_check_mode
        self.bypass_checks = bypass_checks
        self.no_log = no_log
        self.mutually_exclusive = mutually_exclusive
        self.required_together = required_together
        self.required_one_of = required_one_of
        self.required_if = required_if
        self.required_by = required_by
        self.cleanup_files = []
        self.aliases = {}
        self.no_log_values = set()
        self.run_command_environ_update = {}
        self._options_context = []
        self._clean = {}
        self._selinux_enabled = self._selinux_mls_enabled = self._selinux_initial_context = None
        self._created_files = set()
        self._passed_fds = ()
        if add_file_common_args:
            for name, entry in FILE_COMMON_ARGUMENTS.items():
                self.argument_spec.setdefault(name, entry)
        self._set_cwd()
        self._check_locale()
        self.params = _load_params()
        self._set_internal_properties()
        self._validate()
        if not self.no_log:
            self._log_invocation()
        if self.check_mode and not self.supports_check_mode:
            self.exit_json(skipped=True, msg='remote module (%s) does not support check mode' % self._name)

    def _set_internal_properties(self):
        for name, (attribute, default) in PASS_VARS.items():
            value = self.params.pop('_ansible_' + name, None)
            if name in PASS_BOOLS:
                value = boolean(value) if value is not None else getattr(self, attribute, default)
            if attribute == 'no_log' and not value:
                value = self.no_log
            setattr(self, attribute, default if value is None else value)
        for name in [name for name in self.params if name.startswith('_ansible_')]:
            del self.params[name]

    def _validate(self):
        checked = ModuleArgumentSpecValidator(
            self.argument_spec,
            self.mutually_exclusive,
            self.required_together,
            self.required_one_of,
            self.required_if,
            self.required_by,
        ).validate(self.params)
        self.params.update(checked.validated_parameters)
        self.no_log_values.update(checked._no_log_values)
        self.aliases.update(checked._aliases)
        if not checked.errors.errors:
            return
        for error in checked.errors.errors:
            if isinstance(error, UnsupportedError) and self._ignore_unknown_opts:
                continue
            text = error.msg
            if isinstance(error, UnsupportedError):
                text = 'Unsupported parameters for (%s) module: %s' % (self._name, text)
            elif self.bypass_checks:
                continue
            self.fail_json(msg=text)

    @staticmethod
    def _set_cwd():
        """Leaves a directory that is gone or that may not be read."""
        try:
            cwd = os.getcwd()
            if os.access(cwd, os.F_OK | os.R_OK):
                return
        except OSError:
            pass
        for cwd in (os.path.expandvars('$HOME'), tempfile.gettempdir(), '/'):
            try:
                if os.access(cwd, os.F_OK | os.R_OK):
                    os.chdir(cwd)
                    return
            except OSError:
                continue

    @staticmethod
    def _check_locale():
        try:
            locale.setlocale(locale.LC_ALL, '')
        except locale.Error:
            for name in ('LANG', 'LC_ALL', 'LC_MESSAGES'):
                os.environ[name] = 'C'
            locale.setlocale(locale.LC_ALL, 'C')

    @property
    def tmpdir(self):
        """A directory for what is thrown away; removed at the end."""
        if self._tmpdir is None:
            base = os.path.expanduser(os.path.expandvars(self._remote_tmp or tempfile.gettempdir()))
            try:
                if not os.path.isdir(base):
                    os.makedirs(base, mode=0o700)
            except OSError as problem:
                self.warn('Unable to use %s as temporary directory, failing back to system: %s' % (base, to_native(problem)))
                base = None
            try:
                self._tmpdir = tempfile.mkdtemp(prefix='ansible-moduletmp-%s-' % time.time(), dir=base)
            except OSError as problem:
                self.fail_json(msg='Failed to create remote module tmp path: %s' % to_native(problem))
            if not self._keep_remote_files:
                self.add_cleanup_file(self._tmpdir)
        return self._tmpdir

    # What is said.

    def warn(self, warning, **kwargs):
        """Adds a warning to the result."""
        warn(warning)
        self.debug('[WARNING] %s' % warning)

    def deprecate(self, msg, version=None, date=None, collection_name=None, **kwargs):
        """Adds to the result that something will be gone."""
        if version is not None and date is not None:
            raise AssertionError('implementation error -- version and date must not both be set')
        deprecate(msg, version=version, date=date, collection_name=collection_name, **kwargs)

    def error_as_warning(self, msg, exception, **kwargs):
        """Adds an exception that was survived as a warning."""
        self.warn('%s: %s' % (msg, to_native(exception)) if msg else to_native(exception))

    def debug(self, msg):
        """Writes to the system's log where the task asks for it."""
        if self._debug:
            self.log('[debug] %s' % msg)

    def log(self, msg, log_args=None):
        """Writes to the system's log, without secrets."""
        if self.no_log or not HAS_SYSLOG:
            return
        if not isinstance(msg, (bytes, str)):
            raise TypeError('msg should be a string (got %s)' % type(msg))
        text = remove_values(to_native(msg, errors='replace'), self.no_log_values).replace('\0', '\\0')
        facility = getattr(syslog, to_native(self._syslog_facility or ''), syslog.LOG_USER)
        try:
            syslog.openlog('ansible-%s' % self._name, 0, facility)
            syslog.syslog(syslog.LOG_INFO, text)
        except (TypeError, ValueError, OSError) as problem:
            self.fail_json(msg='Failed to log to syslog (%s).' % to_native(problem), msg_to_log=text)

    def _log_invocation(self):
        log_args = {}
        for name, value in self.params.items():
            canon = self.aliases.get(name, name)
            entry = self.argument_spec.get(canon, {})
            hidden = entry.get('no_log')
            if self.boolean(hidden):
                log_args[name] = 'NOT_LOGGING_PARAMETER'
            elif hidden is None and PASSWORD_MATCH.search(name) and entry.get('type') != 'bool' and not entry.get('choices'):
                self.warn('Module did not set no_log for %s' % name)
                log_args[name] = 'NOT_LOGGING_PASSWORD'
            else:
                text = value if isinstance(value, (str, bytes)) else str(value)
                log_args[name] = heuristic_log_sanitize(text, self.no_log_values)
        said = ' '.join('%s=%s' % (name, to_native(text)) for name, text in log_args.items())
        self.log('Invoked with %s' % said if said else 'Invoked', log_args=log_args)

    # Its end.

    def exit_json(self, **kwargs):
        """Ends the module well, with this result."""
        self.do_cleanup_files()
        self._return_formatted(kwargs)
        sys.exit(0)

    def fail_json(self, msg, *args, **kwargs):
        """Ends the module as failed, with this message."""
        kwargs['failed'] = True
        kwargs['msg'] = msg
        exception = kwargs.pop('exception', None)
        if isinstance(exception, BaseException):
            exception = ''.join(traceback.format_exception(type(exception), exception, exception.__traceback__))
        if exception is None and sys.exc_info()[2] and (self._debug or self._verbosity >= 3):
            exception = ''.join(traceback.format_tb(sys.exc_info()[2]))
        if exception:
            kwargs['exception'] = exception
        self.do_cleanup_files()
        self._return_formatted(kwargs)
        sys.exit(1)

    def _return_formatted(self, kwargs):
        self.add_path_info(kwargs)
        # As in Ansible, what it was called with is shown only to who asks for it.
        if self._inject_invocation:
            kwargs.setdefault('invocation', {'module_args': self.params})
        else:
            kwargs.pop('invocation', None)
        for warning in _as_list(kwargs.pop('warnings', None)):
            self.warn(to_native(warning))
        if get_warning_messages():
            kwargs['warnings'] = list(get_warning_messages())
        for entry in _as_list(kwargs.pop('deprecations', None)):
            if isinstance(entry, Mapping):
                self.deprecate(**dict(entry))
            elif isinstance(entry, (list, tuple)) and len(entry) == 2:
                self.deprecate(entry[0], version=entry[1])
            else:
                self.deprecate(to_native(entry))
        if get_deprecation_messages():
            kwargs['deprecations'] = list(get_deprecation_messages())
        # What is in the schema of the arguments is no secret.
        print('\n%s' % self.jsonify(remove_values(kwargs, self.no_log_values)))
        sys.stdout.flush()

    def fail_on_missing_params(self, required_params=None):
        """Fails where one of these arguments is not given."""
        try:
            check_missing_parameters(self.params, required_params)
        except TypeError as problem:
            self.fail_json(msg=to_native(problem))

    def add_cleanup_file(self, path):
        """Has a file removed at the end."""
        if path not in self.cleanup_files:
            self.cleanup_files.append(path)

    def do_cleanup_files(self):
        for path in self.cleanup_files:
            self.cleanup(path)

    def cleanup(self, tmpfile):
        """Removes a file or a directory that may be there."""
        try:
            if os.path.isdir(tmpfile) and not os.path.islink(tmpfile):
                shutil.rmtree(tmpfile)
            elif os.path.lexists(tmpfile):
                os.unlink(tmpfile)
        except OSError as problem:
            sys.stderr.write('could not cleanup %s: %s\n' % (tmpfile, to_native(problem)))

    # Values.

    def boolean(self, arg):
        """A spelling of yes or no; fails the module where it is none."""
        if arg is None:
            return arg
        try:
            return boolean(arg)
        except TypeError as problem:
            self.fail_json(msg=to_native(problem))

    def jsonify(self, data):
        try:
            return jsonify(data)
        except UnicodeError as problem:
            self.fail_json(msg=to_text(problem))

    def from_json(self, data):
        return json.loads(data)

    def safe_eval(self, value, locals=None, include_exceptions=False):
        return safe_eval(value, locals, include_exceptions)

    def bytes_to_human(self, size):
        return bytes_to_human(size)

    pretty_bytes = bytes_to_human

    def human_to_bytes(self, number, isbits=False):
        return human_to_bytes(number, isbits=isbits)

    # Files.

    def digest_from_file(self, filename, algorithm):
        """A file's digest in hex; none where there is no file."""
        if not os.path.exists(filename):
            return None
        if os.path.isdir(filename):
            self.fail_json(msg='attempted to take checksum of directory: %s' % filename)
        if hasattr(algorithm, 'hexdigest'):
            digest = algorithm
        else:
            try:
                digest = AVAILABLE_HASH_ALGORITHMS[algorithm]()
            except KeyError:
                known = ', '.join(AVAILABLE_HASH_ALGORITHMS)
                self.fail_json(msg="Could not hash file '%s' with algorithm '%s'. Available algorithms: %s" % (filename, algorithm, known))
        with open(os.path.realpath(filename), 'rb') as content:
            for part in iter(lambda: content.read(64 * 1024), b''):
                digest.update(part)
        return digest.hexdigest()

    def md5(self, filename):
        return self.digest_from_file(filename, 'md5')

    def sha1(self, filename):
        return self.digest_from_file(filename, 'sha1')

    def sha256(self, filename):
        return self.digest_from_file(filename, 'sha256')

    def backup_local(self, fn):
        """Copies a file beside itself; the copy's path, or an empty text where there is no file."""
        if not os.path.exists(fn):
            return ''
        stamp = time.strftime('%Y-%m-%d@%H:%M:%S~', time.localtime(time.time()))
        backup = '%s.%s.%s' % (fn, os.getpid(), stamp)
        try:
            self.preserved_copy(fn, backup)
        except (shutil.Error, OSError) as problem:
            self.fail_json(msg='Could not make backup of %s to %s: %s' % (fn, backup, to_native(problem)))
        return backup

    def preserved_copy(self, src, dest):
        """Copies a file with its owner, mode, times and attributes."""
        shutil.copy2(src, dest)
        if self.selinux_enabled():
            self.set_context_if_different(dest, self.selinux_context(src), False)
        found = os.stat(src)
        try:
            os.chown(dest, found.st_uid, found.st_gid)
        except OSError as problem:
            if problem.errno != errno.EPERM:
                raise
        flags = self.get_file_attributes(src, include_version=False).get('attr_flags', '')
        if flags:
            self.set_attributes_if_different(dest, flags, True)

    def atomic_move(self, src, dest, unsafe_writes=False, keep_dest_attrs=True):
        """Moves a file in another's place in one step; owner, mode and context stay those of the place."""
        dest = os.path.realpath(dest)
        existed = os.path.exists(dest)
        context = None
        if existed and keep_dest_attrs:
            found = os.stat(dest)
            try:
                os.chmod(src, stat.S_IMODE(found.st_mode))
                os.chown(src, found.st_uid, found.st_gid)
            except OSError as problem:
                if problem.errno != errno.EPERM:
                    raise
        if self.selinux_enabled():
            context = self.selinux_context(dest) if existed else self.selinux_default_context(dest)
        try:
            os.rename(src, dest)
        except OSError as problem:
            if problem.errno not in (errno.EPERM, errno.EXDEV, errno.EACCES, errno.ETXTBSY, errno.EBUSY):
                self.fail_json(msg='Could not replace file: %s to %s: %s' % (src, dest, to_native(problem)))
            self._move_beside(src, dest, existed, unsafe_writes, keep_dest_attrs)
        if not existed:
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(dest, DEFAULT_PERM & ~umask)
            try:
                os.chown(dest, os.geteuid(), os.getegid())
            except OSError:
                pass
        if context:
            self.set_context_if_different(dest, context, False)

    def _move_beside(self, src, dest, existed, unsafe_writes, keep_dest_attrs):
        """Over the border of a file system: first to a file beside the place, and from there."""
        beside = None
        try:
            fd, beside = tempfile.mkstemp(prefix='.ansible_tmp', suffix=os.path.basename(dest), dir=os.path.dirname(dest))
            os.close(fd)
            shutil.copy2(src, beside)
            if existed and keep_dest_attrs:
                found = os.stat(dest)
                try:
                    os.chown(beside, found.st_uid, found.st_gid)
                except OSError as problem:
                    if problem.errno != errno.EPERM:
                        raise
            os.rename(beside, dest)
            os.unlink(src)
        except (shutil.Error, OSError) as problem:
            if beside:
                self.cleanup(beside)
            if unsafe_writes and getattr(problem, 'errno', None) in (errno.EBUSY, errno.EPERM, errno.EACCES, errno.EROFS):
                self._unsafe_writes(src, dest)
                return
            self.fail_json(
                msg='Failed to replace file: %s to %s: %s' % (src, dest, to_native(problem)),
                exception=traceback.format_exc(),
            )

    def _unsafe_writes(self, src, dest):
        try:
            with open(src, 'rb') as given, open(dest, 'wb') as written:
                shutil.copyfileobj(given, written)
            os.unlink(src)
        except OSError as problem:
            self.fail_json(msg='Could not write data to file (%s) from (%s): %s' % (dest, src, to_native(problem)))

    def is_special_selinux_path(self, path):
        """Whether a path is on a file system that has no contexts of its own."""
        try:
            with open('/proc/mounts') as mounts:
                fields = [line.split()[:4] for line in mounts]
        except OSError:
            return (False, None)
        mount = self.find_mount_point(path)
        for _device, where, fstype, _options in fields:
            if where == mount and any(special in fstype for special in self._selinux_special_fs):
                return (True, self.selinux_context(mount))
        return (False, None)

    def find_mount_point(self, path):
        path = os.path.realpath(os.path.expanduser(os.path.expandvars(to_native(path))))
        while not os.path.ismount(path):
            path = os.path.dirname(path)
        return path

    def user_and_group(self, path, expand=True):
        """The numbers of a path's owner and group."""
        found = os.lstat(_expanded(path, expand))
        return found.st_uid, found.st_gid

    def load_file_common_arguments(self, params, path=None):
        """What `add_file_common_args` adds, for `set_fs_attributes_if_different`; nothing where there is no path."""
        path = params.get('path', params.get('dest')) if path is None else path
        if path is None:
            return {}
        path = os.path.expanduser(os.path.expandvars(path))
        if os.path.islink(path) and params.get('follow'):
            path = os.path.realpath(path)
        secontext = [params.get('seuser'), params.get('serole'), params.get('setype')]
        if self.selinux_mls_enabled():
            secontext.append(params.get('selevel'))
        for at, default in enumerate(self.selinux_default_context(path)[: len(secontext)]):
            if secontext[at] == '_default':
                secontext[at] = default
        return dict(
            path=path,
            mode=params.get('mode'),
            owner=params.get('owner'),
            group=params.get('group'),
            seuser=params.get('seuser'),
            serole=params.get('serole'),
            setype=params.get('setype'),
            selevel=params.get('selevel'),
            secontext=secontext,
            attributes=params.get('attributes'),
        )

    def set_fs_attributes_if_different(self, file_args, changed, diff=None, expand=True):
        """Gives a file the wanted context, owner, group, mode and attributes; whether anything had to change."""
        path = file_args['path']
        changed = self.set_context_if_different(path, file_args.get('secontext') or [], changed, diff)
        changed = self.set_owner_if_different(path, file_args['owner'], changed, diff, expand)
        changed = self.set_group_if_different(path, file_args['group'], changed, diff, expand)
        changed = self.set_mode_if_different(path, file_args['mode'], changed, diff, expand)
        return self.set_attributes_if_different(path, file_args['attributes'], changed, diff, expand)

    set_directory_attributes_if_different = set_fs_attributes_if_different
    set_file_attributes_if_different = set_fs_attributes_if_different

    def check_file_absent_if_check_mode(self, file_path):
        return self.check_mode and not os.path.exists(file_path)

    def set_owner_if_different(self, path, owner, changed, diff=None, expand=True):
        if owner is None:
            return changed
        path = _expanded(path, expand)
        if self.check_file_absent_if_check_mode(path):
            return True
        before = self.user_and_group(path, expand)[0]
        try:
            uid = int(owner)
        except ValueError:
            try:
                uid = pwd.getpwnam(owner).pw_uid
            except KeyError:
                self.fail_json(path=to_text(path), msg='chown failed: failed to look up user %s' % owner)
        if before == uid:
            return changed
        _note(diff, 'owner', before, uid)
        if not self.check_mode:
            try:
                os.lchown(path, uid, -1)
            except OSError as problem:
                self.fail_json(path=to_text(path), msg='chown failed: %s' % to_text(problem))
        return True

    def set_group_if_different(self, path, group, changed, diff=None, expand=True):
        if group is None:
            return changed
        path = _expanded(path, expand)
        if self.check_file_absent_if_check_mode(path):
            return True
        before = self.user_and_group(path, expand)[1]
        try:
            gid = int(group)
        except ValueError:
            try:
                gid = grp.getgrnam(group).gr_gid
            except KeyError:
                self.fail_json(path=to_text(path), msg='chgrp failed: failed to look up group %s' % group)
        if before == gid:
            return changed
        _note(diff, 'group', before, gid)
        if not self.check_mode:
            try:
                os.lchown(path, -1, gid)
            except OSError as problem:
                self.fail_json(path=to_text(path), msg='chgrp failed: %s' % to_text(problem))
        return True

    def set_mode_if_different(self, path, mode, changed, diff=None, expand=True):
        if mode is None:
            return changed
        path = _expanded(path, expand)
        if self.check_file_absent_if_check_mode(path):
            return True
        found = os.lstat(path)
        if not isinstance(mode, int):
            try:
                mode = int(mode, 8)
            except Exception:
                try:
                    mode = self._symbolic_mode_to_octal(found, mode)
                except Exception as problem:
                    self.fail_json(
                        path=to_text(path),
                        msg='mode must be in octal or symbolic form',
                        details=to_native(problem),
                    )
        if mode != stat.S_IMODE(mode):
            self.fail_json(path=to_text(path), msg='Invalid mode supplied, only permission info is allowed', details=mode)
        before = stat.S_IMODE(found.st_mode)
        if before == mode:
            return changed
        if diff is not None:
            _note(diff, 'mode', '0%03o' % before, '0%03o' % mode)
        if self.check_mode:
            return True
        try:
            # A link has no mode of its own.
            if stat.S_ISLNK(found.st_mode):
                return changed
            os.chmod(path, mode)
        except OSError as problem:
            self.fail_json(path=to_text(path), msg='chmod failed', details=to_native(problem))
        return stat.S_IMODE(os.lstat(path).st_mode) != before or changed

    @classmethod
    def _symbolic_mode_to_octal(cls, path_stat, symbolic_mode):
        """`u=rw,g-w` on top of a file's mode."""
        mode = stat.S_IMODE(path_stat.st_mode)
        shifts = {'u': 6, 'g': 3, 'o': 0}
        special = {'u': stat.S_ISUID, 'g': stat.S_ISGID, 'o': 0}
        umask = os.umask(0)
        os.umask(umask)
        for clause in symbolic_mode.split(','):
            parts = re.split(r'([-+=])', clause)
            who, steps = parts[0], parts[1:]
            if not steps or USERS_RE.search(who.replace('a', '')):
                raise ValueError('bad symbolic permission for mode: %s' % clause)
            everybody = who == '' or 'a' in who
            users = 'ugo' if everybody else who
            for operator, letters in zip(steps[::2], steps[1::2]):
                if PERMS_RE.search(letters):
                    raise ValueError('bad symbolic permission for mode: %s' % clause)
                bits = clear = 0
                for user in users:
                    shift, own = shifts[user], 0
                    for letter in letters:
                        if letter in 'ugo':
                            own |= (mode >> shifts[letter]) & 7
                        elif letter == 'X':
                            if stat.S_ISDIR(path_stat.st_mode) or mode & EXEC_PERM_BITS:
                                own |= 1
                        elif letter in 'rwx':
                            own |= {'r': 4, 'w': 2, 'x': 1}[letter]
                        elif letter == 's':
                            bits |= special[user]
                        elif letter == 't' and user in 'uo' and (everybody or user == who[-1]):
                            bits |= stat.S_ISVTX
                    bits |= own << shift
                    clear |= 7 << shift | special[user] | (stat.S_ISVTX if user == 'u' else 0)
                if who == '':
                    bits &= ~(umask & 0o777)
                if operator == '=':
                    mode = mode & ~clear | bits
                elif operator == '+':
                    mode |= bits
                else:
                    mode &= ~bits
        return mode

    def set_attributes_if_different(self, path, attributes, changed, diff=None, expand=True):
        if attributes is None:
            return changed
        path = _expanded(path, expand)
        if self.check_file_absent_if_check_mode(path):
            return True
        operator, wanted = '=', attributes
        if attributes[:1] in ('-', '+', '='):
            operator, wanted = attributes[0], attributes[1:]
        before = self.get_file_attributes(path, include_version=False).get('attr_flags', '')
        if (operator == '-' and not set(wanted) & set(before)) or (operator == '+' and set(wanted) <= set(before)) or (
            operator == '=' and set(wanted) == set(before)
        ):
            return changed
        if diff is not None:
            _note(diff, 'attributes', before, '%s%s' % (operator, wanted))
        program = self.get_bin_path('chattr')
        if program and not self.check_mode:
            rc, out, err = self.run_command([program, '%s%s' % (operator, wanted), path])
            if rc != 0 or err:
                self.fail_json(path=to_text(path), msg='chattr failed', details='Error while setting attributes: %s' % (out + err))
        return True

    def get_file_attributes(self, path, include_version=True):
        """A file's attributes as `lsattr` tells them; empty where it cannot."""
        program = self.get_bin_path('lsattr')
        if not program:
            return {}
        try:
            rc, out, err = self.run_command([program, '-vd' if include_version else '-d', path])
            fields = out.split() if rc == 0 else []
            offset = 1 if include_version else 0
            flags = fields[offset].replace('-', '').strip()
        except (IndexError, OSError):
            return {}
        output = {'attr_flags': flags, 'attributes': format_attributes(flags)}
        if include_version:
            output['version'] = fields[0].strip()
        return output

    def add_path_info(self, kwargs):
        """Adds owner, mode and kind of the result's `path` or `dest`."""
        path = kwargs.get('path', kwargs.get('dest', None))
        if not isinstance(path, (str, bytes)):
            return kwargs
        try:
            found = os.lstat(path)
        except (OSError, ValueError):
            return kwargs
        kwargs['uid'], kwargs['gid'] = found.st_uid, found.st_gid
        kwargs['owner'] = _name_of(pwd.getpwuid, found.st_uid)
        kwargs['group'] = _name_of(grp.getgrgid, found.st_gid)
        kwargs['mode'] = '0%03o' % stat.S_IMODE(found.st_mode)
        if os.path.islink(path):
            kwargs['state'] = 'link'
        elif os.path.isdir(path):
            kwargs['state'] = 'directory'
        elif found.st_nlink > 1:
            kwargs['state'] = 'hard'
        else:
            kwargs['state'] = 'file'
        if self.selinux_enabled():
            kwargs['secontext'] = ':'.join(self.selinux_context(path))
        kwargs['size'] = found.st_size
        return kwargs

    # SELinux, where the host has its Python package.

    def selinux_enabled(self):
        if self._selinux_enabled is None:
            self._selinux_enabled = HAVE_SELINUX and selinux.is_selinux_enabled() == 1
        return self._selinux_enabled

    def selinux_mls_enabled(self):
        if self._selinux_mls_enabled is None:
            self._selinux_mls_enabled = HAVE_SELINUX and selinux.is_selinux_mls_enabled() == 1
        return self._selinux_mls_enabled

    def selinux_initial_context(self):
        return [None] * (4 if self.selinux_mls_enabled() else 3)

    def selinux_default_context(self, path, mode=0):
        context = self.selinux_initial_context()
        if not self.selinux_enabled():
            return context
        try:
            found = selinux.matchpathcon(to_native(path, errors='surrogate_or_strict'), mode)
        except OSError:
            return context
        return found[1].split(':', 3) if found[0] != -1 else context

    def selinux_context(self, path):
        context = self.selinux_initial_context()
        if not self.selinux_enabled():
            return context
        try:
            found = selinux.lgetfilecon_raw(to_native(path, errors='surrogate_or_strict'))
        except OSError as problem:
            self.fail_json(path=to_text(path), msg='failed to retrieve selinux context: %s' % to_native(problem))
        return found[1].split(':', 3) if found[0] != -1 else context

    def set_default_selinux_context(self, path, changed):
        if not self.selinux_enabled():
            return changed
        return self.set_context_if_different(path, self.selinux_default_context(path), changed)

    def set_context_if_different(self, path, context, changed, diff=None):
        if not self.selinux_enabled() or self.check_file_absent_if_check_mode(path):
            return changed
        current = self.selinux_context(path)
        special, of_mount = self.is_special_selinux_path(path)
        wanted = list(of_mount if special else current)
        if not special:
            for at in range(len(current)):
                if at < len(context) and context[at] is not None:
                    wanted[at] = context[at]
        if wanted == current:
            return changed
        _note(diff, 'secontext', current, wanted)
        if not self.check_mode:
            try:
                if selinux.lsetfilecon(to_native(path), ':'.join(wanted)) != 0:
                    self.fail_json(path=to_text(path), msg='set selinux context failed')
            except OSError as problem:
                self.fail_json(path=to_text(path), msg='invalid selinux context: %s' % to_text(problem), new_context=wanted, cur_context=current)
        return True

    # Programs.

    def get_bin_path(self, arg, required=False, opt_dirs=None):
        """Where a program is; none where it is nowhere, or the module's failure where it is required."""
        try:
            return get_bin_path(arg=arg, opt_dirs=opt_dirs)
        except ValueError as problem:
            if required:
                self.fail_json(msg=to_text(problem))
            return None

    def run_command(
        self,
        args,
        check_rc=False,
        close_fds=True,
        executable=None,
        data=None,
        binary_data=False,
        path_prefix=None,
        cwd=None,
        use_unsafe_shell=False,
        prompt_regex=None,
        environ_update=None,
        umask=None,
        encoding='utf-8',
        errors='surrogate_or_strict',
        expand_user_and_vars=True,
        pass_fds=None,
        before_communicate_callback=None,
        ignore_invalid_cwd=True,
        handle_exceptions=True,
    ):
        """Runs a program and returns its exit status, standard output and standard error."""
        if not isinstance(args, (list, bytes, str)):
            self.fail_json(rc=257, cmd=args, msg="Argument 'args' to run_command must be list or string")
        self._clean = {}
        shell = False
        if use_unsafe_shell:
            line = ' '.join(shlex.quote(to_text(word)) for word in args) if isinstance(args, list) else to_text(args)
            argv = [to_text(executable), '-c', line] if executable else line
            shell = not executable
        else:
            words = shlex.split(to_text(args)) if isinstance(args, (bytes, str)) else [to_text(word) for word in args if word is not None]
            argv = [os.path.expanduser(os.path.expandvars(word)) for word in words] if expand_user_and_vars else words
        prompt = None
        if prompt_regex:
            try:
                prompt = re.compile(to_bytes(prompt_regex), re.MULTILINE)
            except re.error:
                self.fail_json(msg='invalid prompt regular expression given to run_command')
        environment = dict(os.environ)
        environment.update({str(name): str(value) for name, value in self.run_command_environ_update.items()})
        environment.update({str(name): str(value) for name, value in (environ_update or {}).items()})
        if path_prefix:
            environment['PATH'] = '%s:%s' % (path_prefix, environment.get('PATH', ''))
        shown = self._clean_args(args)
        if cwd:
            cwd = os.path.abspath(os.path.expanduser(to_text(cwd)))
            if not os.path.isdir(cwd):
                if not ignore_invalid_cwd:
                    self.fail_json(msg='Provided cwd is not a valid directory: %s' % cwd)
                cwd = None

        def restore():
            # Python ignores SIGPIPE, and programs do not expect that.
            if umask:
                os.umask(umask)

        try:
            self.debug('Executing: %s' % shown)
            process = subprocess.Popen(
                to_bytes(argv) if shell else [to_bytes(word) for word in argv],
                shell=shell,
                executable=executable if shell else None,
                close_fds=close_fds,
                stdin=subprocess.PIPE if data else None,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                preexec_fn=restore,
                env=environment,
                cwd=cwd,
                pass_fds=pass_fds or (),
            )
            if before_communicate_callback:
                before_communicate_callback(process)
            given = b''
            if data:
                given = data if binary_data else to_bytes(data) + b'\n'
                given = to_bytes(given)
            stdout, stderr, asked = _communicate(process, given, prompt if not data else None)
            if asked:
                message = 'A prompt was encountered while running a command, but no input data was specified'
                return (257, _decoded(stdout, encoding, errors), message if encoding is not None else to_bytes(message))
            rc = process.returncode
        except (OSError, ValueError) as problem:
            if not handle_exceptions:
                raise
            self.log('Error Executing CMD:%s Exception:%s' % (shown, to_native(problem)))
            code = problem.errno if isinstance(problem, OSError) and problem.errno is not None else 257
            self.fail_json(
                rc=code, stdout='', stderr='', msg='Error executing command: %s' % to_native(problem), cmd=shown
            )
        if rc != 0 and check_rc:
            text = heuristic_log_sanitize(to_text(stderr, errors='replace').rstrip(), self.no_log_values)
            self.fail_json(cmd=shown, rc=rc, stdout=to_text(stdout, errors='replace'), stderr=to_text(stderr, errors='replace'), msg=text)
        return rc, _decoded(stdout, encoding, errors), _decoded(stderr, encoding, errors)

    def _clean_args(self, args):
        """A command as it may be shown: without passwords."""
        words = [to_text(word) for word in args if word is not None] if isinstance(args, list) else shlex.split(to_text(args), posix=True)
        shown, hide_next = [], False
        for word in words:
            if hide_next:
                hide_next = False
                shown.append('********')
                continue
            match = re.match(r'^(-{1,2}(?!pass-?(?:through|ive))[-\w]*pass[-\w]*)(?:=(.*))?$', word, re.IGNORECASE)
            if match and match.group(2) is not None:
                word = '%s=********' % match.group(1)
            elif match:
                hide_next = True
            shown.append(heuristic_log_sanitize(word, self.no_log_values))
        return ' '.join(shlex.quote(word) for word in shown)

    def append_to_file(self, filename, str):
        filename = os.path.expandvars(os.path.expanduser(filename))
        with open(filename, 'a') as text:
            text.write(str)

    @staticmethod
    def get_buffer_size(fd):
        return 9000


def _as_list(value):
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _expanded(path, expand):
    return os.path.expanduser(os.path.expandvars(to_native(path))) if expand else to_native(path)


def _note(diff, name, before, after):
    if diff is not None:
        diff.setdefault('before', {})[name] = before
        diff.setdefault('after', {})[name] = after


def _name_of(lookup, number):
    try:
        return lookup(number)[0]
    except KeyError:
        return str(number)


def _decoded(output, encoding, errors):
    return output if encoding is None else to_native(output, encoding=encoding, errors=errors)


def _communicate(process, given, prompt):
    """Both outputs in bytes, and whether a prompt came up; then the process is ended."""
    if prompt is None:
        stdout, stderr = process.communicate(given or None)
        return stdout, stderr, False
    outputs = {process.stdout: b'', process.stderr: b''}
    asked = False
    with process, selectors.DefaultSelector() as waiting:
        for pipe in outputs:
            os.set_blocking(pipe.fileno(), False)
            waiting.register(pipe, selectors.EVENT_READ)
        while waiting.get_map() and not asked:
            for key, _events in waiting.select(1):
                part = key.fileobj.read()
                if part:
                    outputs[key.fileobj] += part
                else:
                    waiting.unregister(key.fileobj)
            asked = prompt.search(outputs[process.stdout]) is not None
            if process.poll() is not None and not waiting.select(0):
                break
        if asked:
            process.kill()
    return outputs[process.stdout], outputs[process.stderr], asked
