"""Names in SQL, quoted."""

import re


class SQLParseError(Exception):
    """A name that is not one."""


class UnclosedQuoteError(SQLParseError):
    """A quote that does not end."""


_LEVELS = {'database': 1, 'schema': 2, 'table': 3, 'column': 4, 'role': 1, 'tablespace': 1, 'sequence': 3, 'publication': 1}
_MYSQL_LEVELS = {'database': 1, 'table': 2, 'column': 3, 'role': 1, 'vars': 1}


def _parts(identifier, quote):
    """The parts between the dots, each without its quotes."""
    parts, rest = [], identifier
    while True:
        if rest.startswith(quote):
            match = re.match('%s((?:[^%s]|%s)*)%s(\\.|$)' % (quote, quote, quote * 2, quote), rest)
            if not match:
                closed = rest.count(quote) % 2 == 0
                if closed:
                    raise SQLParseError('User escaped identifiers must escape extra quotes')
                raise UnclosedQuoteError
            parts.append(match.group(1).replace(quote * 2, quote))
            rest, more = rest[match.end():], match.group(2) == '.'
        else:
            part, dot, rest = rest.partition('.')
            parts.append(part)
            more = dot == '.'
        if not more:
            return parts
        if not rest:
            raise SQLParseError('Identifier name unspecified or unquoted trailing dot')


def _quoted(identifier, id_type, quote, levels, system):
    parts = _parts(identifier, quote)
    if len(parts) > levels[id_type]:
        raise SQLParseError('%s does not support %s with more than %i dots' % (system, id_type, levels[id_type]))
    return [quote + part.replace(quote, quote * 2) + quote for part in parts]


def pg_quote_identifier(identifier, id_type):
    return '.'.join(_quoted(identifier, id_type, '"', _LEVELS, 'PostgreSQL'))


def mysql_quote_identifier(identifier, id_type):
    quoted = _quoted(identifier, id_type, '`', _MYSQL_LEVELS, 'MySQL')
    return '.'.join('*' if part == '`*`' and id_type != 'vars' else part for part in quoted)


def is_input_dangerous(string):
    """Whether a text looks like more than a value."""
    if not string:
        return False
    return bool(re.search(r"('|\"|;|--|\bunion\b.*\bselect\b)", string, re.IGNORECASE))


def check_input(module, *args):
    """Fails the module where a text among these looks like more than a value."""
    flat = [item for arg in args for item in (arg if isinstance(arg, (list, tuple)) else [arg])]
    wrong = [item for item in flat if isinstance(item, str) and is_input_dangerous(item)]
    if wrong:
        module.fail_json(msg='Passed input \'%s\' is potentially dangerous' % ', '.join(wrong))
