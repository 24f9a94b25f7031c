"""What is said where a function of harp is called with a keyword that it does not have.

Python raises that TypeError before any code of harp runs, so a note is added to it later: where a transform passes on
an error of the user's function, and where Python or IPython shows an error that nobody has caught. A call that is right
costs nothing.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import FrameType, ModuleType, TracebackType
from typing import Any

from harp.lazy import FUNCTIONS
from harp.trace.source_locations import is_of_harp, running_text

_UNKNOWN = re.compile(r"(?P<called>[\w.<>]+)\(\) got an unexpected keyword argument '(?P<keyword>\w+)'")
_CALLED = re.compile(
    r"(?P<array>.+)\.(?P<name>shape|ndim|size|dtype|T|mT|real|imag|itemsize|nbytes)\((?P<argument>.*)\)"
)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# What other libraries call these keywords; difflib finds those that are spelt in a similar way.
_ALSO = {
    "axes": "axis",
    "dim": "axis",
    "dims": "axis",
    "lr": "learning_rate",
    "keepdim": "keepdims",
    "keep_dims": "keepdims",
    "reverse": "descending",
    "size": "shape",
}
_ADVICE = {
    "out": "arrays do not change, so use the result",
    "where": "use harp.numpy.where on the argument or on the result",
    "initial": "combine it with the result",
}


def explain(error: BaseException) -> None:
    """Add a note to a TypeError of Python: which keyword to write, where a public function of harp does not have one,
    or that an attribute of arrays is not called."""
    if type(error) is not TypeError or hasattr(error, "__notes__"):
        return
    step = _step_of_user(error.__traceback__)
    unknown, called = _UNKNOWN.match(str(error)), str(error).endswith(" object is not callable")
    note = None
    if step is not None and unknown is not None:
        note = _on_keyword(unknown["called"].removesuffix(".__init__"), unknown["keyword"], step.tb_frame)
    elif step is not None and called:
        note = _on_attribute(running_text(step.tb_frame, step.tb_lasti))
    if note is not None:
        error.add_note(note)


def _on_keyword(called: str, keyword: str, frame: FrameType) -> str | None:
    for place, function in _candidates(called, frame):
        parameters = inspect.signature(function).parameters.values()
        names = [p.name for p in parameters if p.kind in _NAMED]
        passes_on = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
        if keyword not in names and not passes_on:
            return f"{place} has no {keyword}; {_instead(keyword, names)}"
    return None


def _on_attribute(text: str) -> str | None:
    """What is said of `x.shape()`."""
    found = _CALLED.fullmatch(text)
    if found is None:
        return None
    part = f"[{found['argument']}]" if found["name"] == "shape" and found["argument"] else ""
    return f"{found['array']}.{found['name']} is an attribute; write {found['array']}.{found['name']}{part}"


def _instead(keyword: str, names: list[str]) -> str:
    also = _ALSO.get(keyword)
    nearest = [also] if also in names else import_module("difflib").get_close_matches(keyword, names, n=1)
    if keyword in _ADVICE or not names:
        return _ADVICE.get(keyword, "it has none")
    return f"write {nearest[0]}" if nearest else f"its arguments are {', '.join(names)}"


def _step_of_user(traceback: TracebackType | None) -> TracebackType | None:
    """The innermost step of a traceback that is not in harp."""
    found = None
    while traceback is not None:
        if not is_of_harp(traceback.tb_frame):
            found = traceback
        traceback = traceback.tb_next
    return found


def _candidates(called: str, frame: FrameType) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Public functions of this name with their public names, first those of modules that the user's code names."""
    named = frame.f_globals | frame.f_locals
    own = named.get(called)
    if callable(own) and not (getattr(own, "__module__", None) or "").startswith("harp."):
        return  # the user's own function
    written = set(frame.f_code.co_names)
    meant = [value for name, value in named.items() if name in written and isinstance(value, ModuleType)]
    found = []
    for path, module in sys.modules.copy().items():
        if path.partition(".")[0] == "harp" and hasattr(module, "__all__"):
            is_meant = module in meant or path.rpartition(".")[2] in written
            for name, value in vars(module).copy().items():
                if callable(value) and getattr(value, "__qualname__", None) == called and name in module.__all__:
                    found.append((not is_meant, name not in written, f"{module.__name__}.{name}", value))
    for *_, place, function in sorted(found, key=lambda row: row[:2]):
        yield place, function
    if called in dict(FUNCTIONS):  # a method
        yield f"x.{called}", FUNCTIONS[called]
