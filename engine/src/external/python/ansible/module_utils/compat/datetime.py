"""Times in UTC."""

import datetime as _datetime

UTC = _datetime.timezone.utc


def utcnow():
    return _datetime.datetime.now(UTC)


def utcfromtimestamp(timestamp):
    return _datetime.datetime.fromtimestamp(timestamp, UTC)
