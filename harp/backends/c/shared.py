"""Functions that programs share: declared where one calls them, and compiled once for a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from harp.backends.protocol import Unit


class Shared(NamedTuple):
    """A function that has a unit of its own. The declaration is without a semicolon: the unit begins with it, too."""

    declaration: str
    unit: Callable[[], Unit]
