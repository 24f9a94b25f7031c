"""A loaded program that notes when its calls of kernels begin and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from harp.backends.protocol import Span
from harp.backends.runtime.executable import CExecutable
from harp.backends.runtime.interface import Interface
from harp.backends.runtime.load import Library
from harp.trace.scalar.dtypes import NDArray


class TimedCExecutable(CExecutable):
    """Called with arrays only; the last output of the library is for the times."""

    function: Callable[..., int] | None = None
    packed: Callable[..., int] | None = None

    def __init__(self, library: Library, interface: Interface, uses_scratch: bool, calls: int) -> None:
        super().__init__(library, interface, uses_scratch)
        self._times = np.zeros((calls, 2), np.int64)

    @property
    def spans(self) -> Sequence[Span]:
        """Of the latest call."""
        return [Span(number, began, ended) for number, (began, ended) in enumerate(self._times.tolist())]

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray], sizes: Sequence[int], /) -> int:
        return super().__call__(inputs, [*outputs, self._times], sizes)
