"""Waiting for files."""

from selectors import *
from selectors import DefaultSelector, EVENT_READ, EVENT_WRITE, PollSelector, SelectSelector
