"""Where Python 3 keeps what Python 2 had elsewhere."""

import builtins
import collections
import configparser
import functools
import html.parser as html_parser
import http.client as http_client
import http.cookiejar as http_cookiejar
import http.cookies as http_cookies
import io
import itertools
import pickle as cPickle
import queue
import shlex
import socketserver
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
import urllib.robotparser

# `six.moves.urllib.parse` is a module of this name, too.
for _name in ('urllib', 'urllib.parse', 'urllib.error', 'urllib.request', 'urllib.robotparser'):
    sys.modules[__name__ + '.' + _name] = sys.modules[_name]
for _name, _module in (
    ('builtins', builtins),
    ('configparser', configparser),
    ('cPickle', cPickle),
    ('html_parser', html_parser),
    ('http_client', http_client),
    ('http_cookiejar', http_cookiejar),
    ('http_cookies', http_cookies),
    ('queue', queue),
    ('socketserver', socketserver),
):
    sys.modules[__name__ + '.' + _name] = _module

cStringIO = StringIO = io.StringIO
UserDict = collections.UserDict
UserList = collections.UserList
UserString = collections.UserString
filter = builtins.filter
filterfalse = itertools.filterfalse
getoutput = subprocess.getoutput
input = builtins.input
intern = sys.intern
map = builtins.map
range = builtins.range
reduce = functools.reduce
shlex_quote = shlex.quote
xrange = builtins.range
zip = builtins.zip
zip_longest = itertools.zip_longest
