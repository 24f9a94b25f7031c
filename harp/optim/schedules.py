"""Schedules: functions of the number of the step, which counts from 0, that say a learning rate or a decay.

They take numbers, and arrays of compiled functions. Steps may be of any length: nothing is compiled again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from harp.errors import ArgumentError
from harp.numpy.creation import asarray
from harp.numpy.elementwise import clip, cos, floor, maximum, minimum, power, where
from harp.optim.transformations import Schedule, positive
from harp.trace.source_locations import where as place


def constant_schedule(value: Any) -> Schedule:
    """The same value always.

    >>> constant_schedule(0.5)(7)
    0.5
    """
    return lambda count: value


def polynomial_schedule(
    init_value: Any, end_value: Any, power: Any, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """end + (init - end)*(1 - k/transition_steps)**power, where k counts steps from transition_begin on.

    Raises ArgumentError for transition_steps that are not above 0.

    >>> polynomial_schedule(1.0, 0.0, 2, 10)(5)
    Array(0.25)
    """
    positive("transition_steps of a schedule", transition_steps)

    def schedule(count: Any) -> Any:
        share = clip(asarray(count) - transition_begin, 0, transition_steps) / transition_steps
        return (init_value - end_value) * (1 - share) ** power + end_value

    return schedule


def linear_schedule(init_value: Any, end_value: Any, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """From init_value to end_value on a line; arguments and errors of `polynomial_schedule`.

    >>> linear_schedule(1.0, 0.0, 10)(4)
    Array(0.6)
    """
    return polynomial_schedule(init_value, end_value, 1, transition_steps, transition_begin)


def piecewise_constant_schedule(init_value: Any, boundaries_and_scales: Mapping[int, float] | None = None) -> Schedule:
    """init_value, times each scale from the step of its boundary on. Raises ArgumentError for a scale below 0.

    >>> schedule = piecewise_constant_schedule(1.0, {10: 0.5, 20: 0.5})
    >>> schedule(9), schedule(10), schedule(20)
    (Array(1.), Array(0.5), Array(0.25))
    """
    scales = sorted((boundaries_and_scales or {}).items())
    if any(scale < 0 for _, scale in scales):
        raise ArgumentError(f"scales of piecewise_constant_schedule are at least 0, not {dict(scales)}{place()}")

    def schedule(count: Any) -> Any:
        value = init_value
        for boundary, scale in scales:
            value = where(asarray(count) >= boundary, value * scale, value)
        return value

    return schedule


def exponential_decay(
    init_value: Any,
    transition_steps: int,
    decay_rate: float,
    transition_begin: int = 0,
    staircase: bool = False,
    end_value: Any = None,
) -> Schedule:
    """init*decay_rate**(k/transition_steps), where k counts steps from transition_begin on, but not past end_value.

    With `staircase` the exponent is rounded down. Raises ArgumentError for transition_steps and rates not above 0.

    >>> exponential_decay(1.0, 10, 0.5)(20)
    Array(0.25)
    """
    positive("transition_steps of a schedule", transition_steps)
    positive("decay_rate of exponential_decay", decay_rate)

    def schedule(count: Any) -> Any:
        exponent = maximum(asarray(count) - transition_begin, 0) / transition_steps
        value = init_value * power(asarray(decay_rate), floor(exponent) if staircase else exponent)
        if end_value is None:
            return value
        return where(asarray(decay_rate) < 1, maximum(value, end_value), minimum(value, end_value))

    return schedule


def cosine_decay_schedule(init_value: Any, decay_steps: int, alpha: Any = 0.0, exponent: Any = 1.0) -> Schedule:
    """init*((1 - alpha)*c**exponent + alpha) with c = (1 + cos(pi*k/decay_steps))/2, in step k.

    I. Loshchilov, F. Hutter, SGDR: stochastic gradient descent with warm restarts, 2017. Raises ArgumentError for
    decay_steps that are not above 0.

    >>> cosine_decay_schedule(1.0, 10)(5)
    Array(0.5)
    """
    positive("decay_steps of a schedule", decay_steps)

    def schedule(count: Any) -> Any:
        wave = (1 + cos(math.pi * (minimum(count, decay_steps) / decay_steps))) / 2
        return init_value * ((1 - alpha) * wave**exponent + alpha)

    return schedule


def warmup_cosine_decay_schedule(
    init_value: Any, peak_value: Any, warmup_steps: int, decay_steps: int, end_value: Any = 0.0, exponent: Any = 1.0
) -> Schedule:
    """On a line from init_value to peak_value, then as `cosine_decay_schedule` to end_value, `decay_steps` in all.

    Raises ArgumentError for a peak_value of 0, and unless 0 < warmup_steps < decay_steps.

    >>> schedule = warmup_cosine_decay_schedule(0.0, 1.0, 10, 110)
    >>> schedule(5), schedule(10), schedule(60).round(6)
    (Array(0.5), Array(1.), Array(0.5))
    """
    if isinstance(peak_value, (int, float)) and not peak_value:
        raise ArgumentError(f"peak_value of warmup_cosine_decay_schedule is 0: there is nothing to decay{place()}")
    warmup = linear_schedule(init_value, peak_value, warmup_steps)
    decay = cosine_decay_schedule(peak_value, decay_steps - warmup_steps, end_value / peak_value, exponent)
    return join_schedules([warmup, decay], [warmup_steps])


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """One schedule after the other: each but the first begins, with its own step 0, at its boundary.

    Raises ArgumentError unless there is one boundary less than schedules.

    >>> join_schedules([constant_schedule(1.0), linear_schedule(1.0, 0.0, 10)], [100])(105)
    Array(0.5)
    """
    if len(schedules) != len(boundaries) + 1:
        raise ArgumentError(
            f"join_schedules takes one boundary less than schedules, not {len(boundaries)} for {len(schedules)}"
            f"{place()}"
        )

    def joined(count: Any) -> Any:
        value = schedules[0](count)
        for boundary, schedule in zip(boundaries, schedules[1:], strict=True):
            value = where(asarray(count) < boundary, value, schedule(asarray(count) - boundary))
        return value

    return joined
