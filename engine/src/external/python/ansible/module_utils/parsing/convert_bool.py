"""Yes and no, as people spell them."""

from ansible.module_utils.common.text.converters import to_text

BOOLEANS_TRUE = frozenset(('y', 'yes', 'on', '1', 'true', 't', 1, 1.0, True))
BOOLEANS_FALSE = frozenset(('n', 'no', 'off', '0', 'false', 'f', 0, 0.0, False))
BOOLEANS = BOOLEANS_TRUE.union(BOOLEANS_FALSE)


def boolean(value, strict=True):
    """A spelling as a boolean; what is neither is false, or a TypeError where `strict` is set."""
    if isinstance(value, bool):
        return value
    spelling = value
    if isinstance(value, (str, bytes)):
        spelling = to_text(value, errors='surrogate_or_strict').lower().strip()
    try:
        if spelling in BOOLEANS_TRUE:
            return True
        if spelling in BOOLEANS_FALSE or not strict:
            return False
    except TypeError:
        if not strict:
            return False
    raise TypeError(
        "The value '%s' is not a valid boolean. Valid booleans include: %s"
        % (to_text(value), ', '.join(repr(i) for i in BOOLEANS))
    )
