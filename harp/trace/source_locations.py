"""Source locations, and what else error messages share: which line of the user is running, and how they show a
number."""

from __future__ import annotations

import os
import sys
from types import FrameType

import numpy as np

Site = tuple[str, int]  # the user's file and line

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")  # ends in a separator: not "harp_demo.py"
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")  # np.sum(x) calls x.sum()
_FRAMEWORKS = (_PACKAGE, _NUMPY, "<attrs", "<__array_function__")


def user_frame() -> FrameType | None:
    """The innermost frame that is neither harp's own nor of a library that called back."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_FRAMEWORKS) and "/optree/" not in name:
            return frame
        frame = frame.f_back
    return None


def user_site() -> Site | None:
    """File and line of the user's code that is running."""
    frame = user_frame()
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def short(value: int) -> str:
    """A number, or about how large it is where it would fill the screen and Python may refuse to print it."""
    return str(value) if value.bit_length() < 256 else f"{'-' if value < 0 else ''}2**{value.bit_length() - 1} or so"


_SINGULAR = {"axes": "axis", "indices": "index", "entries": "entry", "leaves": "leaf"}


def plural(count: object, noun: str) -> str:
    """How many of something, for messages: "1 axis", "2 axes". A size that is a symbol is not asked whether it is 1."""
    one = isinstance(count, int) and count == 1
    return f"{count} {_SINGULAR.get(noun, noun.removesuffix('s')) if one else noun}"


def where() -> str:
    """The end of an error message: the user's line."""
    site = user_site()
    return f"\n  at {site[0]}:{site[1]}" if site else ""
