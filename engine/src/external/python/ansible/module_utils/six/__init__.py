"""What is left of `six` where there is only Python 3."""

import builtins
import functools
import io
import operator
import struct
import sys
import types

from ansible.module_utils.six import moves

PY2 = False
PY3 = True
PY34 = True

string_types = (str,)
integer_types = (int,)
class_types = (type,)
text_type = str
binary_type = bytes
MAXSIZE = sys.maxsize

StringIO = io.StringIO
BytesIO = io.BytesIO
unichr = chr
int2byte = struct.Struct('>B').pack
byte2int = operator.itemgetter(0)
indexbytes = operator.getitem
iterbytes = iter
get_unbound_function = lambda unbound: unbound
create_bound_method = types.MethodType
Iterator = object
next = builtins.next
advance_iterator = builtins.next
callable = builtins.callable
wraps = functools.wraps
get_method_function = operator.attrgetter('__func__')
get_method_self = operator.attrgetter('__self__')
get_function_code = operator.attrgetter('__code__')
get_function_globals = operator.attrgetter('__globals__')
exec_ = builtins.exec
print_ = builtins.print


def b(s):
    return s.encode('latin-1')


def u(s):
    return s


def iterkeys(d, **kw):
    return iter(d.keys(**kw))


def itervalues(d, **kw):
    return iter(d.values(**kw))


def iteritems(d, **kw):
    return iter(d.items(**kw))


def iterlists(d, **kw):
    return iter(d.lists(**kw))


viewkeys = operator.methodcaller('keys')
viewvalues = operator.methodcaller('values')
viewitems = operator.methodcaller('items')


def ensure_binary(s, encoding='utf-8', errors='strict'):
    return s if isinstance(s, bytes) else s.encode(encoding, errors)


def ensure_text(s, encoding='utf-8', errors='strict'):
    return s.decode(encoding, errors) if isinstance(s, bytes) else s


ensure_str = ensure_text


def reraise(tp, value, tb=None):
    """Raises with another traceback."""
    if value is None:
        value = tp()
    raise value.with_traceback(tb) if value.__traceback__ is not tb else value


def raise_from(value, from_value):
    raise value from from_value


def with_metaclass(meta, *bases):
    """A base that makes classes with this metaclass."""

    class Temporary(type):
        def __new__(cls, name, _bases, namespace):
            return meta(name, bases, namespace)

    return type.__new__(Temporary, 'temporary_class', (), {})


def add_metaclass(metaclass):
    """A decorator that makes a class anew with this metaclass."""

    def wrapper(cls):
        namespace = dict(cls.__dict__)
        for name in ('__dict__', '__weakref__'):
            namespace.pop(name, None)
        for name in namespace.get('__slots__', ()):
            namespace.pop(name, None)
        return metaclass(cls.__name__, cls.__bases__, namespace)

    return wrapper


def python_2_unicode_compatible(klass):
    return klass
