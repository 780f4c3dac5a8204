"""What a module says beside its result."""

_global_warnings = []
_global_deprecations = []


def warn(warning, **kwargs):
    """Adds a warning to the module's result."""
    if not isinstance(warning, str):
        raise TypeError('warn requires a string not a %s' % type(warning))
    if warning not in _global_warnings:
        _global_warnings.append(warning)


def deprecate(msg, version=None, date=None, collection_name=None, **kwargs):
    """Adds to the module's result that something will be gone."""
    if not isinstance(msg, str):
        raise TypeError('deprecate requires a string not a %s' % type(msg))
    entry = {'msg': msg, 'collection_name': collection_name}
    if date is not None:
        entry['date'] = date
    else:
        entry['version'] = version
    entry.update((name, kwargs[name]) for name in ('deprecator', 'help_text') if kwargs.get(name))
    if entry not in _global_deprecations:
        _global_deprecations.append(entry)


def get_warning_messages():
    return tuple(_global_warnings)


def get_deprecation_messages():
    return tuple(_global_deprecations)
