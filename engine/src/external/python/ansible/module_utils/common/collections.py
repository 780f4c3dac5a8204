"""What kinds of containers values are."""

from collections.abc import Hashable, Iterable, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence, Set


class ImmutableDict(Hashable, Mapping):
    """A mapping that is never changed."""

    def __init__(self, *args, **kwargs):
        self._store = dict(*args, **kwargs)

    def __getitem__(self, key):
        return self._store[key]

    def __iter__(self):
        return iter(self._store)

    def __len__(self):
        return len(self._store)

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __eq__(self, other):
        try:
            return hash(self) == hash(other)
        except TypeError:
            return False

    def __repr__(self):
        return 'ImmutableDict(%r)' % self._store

    def union(self, overriding_mapping):
        """Both, the other one's values first."""
        return ImmutableDict(self._store, **overriding_mapping)

    def difference(self, subtractive_iterable):
        """Without these keys."""
        without = frozenset(subtractive_iterable)
        return ImmutableDict((key, value) for key, value in self._store.items() if key not in without)


def is_string(seq):
    return isinstance(seq, (str, bytes))


def is_iterable(seq, include_strings=False):
    if not include_strings and is_string(seq):
        return False
    try:
        iter(seq)
        return True
    except TypeError:
        return False


def is_sequence(seq, include_strings=False):
    if not include_strings and is_string(seq):
        return False
    return isinstance(seq, Sequence)


def count(seq):
    """How often each item is there."""
    if not is_iterable(seq):
        raise Exception('Argument provided  is not an iterable')
    counters = {}
    for item in seq:
        counters[item] = counters.get(item, 0) + 1
    return counters
