"""Modules by name."""

from importlib import import_module
