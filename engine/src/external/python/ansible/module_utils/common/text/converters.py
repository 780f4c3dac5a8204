"""Text and bytes into each other, and values into JSON."""

import codecs
import datetime
import json
from collections.abc import Mapping, Set

try:
    codecs.lookup_error('surrogateescape')
    HAS_SURROGATEESCAPE = True
except LookupError:
    HAS_SURROGATEESCAPE = False

# Names for what Python spells in its own way.
_COMPOSED = frozenset((None, 'surrogate_or_replace', 'surrogate_or_strict', 'surrogate_then_replace'))


def _is_other(obj, nonstring, empty):
    """What to do with an object that is neither text nor bytes: a value to return, or a text to go on with."""
    if nonstring == 'simplerepr':
        try:
            return False, str(obj)
        except UnicodeError:
            return False, repr(obj)
    if nonstring == 'passthru':
        return True, obj
    if nonstring == 'empty':
        return True, empty
    if nonstring == 'strict':
        raise TypeError('obj must be a string type')
    raise TypeError('Invalid value %s for the nonstring parameter' % nonstring)


def to_bytes(obj, encoding='utf-8', errors=None, nonstring='simplerepr'):
    """Bytes of a text; other objects as `nonstring` says."""
    if isinstance(obj, bytes):
        return obj
    if not isinstance(obj, str):
        done, obj = _is_other(obj, nonstring, b'')
        if done:
            return obj
    handler = 'surrogateescape' if errors in _COMPOSED else errors
    try:
        return obj.encode(encoding, handler)
    except UnicodeEncodeError:
        if errors in (None, 'surrogate_then_replace'):
            return obj.encode('utf-8', 'surrogateescape').decode('utf-8', 'replace').encode(encoding, 'replace')
        if errors == 'surrogate_or_replace':
            return obj.encode(encoding, 'replace')
        raise


def to_text(obj, encoding='utf-8', errors=None, nonstring='simplerepr'):
    """Text of bytes; other objects as `nonstring` says."""
    if isinstance(obj, str):
        return obj
    handler = 'surrogateescape' if errors in _COMPOSED else errors
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return bytes(obj).decode(encoding, handler)
    done, obj = _is_other(obj, nonstring, '')
    return obj if done else to_text(obj, encoding, errors)


to_native = to_text


def _json_encode_fallback(obj):
    if isinstance(obj, Set):
        return list(obj)
    if isinstance(obj, (datetime.datetime, datetime.date)):
        return obj.isoformat()
    if isinstance(obj, bytes):
        return to_text(obj)
    if isinstance(obj, Mapping):
        return dict(obj)
    raise TypeError('Cannot json serialize %s' % to_text(obj))


def container_to_bytes(d, encoding='utf-8', errors='surrogate_or_strict'):
    """All texts in a nest of containers as bytes."""
    return _contained(d, lambda item: to_bytes(item, encoding, errors, 'passthru'))


def container_to_text(d, encoding='utf-8', errors='surrogate_or_strict'):
    """All bytes in a nest of containers as texts."""
    return _contained(d, lambda item: to_text(item, encoding, errors, 'passthru'))


def _contained(item, convert):
    if isinstance(item, dict):
        return {_contained(key, convert): _contained(value, convert) for key, value in item.items()}
    if isinstance(item, list):
        return [_contained(value, convert) for value in item]
    if isinstance(item, tuple):
        return tuple(_contained(value, convert) for value in item)
    return convert(item)


def jsonify(data, **kwargs):
    """JSON of a value; bytes that are not UTF-8 are read as Latin-1."""
    for encoding in ('utf-8', 'latin-1'):
        try:
            readable = container_to_text(data, encoding, 'strict')
        except UnicodeDecodeError:
            continue
        return json.dumps(readable, default=_json_encode_fallback, **kwargs)
    raise UnicodeError('Invalid unicode encoding encountered')
