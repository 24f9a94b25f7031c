"""How a case is measured: checked, then timed at all sizes with harp and the peers in turns."""

from __future__ import annotations

import math
import statistics
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np

from benchmarks.costs.case import Argument, Case, Function, call
from benchmarks.harness import Call, Settings, interleaved, leaves, problem, sample

RATIO, EXPONENT = 1.2, 0.15  # the goals: harp's time over the best peer's, and how much faster it may grow
TOLERANCE = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-9, "complex64": 1e-5, "complex128": 1e-9}
COPY = "copy"  # the name of NumPy's copy of the result, where it is a peer
LONG = 0.1  # seconds; a call that takes longer is timed once


@dataclass
class Result:
    """Medians and minima in seconds of harp and its peers at each size of a case, or why harp has none."""

    name: str
    sizes: tuple[int, ...]
    medians: dict[str, list[float]] = field(default_factory=dict)
    minima: dict[str, list[float]] = field(default_factory=dict)
    failure: str = ""
    notes: list[str] = field(default_factory=list)

    def best(self, k: int) -> str:
        """The fastest peer at one of the sizes; empty if none could be measured."""
        peers = [name for name in self.medians if name != "harp"]
        return min(peers, key=lambda name: self.medians[name][k], default="")

    def ratio(self, k: int) -> float:
        """Harp's time over that of the best peer at one of the sizes; NaN without either."""
        best = self.best(k)
        return self.medians["harp"][k] / self.medians[best][k] if best and "harp" in self.medians else math.nan

    @property
    def worst(self) -> float:
        """The largest of the ratios of all sizes; NaN without a peer."""
        return max(self.ratio(k) for k in range(len(self.sizes)))

    @property
    def worst_of_minima(self) -> float:
        """The largest ratio of harp's shortest time to the shortest of the peers: other work makes times longer."""
        peers = [times for name, times in self.minima.items() if name != "harp"]
        if not peers or "harp" not in self.minima:
            return math.nan
        return max(own / min(others) for own, *others in zip(self.minima["harp"], *peers, strict=True))

    def exponent(self, name: str) -> float:
        """The power of n that the time grows with from the first to the last size; NaN for a case of one size."""
        if name not in self.medians or len(self.sizes) == 1:
            return math.nan
        first, *_, last = self.medians[name]
        return math.log(last / first) / math.log(self.sizes[-1] / self.sizes[0])

    @property
    def exponents(self) -> tuple[float, float]:
        """Those of harp, and of the peer that is best at the last size."""
        return self.exponent("harp"), self.exponent(self.best(-1))

    @property
    def met(self) -> bool:
        """Whether harp reaches both goals; where there is no peer to compare with, whether it could be measured."""
        harp, best = self.exponents
        slow = any(self.ratio(k) > RATIO for k in range(len(self.sizes)))
        return not (self.failure or slow or harp - best > EXPONENT)

    def to_json(self) -> dict[str, object]:
        """What a file says of it."""
        return {**asdict(self), "met": self.met}

    @classmethod
    def from_json(cls, data: dict[str, object]) -> Result:
        """The inverse of `to_json`."""
        content = {name: value for name, value in data.items() if name != "met"}
        return cls(**{**content, "sizes": tuple(content["sizes"])})


def run(case: Case, settings: Settings) -> Result:
    """Check harp against all peers, then time those that work."""
    sizes = case.sizes(settings.quick)
    result = Result(case.name, sizes)
    arguments = [case.make(n) for n in sizes]
    calls = _checked(case, settings, arguments, result)
    if "harp" in calls:
        _time(calls, settings, result)
    return result


def _checked(
    case: Case, settings: Settings, arguments: list[tuple[Argument, ...]], result: Result
) -> dict[str, list[Call]]:
    """A call for each size of each candidate that computes; those of harp only if they agree with all peers."""
    calls, values = dict[str, list[Call]](), dict[str, list[object]]()
    for name in ("harp", *settings.peers):
        try:
            function = case.compiled(name, arguments[0])
            if function is None:
                continue
            made = [call(name, function, given) for given in arguments]
            values[name] = [one() for one in made]
            calls[name] = made
        except Exception as error:  # reported, and the others are measured
            text = f"{name} failed: {type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"
            result.notes.append(text)
            result.failure = text if name == "harp" else result.failure
        if name == "harp" and name in calls:
            _note_compilations(function, result)
    if "harp" in calls:
        result.failure = _difference(case, values, result.sizes)
        if result.failure:
            del calls["harp"]
        elif case.beside_copy:
            calls[COPY] = [partial(np.copy, leaves(value)[0]) for value in values["harp"]]
    return calls


def _note_compilations(function: Function, result: Result) -> None:
    """One program is to serve all sizes."""
    if function.compilations > 1:
        result.notes.append(f"harp compiled {function.compilations} programs for {len(result.sizes)} sizes")


def _difference(case: Case, values: dict[str, list[object]], sizes: tuple[int, ...]) -> str:
    """How the results of harp differ from those of a peer; empty if they do not."""
    for name in values.keys() - {"harp"}:
        for n, value, expected in zip(sizes, values["harp"], values[name], strict=True):
            found = problem(value, expected, case.tolerance or tolerance(value))
            if found:
                return f"harp differs from {name} at n = {n}: {found}"
    return ""


def tolerance(value: object) -> float:
    """The largest error of a right result, relative to the largest number."""
    return max(TOLERANCE.get(leaf.dtype.name, 0.0) for leaf in leaves(value))


def _time(calls: dict[str, list[Call]], settings: Settings, result: Result) -> None:
    """Fill in medians and minima. All sizes of all candidates take turns, but for calls that take long."""
    once = {(name, k): sample(one, 1, settings.clock) for name, made in calls.items() for k, one in enumerate(made)}
    short = {f"{name} {k}": calls[name][k] for (name, k), seconds in once.items() if seconds < LONG}
    samples = interleaved(short, settings) if short else {}
    for name, made in calls.items():
        taken = [samples.get(f"{name} {k}", [once[name, k]]) for k in range(len(made))]
        result.medians[name] = [statistics.median(values) for values in taken]
        result.minima[name] = [min(values) for values in taken]
