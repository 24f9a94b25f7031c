"""What a workload is made of, and how candidates are timed: interleaved, in turns, with pauses between them."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import repeat
from typing import Literal

import numpy as np

Call = Callable[[], object]
Clock = Callable[[], float]

SAMPLE_SECONDS = 2e-3  # short calls are repeated until a sample takes this long
MIN_ROUNDS = 3


@dataclass(frozen=True)
class Goal:
    """What a workload's figure should be."""

    value: float
    sense: Literal[">=", "<="] = ">="
    unit: str = "x"

    def met(self, figure: float) -> bool:
        """Whether a figure reaches it."""
        return figure >= self.value if self.sense == ">=" else figure <= self.value


@dataclass
class Row:
    """One workload at one setting of threads: medians of all candidates, and the figure that has a goal."""

    name: str
    threads: int
    medians: dict[str, float] = field(default_factory=dict)
    unit: str = "s"  # of the medians
    figure: float | None = None
    figure_unit: str = "x"
    goal: Goal | None = None
    notes: list[str] = field(default_factory=list)
    spread: dict[str, tuple[float, float]] = field(default_factory=dict)  # quartiles
    first: dict[str, float] = field(default_factory=dict)  # seconds of first calls, with --first-calls

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is no goal or no figure."""
        return None if self.goal is None or self.figure is None else self.goal.met(self.figure)

    def take(self, samples: Mapping[str, list[float]]) -> None:
        """Medians and quartiles of samples."""
        for name, values in samples.items():
            self.medians[name] = statistics.median(values)
            low, _, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
            self.spread[name] = low, high

    def to_json(self) -> dict[str, object]:
        """What the JSON file says of it."""
        return {**asdict(self), "met": self.met}

    @classmethod
    def from_json(cls, data: dict[str, object]) -> Row:
        """The inverse of `to_json`."""
        content = {name: value for name, value in data.items() if name != "met"}
        if content["goal"] is not None:
            content["goal"] = Goal(**content["goal"])
        return cls(**content)


@dataclass(frozen=True)
class Settings:
    """How to measure."""

    threads: int = 1
    peers: tuple[str, ...] = ("numpy",)
    rounds: int = 15
    pause: float = 0.02  # seconds, so that another runtime's waiting threads stop spinning
    warm: float = 0.05  # seconds of calls before the first sample
    processor_time: bool = False  # instead of the time that passes: with one thread, others on the machine count less
    budget: float = 20.0  # seconds for the rounds of one workload; long calls get fewer rounds
    quick: bool = False  # small sizes: whether everything works, not how fast it is
    first_calls: bool = False  # also how long a first call takes, with tracing and compiling

    @property
    def clock(self) -> Clock:
        """What gives the time in seconds."""
        return time.process_time if self.processor_time else time.perf_counter


def interleaved(calls: Mapping[str, Call], settings: Settings) -> dict[str, list[float]]:
    """Seconds per call of each candidate, one sample in each round; the order of candidates rotates."""
    numbers, expected = {}, 0.0
    for name, call in calls.items():
        once = _warm(call, 0.0 if settings.quick else settings.warm, settings.clock)
        numbers[name] = max(1, min(100_000, round(SAMPLE_SECONDS / once)))
        expected += settings.pause + once * (numbers[name] + 1)
    least = min(MIN_ROUNDS, settings.rounds)
    rounds = max(least, min(settings.rounds, int(settings.budget / expected)))
    names, samples = list(calls), {name: list[float]() for name in calls}
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            start = turn % len(names)
            for name in names[start:] + names[:start]:
                time.sleep(settings.pause)
                calls[name]()  # the caches, and threads that sleep
                samples[name].append(sample(calls[name], numbers[name], settings.clock))
    finally:
        gc.enable()
    return samples


def sample(call: Call, number: int = 1, clock: Clock = time.perf_counter) -> float:
    """Seconds per call."""
    start = clock()
    for _ in repeat(None, number):
        call()
    return (clock() - start) / number


def _warm(call: Call, seconds: float, clock: Clock) -> float:
    """Call until time is up and at least three times; how long the fastest call took."""
    end, times = time.perf_counter() + seconds, list[float]()
    while len(times) < 3 or time.perf_counter() < end:
        times.append(sample(call, 1, clock))
    return max(min(times), 1e-8)


def leaves(tree: object) -> list[np.ndarray]:
    """The arrays of a result as NumPy arrays, dicts in the order of their keys."""
    if isinstance(tree, dict):
        return [leaf for name in sorted(tree) for leaf in leaves(tree[name])]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.asarray(tree.detach() if hasattr(tree, "detach") else tree)]


def problem(result: object, reference: object, tolerance: float) -> str:
    """What is wrong with a result, errors relative to the largest number of each array; empty if it is right."""
    got, expected = leaves(result), leaves(reference)
    if [g.shape for g in got] != [e.shape for e in expected]:
        return f"shapes {[g.shape for g in got]} instead of {[e.shape for e in expected]}"
    worst = 0.0
    for g, e in zip(got, expected, strict=True):
        if g.size:
            error = np.max(np.abs(g.astype(np.result_type(g, np.float64)) - e)) / max(float(np.max(np.abs(e))), 1e-30)
            worst = max(worst, float(error)) if np.isfinite(error) else float("inf")
    return "" if worst <= tolerance else f"relative error {worst:.1e}"


def tree_map(function: Callable[[object], object], tree: object) -> object:
    """A tree of tuples, lists and dicts with each leaf replaced."""
    if isinstance(tree, dict):
        return {name: tree_map(function, value) for name, value in tree.items()}
    if isinstance(tree, (tuple, list)):
        return type(tree)(tree_map(function, value) for value in tree)
    return function(tree)
