"""Derivatives that somebody has given, as graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence

from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Body, Derivative, Input


class Given(Derivative):
    """Makes graphs for a function, of whose body the shapes of arguments and results are known. Both graphs speak of
    floating-point arguments and results only, and of the first `count` arguments: the others are closed over.
    `moving` says of each of these whether a derivative flows through it; that of another one is not read, or 0.

    The last `saved` results are for the way back."""

    count: int
    called: str = "a function"  # the name of the function, for messages
    rules: tuple[Callable[..., object], ...] = ()  # those of the user that make them
    saved: int = 0
    name: str | None = None  # of the value, for who chooses what to save
    # Whether the derivatives may be others than those of the body.
    is_own: bool = True

    @abstractmethod
    def forward(self, body: Body, moving: Sequence[bool]) -> Graph:
        """From the arguments, and a tangent for each floating-point one, to the tangents of the results."""

    @abstractmethod
    def backward(self, body: Body, moving: Sequence[bool]) -> Graph:
        """From the arguments, the saved results, and a cotangent for each floating-point result, to those of the
        arguments."""

    def arguments(self, body: Body) -> tuple[Input, ...]:
        """The inputs of the body that are arguments."""
        return body.inputs[1 : 1 + self.count]
