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

MOST, DEEPEST = 50_000, 6  # elements of a value; steps of a program that others go on from
KINDS = {"plain": 70, "vmap": 10, "grad": 12, "vmap of grad": 4, "jvp": 4}  # how many of a hundred
Values = Sequence[np.ndarray]


class Memory:
    """What NumPy made of two inputs, by the step and what it was given: programs share steps."""

    def __init__(self, inputs: Values) -> None:
        self.values = list(inputs)
        self._numbers: dict[tuple, int] = {}

    def place(self, name: str, places: Sequence[int]) -> int:
        """Where the value of a step is, which may raise what NumPy raises."""
        key = (name, *places)
        if key not in self._numbers:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                self.values.append(np.asarray(step(name).numpy(*(self.values[place] for place in places))))
            self._numbers[key] = len(self.values) - 1
        return self._numbers[key]

    def places(self, steps: Sequence[tuple[str, Sequence[int]]]) -> list[int]:
        """Of the inputs and of all steps."""
        found = [0, 1]
        for name, places in steps:
            found.append(self.place(name, [found[place] for place in places]))
        return found


class Noise(NamedTuple):
    """What another way of rounding may do to each value, and to what the step of a name sums or multiplies."""

    value: Callable = lambda value: value
    terms: Callable = lambda name, value: value


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

    def value(self, which: int, inputs: Values, noise: Noise | None = None) -> object:
        """With harp's functions (0) or NumPy's (1). `noise` changes each value a little, and the order of terms."""
        change, terms = noise or Noise()
        values = [change(given) for given in inputs]
        for name, places in self.steps:
            values.append(change(step(name)[which](*(terms(name, values[place]) for place in places))))
        return values[-1]

    def loss(self, which: int, inputs: Values, noise: Noise | None = None) -> object:
        xp = (hnp, np)[which]
        return xp.sum(xp.tanh(self.value(which, inputs, noise)) * 0.5)

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

    def numpy(self, inputs: Values, noise: Noise | None = None) -> np.ndarray:
        """The same with NumPy; no derivatives."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if self.kind == "vmap":
                return np.asarray(rows(lambda *given: self.value(1, given, noise))(*inputs))
            return np.asarray(self.value(1, inputs, noise))

    def interpreted(self, inputs: Values, noise: Noise) -> np.ndarray:
        """The same with harp at once, row by row where it is a vmap; no derivatives."""

        def value(*given: np.ndarray) -> np.ndarray:
            return np.asarray(self.value(0, [hnp.asarray(one) for one in given], noise))

        return (rows(value) if self.kind == "vmap" else value)(*inputs)

    def numpy_loss(self, inputs: Values, noise: Noise | None = None) -> float:
        """What is differentiated, the sum of all rows."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            if self.kind != "vmap of grad":
                return float(self.loss(1, inputs, noise))
            return float(sum(self.loss(1, given, noise) for given in zip(*inputs, strict=True)))


def step(name: str) -> Step:
    return ONE[name] if name in ONE else TWO[name]


def draw(rng: random.Random, calls: Sequence[Memory], known: list[Expression]) -> Expression:
    """A program for the inputs of these calls. Half of the plain ones go on from one of those that are known."""
    x = calls[0].values[0]
    kinds = {k: w for k, w in KINDS.items() if x.ndim > 1 or "vmap" not in k}
    kinds = {k: w for k, w in kinds.items() if x.dtype in (np.float32, np.float64) or k in ("plain", "vmap")}
    kind = rng.choices([*kinds], [*kinds.values()])[0]
    given = calls if "vmap" not in kind else [Memory([row(a) for a in call.values[:2]]) for call in calls]
    starts = [made.steps for made in known if made.kind == kind == "plain" and len(made.steps) < DEEPEST]
    while True:
        steps = _steps(rng, kind, given, rng.choice(starts) if starts and rng.random() < 0.5 else ())
        if steps and (kind, steps) not in known:
            return Expression(kind, steps)


def row(array: np.ndarray) -> np.ndarray:
    return array[0] if len(array) else np.zeros(array.shape[1:], array.dtype)


def _steps(rng: random.Random, kind: str, calls: Sequence[Memory], start: tuple) -> tuple:
    smooth = kind not in ("plain", "vmap")
    one, two = (SMOOTH, SMOOTH_TWO) if smooth else ([*ONE], [*TWO])
    steps, places = list(start), [call.places(start) for call in calls]
    for _ in range(rng.choice((1, 1, 2) if start else (1, 1, 2, 2, 2, 3, 3, 4, 5))):
        for _ in range(6):
            name = rng.choice(LOOPING if rng.random() < 0.1 and not smooth else two if rng.random() < 0.25 else one)
            last = len(steps) + 1
            given = tuple(
                last if rng.random() < 0.6 else rng.randrange(last + 1) for _ in range(1 if name in ONE else 2)
            )
            found = _tried(name, [[p[place] for place in given] for p in places], calls)
            if found is not None:
                steps.append((name, given))
                for p, place in zip(places, found, strict=True):
                    p.append(place)
                break
    return _needed(steps) if len(steps) > len(start) else ()


def _tried(name: str, places: Sequence[Sequence[int]], calls: Sequence[Memory]) -> list[int] | None:
    """Where the values of a step are, if it fits at all calls: harp is not asked whether shapes are equal."""
    chosen = step(name)
    for given, call in zip(places, calls, strict=True):
        first, *others = (call.values[place] for place in given)
        fits = first.dtype.kind in chosen.kinds and chosen.rank <= first.ndim <= 3
        if not fits or any(other.dtype != first.dtype or other.shape != first.shape for other in others):
            return None
    try:
        found = [call.place(name, given) for given, call in zip(places, calls, strict=True)]
    except (ValueError, IndexError):
        return None
    values = [call.values[place] for place, call in zip(found, calls, strict=True)]
    return found if all(value.size <= MOST and value.ndim <= 4 for value in values) else None


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
