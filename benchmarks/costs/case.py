"""A case is a small program with arguments of any size; its gradient is a case of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness import Call, leaves
from benchmarks.peers import PEERS

Function = Callable[..., object]
Argument = object  # an array, or a list of arrays
Maker = Callable[[np.random.Generator, int], Argument]

SIZES = (1, 2, 4)  # times n
SHRINK = 8  # with --quick and in tests, sizes are divided by this


@dataclass(frozen=True)
class Case:
    """A small program, or the gradient of the sum of the squares of its result.

    With `weighted`, it is the gradient of the sum of the result times weights, which are one more argument, with
    respect to the first argument of floating-point numbers: nothing but the program and its derivative is computed.

    `function` takes an array namespace and the arguments. `own` has, for peers that spell it differently, functions of
    the arguments alone.
    """

    name: str
    n: int
    arguments: tuple[Maker, ...]
    function: Function
    own: Mapping[str, Function] = field(default_factory=dict)
    gradient: bool = False
    argnums: tuple[int, ...] = ()  # of the gradient; all floating-point arguments if there are none
    only_n: bool = False  # one size instead of three
    beside_copy: bool = False  # NumPy's copy of an array like the result is one of the peers
    tolerance: float = 0.0  # instead of that of the dtype
    weighted: bool = False

    def sizes(self, small: bool = False) -> tuple[int, ...]:
        """The values of n to measure at."""
        n = self.n // SHRINK if small else self.n
        return (n,) if self.only_n else tuple(n * times for times in SIZES)

    def make(self, n: int) -> tuple[Argument, ...]:
        """The arguments as NumPy arrays, always the same."""
        rng = np.random.default_rng(0)
        arguments = tuple(maker(rng, n) for maker in self.arguments)
        if not (self.gradient and self.weighted):
            return arguments
        result = np.asarray(self.forward("numpy")(*arguments))
        real = np.finfo(arguments[self.differentiated(arguments)[0]].dtype).dtype
        return *arguments, np.cos(0.7 * np.arange(result.size)).reshape(result.shape).astype(real)

    def forward(self, name: str) -> Function:
        """The program of harp or a peer."""
        return self.own.get(name) or partial(self.function, PEERS[name].xp())

    def loss(self, name: str) -> Function:
        """The sum of the squares of the result, or of the result times the last argument."""
        xp, function = PEERS[name].xp(), self.forward(name)
        if self.weighted:
            return lambda *arguments: _weighted_sum(xp, function(*arguments[:-1]), arguments[-1])
        return lambda *arguments: xp.sum(function(*arguments) ** 2)

    def differentiated(self, arguments: Sequence[Argument]) -> tuple[int, ...]:
        """The positions of the arguments that the gradient is with respect to."""
        found = tuple(k for k, a in enumerate(arguments) if leaves(a)[0].dtype.kind in "fc")
        return self.argnums or (found[:1] if self.weighted else found)

    def compiled(self, name: str, arguments: Sequence[Argument]) -> Function | None:
        """What harp or a peer runs; None if it does not compute gradients."""
        peer = PEERS[name]
        if peer.prepare:
            peer.prepare(1)
        if not self.gradient:
            return peer.compile(self.forward(name), 1)
        library = peer.library()
        if not hasattr(library, "grad"):
            return None
        return peer.compile(library.grad(self.loss(name), self.differentiated(arguments)), 1)


def _weighted_sum(xp: ModuleType, result: Any, weights: Any) -> object:
    """Of a complex result, half of the imaginary part counts, too."""
    if xp.iscomplexobj(result):
        return xp.sum(xp.real(result) * weights) + 0.5 * xp.sum(xp.imag(result) * weights)
    return xp.sum(result * weights)


@dataclass(frozen=True)
class Group:
    """Cases with a table of their own, under the name that the command line has for them."""

    name: str
    description: str
    cases: Mapping[str, Case]


def call(name: str, function: Function, arguments: tuple[Argument, ...]) -> Call:
    """What is timed: from arguments on its side to a result in memory of its own.

    NumPy returns views of its arguments, where harp and JAX return arrays: they are copied.
    """
    peer = PEERS[name]
    timed = peer.call(function, peer.arguments(arguments))
    if name != "numpy" or not _shares(timed(), arguments):
        return timed
    return lambda: np.array(timed(), order="C")


def _shares(result: object, arguments: tuple[Argument, ...]) -> bool:
    given = leaves(arguments)
    return any(np.may_share_memory(part, array) for part in leaves(result) for array in given)


# Tables of cases


def forward(name: str, n: int, arguments: Sequence[Maker], function: Function, **more: object) -> list[Case]:
    """The program. `numpy=` and `jax=` are the functions of peers that spell it differently."""
    own = {peer: more.pop(peer) for peer in ("numpy", "jax") if peer in more}
    return [Case(name, n, tuple(arguments), function, own, **more)]


def gradient(name: str, n: int, arguments: Sequence[Maker], function: Function, **more: object) -> list[Case]:
    """The gradient of the sum of its squares."""
    more.pop("beside_copy", None)
    return forward(f"{name}-gradient", n, arguments, function, gradient=True, **more)


def both(name: str, n: int, arguments: Sequence[Maker], function: Function, **more: object) -> list[Case]:
    """The program, and its gradient."""
    return [
        *forward(name, n, arguments, function, **more),
        *gradient(name, n, arguments, function, **more),
    ]


# Arguments. A shape consists of numbers and the letter n, which stands for the size of the case; "3n" is its triple.

Shape = tuple[int | str, ...]


def _numbers(shape: Shape, n: int) -> tuple[int, ...]:
    return tuple(int(size[:-1] or 1) * n if isinstance(size, str) else size for size in shape)


def normal(*shape: int | str, dtype: str = "float64") -> Maker:
    """Numbers around 0."""
    if np.dtype(dtype).kind == "c":
        return lambda rng, n: rng.standard_normal((*_numbers(shape, n), 2)).view("complex128")[..., 0].astype(dtype)
    return lambda rng, n: rng.standard_normal(_numbers(shape, n)).astype(dtype)


def uniform(low: float, high: float, *shape: int | str, dtype: str = "float64") -> Maker:
    """Numbers between two others."""
    return lambda rng, n: rng.uniform(low, high, _numbers(shape, n)).astype(dtype)


def increasing(*shape: int | str, dtype: str = "float64") -> Maker:
    """Numbers between 0 and 1 in order."""
    return lambda rng, n: np.sort(rng.random(_numbers(shape, n))).astype(dtype)


def integers(low: int, below: int | str, *shape: int | str, dtype: str = "int64") -> Maker:
    """Integers from `low` to below a number, or below n."""
    return lambda rng, n: rng.integers(low, n if below == "n" else below, _numbers(shape, n)).astype(dtype)


def pieces(count: int) -> Maker:
    """A list of vectors that have n elements together."""
    return lambda rng, n: [rng.standard_normal(n // count) for _ in range(count)]


def piece(count: int) -> Maker:
    """One such vector."""
    return lambda rng, n: rng.standard_normal(n // count)


def bits(*shape: int | str, dtype: str = "float32") -> Maker:
    """Zeros and ones, or truth values."""
    return lambda rng, n: rng.integers(0, 2, _numbers(shape, n)).astype(dtype)


def counting(count: int, dtype: str = "float32") -> Maker:
    """0, 1, 2, ..."""
    return lambda rng, n: np.arange(count, dtype=dtype)
