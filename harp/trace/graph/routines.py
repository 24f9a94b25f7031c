"""What programs call that is not made of nodes: functions of Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import attrs
import numpy as np

from harp.trace.scalar.dtypes import DType, NDArray


class HostFunction:
    """A function of Python that a program calls for what it does. Two of them are never the same."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., object]) -> None:
        self.call = call


class PureFunction:
    """A function of Python that a program calls for the arrays that it returns. Two of them are never the same.

    One that is `vectorised` is called once with the arrays of all calls, which stand along axes in front; one that
    `takes_results` is given the shapes and dtypes of all its results before them.
    """

    __slots__ = ("call", "name", "takes_results", "vectorised")

    def __init__(
        self, call: Callable[..., list[object]], name: str, vectorised: bool = False, takes_results: bool = False
    ) -> None:
        self.call, self.name, self.vectorised, self.takes_results = call, name, vectorised, takes_results


@attrs.frozen
class StandIn:
    """What stands for a routine, which had this number, where passes are compared on random data."""

    number: int

    @property
    def name(self) -> str:
        return f"stand-in {self.number}"

    def compute(
        self, calls: tuple[int, ...], operands: Sequence[NDArray], results: Sequence[tuple[tuple[int, ...], DType]]
    ) -> list[NDArray]:
        """Numbers made of the elements of the operands, in their order; shapes of results are those of one call."""
        count = prod(calls)
        if count == 0:
            return [np.empty((*calls, *own), dtype.numpy) for own, dtype in results]
        given = [np.abs(o.reshape(count, -1)).astype(np.float64) for o in operands if o.size]
        numbers = np.concatenate([np.ones((count, 1)), *given], axis=1) + self.number
        made = []
        for own, dtype in results:
            rows = [np.resize(row, prod(own)) for row in (numbers if dtype.is_inexact else np.rint(numbers))]
            made.append(np.array(rows).reshape((*calls, *own)).astype(dtype.numpy))
        return made
