"""Small files and mounts."""

import os


def get_file_content(path, default=None, strip=True):
    """A file's text; the default where it cannot be read or is empty."""
    if not (os.path.exists(path) and os.access(path, os.R_OK)):
        return default
    try:
        with open(path, errors='surrogateescape') as text:
            data = text.read()
    except OSError:
        return default
    return (data.strip() if strip else data) or default


def get_file_lines(path, strip=True, line_sep=None):
    """A file's lines."""
    data = get_file_content(path, strip=strip)
    if not data:
        return []
    return data.splitlines() if line_sep is None else data.rstrip(line_sep).split(line_sep)


def get_mount_size(mountpoint):
    """The sizes of what is mounted somewhere, in bytes and nodes."""
    try:
        stat = os.statvfs(mountpoint)
    except OSError:
        return {}
    return dict(
        size_total=stat.f_frsize * stat.f_blocks,
        size_available=stat.f_frsize * stat.f_bavail,
        block_size=stat.f_bsize,
        block_total=stat.f_blocks,
        block_available=stat.f_bavail,
        block_used=stat.f_blocks - stat.f_bavail,
        inode_total=stat.f_files,
        inode_available=stat.f_favail,
        inode_used=stat.f_files - stat.f_favail,
    )
