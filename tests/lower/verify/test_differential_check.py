"""HARP_VERIFY=3: what a pass breaks is found by running it, and what it left alone is not run again."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.config import settings
from harp.errors import VerificationError
from harp.lower import pipeline
from harp.lower.loopir.loops import Stmt, Store
from harp.lower.loopir.nests import rebuilt
from harp.lower.pipeline import PASSES, lower
from harp.lower.target import Target
from harp.lower.verify import interpreter
from harp.trace.scalar.expr import const
from harp.trace.sizes.signature import canonical

KERNELS = [step.name for step in PASSES if step.check is pipeline._check_kernels and step.name != "plan memory"]


@pytest.fixture(autouse=True)
def level(monkeypatch):
    monkeypatch.setattr(settings, "verify", 3)


def graph():
    f = lambda x, w: (hnp.tanh(x @ w), hnp.sum(x, axis=0))
    return canonical(harp.trace(f, harp.f32["n", "k"], harp.f32["k", "m"]))


def shifted(s: Stmt) -> Stmt:
    """One more in each store."""
    if isinstance(s, Store):
        return attrs.evolve(s, value=s.value + const(1, s.value.dtype))
    return rebuilt(s, shifted)


def broken(state: pipeline.Lowered) -> pipeline.Lowered:
    kernels = tuple(kernel.with_body(shifted(kernel.body)) for kernel in state.built.kernels)
    return attrs.evolve(state, built=attrs.evolve(state.built, kernels=kernels))


def test_sound_passes_are_accepted():
    assert lower(graph(), Target()).program.kernels


@pytest.mark.parametrize("name", KERNELS)
def test_a_pass_that_breaks_kernels_is_found(monkeypatch, name):
    steps = [attrs.evolve(p, run=lambda s, p=p: broken(p.run(s))) if p.name == name else p for p in PASSES]
    monkeypatch.setattr(pipeline, "PASSES", tuple(steps))
    with pytest.raises(VerificationError, match="output 0 is"):
        lower(graph(), Target())


@pytest.mark.parametrize("name", ["legalise", "simplify"])
def test_a_pass_that_breaks_the_graph_is_found(monkeypatch, name):
    other = canonical(harp.trace(lambda x, w: (hnp.tanh(x @ w) * 2, hnp.sum(x, axis=0)),
                                 harp.f32["n", "k"], harp.f32["k", "m"]))  # fmt: skip
    run = lambda s: attrs.evolve(s, graph=other)
    monkeypatch.setattr(pipeline, "PASSES", tuple(attrs.evolve(p, run=run) if p.name == name else p for p in PASSES))
    with pytest.raises(VerificationError):
        lower(graph(), Target())


def test_what_a_pass_left_alone_is_not_run_again(monkeypatch):
    runs = []
    noted = lambda source, program, is_checked: runs.append(program.kernels)
    monkeypatch.setitem(pipeline._RARE, "check_program", noted)
    lower(canonical(harp.trace(lambda x: hnp.exp(x) + 1, harp.f32["n"])), Target())
    assert 0 < len(runs) == len({*runs}) < len(KERNELS)


def test_a_kernel_that_passes_left_alone_is_run_once_for_each_data(monkeypatch):
    runs, run = [], interpreter.Interpreter.run
    noted = lambda self, kernel: (runs.append(kernel.body), run(self, kernel))
    monkeypatch.setattr(interpreter.Interpreter, "run", noted)
    both = lambda x, w: (hnp.tanh(x @ w), hnp.cumsum(x))
    lower(canonical(harp.trace(both, harp.f32["n", "k"], harp.f32["k", "m"])), Target())
    assert max(map(runs.count, runs)) == 2  # at two choices of sizes


def test_statements_that_nothing_changes_stay_the_same_objects():
    kernels = lower(graph(), Target()).built.kernels
    for kernel in kernels:
        assert rebuilt(kernel.body, lambda part: part) is kernel.body
        assert kernel.with_body(kernel.body) is kernel


def test_sizes_for_which_a_branch_reads_outside_an_array_are_passed_over():
    f = harp.jit(lambda r: harp.cond(hnp.sum(r) > 0, lambda r: r[4], lambda r: r[0] * 2, r))
    assert f(np.arange(6.0)) == 4
