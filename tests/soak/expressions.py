"""Random programs: steps, each on earlier values, of which the last is the result. NumPy runs what is drawn."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rows import LOOPING, ONE, SMOOTH, SMOOTH_TWO, TWO, rows
from steps import Step

import harp
import harp.numpy as hnp

MOST = 50_000  # elements of a value
KINDS = {"plain": 70, "vmap": 10, "grad": 12, "vmap of grad": 4, "jvp": 4}  # how many of a hundred
Values = Sequence[np.ndarray]


class Expression(NamedTuple):
    """Steps by name, each on one or two values: the two inputs are 0 and 1, the first step 2. How it is transformed."""

    kind: str
    steps: tuple[tuple[str, tuple[int, ...]], ...]

    @property
    def exact(self) -> bool:
        """Whether NumPy has the same bits."""
        return self.kind in ("plain", "vmap") and all(step(name).exact for name, _ in self.steps)

    @property
    def derived(self) -> bool:
        return "grad" in self.kind or self.kind == "jvp"

    def value(self, which: int, inputs: Values, noise: Callable | None = None) -> object:
        """With harp's functions (0) or NumPy's (1). `noise` changes each value a little."""
        change = noise or (lambda value: value)
        values = [change(given) for given in inputs]
        for name, places in self.steps:
            values.append(change(step(name)[which](*(values[place] for place in places))))
        return values[-1]

    def loss(self, which: int, inputs: Values) -> object:
        xp = (hnp, np)[which]
        return xp.sum(xp.tanh(self.value(which, inputs)) * 0.5)

    def harp(self, x: object, y: object) -> object:
        """What is compiled, and interpreted."""

        def value(x: object, y: object) -> object:
            return self.value(0, [x, y])

        def loss(x: object, y: object) -> object:
            return self.loss(0, [x, y])

        if self.kind == "jvp":
            return harp.jvp(lambda x: value(x, y), (x,), (y,))[1]
        return {
            "plain": value,
            "vmap": harp.vmap(value),
            "grad": harp.grad(loss),
            "vmap of grad": harp.vmap(harp.grad(loss)),
        }[self.kind](x, y)

    def numpy(self, inputs: Values, noise: Callable | None = None) -> np.ndarray:
        """The same with NumPy; no derivatives."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if self.kind == "vmap":
                return np.asarray(rows(lambda *given: self.value(1, given, noise))(*inputs))
            return np.asarray(self.value(1, inputs, noise))

    def numpy_loss(self, inputs: Values) -> float:
        """What is differentiated, the sum of all rows."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if self.kind != "vmap of grad":
                return float(self.loss(1, inputs))
            return float(sum(self.loss(1, given) for given in zip(*inputs, strict=True)))


def step(name: str) -> Step:
    return ONE[name] if name in ONE else TWO[name]


def draw(rng: random.Random, calls: Sequence[tuple[Values, Values]]) -> Expression:
    """A program for these inputs: of each call one pair of tame arrays, and one with all values that there are."""
    x = calls[0][0][0]
    kinds = {k: w for k, w in KINDS.items() if x.ndim > 1 or "vmap" not in k}
    kinds = {k: w for k, w in kinds.items() if x.dtype in (np.float32, np.float64) or k in ("plain", "vmap")}
    kind = rng.choices([*kinds], [*kinds.values()])[0]
    samples = [[row(a) for a in tame] if "vmap" in kind else list(tame) for tame, _ in calls]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        while not (steps := _steps(rng, kind, samples)):
            pass
    return Expression(kind, steps)


def row(array: np.ndarray) -> np.ndarray:
    return array[0] if len(array) else np.zeros(array.shape[1:], array.dtype)


def _steps(rng: random.Random, kind: str, calls: list[list]) -> tuple:
    smooth = kind not in ("plain", "vmap")
    one, two = (SMOOTH, SMOOTH_TWO) if smooth else ([*ONE], [*TWO])
    values, steps = [list(given) for given in calls], []
    for _ in range(rng.choice((1, 1, 2, 2, 2, 3, 3, 4, 5))):
        for _ in range(6):
            name = rng.choice(LOOPING if rng.random() < 0.1 and not smooth else two if rng.random() < 0.25 else one)
            places = tuple(
                len(values[0]) - 1 if rng.random() < 0.6 else rng.randrange(len(values[0]))
                for _ in range(1 if name in ONE else 2)
            )
            if _fits(step(name), [[v[place] for place in places] for v in values]):
                results = [_result(step(name), [v[place] for place in places]) for v in values]
                if all(result is not None for result in results):
                    for v, result in zip(values, results, strict=True):
                        v.append(result)
                    steps.append((name, places))
                    break
    return _needed(steps)


def _fits(chosen: Step, calls: list[list]) -> bool:
    """For every call: whether two arrays have one shape is no question for harp, which would make it a guard."""
    return all(
        given[0].dtype.kind in chosen.kinds
        and chosen.rank <= given[0].ndim <= 3
        and all(other.dtype == given[0].dtype and other.shape == given[0].shape for other in given)
        for given in calls
    )


def _result(chosen: Step, given: list) -> np.ndarray | None:
    """None where NumPy raises, or makes something large."""
    try:
        result = np.asarray(chosen.numpy(*given))
    except (ValueError, IndexError):
        return None
    return result if result.size <= MOST and result.ndim <= 4 else None


def _needed(steps: list) -> tuple:
    """Those of which the last one is made."""
    wanted, kept = {len(steps) + 1}, []
    for number in range(len(steps) - 1, -1, -1):
        if number + 2 in wanted:
            wanted |= set(steps[number][1])
            kept.append(number)
    places = {0: 0, 1: 1} | {number + 2: k + 2 for k, number in enumerate(reversed(kept))}
    return tuple((steps[number][0], tuple(places[p] for p in steps[number][1])) for number in reversed(kept))


def fewer(steps: tuple) -> Iterator[tuple]:
    """With one step left out, whose users take what it was made of."""
    for gone in range(len(steps)):
        into = steps[gone][1][0]
        places = [place if place < gone + 2 else into if place == gone + 2 else place - 1 for place in range(99)]
        left = [s for number, s in enumerate(steps) if number != gone]
        rest = [(name, tuple(places[p] if k >= gone else p for p in given)) for k, (name, given) in enumerate(left)]
        if rest:
            yield _needed(rest)
