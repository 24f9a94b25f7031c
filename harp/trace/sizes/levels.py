"""Which function is being traced, in this thread.

Levels nest: a gradient inside a traced function opens a level of its own, with fresh inputs. All levels of one
outermost trace share its `Scope`, that is, its sizes, hints and guards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from harp.trace.graph.node import Captured, MapReduce, Node
from harp.trace.index.polynomial import ONE, Index
from harp.trace.scalar.dtypes import NDArray, i64
from harp.trace.scalar.expr import const
from harp.trace.sizes.scope import Scope
from harp.trace.source_locations import Site

# The token of the first call.
NO_CALL = MapReduce((), (), const(0, i64))


class Level:
    """One function being traced. It is open until the function has returned."""

    __slots__ = (
        "after",
        "before",
        "by_data",
        "captures",
        "examples",
        "free",
        "name",
        "named",
        "numbers",
        "open",
        "parent",
        "reach",
        "repeats",
        "scope",
        "sites",
        "values",
    )

    def __init__(
        self,
        scope: Scope,
        parent: Level | None,
        name: str,
        repeats: bool,
        before: Node | None = None,
        steps: Index | None = ONE,
    ) -> None:
        self.scope = scope
        self.parent = parent
        self.repeats: bool = repeats or (parent is not None and parent.repeats)  # whether it is in the step of a loop
        self.name = name
        self.open = True
        # How often it is computed, by the loops and batches round it; and whether data decides if it is at all.
        self.reach: Index = (ONE if steps is None else steps) * (ONE if parent is None else parent.reach)
        self.by_data: bool = steps is None or (parent is not None and parent.by_data)
        self.examples: Index = ONE if parent is None else parent.examples  # of the batches that it is traced for
        # If it is an example of a batch whose axis has a name: the name, the example's number, and the size.
        self.named: tuple[object, Node, Index] | None = None
        self.sites: dict[Node, Site] = {}
        # The arrays for which inputs stand, where the function is traced for these only.
        self.values: dict[Node, object] = {}
        self.numbers: dict[Node, NDArray] = {}  # of nodes that Python has asked for, there
        self.free: dict[Node, None] = {}  # what the function reads of those round it
        # The token of the first call of Python, if the function is given one, and what the last one made.
        self.before: Node | None = before
        self.after: Node | None = None
        # By identity, with the array itself so that the identity stays taken: (the user's array, our copy).
        self.captures: dict[int, tuple[NDArray, Captured]] = {}

    @property
    def token(self) -> Node:
        """What the next call of Python waits for; the levels round this one are asked where it has made none."""
        mine = self.after or self.before
        if mine is not None:
            return mine
        if self.parent is None:
            return NO_CALL
        found = self.parent.token
        if found is not NO_CALL:
            self.free[found] = None
        return found

    @property
    def depth(self) -> int:
        return 0 if self.parent is None else self.parent.depth + 1


# Called each time that a level has so many more nodes.
on_growth: list[Callable[[Level], None]] = []
GROWTH = 1 << 10


class _State(threading.local):
    level: Level | None = None
    watch: Callable[[Node], None] | None = None  # called with each node that is traced


STATE = _State()


def current() -> Level | None:
    """The innermost open level of this thread."""
    return STATE.level


@contextmanager
def enter(
    scope: Scope, name: str, repeats: bool = False, before: Node | None = None, steps: Index | None = ONE
) -> Iterator[Level]:
    """Open a level for the time of a function call, which may be the step of a loop, and be given a token; `steps` says
    how often the program computes it, None that data decides."""
    level = Level(scope, STATE.level, name, repeats, before, steps)
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
