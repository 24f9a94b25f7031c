"""Objects with equal content are one object, which lives as long as somebody holds it."""

from __future__ import annotations

import gc
import sys

from harp.trace import interning
from harp.trace.index.polynomial import Symbol


def test_equal_content_is_one_object_for_as_long_as_it_lives():
    first = Symbol(10**9, 0, "n")
    assert Symbol(10**9, 0, "n") is first
    before = len(interning._table)
    del first
    gc.collect()
    assert len(interning._table) < before, "nothing is left of it"


def test_no_python_runs_when_an_object_dies():
    """It would run the handlers of signals, and what these raise would be lost."""
    called: list[str] = []
    node = Symbol(10**9, 1, "n")
    sys.setprofile(lambda frame, event, argument: called.append(event))
    try:
        del node
    finally:
        sys.setprofile(None)
    assert "call" not in called
