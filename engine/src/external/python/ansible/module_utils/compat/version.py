"""Versions that can be compared."""

import re


class Version(object):
    """The comparisons of versions; what they compare, subclasses say."""

    def __init__(self, vstring=None):
        if vstring:
            self.parse(vstring)

    def __repr__(self):
        return "%s ('%s')" % (self.__class__.__name__, self)

    def _compared(self, other):
        if isinstance(other, str):
            other = self.__class__(other)
        return self._cmp(other)

    def __eq__(self, other):
        return self._compared(other) == 0

    def __lt__(self, other):
        return self._compared(other) < 0

    def __le__(self, other):
        return self._compared(other) <= 0

    def __gt__(self, other):
        return self._compared(other) > 0

    def __ge__(self, other):
        return self._compared(other) >= 0


def _order(a, b):
    return (a > b) - (a < b)


class LooseVersion(Version):
    """Numbers and words, in any form."""

    component_re = re.compile(r'(\d+|[a-z]+|\.)', re.VERBOSE)

    def parse(self, vstring):
        self.vstring = vstring
        parts = [part for part in self.component_re.split(vstring) if part and part != '.']
        self.version = [int(part) if part.isdigit() else part for part in parts]

    def __str__(self):
        return self.vstring

    def _cmp(self, other):
        return _order(self.version, other.version)


class StrictVersion(Version):
    """`1.2`, `1.2.3`, `1.2a1`, `1.2.3b4`."""

    version_re = re.compile(r'^(\d+)\.(\d+)(?:\.(\d+))?(?:([ab])(\d+))?$')

    def parse(self, vstring):
        match = self.version_re.match(vstring)
        if not match:
            raise ValueError("invalid version number '%s'" % vstring)
        major, minor, patch, letter, number = match.groups()
        self.version = (int(major), int(minor), int(patch or 0))
        self.prerelease = (letter, int(number)) if letter else None

    def __str__(self):
        shown = self.version if self.version[2] else self.version[:2]
        text = '.'.join(map(str, shown))
        return text + self.prerelease[0] + str(self.prerelease[1]) if self.prerelease else text

    def _cmp(self, other):
        # What comes before a release is older than it.
        mine = (self.version, self.prerelease is None, self.prerelease or ())
        return _order(mine, (other.version, other.prerelease is None, other.prerelease or ()))
