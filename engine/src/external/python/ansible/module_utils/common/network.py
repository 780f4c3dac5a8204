"""Addresses, masks and hardware addresses."""

import re
import socket
import struct

VALID_MASKS = [(0xffffffff << shift) & 0xffffffff for shift in range(32, -1, -1)]


def _number(address):
    return struct.unpack('!I', socket.inet_aton(address))[0]


def is_netmask(val):
    parts = str(val).split('.')
    if len(parts) != 4 or not all(part.isdigit() and int(part) < 256 for part in parts):
        return False
    return _number(str(val)) in VALID_MASKS


def is_masklen(val):
    try:
        return 0 <= int(val) <= 32
    except ValueError:
        return False


def to_netmask(val):
    """A length as a mask."""
    if not is_masklen(val):
        raise ValueError('invalid value for masklen')
    return socket.inet_ntoa(struct.pack('!I', VALID_MASKS[int(val)]))


def to_masklen(val):
    """A mask as a length."""
    if not is_netmask(val):
        raise ValueError('invalid value for netmask: %s' % val)
    return to_bits(val).count('1')


def to_bits(val):
    """A mask's bits as text."""
    return ''.join(bin(int(octet))[2:].zfill(8) for octet in val.split('.'))


def to_subnet(addr, mask, dotted_notation=False):
    """The network of an address, `10.0.0.0/24`."""
    length = int(mask) if is_masklen(mask) else to_masklen(mask)
    network = socket.inet_ntoa(struct.pack('!I', _number(addr) & VALID_MASKS[length]))
    return '%s %s' % (network, to_netmask(length)) if dotted_notation else '%s/%s' % (network, length)


def to_ipv6_network(addr):
    """The first three groups of an IPv6 address, and zeros."""
    return to_ipv6_subnet(addr, 3)


def to_ipv6_subnet(addr, groups=4):
    """The first groups of an IPv6 address, and zeros."""
    packed = socket.inet_pton(socket.AF_INET6, addr)
    words = struct.unpack('!8H', packed)[:groups]
    while words and words[-1] == 0:
        words = words[:-1]
    return ':'.join('%x' % word for word in words) + '::'


def is_mac(mac_address):
    return bool(re.match(r'^[0-9a-f]{2}([:-]?)[0-9a-f]{2}(\1[0-9a-f]{2}){4}$', mac_address.lower()))
