"""Mappings: camel case and snake case, merging, comparing."""

import re
from collections.abc import MutableMapping
from copy import deepcopy


def _camel_to_snake(name, reversible=False):
    if reversible:
        return re.sub(r'[A-Z]', lambda match: '_' + match.group(0).lower(), name)
    # A plural of capitals (`DBInstanceARNs`) is one word.
    name = re.sub(r'[A-Z]{3,}s$', lambda match: '_' + match.group(0).lower(), name)
    name = re.sub(r'(.)([A-Z][a-z]+)', r'\1_\2', name)
    return re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', name).lower().lstrip('_')


def _snake_to_camel(snake, capitalize_first=False):
    first, rest = snake.split('_')[0], snake.split('_')[1:]
    if capitalize_first:
        first = first.capitalize() or '_'
    return first + ''.join(word.capitalize() or '_' for word in rest)


def camel_dict_to_snake_dict(camel_dict, reversible=False, ignore_list=()):
    """Keys in snake case, at all depths but under the keys of `ignore_list`."""

    def convert(value):
        if isinstance(value, dict):
            return camel_dict_to_snake_dict(value, reversible)
        if isinstance(value, list):
            return [convert(item) for item in value]
        return value

    snake = {}
    for key, value in camel_dict.items():
        name = _camel_to_snake(key, reversible=reversible)
        snake[name] = value if isinstance(value, (dict, list)) and key in ignore_list else convert(value)
    return snake


def snake_dict_to_camel_dict(snake_dict, capitalize_first=False):
    """Keys in camel case, at all depths."""

    def convert(value):
        if isinstance(value, dict):
            return {_snake_to_camel(key, capitalize_first): convert(item) for key, item in value.items()}
        if isinstance(value, list):
            return [convert(item) for item in value]
        return value

    return convert(snake_dict)


def dict_merge(a, b):
    """Both, mappings in them merged, too; `b` wins."""
    if not isinstance(b, dict):
        return b
    result = deepcopy(a)
    for key, value in b.items():
        if isinstance(result.get(key), dict):
            result[key] = dict_merge(result[key], value)
        else:
            result[key] = deepcopy(value)
    return result


def recursive_diff(dict1, dict2):
    """What each has that the other has not, or None where they are the same."""
    if not all(isinstance(item, MutableMapping) for item in (dict1, dict2)):
        raise TypeError("Unable to diff 'dict1' %s and 'dict2' %s. Both must be a dictionary." % (type(dict1), type(dict2)))
    left = {key: value for key, value in dict1.items() if key not in dict2}
    right = {key: value for key, value in dict2.items() if key not in dict1}
    for key in set(dict1) & set(dict2):
        one, other = dict1[key], dict2[key]
        if isinstance(one, dict) and isinstance(other, dict):
            deeper = recursive_diff(one, other)
            if deeper:
                if deeper[0]:
                    left[key] = deeper[0]
                if deeper[1]:
                    right[key] = deeper[1]
        elif one != other:
            left[key], right[key] = one, other
    return (left, right) if left or right else None
