"""Source locations, and what else error messages share: which line of the user is running, and how they show a
number."""

from __future__ import annotations

import dis
import enum
import itertools
import linecache
import os
import sys
from types import FrameType

import numpy as np

Site = tuple[str, int]  # the user's file and line

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")  # ends in a separator: not "harp_demo.py"
_NUMPY = os.path.join(os.path.dirname(np.__file__), "")  # np.sum(x) calls x.sum()
_LONGEST = 60  # of a quoted expression
_MADE = ("<attrs", "<host code")  # of functions that are made at run time
_FRAMEWORKS = (_PACKAGE, _NUMPY, *_MADE, "<__array_function__")
_LIBRARIES = ("/optree/", "/site-packages/scipy/")


def is_of_harp(frame: FrameType) -> bool:
    """Whether it runs code of harp, or code that was made for it."""
    return frame.f_code.co_filename.startswith((_PACKAGE, *_MADE))


def user_frame() -> FrameType | None:
    """The innermost frame that is neither harp's own nor of a library that called back."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_FRAMEWORKS) and not any(library in name for library in _LIBRARIES):
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


def calling_frame() -> FrameType | None:
    """The innermost frame that is not harp's own: the user's, or of a library that computes with harp's arrays."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_FRAMEWORKS):
        frame = frame.f_back
    return frame


def is_ignored(frame: FrameType | None) -> bool:
    """Whether the code in the calling frame drops the result of the call that it is making, as a statement does."""
    if frame is None or frame is not calling_frame():
        return False
    following = frame.f_lasti + 2
    code = frame.f_code.co_code
    while following < len(code) and dis.opname[code[following]] == "CACHE":
        following += 2
    return following < len(code) and dis.opname[code[following]] == "POP_TOP"


_SINGULAR = {"axes": "axis", "indices": "index", "entries": "entry", "leaves": "leaf"}


def plural(count: object, noun: str) -> str:
    """How many of something, for messages: "1 axis", "2 axes". A size that is a symbol is not asked whether it is 1."""
    one = isinstance(count, int) and count == 1
    return f"{count} {_SINGULAR.get(noun, noun.removesuffix('s')) if one else noun}"


def position(frame: FrameType, at: int | None = None) -> tuple[int | None, int | None, int | None, int | None]:
    """First and last line and column of the expression that a frame is computing, or computed `at` an instruction,
    where they are known."""
    place = frame.f_lasti if at is None else at
    return next(itertools.islice(frame.f_code.co_positions(), place // 2, None), (None,) * 4)


def running_text(frame: FrameType, at: int | None = None) -> str:
    """The expression that a frame is computing, or computed `at` an instruction, as it is written; empty where there
    is no source."""
    first, last, start, end = position(frame, at)
    if first is None or last is None or start is None or end is None:
        return ""
    source = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]
    lines = [line.encode(errors="surrogatepass") for line in source]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end]  # columns count bytes
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")


def shown(text: str) -> str:
    """A quoted expression, on one line."""
    whole = " ".join(text.split())
    return whole if len(whole) <= _LONGEST else f"{whole[: _LONGEST - 4]} ..."


def printable(text: str) -> str:
    r"""A text with backslash escapes in place of characters that a terminal obeys or cannot print.

    >>> print(printable("caf\u00e9 \x1b[2J"))
    café \x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def where(quoted: bool = False) -> str:
    """The end of an error message: the user's line, and what runs there if the message does not quote it."""
    frame = user_frame()
    if frame is None:
        return ""
    text = "" if quoted else shown(running_text(frame))
    return f"\n  at {frame.f_code.co_filename}:{frame.f_lineno}{': ' if text else ''}{text}"


def registering(value: object, behind: str) -> str:
    """The advice to register the class of a value, if it is one of the user, and what goes `behind` it."""
    cls = type(value)
    if cls.__module__.partition(".")[0] in ("builtins", "numpy", "harp") or isinstance(value, enum.Enum):
        return ""
    if hasattr(value, "toarray"):
        return f"make an array of it with .toarray(){behind}"
    has_fields = hasattr(cls, "__dataclass_fields__") or hasattr(cls, "__attrs_attrs__")
    how = "@harp.tree.register" if has_fields else f"harp.tree.register({cls.__name__}, flatten=..., unflatten=...)"
    return f"register a class that holds arrays with {how}{behind}"


def kind_of(value: object) -> str:
    """The type of a value, with its article, for messages."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' or name == 'ndarray' else 'a'} {name}"
