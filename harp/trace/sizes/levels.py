"""Which function is being traced, in this thread.

Levels nest: a gradient inside a traced function opens a level of its own, with fresh inputs. All levels of one
outermost trace share its `Scope`, that is, its sizes, hints and guards.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harp.trace.graph.node import Captured, Node
from harp.trace.index.polynomial import ONE, Index
from harp.trace.scalar.dtypes import NDArray
from harp.trace.sizes.scope import Scope
from harp.trace.source_locations import Site


class Level:
    """One function being traced. It is open until the function has returned."""

    __slots__ = ("captures", "examples", "free", "name", "open", "parent", "repeats", "scope", "sites")

    def __init__(self, scope: Scope, parent: Level | None, name: str, repeats: bool) -> None:
        self.scope = scope
        self.parent = parent
        self.repeats: bool = repeats or (parent is not None and parent.repeats)  # whether it is in the step of a loop
        self.name = name
        self.open = True
        self.examples: Index = ONE if parent is None else parent.examples  # of the batches that it is traced for
        self.sites: dict[Node, Site] = {}
        self.free: dict[Node, None] = {}  # what the function reads of those round it
        # By identity, with the array itself so that the identity stays taken: (the user's array, our copy).
        self.captures: dict[int, tuple[NDArray, Captured]] = {}

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1


class _State(threading.local):
    level: Level | None = None


STATE = _State()


def current() -> Level | None:
    """The innermost open level of this thread."""
    return STATE.level


@contextmanager
def enter(scope: Scope, name: str, repeats: bool = False) -> Iterator[Level]:
    """Open a level for the time of a function call, which may be the step of a loop."""
    level = Level(scope, STATE.level, name, repeats)
    STATE.level = level
    try:
        yield level
    finally:
        level.open = False
        STATE.level = level.parent


@contextmanager
def suspended() -> Iterator[None]:
    """Leave all levels for a while: what is computed then is computed at once."""
    level, STATE.level = STATE.level, None
    try:
        yield
    finally:
        STATE.level = level
