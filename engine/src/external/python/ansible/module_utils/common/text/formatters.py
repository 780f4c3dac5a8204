"""Sizes as people write them."""

import re

SIZE_RANGES = {letter: 1 << 10 * (at + 1) for at, letter in enumerate('KMGTPEZY')}
SIZE_RANGES['B'] = 1
VALID_UNITS = {
    'B': (('byte', 'B'), ('bit', 'b')),
    'K': (('kilobyte', 'KB'), ('kilobit', 'Kb')),
    'M': (('megabyte', 'MB'), ('megabit', 'Mb')),
    'G': (('gigabyte', 'GB'), ('gigabit', 'Gb')),
    'T': (('terabyte', 'TB'), ('terabit', 'Tb')),
    'P': (('petabyte', 'PB'), ('petabit', 'Pb')),
    'E': (('exabyte', 'EB'), ('exabit', 'Eb')),
    'Z': (('zetabyte', 'ZB'), ('zetabit', 'Zb')),
    'Y': (('yottabyte', 'YB'), ('yottabit', 'Yb')),
}


def lenient_lowercase(lst):
    """The texts of a list in lower case, the rest as it is."""
    return [value.lower() if hasattr(value, 'lower') else value for value in lst]


def human_to_bytes(number, default_unit=None, isbits=False):
    """`10M` as a number."""
    match = re.search(r'^([0-9]*\.?[0-9]+)(?:\s*([A-Za-z]+))?\s*$', str(number))
    if match is None:
        raise ValueError("human_to_bytes() can't interpret following string: %s" % number)
    value, unit = float(match.group(1)), match.group(2) or default_unit
    if not unit:
        return int(round(value))
    letter = unit[0].upper()
    if letter not in SIZE_RANGES:
        raise ValueError(
            'human_to_bytes() failed to convert %s (unit = %s). The suffix must be one of %s'
            % (number, unit, ', '.join(sorted(SIZE_RANGES)))
        )
    word, short = VALID_UNITS[letter][1 if isbits else 0]
    if not (len(unit) == 1 or unit == short or unit.lower() in (word, word + 's')):
        raise ValueError(
            'human_to_bytes() failed to convert %s. Value is not a valid string (%s)' % (number, word)
        )
    return int(round(value * SIZE_RANGES[letter]))


def bytes_to_human(size, isbits=False, unit=None):
    """A number as `10.00 MB`."""
    base = 'bits' if isbits else 'Bytes'
    for suffix, limit in sorted(SIZE_RANGES.items(), key=lambda item: -item[1]):
        if (unit is None and size >= limit) or (unit is not None and unit.upper() == suffix[0]):
            break
    else:
        suffix, limit = 'B', 1
    if limit != 1:
        suffix += base[0]
    else:
        suffix = base
    return '%.2f %s' % (size / limit, suffix)
