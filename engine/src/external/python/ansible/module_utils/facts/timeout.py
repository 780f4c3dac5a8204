"""An end to what takes too long."""

import functools
import multiprocessing.pool

GATHER_TIMEOUT = None
DEFAULT_GATHER_TIMEOUT = 10


class TimeoutError(Exception):
    """It took too long."""


def timeout(seconds=None, error_message='Timer expired'):
    """A decorator: a TimeoutError after so many seconds."""

    def decorator(func):
        @functools.wraps(func)
        def limited(*args, **kwargs):
            limit = seconds or GATHER_TIMEOUT or DEFAULT_GATHER_TIMEOUT
            pool = multiprocessing.pool.ThreadPool(processes=1)
            try:
                return pool.apply_async(func, args, kwargs).get(limit)
            except multiprocessing.TimeoutError:
                raise TimeoutError('Timer expired after %s seconds' % limit)
            finally:
                pool.terminate()

        return limited

    if callable(seconds):
        func, seconds = seconds, None
        return decorator(func)
    return decorator
