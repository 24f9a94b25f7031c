"""Arrays and arguments for the differential tests, drawn by hypothesis."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

BOOL = ("bool",)
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
ALL = BOOL + NUMERIC

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e-40, -3.7, 1e30]


class Drawn(NamedTuple):
    """An array, and whether harp's is to have negative strides."""

    value: np.ndarray
    reversed: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self.value.shape


def elements(dtype: str, tame: bool) -> st.SearchStrategy[object]:
    """Numbers of a dtype; tame ones are small and finite."""
    kind = np.dtype(dtype)
    if dtype == "bool":
        return st.booleans()
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        low, high = (max(limits.min, -9), min(limits.max, 9)) if tame else (int(limits.min), int(limits.max))
        return st.integers(low, high)
    everyday = st.integers(-64, 64).map(lambda n: n / 8)
    if kind.kind == "c":  # special values of complex arithmetic depend on how it is done: they have tests of their own
        return st.builds(complex, everyday, everyday)
    return everyday if tame else st.one_of(everyday, st.sampled_from(SPECIAL))


shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)
filled_shapes = st.lists(st.integers(1, 4), max_size=3).map(tuple)


@st.composite
def arrays(draw, dtypes=ALL, shape=shapes, tame=False, least=0) -> Drawn:
    """An array of one of these dtypes, with at least so many axes."""
    dtype = draw(st.sampled_from(dtypes))
    sizes = draw(shape) if isinstance(shape, st.SearchStrategy) else shape
    sizes = (*draw(st.tuples(*[st.integers(1, 3)] * max(0, least - len(sizes)))), *sizes)
    count = int(np.prod(sizes))
    values = draw(st.lists(elements(dtype, tame), min_size=count, max_size=count))
    with np.errstate(over="ignore"):
        return Drawn(np.array(values, dtype).reshape(sizes), draw(st.booleans()))


@st.composite
def broadcasting(draw, count=2, dtypes=ALL, tame=False) -> list[Drawn]:
    """Arrays of one dtype that broadcast: axes of one element, and fewer axes, here and there."""
    dtype, full = draw(st.sampled_from(dtypes)), draw(shapes)
    found = []
    for _ in range(count):
        sizes = tuple(1 if draw(st.integers(0, 4)) == 0 else n for n in full)
        cut = draw(st.integers(0, len(sizes))) if draw(st.booleans()) else 0
        found.append(draw(arrays((dtype,), sizes[cut:], tame)))
    return found


def axis_of(rank: int) -> st.SearchStrategy[int]:
    """An axis, from either end."""
    return st.integers(-rank, rank - 1)


def axes_of(rank: int) -> st.SearchStrategy[object]:
    """None, an axis or a tuple of axes."""
    if not rank:
        return st.sampled_from([None, ()])
    several = st.lists(st.integers(0, rank - 1), unique=True).map(tuple)
    return st.one_of(st.none(), axis_of(rank), several)
