"""Requests by HTTP and HTTPS (and whatever else Python's urllib opens)."""

import base64
import email.mime.application
import email.mime.multipart
import email.mime.nonmultipart
import email.parser
import email.policy
import email.utils
import gzip
import io
import json
import mimetypes
import netrc
import os
import socket
import ssl
import tempfile
import traceback
import urllib.error
import urllib.request
from http import cookiejar
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlparse, urlunparse

from ansible.module_utils.basic import missing_required_lib
from ansible.module_utils.common.collections import Mapping, is_sequence
from ansible.module_utils.common.text.converters import to_bytes, to_native, to_text

HAS_GSSAPI = False
HAS_SSL = HAS_SSLCONTEXT = True
HAS_GZIP = True
PROTOCOL = ssl.PROTOCOL_TLS_CLIENT if hasattr(ssl, 'PROTOCOL_TLS_CLIENT') else ssl.PROTOCOL_TLS
HTTP_AGENT = 'ansible-httpget'


class ConnectionError(Exception):
    """The other side cannot be reached."""


class ProxyError(ConnectionError):
    """The proxy cannot be reached."""


class SSLValidationError(ConnectionError):
    """The other side's certificate is not to be trusted."""


class NoSSLError(SSLValidationError):
    """This Python has no TLS."""


class MissingModuleError(Exception):
    """A library of Python is missing."""

    def __init__(self, message, import_traceback=None, module=None):
        super(MissingModuleError, self).__init__(message)
        self.import_traceback = import_traceback
        self.module = module


class ParseResultDottedDict(dict):
    """The parts of an address, by name and as attributes."""

    def __init__(self, *args, **kwargs):
        super(ParseResultDottedDict, self).__init__(*args, **kwargs)
        self.__dict__ = self

    def as_list(self):
        return [self.get(name, None) for name in ('scheme', 'netloc', 'path', 'params', 'query', 'fragment')]


def generic_urlparse(parts):
    """The parts of an address as a mapping."""
    names = ('scheme', 'netloc', 'path', 'params', 'query', 'fragment', 'username', 'password', 'hostname', 'port')
    return ParseResultDottedDict((name, getattr(parts, name)) for name in names)


def url_argument_spec():
    """The arguments that `fetch_url` reads from a module."""
    return dict(
        url=dict(type='str'),
        force=dict(type='bool', default=False),
        http_agent=dict(type='str', default=HTTP_AGENT),
        use_proxy=dict(type='bool', default=True),
        validate_certs=dict(type='bool', default=True),
        url_username=dict(type='str'),
        url_password=dict(type='str', no_log=True),
        force_basic_auth=dict(type='bool', default=False),
        client_cert=dict(type='path'),
        client_key=dict(type='path'),
        use_gssapi=dict(type='bool', default=False),
    )


def basic_auth_header(username, password):
    """The value of the header `Authorization`."""
    return b'Basic ' + base64.b64encode(to_bytes('%s:%s' % (username or '', password or ''), errors='surrogate_or_strict'))


def get_user_agent():
    return HTTP_AGENT


def make_context(cafile=None, cadata=None, capath=None, ciphers=None, validate_certs=True, client_cert=None, client_key=None):
    """How TLS is spoken."""
    context = ssl.create_default_context()
    if not validate_certs:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if ciphers:
        context.set_ciphers(':'.join(ciphers) if is_sequence(ciphers) else ciphers)
    if validate_certs and (cafile or cadata or capath):
        context.load_verify_locations(cafile=cafile, capath=capath, cadata=cadata)
    if client_cert:
        context.load_cert_chain(client_cert, keyfile=client_key)
    return context


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections as `follow_redirects` says: all, safe, none, urllib2."""

    def __init__(self, follow):
        self._follow = {True: 'all', False: 'none', 'yes': 'all', 'no': 'none', None: 'urllib2'}.get(follow, follow)

    def redirect_request(self, req, fp, code, msg, hdrs, newurl):
        if self._follow == 'urllib2':
            return super(_Redirects, self).redirect_request(req, fp, code, msg, hdrs, newurl)
        method = req.get_method()
        if self._follow not in ('all', 'yes', 'safe') or self._follow == 'safe' and method not in ('GET', 'HEAD'):
            raise HTTPError(newurl, code, msg, hdrs, fp)
        if code in (307, 308):
            data, headers = req.data, dict(req.headers)
        else:
            data = None
            headers = {name: value for name, value in req.headers.items() if name.lower() not in ('content-length', 'content-type', 'transfer-encoding')}
            if code == 303 and method != 'HEAD' or code in (301, 302) and method == 'POST':
                method = 'GET'
        return urllib.request.Request(
            newurl.replace(' ', '%20'), data=data, headers=headers, method=method, origin_req_host=req.origin_req_host, unverifiable=True
        )

    def http_error_308(self, req, fp, code, msg, headers):
        return self.http_error_302(req, fp, 307, msg, headers)


class _UnixConnection(urllib.request.http.client.HTTPConnection):
    """HTTP over a socket of this machine."""

    def __init__(self, path, *args, **kwargs):
        super(_UnixConnection, self).__init__(*args, **kwargs)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if self.timeout is not socket._GLOBAL_DEFAULT_TIMEOUT:
            self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _UnixHandler(urllib.request.HTTPHandler):
    def __init__(self, path):
        super(_UnixHandler, self).__init__()
        self._path = path

    def http_open(self, req):
        return self.do_open(lambda *args, **kwargs: _UnixConnection(self._path, *args, **kwargs), req)


class Request(object):
    """Requests with defaults in common."""

    def __init__(
        self,
        headers=None,
        use_proxy=True,
        force=False,
        timeout=10,
        validate_certs=True,
        url_username=None,
        url_password=None,
        http_agent=None,
        force_basic_auth=False,
        follow_redirects='urllib2',
        client_cert=None,
        client_key=None,
        cookies=None,
        unix_socket=None,
        ca_path=None,
        unredirected_headers=None,
        decompress=True,
        ciphers=None,
        use_netrc=True,
        context=None,
    ):
        if not isinstance(headers or {}, dict):
            raise ValueError('headers must be a dict: %r' % headers)
        self._defaults = dict(locals())
        del self._defaults['self']
        self.headers = headers or {}
        self.cookies = cookies if isinstance(cookies, cookiejar.CookieJar) else cookiejar.CookieJar()
        self._defaults['cookies'] = self.cookies

    def open(self, method, url, data=None, headers=None, last_mod_time=None, use_gssapi=False, **kwargs):
        """The answer, as urllib gives it. Raises HTTPError, URLError, OSError."""
        unknown = set(kwargs) - set(self._defaults)
        if unknown:
            raise TypeError('open() got an unexpected keyword argument %s' % sorted(unknown)[0])
        given = {name: kwargs.get(name) if kwargs.get(name) is not None else default for name, default in self._defaults.items()}
        if use_gssapi:
            raise MissingModuleError(missing_required_lib('gssapi'))
        handlers = []
        if given['unix_socket']:
            handlers.append(_UnixHandler(given['unix_socket']))
        parts = urlparse(url)
        sent = dict(self.headers)
        sent.update(headers or {})
        if parts.scheme != 'ftp':
            username, password = given['url_username'], given['url_password']
            if username:
                password = password or ''
            elif '@' in parts.netloc:
                credentials, host = parts.netloc.rsplit('@', 1)
                username, _colon, password = credentials.partition(':')
                username, password = unquote(username), unquote(password)
                parts = parts._replace(netloc=host)
                url = urlunparse(parts)
            if username and not given['force_basic_auth']:
                passwords = urllib.request.HTTPPasswordMgrWithDefaultRealm()
                passwords.add_password(None, urlunparse(parts._replace(params='', query='', fragment='')), username, password)
                handlers += [urllib.request.HTTPBasicAuthHandler(passwords), urllib.request.HTTPDigestAuthHandler(passwords)]
            elif username:
                sent['Authorization'] = to_native(basic_auth_header(username, password))
            elif given['use_netrc'] and not any(name.lower() == 'authorization' for name in sent):
                found = _from_netrc(parts.hostname)
                if found:
                    sent['Authorization'] = to_native(basic_auth_header(found[0], found[2]))
        if not given['use_proxy']:
            handlers.append(urllib.request.ProxyHandler({}))
        context = given['context'] or make_context(
            cafile=given['ca_path'],
            ciphers=given['ciphers'],
            validate_certs=given['validate_certs'],
            client_cert=given['client_cert'],
            client_key=given['client_key'],
        )
        handlers.append(urllib.request.HTTPSHandler(context=context))
        handlers.append(_Redirects(given['follow_redirects']))
        handlers.append(urllib.request.HTTPCookieProcessor(given['cookies']))
        opener = urllib.request.build_opener(*handlers)
        opener.addheaders = []
        request = urllib.request.Request(url, data=to_bytes(data, nonstring='passthru'), method=method.upper())
        request.add_header('User-agent', given['http_agent'] or HTTP_AGENT)
        if given['force']:
            request.add_header('cache-control', 'no-cache')
        elif last_mod_time:
            request.add_header('If-Modified-Since', email.utils.format_datetime(last_mod_time, usegmt=False))
        if given['decompress']:
            request.add_header('Accept-Encoding', 'gzip')
        once = [name.lower() for name in given['unredirected_headers'] or []]
        for name, value in sent.items():
            add = request.add_unredirected_header if name.lower() in once else request.add_header
            add(name, to_native(value))
        answer = opener.open(request, None, given['timeout'])
        if given['decompress'] and (answer.headers.get('content-encoding') or '').lower() == 'gzip':
            answer.fp = io.BufferedReader(gzip.GzipFile(fileobj=answer.fp)) if answer.fp else answer.fp
            answer.length = None
            del answer.headers['content-length']
            answer.read = answer.fp.read if answer.fp else answer.read
        return answer

    def get(self, url, **kwargs):
        return self.open('GET', url, **kwargs)

    def options(self, url, **kwargs):
        return self.open('OPTIONS', url, **kwargs)

    def head(self, url, **kwargs):
        return self.open('HEAD', url, **kwargs)

    def post(self, url, data=None, **kwargs):
        return self.open('POST', url, data=data, **kwargs)

    def put(self, url, data=None, **kwargs):
        return self.open('PUT', url, data=data, **kwargs)

    def patch(self, url, data=None, **kwargs):
        return self.open('PATCH', url, data=data, **kwargs)

    def delete(self, url, **kwargs):
        return self.open('DELETE', url, **kwargs)


def _from_netrc(host):
    try:
        return netrc.netrc(os.environ.get('NETRC')).authenticators(host)
    except (OSError, netrc.NetrcParseError, TypeError):
        return None


def open_url(url, data=None, headers=None, method=None, use_proxy=True, force=False, last_mod_time=None, timeout=10, **kwargs):
    """One request. Raises HTTPError, URLError, OSError."""
    method = method or ('POST' if data else 'GET')
    use_gssapi = kwargs.pop('use_gssapi', False)
    return Request().open(
        method, url, data=data, headers=headers, use_proxy=use_proxy, force=force, last_mod_time=last_mod_time, timeout=timeout,
        use_gssapi=use_gssapi, **kwargs
    )


def prepare_multipart(fields):
    """The content type and the body of a form."""
    if not isinstance(fields, Mapping):
        raise TypeError('Mapping is required, cannot be type %s' % fields.__class__.__name__)
    form = email.mime.multipart.MIMEMultipart('form-data')
    for name, value in sorted(fields.items()):
        filename, content, kind = None, value, 'text/plain'
        if isinstance(value, Mapping):
            filename, content, kind = value.get('filename'), value.get('content'), value.get('mime_type')
            if not filename and content is None:
                raise ValueError('at least one of filename or content must be provided')
            kind = kind or mimetypes.guess_type(filename or '', strict=False)[0] or 'application/octet-stream'
        elif not isinstance(value, (str, bytes)):
            raise TypeError('value must be a string, or mapping, cannot be type %s' % value.__class__.__name__)
        if content is None:
            with open(filename, 'rb') as given:
                part = email.mime.application.MIMEApplication(given.read())
            del part['Content-Type']
            part.add_header('Content-Type', kind)
        else:
            part = email.mime.nonmultipart.MIMENonMultipart(*kind.partition('/')[::2])
            part.set_payload(to_bytes(content))
        part.add_header('Content-Disposition', 'form-data')
        del part['MIME-Version']
        part.set_param('name', name, header='Content-Disposition')
        if filename:
            part.set_param('filename', os.path.basename(filename), header='Content-Disposition')
        form.attach(part)
    raw = form.as_bytes(policy=email.policy.HTTP)
    headers, _sep, body = raw.partition(b'\r\n\r\n')
    parsed = email.parser.BytesHeaderParser().parsebytes(headers)
    return parsed['content-type'], body


def fetch_url(
    module,
    url,
    data=None,
    headers=None,
    method=None,
    use_proxy=None,
    force=False,
    last_mod_time=None,
    timeout=10,
    use_gssapi=False,
    unix_socket=None,
    ca_path=None,
    cookies=None,
    unredirected_headers=None,
    decompress=True,
    ciphers=None,
    use_netrc=True,
):
    """The answer, or none where there was none; and what is to be known of it: status, url, msg, headers, body."""
    params = module.params
    jar = cookies if isinstance(cookies, cookiejar.CookieJar) else cookiejar.LWPCookieJar()
    answer, info = None, dict(url=url, status=-1)
    try:
        answer = open_url(
            url,
            data=data,
            headers=headers,
            method=method,
            use_proxy=params.get('use_proxy', True) if use_proxy is None else use_proxy,
            force=params.get('force') or force,
            last_mod_time=last_mod_time,
            timeout=timeout,
            validate_certs=params.get('validate_certs', True),
            url_username=params.get('url_username', ''),
            url_password=params.get('url_password', ''),
            http_agent=params.get('http_agent', HTTP_AGENT),
            force_basic_auth=params.get('force_basic_auth', ''),
            follow_redirects=params.get('follow_redirects', 'urllib2'),
            client_cert=params.get('client_cert'),
            client_key=params.get('client_key'),
            cookies=jar,
            use_gssapi=params.get('use_gssapi', use_gssapi),
            unix_socket=unix_socket,
            ca_path=ca_path,
            unredirected_headers=unredirected_headers,
            decompress=decompress,
            ciphers=ciphers,
            use_netrc=use_netrc,
        )
        _describe(info, answer.headers)
        info['cookies_string'] = '; '.join('%s=%s' % (cookie.name, cookie.value) for cookie in jar)
        info['cookies'] = {cookie.name: cookie.value for cookie in jar}
        info.update(msg='OK (%s bytes)' % answer.headers.get('Content-Length', 'unknown'), url=answer.geturl(), status=answer.getcode())
    except (ConnectionError, ValueError) as problem:
        module.fail_json(msg=to_native(problem), **info)
    except MissingModuleError as problem:
        module.fail_json(msg=to_text(problem), exception=problem.import_traceback)
    except HTTPError as problem:
        answer = problem
        try:
            body = problem.read() if problem.fp is not None else ''
        except (OSError, AttributeError):
            body = ''
        _describe(info, problem.headers)
        info.update(msg=to_native(problem), body=body, status=problem.code)
    except URLError as problem:
        info.update(msg='Request failed: %s' % to_native(problem), status=int(getattr(problem, 'code', -1)))
    except socket.timeout:
        info.update(msg='Connection failure: timed out', status=-1)
    except OSError as problem:
        info.update(msg='Connection failure: %s' % to_native(problem), status=-1)
    except Exception as problem:
        info.update(msg='An unknown error occurred: %s' % to_native(problem), exception=traceback.format_exc(), status=-1)
    return answer, info


def _describe(info, headers):
    for name, value in (headers or {}).items():
        name = name.lower()
        info[name] = '%s, %s' % (info[name], value) if name in info and name != 'url' and name != 'status' else value




def fetch_file(
    module, url, data=None, headers=None, method=None, use_proxy=True, force=False, last_mod_time=None, timeout=10,
    unredirected_headers=None, decompress=True, ciphers=None,
):
    """Loads a file into the module's temporary directory; its path."""
    name, extension = os.path.splitext(os.path.basename(urlparse(url).path))
    with tempfile.NamedTemporaryFile(dir=module.tmpdir, prefix=name, suffix=extension, delete=False) as loaded:
        module.add_cleanup_file(loaded.name)
        answer, info = fetch_url(
            module, url, data, headers, method, use_proxy, force, last_mod_time, timeout,
            unredirected_headers=unredirected_headers, decompress=decompress, ciphers=ciphers,
        )
        if not answer or info['status'] >= 400:
            module.fail_json(msg='Failure downloading %s, %s' % (url, info['msg']))
        for part in iter(lambda: answer.read(65536), b''):
            loaded.write(part)
    return loaded.name


def get_ca_certs(cafile=None, capath=None):
    """Where this Python looks for authorities: a file, nothing, the paths."""
    paths = ssl.get_default_verify_paths()
    return cafile or paths.cafile, None, [path for path in (capath, paths.capath) if path]


def getpeercert(response, binary_form=False):
    """The certificate of the other side of an open answer."""
    return response.fp.raw._sock.getpeercert(binary_form)


def get_channel_binding_cert_hash(certificate_der):
    """The hash of a certificate that is bound to; none, for it is only used with GSSAPI."""
    return None
