"""The two kinds of workloads: a function that all peers compute, and a measurement of its own."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from benchmarks.harness import Call, Goal, Row, Settings, interleaved, leaves, problem, tree_map
from benchmarks.peers import PEERS, Peer

Arguments = tuple[object, ...]
Function = Callable[..., object]
TOLERANCE = {"float32": 1e-4, "float64": 1e-10, "complex64": 1e-4}
LOOPS = "benchmarks.workloads.loops"  # loops for numba, imported only where it is measured


def _wide(leaf: np.ndarray) -> np.ndarray:
    """Numbers with fractions in double precision, others as they are."""
    return leaf.astype(np.result_type(leaf, np.float64)) if leaf.dtype.kind in "fc" else leaf


@dataclass(frozen=True)
class Comparison:
    """A function of arrays that all peers compute; its figure is the best peer's median over harp's.

    `function` takes an array namespace and the arguments. `own` has functions without namespace for single peers,
    those of numba by name. `calls` has, for peers or variants of them such as "jax donated", functions from arguments
    on that peer's side to what is timed.
    """

    name: str
    goal: Goal | None
    arguments: Callable[..., Arguments]  # from a random generator and sizes
    sizes: tuple[int, ...]
    small: tuple[int, ...]  # sizes with --quick and in tests
    function: Function | None = None
    own: Mapping[str, Function | str] = field(default_factory=dict)
    calls: Mapping[str, Callable[..., Call]] = field(default_factory=dict)
    against: str = ""  # the one peer that counts, instead of the best
    tolerance: float = 0.0
    needs: str = ""  # a function that harp.numpy must have
    peers: tuple[str, ...] = ()  # the only ones beside harp; all that can compute it if there are none
    truth: str = "numpy"  # the peer that says what is right, in float64
    in_harp_seconds: bool = False  # the figure is harp's median itself, in the goal's unit

    def make(self, small: bool = False) -> Arguments:
        """The arguments as NumPy arrays, always the same."""
        return self.arguments(np.random.default_rng(0), *(self.small if small else self.sizes))

    def reference(self, arguments: Arguments) -> object:
        """The result in float64, by NumPy or the peer that is the truth."""
        exact = tree_map(_wide, arguments)
        if "numpy" in self.calls:
            return self.calls["numpy"](*exact)()
        peer = PEERS[self.truth]
        if peer.prepare:
            peer.prepare(1)
        return self.shared(peer)(*peer.arguments(exact))

    def shared(self, peer: Peer) -> Function:
        """The function of a peer, not yet compiled."""
        own = self.own.get(peer.name) or self.own.get(peer.package)
        if isinstance(own, str):
            return getattr(importlib.import_module(LOOPS), own)
        if own is not None:
            return own
        assert self.function is not None
        return partial(self.function, peer.xp())

    def candidates(self, peer: Peer) -> list[str]:
        """The peer itself, if it can compute this, and its variants."""
        if self.peers and peer.name not in ("harp", *self.peers):
            return []
        able = bool(self.function and peer.namespace) or peer.name in self.own
        variants = [name for name in self.calls if name.split(" ")[0] == peer.name]
        return variants or [peer.name] * able

    def call(self, name: str, arguments: Arguments, threads: int) -> Call:
        """What is timed for a candidate."""
        peer = PEERS[name.split(" ")[0]]
        if peer.prepare:
            peer.prepare(threads)
        converted = peer.arguments(arguments)
        if name in self.calls:
            return self.calls[name](*converted)
        return peer.call(peer.compile(self.shared(peer), threads), converted)

    def limit(self, arguments: Arguments) -> float:
        """The largest relative error of a right result."""
        return self.tolerance or max(TOLERANCE[leaf.dtype.name] for leaf in leaves(arguments))

    def run(self, settings: Settings) -> Row:
        """Check all candidates, time those that are right, and compare."""
        row = Row(self.name, settings.threads, goal=self.goal)
        if self.needs and not hasattr(PEERS["harp"].xp(), self.needs):
            row.notes.append(f"skipped: harp.numpy has no {self.needs} yet")
            return row
        if not importlib.util.find_spec(PEERS[self.truth].package):
            row.notes.append(f"skipped: {self.truth}, which says what is right, is not installed")
            return row
        calls = self._right(settings, row)
        row.take(interleaved(calls, settings) if calls else {})
        counted = {n: t for n, t in row.medians.items() if n.split()[0] != "harp" and n.startswith(self.against)}
        if "harp" in row.medians and self.in_harp_seconds:
            row.figure, row.figure_unit = row.medians["harp"] * 1e6, "us"
        elif "harp" in row.medians and counted:
            row.figure = min(counted.values()) / row.medians["harp"]
        return row

    def _right(self, settings: Settings, row: Row) -> dict[str, Call]:
        arguments = self.make(settings.quick)
        expected, limit, right = self.reference(arguments), self.limit(arguments), dict[str, Call]()
        for peer in map(PEERS.__getitem__, ("harp", *settings.peers)):
            for name in self.candidates(peer):
                try:
                    call = self.call(name, arguments, settings.threads)
                    start = time.perf_counter()
                    value = call()
                    row.first.update({name: time.perf_counter() - start} if settings.first_calls else {})
                    found = problem(value, expected, limit)
                except Exception as error:  # a peer that fails is reported, and the others are measured
                    row.notes.append(f"{name} failed: {type(error).__name__}: {str(error).strip().splitlines()[:1]}")
                    continue
                if found:
                    row.notes.append(f"{name} is wrong: {found}")
                else:
                    right[name] = call
        return right


@dataclass(frozen=True)
class Measurement:
    """Anything else: `measure` fills in the row."""

    name: str
    goal: Goal | None
    measure: Callable[[Settings, Row], None]

    def run(self, settings: Settings) -> Row:
        """Measure."""
        row = Row(self.name, settings.threads, goal=self.goal)
        self.measure(settings, row)
        return row


Workload = Comparison | Measurement


def fewer(settings: Settings, rounds: int) -> Settings:
    """For measurements that take long."""
    return replace(settings, rounds=min(settings.rounds, 1 if settings.quick else rounds))
