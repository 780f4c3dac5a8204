"""Types for readers."""

from typing import *
