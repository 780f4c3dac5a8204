"""SELinux where the host has its Python package; an ImportError where not."""

from selinux import *
