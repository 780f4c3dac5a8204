"""Checks of arguments, each for itself and against each other.

The check_* functions that compare raise TypeError, with a text for people.
"""

import json
import os
import re
from ast import literal_eval

from ansible.module_utils.common.collections import is_iterable
from ansible.module_utils.common.text.converters import jsonify, to_native, to_text
from ansible.module_utils.common.text.formatters import human_to_bytes
from ansible.module_utils.parsing.convert_bool import boolean


def count_terms(terms, parameters):
    """How many of these are given."""
    names = terms if is_iterable(terms) else [terms]
    return len(set(names).intersection(parameters))


def _where(options_context):
    return ' found in %s' % ' -> '.join(options_context) if options_context else ''


def check_mutually_exclusive(terms, parameters, options_context=None):
    wrong = [check for check in terms or [] if count_terms(check, parameters) > 1]
    if wrong:
        groups = ', '.join('|'.join(check) for check in wrong)
        raise TypeError('parameters are mutually exclusive: %s%s' % (groups, _where(options_context)))
    return wrong


def check_required_one_of(terms, parameters, options_context=None):
    wrong = [term for term in terms or [] if count_terms(term, parameters) == 0]
    for term in wrong:
        raise TypeError('one of the following is required: %s%s' % (', '.join(term), _where(options_context)))
    return wrong


def check_required_together(terms, parameters, options_context=None):
    for term in terms or []:
        given = [name in parameters for name in term]
        if any(given) and not all(given):
            raise TypeError('parameters are required together: %s%s' % (', '.join(term), _where(options_context)))
    return []


def check_required_by(requirements, parameters, options_context=None):
    result = {}
    for key, needed in (requirements or {}).items():
        if key not in parameters or parameters[key] is None:
            continue
        needed = [needed] if isinstance(needed, str) else needed
        result[key] = [name for name in needed if parameters.get(name) is None]
        if result[key]:
            missing = ', '.join(result[key])
            raise TypeError("missing parameter(s) required by '%s': %s%s" % (key, missing, _where(options_context)))
    return result


def check_required_arguments(argument_spec, parameters, options_context=None):
    missing = [
        name for name, spec in (argument_spec or {}).items() if spec.get('required', False) and name not in parameters
    ]
    if missing:
        raise TypeError('missing required arguments: %s%s' % (', '.join(sorted(missing)), _where(options_context)))
    return missing


def check_required_if(requirements, parameters, options_context=None):
    results = []
    for requirement in requirements or []:
        key, value, names = requirement[:3]
        any_of = len(requirement) == 4 and requirement[3]
        if key not in parameters or parameters[key] != value:
            continue
        missing = [name for name in names if count_terms(name, parameters) == 0]
        if missing and (not any_of or len(missing) >= len(names)):
            word = 'any' if any_of else 'all'
            results.append(dict(missing=missing, requires=word, parameter=key, value=value, requirements=names))
            raise TypeError(
                '%s is %s but %s of the following are missing: %s%s'
                % (key, value, word, ', '.join(missing), _where(options_context))
            )
    return results


def check_missing_parameters(parameters, required_parameters=None):
    missing = [name for name in required_parameters or [] if not parameters.get(name)]
    if missing:
        raise TypeError('missing required arguments: %s' % ', '.join(missing))
    return missing


def safe_eval(value, locals=None, include_exceptions=False):
    """A Python literal as its value, and other texts as they are."""
    result, problem = value, None
    if isinstance(value, str):
        try:
            result = literal_eval(value)
        except Exception as error:
            problem = error
    return (result, problem) if include_exceptions else result


def check_type_str(value, allow_conversion=True, param=None, prefix=''):
    if isinstance(value, str):
        return value
    if allow_conversion:
        return '' if value is None else to_native(value, errors='surrogate_or_strict')
    raise TypeError("'{0!r}' is not a string and conversion is not allowed".format(value))


def check_type_list(value):
    if isinstance(value, list):
        return value
    if isinstance(value, str):
        return value.split(',')
    if isinstance(value, (int, float)):
        return [str(value)]
    raise TypeError('%s cannot be converted to a list' % type(value))


def _pairs(value):
    """`a=1, b="x y"` as pairs."""
    fields, current, quote, escaped = [], [], None, False
    for letter in value.strip():
        if escaped:
            current.append(letter)
            escaped = False
        elif letter == '\\':
            escaped = True
        elif quote:
            if letter == quote:
                quote = None
            else:
                current.append(letter)
        elif letter in '\'"':
            quote = letter
        elif letter in ', ':
            if current:
                fields.append(''.join(current))
            current = []
        else:
            current.append(letter)
    if current:
        fields.append(''.join(current))
    return dict(field.split('=', 1) for field in fields)


def check_type_dict(value):
    if isinstance(value, dict):
        return value
    if isinstance(value, str):
        if value.startswith('{'):
            try:
                return json.loads(value)
            except Exception:
                result, problem = safe_eval(value, include_exceptions=True)
                if problem is not None or not isinstance(result, dict):
                    raise TypeError('unable to evaluate string as dictionary')
                return result
        if '=' in value:
            return _pairs(value)
        raise TypeError('dictionary requested, could not parse JSON or key=value')
    raise TypeError('%s cannot be converted to a dict' % type(value))


def check_type_bool(value):
    if isinstance(value, bool):
        return value
    if isinstance(value, (str, int, float)):
        return boolean(value)
    raise TypeError('%s cannot be converted to a bool' % type(value))


def check_type_int(value):
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    try:
        if isinstance(value, (str, bool)) or isinstance(value, float) and value == int(value):
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise TypeError('"%r" cannot be converted to an int' % (value,))


def check_type_float(value):
    if isinstance(value, float):
        return value
    if isinstance(value, (bytes, str, int)):
        try:
            return float(value)
        except ValueError:
            pass
    raise TypeError('%s cannot be converted to a float' % type(value))


def check_type_path(value):
    return os.path.expanduser(os.path.expandvars(check_type_str(value)))


def check_type_raw(value):
    return value


def check_type_bytes(value):
    try:
        return human_to_bytes(value)
    except ValueError:
        raise TypeError('%s cannot be converted to a Byte value' % type(value))


def check_type_bits(value):
    try:
        return human_to_bytes(value, isbits=True)
    except ValueError:
        raise TypeError('%s cannot be converted to a Bit value' % type(value))


def check_type_jsonarg(value):
    if isinstance(value, (str, bytes)):
        return to_text(value).strip()
    if isinstance(value, (dict, list, tuple)):
        return jsonify(value)
    raise TypeError('%s cannot be converted to a json string' % type(value))
