"""Services on the net: arguments, rates, another try."""

import copy
import functools
import itertools
import random
import sys
import time


def rate_limit_argument_spec(spec=None):
    arguments = dict(rate=dict(type='int'), rate_limit=dict(type='int'))
    arguments.update(spec or {})
    return arguments


def retry_argument_spec(spec=None):
    arguments = dict(retries=dict(type='int'), retry_pause=dict(type='float', default=1))
    arguments.update(spec or {})
    return arguments


def basic_auth_argument_spec(spec=None):
    arguments = dict(
        api_username=dict(type='str'),
        api_password=dict(type='str', no_log=True),
        api_url=dict(type='str'),
        validate_certs=dict(type='bool', default=True),
    )
    arguments.update(spec or {})
    return arguments


def rate_limit(rate=None, rate_limit=None):
    """A decorator: at most `rate` calls in `rate_limit` seconds."""
    pause = float(rate_limit) / float(rate) if rate is not None and rate_limit is not None else None

    def wrapper(f):
        last = [0.0]

        @functools.wraps(f)
        def limited(*args, **kwargs):
            if pause is not None:
                time.sleep(max(0.0, last[0] + pause - time.time()))
            result = f(*args, **kwargs)
            last[0] = time.time()
            return result

        return limited

    return wrapper


def retry(retries=None, retry_pause=1):
    """A decorator: calls again until something comes, `retries` times at most."""

    def wrapper(f):
        @functools.wraps(f)
        def retried(*args, **kwargs):
            for tried in itertools.count(1):
                if retries is not None and tried > retries:
                    raise Exception('Retry limit exceeded: %d' % retries)
                try:
                    result = f(*args, **kwargs)
                except Exception:
                    result = None
                if result or retries is None:
                    return result
                time.sleep(retry_pause)

        return retried

    return wrapper


def generate_jittered_backoff(retries=10, delay_base=3, delay_threshold=60):
    """Pauses in seconds, longer and longer, each a little by chance."""
    for attempt in range(retries):
        yield random.randint(0, min(delay_threshold, delay_base * 2 ** attempt))


def retry_never(exception_or_result):
    return False


def retry_with_delays_and_condition(backoff_iterator, should_retry_error=None):
    """A decorator: calls again after these pauses, while the error is one to be tried again."""
    should_retry = should_retry_error or retry_never

    def wrapper(function):
        @functools.wraps(function)
        def retried(*args, **kwargs):
            call = functools.partial(function, *args, **kwargs)
            for delay in backoff_iterator:
                try:
                    return call()
                except Exception as problem:
                    if not should_retry(problem):
                        raise
                time.sleep(delay)
            return call()

        return retried

    return wrapper
