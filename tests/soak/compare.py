"""Whether a result is right: the bits of NumPy where these are promised, else as near as rounding lets it be.

Rounding errors grow where a program cancels or divides. How far they may go is measured: NumPy runs the program again,
with every value changed in its last places. What that does not settle (a comparison of values that are nearly equal, a
sum near the largest number) is not compared; it is counted. Nor is a sum or a product of which a part vanishes, or is
beyond all numbers: it does so in one order of the terms and not in another, and the order is not promised.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from expressions import Expression, Memory, Noise, Values
from rows import terms

import harp.numpy as hnp

TOLERANCE = {"f2": 2e-2, "f4": 2e-4, "f8": 1e-10, "c8": 2e-4, "c16": 1e-10}
NOISE = {"f2": 8e-3, "f4": 2e-6, "f8": 4e-15, "c8": 2e-6, "c16": 4e-15}
WIDER = {"f2": np.float64, "f4": np.float64, "f8": np.longdouble, "c8": np.complex128, "c16": np.clongdouble}
RUNS = 64  # with other last places: in half of them nothing or one unit, so that what is nearly equal may be equal


class Verdict(NamedTuple):
    """What is wrong, or nothing; and how many elements could not be settled."""

    problem: str = ""
    unsettled: int = 0


def _text(found: np.ndarray, wanted: np.ndarray, where: np.ndarray) -> str:
    place = np.unravel_index(int(np.argmax(where)), where.shape)
    return f"{int(where.sum())} of {where.size} differ, first at {tuple(map(int, place))}: {found[place]!r}, " + (
        f"not {wanted[place]!r}"
    )


def _form(found: np.ndarray, wanted: np.ndarray) -> str:
    if found.shape == wanted.shape and found.dtype == wanted.dtype:
        return ""
    return f"{found.dtype}{list(found.shape)}, not {wanted.dtype}{list(wanted.shape)}"


def same_bits(found: np.ndarray, wanted: np.ndarray) -> Verdict:
    """But for the bits of a NaN."""
    if form := _form(found, wanted):
        return Verdict(form)
    differ = (found != wanted) & ~((found != found) & (wanted != wanted))
    if found.dtype.kind == "f":
        differ |= (np.signbit(found) != np.signbit(wanted)) & (wanted == wanted)
    return Verdict(_text(found, wanted, differ) if differ.any() else "")


def near(found: np.ndarray, wanted: np.ndarray, again: Callable[[int], np.ndarray], least: float = 0.0) -> Verdict:
    """`again(k)` is what is wanted, by another way of rounding. `least` is the least tolerance."""
    if form := _form(found, wanted):
        return Verdict(form)
    if found.dtype.kind not in "fc":
        differ = found != wanted
        if not differ.any():
            return Verdict()
        runs = [again(k) for k in range(RUNS)]
        settled = np.logical_and.reduce([run == wanted for run in runs])
        return _settled(found, wanted, differ, settled)
    with np.errstate(all="ignore"):
        known = np.isfinite(wanted)
        room = max(TOLERANCE[wanted.dtype.str[1:]], least) * max(1.0, float(np.abs(wanted[known]).max(initial=0)))
        differ = ~(np.abs(found - wanted) <= room) & ~((found == wanted) | ((found != found) & (wanted != wanted)))
        if not differ.any():
            return Verdict()
        runs = [again(k) for k in range(RUNS)]
        spread = np.maximum.reduce([np.abs(run - wanted) for run in runs])
        settled = known & np.isfinite(spread)
        return _settled(found, wanted, differ & ~(np.abs(found - wanted) <= room + 8 * spread), settled)


def _settled(found: np.ndarray, wanted: np.ndarray, differ: np.ndarray, settled: np.ndarray) -> Verdict:
    wrong = differ & settled
    return Verdict(_text(found, wanted, wrong) if wrong.any() else "", int((differ & ~settled).sum()))


def noise(dtype: np.dtype, seed: int) -> Noise:
    """Another way of rounding by number; the first two are also the extremes of the order of terms."""
    change = last_places(dtype, seed)

    def of_either(value: object) -> object:
        """Of NumPy's arrays, and harp's."""
        if isinstance(value, hnp.ndarray):
            return hnp.asarray(change(np.asarray(value)))
        return change(value)

    return Noise(of_either, terms(seed == 1)) if seed < 3 else Noise(of_either)


def last_places(dtype: np.dtype, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Changes the last places of real and complex numbers, of those places that the inputs have."""
    rng = np.random.default_rng(seed)

    def change(value: np.ndarray) -> np.ndarray:
        value = np.asarray(value)
        if value.dtype.kind not in "fc":
            return value
        kinds = [value.dtype, dtype] if value.dtype.kind == dtype.kind else [value.dtype]
        eps = max(NOISE[kind.str[1:]] for kind in kinds)
        least = (
            max(np.finfo(kind).smallest_subnormal for kind in kinds) * 1.5
        )  # a product may vanish here and not there
        by, to = rng.uniform(-1, 1, (2, *value.shape))
        with np.errstate(all="ignore"):
            if seed % 2 and value.dtype.kind == "f":
                unit = max(kinds, key=lambda kind: NOISE[kind.str[1:]]).type
                near_it = value + np.spacing(np.abs(value).astype(unit)) * np.round(1.5 * by)
                return np.where(value == 0, value, near_it).astype(value.dtype)  # log2 of what was changed to 1 is 0
            return (value * (1 + eps * by) + least * to).astype(value.dtype)

    return change


def in_wider_numbers(made: Expression, inputs: Values, dtype: np.dtype) -> np.ndarray:
    """There products and sums vanish, or grow beyond all, in no order of their terms."""
    with np.errstate(all="ignore"):
        wide = made.numpy([given.astype(WIDER.get(given.dtype.str[1:], given.dtype)) for given in inputs])
        return wide.astype(dtype)


def values_agree(made: Expression, inputs: Values, found: np.ndarray, memory: Memory | None) -> Verdict:
    """With NumPy."""
    if memory is not None and made.kind == "plain":
        wanted = memory.values[memory.places(made.steps)[-1]]
    else:
        wanted = made.numpy(inputs)
    if made.exact and inputs[0].dtype.kind != "c":
        return same_bits(found, wanted)

    def again(k: int) -> np.ndarray:
        return made.numpy(inputs, noise(inputs[0].dtype, k)) if k else in_wider_numbers(made, inputs, wanted.dtype)

    return near(found, wanted, again)


def interpreter_agrees(made: Expression, inputs: Values, found: np.ndarray) -> Verdict:
    """With harp's interpreter, which other tests hold to NumPy; of derivatives too."""
    wanted = np.asarray(made.harp(*map(hnp.asarray, inputs)))
    if made.exact and inputs[0].dtype.kind != "c":
        return same_bits(found, wanted)

    def again(k: int) -> np.ndarray:
        if not k and not made.derived:
            return in_wider_numbers(made, inputs, wanted.dtype)
        if not made.derived:  # tanh is 1 here and one unit less there: what is between the steps may have changed
            return made.interpreted(inputs, noise(inputs[0].dtype, k))
        change = last_places(inputs[0].dtype, k)
        return np.asarray(made.harp(*(hnp.asarray(change(given)) for given in inputs)))

    kinds = [inputs[0].dtype.str[1:], *("f4" for name, _ in made.steps if "to float32" in name)]
    roughest = max(TOLERANCE.get(kind, 0.0) for kind in kinds)  # in derivatives no noise stands between the steps
    return near(found, wanted, again, max(5 * roughest, 1e-8))


def slopes_agree(made: Expression, inputs: Values, found: np.ndarray, seed: int) -> Verdict:
    """A derivative with differences of what NumPy computes in float64, where two of them agree with each other."""
    x, y = (np.asarray(given, np.float64) for given in inputs)
    rough = found.dtype == np.float32
    direction = y if made.kind == "jvp" else np.random.default_rng(seed).normal(size=x.shape)
    function = made.numpy if made.kind == "jvp" else made.numpy_loss

    def slope(h: float, k: int = 0) -> np.ndarray | float:
        """With the last places changed in the same way at both ends, but for k = 0."""
        return _slope(lambda at: function((at, y), _last_places(found.dtype, k)), x, direction, h)

    high, low = slope(1e-5), slope(1e-6)
    if made.kind == "jvp":
        scale = 1 + np.abs(found).max(initial=0)
        given = found
    else:
        scale = 1 + np.abs(found).sum(dtype=np.float64)
        given = np.sum(found * direction, dtype=np.float64)
    if np.shape(given) != np.shape(high):
        return Verdict(f"the shape is {list(np.shape(given))}, not {list(np.shape(high))}")
    tolerance = (2e-3 if rough else 2e-5) * scale
    with np.errstate(all="ignore"):
        # what the differences lose where a large number is added and taken away
        lost = np.finfo(np.float64).eps * largest(made, (x, y)) / 1e-6
        settled = (np.abs(high - low) < 0.1 * tolerance) & (lost < tolerance)
        differ = ~(np.abs(given - high) < tolerance)
        if differ.any():  # of values that are equal but for rounding, either may be the first
            spread = np.maximum.reduce([np.abs(slope(1e-5, 2 * k) - high) for k in range(1, RUNS // 2)])
            differ &= ~(np.abs(given - high) < tolerance + 8 * spread)
    given, high, settled, differ = map(np.atleast_1d, (given, high, settled, differ))
    return _settled(given, high, differ, settled)


def _last_places(dtype: np.dtype, k: int) -> Noise | None:
    return Noise(last_places(dtype, k)) if k else None


def largest(made: Expression, inputs: Values) -> float:
    """The largest number on the way."""
    found = [0.0]

    def note(value: np.ndarray) -> np.ndarray:
        found.append(float(np.abs(value).max(initial=0)))
        return value

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for given in zip(*inputs, strict=True) if made.kind == "vmap of grad" else [inputs]:
            made.value(1, given, Noise(note))
    return max(found)


def _slope(function: Callable, x: np.ndarray, direction: np.ndarray, h: float) -> np.ndarray | float:
    with np.errstate(all="ignore"):
        return (function(x + h * direction) - function(x - h * direction)) / (2 * h)


def verdicts(made: Expression, memory: Memory, found: np.ndarray, interpret: bool, seed: int) -> Sequence[Verdict]:
    """All that is asked about one result."""
    inputs = memory.values[:2]
    asked = [slopes_agree(made, inputs, found, seed) if made.derived else values_agree(made, inputs, found, memory)]
    return [*asked, interpreter_agrees(made, inputs, found)] if interpret else asked
