"""A case: a function as text, and the calls that it gets, in order. Immutable, so that it can be made smaller."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

Shape = tuple[int, ...]


class Argument(NamedTuple):
    """An array argument of the function."""

    name: str
    rank: int
    dtype: str


class Statement(NamedTuple):
    """Lines that define one variable. `rows` says which rows of the tables they come from.

    `kind` is what the value is: "s" for a size, or the kind of its dtype.
    """

    target: str
    text: str
    rows: tuple[str, ...] = ()
    exact: bool = True  # the value has no rounding errors
    kind: str = "f"


class Call(NamedTuple):
    """The shapes of the arguments, the static argument `flag`, and whether the last array is passed by name."""

    shapes: tuple[Shape, ...]
    flag: int = 0
    named: bool = False


class Case(NamedTuple):
    """What is tried: one function, and calls of it."""

    seed: int
    arguments: tuple[Argument, ...]
    statements: tuple[Statement, ...]
    returned: tuple[str, ...]
    calls: tuple[Call, ...]

    @property
    def source(self) -> str:
        parameters = ", ".join([*(a.name for a in self.arguments), "*", "flag=0"])
        body = "\n".join([*(s.text for s in self.statements), f"return {', '.join(self.returned)},"])
        return f"def f({parameters}):\n{textwrap.indent(body, '    ')}\n"

    def function(self, names: SimpleNamespace) -> Callable:
        """The function in the namespace of one library."""
        space = dict(vars(names))
        exec(compile(self.source, f"<case {self.seed}>", "exec"), space)
        return space["f"]

    def kinds(self) -> dict[str, str]:
        """What each variable is, as of `Statement`."""
        given = {a.name: np.dtype(a.dtype).kind for a in self.arguments}
        return given | {s.target: s.kind for s in self.statements}

    def exact(self, name: str) -> bool:
        return all(s.exact for s in self.statements if s.target == name)

    def given(self, call: Call) -> tuple[list[np.ndarray], dict[str, object]]:
        """The arguments of a call: numbers that depend on seed and shape alone."""
        arrays = [
            values(self.seed + k, a.dtype, shape)
            for k, (a, shape) in enumerate(zip(self.arguments, call.shapes, strict=True))
        ]
        named: dict[str, object] = {"flag": call.flag}
        if call.named and len(arrays) > 1:
            named[self.arguments[-1].name] = arrays.pop()
        return arrays, named


def values(seed: int, dtype: str, shape: Shape) -> np.ndarray:
    """Small quarters, integers from -3 to 3, or bools: sums and a few products of them are exact."""
    numbers = np.random.default_rng(seed).integers(-12, 13, size=shape)
    kind = np.dtype(dtype).kind
    return np.asarray(numbers / 4 if kind == "f" else numbers > 0 if kind == "b" else numbers // 4, dtype)


def uses(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None
