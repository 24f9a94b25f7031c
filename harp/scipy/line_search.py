"""How far to go along a line: the method of bisection of A. S. Lewis and M. L. Overton, Nonsmooth optimization via
quasi-Newton methods (2013), algorithm 2.6, as a loop of programs.

It needs a gradient for each trial and ends where both conditions of Wolfe hold: the value has fallen by a share of what
the slope promised, and the slope is flatter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from harp.numpy.creation import asarray
from harp.numpy.elementwise import abs, isfinite, where
from harp.trace.array.array import Array
from harp.trace.trees import Tree
from harp.transforms.control.conditional import while_loop

# The share of the expected decrease that a step has to bring, and that of the slope which may be left.
_DECREASE, _SLOPE = 1e-4, 0.9


class Trial(NamedTuple):
    """Lengths that are known to be too short and too long, the one to try, how many were tried, whether the last one
    is good, and what was found there."""

    low: Array
    high: Array
    length: Array
    count: Array  # type: ignore[assignment]
    good: Array
    found: Tree


def wolfe_length(
    evaluated: Callable[[Array], tuple[Array, Array, Any]],
    value: Array,
    slope: Array,
    most: int,
    found: Any = (),
    tolerance: float = 0.0,
) -> Trial:
    """Where both conditions hold, or after so many trials a Trial that is not good. `evaluated(length)` is value,
    slope, and what else is kept of a trial, like `found`, which stands for it before the first one.

    With a tolerance the value may be larger by this share of it where the slope shows that it has fallen (W. W. Hager,
    H. Zhang, A new conjugate gradient method with guaranteed descent, 2005): near a minimum values are rounding errors.
    """

    def goes_on(trial: Trial) -> Any:
        return ~trial.good & (trial.count < most)

    def halved(trial: Trial) -> Trial:
        here, there, found = evaluated(trial.length)
        is_low = here <= value + _DECREASE * trial.length * slope
        if tolerance:
            is_low |= (here <= value + tolerance * abs(value)) & (there <= (2 * _DECREASE - 1) * slope)
        is_low &= isfinite(here) & isfinite(there)
        is_flat = there >= _SLOPE * slope
        low, high = where(is_low & ~is_flat, trial.length, trial.low), where(is_low, trial.high, trial.length)
        good = is_low & is_flat
        further = where(high < math.inf, (low + high) / 2, 2 * low)
        return Trial(low, high, where(good, trial.length, further), trial.count + 1, good, found)

    low, high, first = (asarray(start, slope.dtype) for start in (0, math.inf, 1))
    last: Trial = while_loop(goes_on, halved, Trial(low, high, first, asarray(0), asarray(False), found))
    return last
