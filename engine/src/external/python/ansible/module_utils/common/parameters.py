"""Arguments: fallbacks, defaults, types, and the values among them that are secrets."""

import os
from collections.abc import Mapping, MutableMapping, MutableSequence, MutableSet, Sequence, Set

from ansible.module_utils.common import validation
from ansible.module_utils.common.collections import is_iterable
from ansible.module_utils.common.text.converters import to_bytes, to_native, to_text
from ansible.module_utils.common.warnings import warn
from ansible.module_utils.errors import AnsibleFallbackNotFound
from ansible.module_utils.parsing.convert_bool import BOOLEANS_FALSE, BOOLEANS_TRUE

# What takes the place of a secret.
HIDDEN = 'VALUE_SPECIFIED_IN_NO_LOG_PARAMETER'

PASS_VARS = {
    'check_mode': ('check_mode', False),
    'debug': ('_debug', False),
    'diff': ('_diff', False),
    'inject_invocation': ('_inject_invocation', False),
    'keep_remote_files': ('_keep_remote_files', False),
    'ignore_unknown_opts': ('_ignore_unknown_opts', False),
    'module_name': ('_name', None),
    'no_log': ('no_log', False),
    'remote_tmp': ('_remote_tmp', None),
    'target_log_info': ('_target_log_info', None),
    'selinux_special_fs': ('_selinux_special_fs', ['fuse', 'nfs', 'vboxsf', 'ramfs', '9p', 'vfat']),
    'shell_executable': ('_shell', '/bin/sh'),
    'socket': ('_socket', None),
    'string_conversion_action': ('_string_conversion_action', 'warn'),
    'syslog_facility': ('_syslog_facility', 'INFO'),
    'tmpdir': ('_tmpdir', None),
    'verbosity': ('_verbosity', 0),
    'version': ('ansible_version', '0.0'),
}
PASS_BOOLS = ('check_mode', 'debug', 'diff', 'keep_remote_files', 'ignore_unknown_opts', 'inject_invocation', 'no_log')

DEFAULT_TYPE_VALIDATORS = {
    'str': validation.check_type_str,
    'list': validation.check_type_list,
    'dict': validation.check_type_dict,
    'bool': validation.check_type_bool,
    'int': validation.check_type_int,
    'float': validation.check_type_float,
    'path': validation.check_type_path,
    'raw': validation.check_type_raw,
    'jsonarg': validation.check_type_jsonarg,
    'json': validation.check_type_jsonarg,
    'bytes': validation.check_type_bytes,
    'bits': validation.check_type_bits,
}


def env_fallback(*args, **kwargs):
    """A fallback: the first of these environment variables that is set."""
    for name in args:
        if name in os.environ:
            return os.environ[name]
    raise AnsibleFallbackNotFound


def set_fallbacks(argument_spec, parameters):
    """Fills in what only a fallback gives; returns the secrets among it."""
    secrets = set()
    for name, spec in argument_spec.items():
        fallback = spec.get('fallback', (None,))
        if name in parameters or fallback[0] is None:
            continue
        args, kwargs = [], {}
        for item in fallback[1:]:
            if isinstance(item, dict):
                kwargs = item
            else:
                args = item
        try:
            value = fallback[0](*args, **kwargs)
        except AnsibleFallbackNotFound:
            continue
        if spec.get('no_log') and value:
            secrets.update(_secrets_in(value))
        parameters[name] = value
    return secrets


def set_defaults(argument_spec, parameters, set_default=True):
    """Fills in defaults; with `set_default` off only those that are something. Returns the secrets among them."""
    secrets = set()
    for name, spec in argument_spec.items():
        default = spec.get('default')
        if default is not None and spec.get('no_log'):
            secrets.update(_secrets_in(default))
        if name not in parameters and (set_default or default is not None):
            parameters[name] = default
    return secrets


def handle_aliases(argument_spec, parameters, alias_warnings=None, alias_deprecations=None):
    """Gives arguments the values of their aliases; returns the aliases, with the argument of each."""
    aliases = {}
    for name, spec in argument_spec.items():
        known = spec.get('aliases')
        if spec.get('required') and spec.get('default') is not None:
            raise ValueError("internal error: required and default are mutually exclusive for '%s'" % name)
        for deprecation in spec.get('deprecated_aliases') or []:
            if alias_deprecations is not None and deprecation.get('name') in parameters:
                alias_deprecations.append(deprecation)
        if not known:
            continue
        if not is_iterable(known) or isinstance(known, (bytes, str)):
            raise TypeError("internal error: aliases must be a list or tuple")
        for alias in known:
            aliases[alias] = name
            if alias not in parameters:
                continue
            if name in parameters and alias_warnings is not None:
                alias_warnings.append((name, alias))
            parameters[name] = parameters[alias]
    return aliases


def unsupported_parameters(argument_spec, parameters, legal, context=()):
    """Arguments that nobody knows, each as the path to it."""
    return {context + (name,) for name in parameters if name not in legal}


def list_no_log_values(argument_spec, parameters):
    """The values of arguments that are to be hidden, as texts."""
    secrets = set()
    for name, spec in argument_spec.items():
        value = parameters.get(name)
        if spec.get('no_log') and value:
            secrets.update(_secrets_in(value))
        nested = spec.get('options')
        if nested is None or value is None:
            continue
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                try:
                    item = validation.check_type_dict(item)
                except (TypeError, ValueError):
                    continue
            if isinstance(item, Mapping):
                secrets.update(list_no_log_values(nested, item))
    return secrets


def _secrets_in(value):
    if isinstance(value, (str, bytes)):
        return {to_native(value, errors='surrogate_or_strict')} if value else set()
    if value is None or isinstance(value, bool):
        return set()
    if isinstance(value, (int, float)):
        return {str(value)}
    if isinstance(value, Mapping):
        value = value.values()
    elif not is_iterable(value):
        return {to_native(value)}
    return {secret for item in value for secret in _secrets_in(item)}


def list_deprecations(argument_spec, parameters, prefix=''):
    """What is given though it will be gone."""
    found = []
    for name, spec in argument_spec.items():
        if name not in parameters:
            continue
        shown = '%s["%s"]' % (prefix, name) if prefix else name
        if spec.get('removed_at_date') is not None or spec.get('removed_in_version') is not None:
            entry = dict(
                msg="Param '%s' is deprecated. See the module docs for more information" % shown,
                collection_name=spec.get('removed_from_collection'),
            )
            if spec.get('removed_at_date') is not None:
                entry['date'] = spec['removed_at_date']
            else:
                entry['version'] = spec['removed_in_version']
            found.append(entry)
        value = parameters[name]
        if spec.get('options') and value is not None:
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, Mapping):
                    found.extend(list_deprecations(spec['options'], item, shown))
    return found


def get_type_validator(wanted):
    """What checks a type, and its name; a function is its own check."""
    if callable(wanted):
        return wanted, getattr(wanted, '__name__', str(wanted))
    wanted = wanted or 'str'
    return DEFAULT_TYPE_VALIDATORS.get(wanted), wanted


def coerced(name, value, spec, where=''):
    """A value in its type. Raises TypeError."""
    check, word = get_type_validator(spec.get('type') or ('str' if 'type' not in spec else None))
    if check is None:
        raise TypeError('No type validator for %s' % word)
    try:
        if check is validation.check_type_str:
            return check(value, True, name)
        return check(value)
    except (TypeError, ValueError) as problem:
        raise TypeError(
            "argument '%s' is of type %s%s and we were unable to convert to %s: %s"
            % (name, _type_name(value), where, word, to_native(problem))
        )


def _type_name(value):
    return type(value).__name__


def coerced_elements(name, values, spec):
    """The items of a list in their type. Raises TypeError."""
    check, word = get_type_validator(spec['elements'])
    items = []
    for value in values:
        try:
            items.append(check(value))
        except (TypeError, ValueError) as problem:
            raise TypeError(
                "Elements value for option '%s' is of type %s and we were unable to convert to %s: %s"
                % (name, _type_name(value), word, to_native(problem))
            )
    return items


def chosen(name, value, choices, where=''):
    """A value that is among the choices, as it is spelled there. Raises TypeError."""
    words = ', '.join(to_native(choice) for choice in choices)
    if isinstance(value, list):
        wrong = [to_native(item) for item in value if item not in choices]
        if wrong:
            raise TypeError(
                'value of %s must be one or more of: %s. Got no match for: %s%s' % (name, words, ', '.join(wrong), where)
            )
        return value
    if value in choices:
        return value
    # YAML has turned a `yes` into a boolean.
    for spelling, spelled in (('False', BOOLEANS_FALSE), ('True', BOOLEANS_TRUE)):
        if str(value) == spelling:
            alike = [choice for choice in choices if choice in spelled]
            if len(alike) == 1:
                return alike[0]
    raise TypeError('value of %s must be one of: %s, got: %s%s' % (name, words, to_native(value), where))


def remove_values(value, no_log_strings):
    """A value without the secrets in it."""
    secrets = sorted({to_native(secret, errors='surrogate_or_strict') for secret in no_log_strings if secret}, key=len)
    return _hidden(value, secrets[::-1]) if secrets else value


def _hidden(value, secrets):
    if isinstance(value, (str, bytes)):
        text = to_native(value, errors='surrogate_or_strict')
        if text in secrets:
            return HIDDEN
        for secret in secrets:
            text = text.replace(secret, '*' * 8)
        return to_bytes(text) if isinstance(value, bytes) else text
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {key: _hidden(item, secrets) for key, item in value.items()}
    if isinstance(value, Set):
        return type(value)(_hidden(item, secrets) for item in value)
    if isinstance(value, (list, tuple)):
        return [_hidden(item, secrets) for item in value]
    if isinstance(value, (int, float)):
        text = to_native(value)
        return HIDDEN if any(secret in text for secret in secrets) else value
    return value


def sanitize_keys(obj, no_log_strings, ignore_keys=frozenset()):
    """A nest of containers without the secrets in the keys of its mappings."""
    secrets = sorted({to_native(secret) for secret in no_log_strings if secret}, key=len)[::-1]

    def clean(value):
        if isinstance(value, Mapping):
            return {
                key if key in ignore_keys or str(key).startswith('_ansible') else _hidden(key, secrets): clean(item)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [clean(item) for item in value]
        if isinstance(value, Set):
            return {clean(item) for item in value}
        return value

    return clean(obj)
