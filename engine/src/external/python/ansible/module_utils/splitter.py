"""`k=v k2="a b"` as words."""

import re


def is_quoted(data):
    return len(data) > 1 and data[0] == data[-1] and data[0] in '"\'' and data[-2] != '\\'


def unquote(data):
    return data[1:-1] if is_quoted(data) else data


def split_args(args):
    """The words, with their quotes; what is between `{{` and `}}` is one word."""
    words, current, quote, depth, escaped = [], '', None, 0, False
    for at, letter in enumerate(args):
        if escaped:
            escaped = False
        elif letter == '\\':
            escaped = True
        elif quote:
            quote = None if letter == quote else quote
        elif letter in '"\'':
            quote = letter
        elif args[at:at + 2] in ('{{', '{%', '{#'):
            depth += 1
        elif args[at:at + 2] in ('}}', '%}', '#}'):
            depth -= 1
        elif letter.isspace() and depth <= 0:
            if current:
                words.append(current)
            current = ''
            continue
        current += letter
    if quote or depth > 0:
        raise Exception('error while splitting arguments, either an unbalanced jinja2 block or quotes')
    return words + [current] if current else words
