"""Arguments against their specification."""

from collections.abc import Mapping
from copy import deepcopy

from ansible.module_utils.common import parameters as _parameters
from ansible.module_utils.common import validation
from ansible.module_utils.common.collections import is_iterable
from ansible.module_utils.common.text.converters import to_native
from ansible.module_utils.common.warnings import deprecate, warn
from ansible.module_utils.errors import (
    AliasError,
    AnsibleValidationErrorMultiple,
    ArgumentTypeError,
    ArgumentValueError,
    ElementError,
    MutuallyExclusiveError,
    NoLogError,
    RequiredByError,
    RequiredDefaultError,
    RequiredError,
    RequiredIfError,
    RequiredOneOfError,
    RequiredTogetherError,
    SubParameterTypeError,
    UnsupportedError,
)


class ValidationResult(object):
    """What came of it: the arguments with defaults and types, and what is wrong with them."""

    def __init__(self, parameters):
        self._no_log_values = set()
        self._unsupported_parameters = set()
        self._supported_parameters = {}
        self._validated_parameters = deepcopy(parameters)
        self._deprecations = []
        self._warnings = []
        self._aliases = {}
        self.errors = AnsibleValidationErrorMultiple()

    @property
    def validated_parameters(self):
        return self._validated_parameters

    @property
    def unsupported_parameters(self):
        return self._unsupported_parameters

    @property
    def error_messages(self):
        return self.errors.messages


class _Rules(object):
    """The rules between the arguments of one level."""

    def __init__(self, spec):
        self.mutually_exclusive = spec.get('mutually_exclusive')
        self.required_together = spec.get('required_together')
        self.required_one_of = spec.get('required_one_of')
        self.required_if = spec.get('required_if')
        self.required_by = spec.get('required_by')


class ArgumentSpecValidator(object):
    """A specification, ready to check arguments."""

    def __init__(
        self,
        argument_spec,
        mutually_exclusive=None,
        required_together=None,
        required_one_of=None,
        required_if=None,
        required_by=None,
    ):
        self.argument_spec = argument_spec
        self._rules = _Rules(
            dict(
                mutually_exclusive=mutually_exclusive,
                required_together=required_together,
                required_one_of=required_one_of,
                required_if=required_if,
                required_by=required_by,
            )
        )
        self._valid_parameter_names = set()
        for name in sorted(argument_spec):
            aliases = argument_spec[name].get('aliases')
            self._valid_parameter_names.add('%s (%s)' % (name, ', '.join(sorted(aliases))) if aliases else name)

    def validate(self, parameters, *args, **kwargs):
        """Checks arguments; what is wrong is in the result's `errors`."""
        result = ValidationResult(parameters)
        self._level(self.argument_spec, result.validated_parameters, self._rules, result, ())
        unknown = sorted(result._unsupported_parameters)
        if unknown:
            names, aliases = result._supported_parameters[unknown[0]]
            supported = ', '.join(sorted(names)) + (' (%s)' % ', '.join(sorted(aliases)) if aliases else '')
            words = ', '.join('.'.join(path) for path in unknown)
            result.errors.append(UnsupportedError('%s. Supported parameters include: %s.' % (words, supported)))
        return result

    def _level(self, spec, parameters, rules, result, context):
        errors, where = result.errors, list(context)

        def tried(error, check, *args):
            try:
                return check(*args)
            except TypeError as problem:
                errors.append(error(to_native(problem)))

        result._no_log_values.update(_parameters.set_fallbacks(spec, parameters))
        twice, old = [], []
        try:
            aliases = _parameters.handle_aliases(spec, parameters, twice, old)
        except (TypeError, ValueError) as problem:
            aliases = {}
            errors.append(AliasError(to_native(problem)))
        if not context:
            result._aliases = aliases
        for name, alias in twice:
            prefix = '%s.' % '.'.join(context) if context else ''
            result._warnings.append(
                dict(option='%s%s' % (prefix, name), alias='%s%s' % (prefix, alias))
            )
        for entry in old:
            result._deprecations.append(
                dict(
                    msg="Alias '%s' is deprecated. See the module docs for more information" % entry['name'],
                    version=entry.get('version'),
                    date=entry.get('date'),
                    collection_name=entry.get('collection_name'),
                )
            )
        if not context:
            result._no_log_values.update(_parameters.list_no_log_values(spec, parameters))
            result._deprecations.extend(_parameters.list_deprecations(spec, parameters))
        legal = set(spec) | set(aliases)
        unknown = _parameters.unsupported_parameters(spec, parameters, legal, context)
        result._unsupported_parameters.update(unknown)
        for path in unknown:
            result._supported_parameters[path] = (list(spec), list(aliases))
        tried(MutuallyExclusiveError, validation.check_mutually_exclusive, rules.mutually_exclusive, parameters, where)
        result._no_log_values.update(_parameters.set_defaults(spec, parameters, False))
        tried(RequiredError, validation.check_required_arguments, spec, parameters, where)
        self._types(spec, parameters, errors, context)
        self._choices(spec, parameters, errors, context)
        # Arguments that are given as nothing do not count.
        given = {name: value for name, value in parameters.items() if value is not None}
        tried(RequiredTogetherError, validation.check_required_together, rules.required_together, given, where)
        tried(RequiredOneOfError, validation.check_required_one_of, rules.required_one_of, given, where)
        tried(RequiredIfError, validation.check_required_if, rules.required_if, given, where)
        tried(RequiredByError, validation.check_required_by, rules.required_by, given, where)
        result._no_log_values.update(_parameters.set_defaults(spec, parameters))
        self._nested(spec, parameters, result, context)

    @staticmethod
    def _types(spec, parameters, errors, context):
        for name, entry in spec.items():
            value = parameters.get(name)
            if name not in parameters or value is None and not entry.get('required') and entry.get('default') is None:
                continue
            try:
                where = " found in '%s'." % ' -> '.join(context) if context else ''
                parameters[name] = value = _parameters.coerced(name, value, entry, where)
            except TypeError as problem:
                errors.append(ArgumentTypeError(to_native(problem)))
                continue
            if entry.get('elements') and entry.get('type') == 'list' and isinstance(value, list):
                try:
                    parameters[name] = _parameters.coerced_elements(name, value, entry)
                except TypeError as problem:
                    errors.append(ElementError(to_native(problem)))

    @staticmethod
    def _choices(spec, parameters, errors, context):
        where = ' found in %s' % ' -> '.join(context) if context else ''
        for name, entry in spec.items():
            choices = entry.get('choices')
            if choices is None or parameters.get(name) is None:
                continue
            if not is_iterable(choices):
                errors.append(ArgumentTypeError('internal error: choices for argument %s are not iterable: %s' % (name, choices)))
                continue
            try:
                parameters[name] = _parameters.chosen(name, parameters[name], choices, where)
            except TypeError as problem:
                errors.append(ArgumentValueError(to_native(problem)))

    def _nested(self, spec, parameters, result, context):
        for name, entry in spec.items():
            kind, inner = entry.get('type'), entry.get('options')
            if inner is None or not (kind == 'dict' or kind == 'list' and entry.get('elements') == 'dict'):
                continue
            value = parameters.get(name)
            if value is None:
                if not entry.get('apply_defaults'):
                    continue
                parameters[name] = value = {} if kind == 'dict' else []
            for item in value if isinstance(value, list) else [value]:
                if not isinstance(item, dict):
                    problem = "value of '%s' must be of type dict or list of dicts" % name
                    result.errors.append(SubParameterTypeError(problem))
                    continue
                self._level(inner, item, _Rules(entry), result, context + (name,))


class ModuleArgumentSpecValidator(ArgumentSpecValidator):
    """The same, which adds warnings and deprecations to the module's result."""

    def validate(self, parameters):
        result = super(ModuleArgumentSpecValidator, self).validate(parameters)
        for entry in result._deprecations:
            deprecate(
                entry['msg'],
                version=entry.get('version'),
                date=entry.get('date'),
                collection_name=entry.get('collection_name'),
            )
        for entry in result._warnings:
            warn('Both option %s and its alias %s are set.' % (entry['option'], entry['alias']))
        return result
