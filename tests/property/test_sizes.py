"""Functions of sizes, drawn from a fixed list of seeds, give what NumPy gives at all sizes, whichever came first.

`make fuzz` does the same with new seeds for as long as one likes.
"""

from __future__ import annotations

import subprocess
import sys

import pytest
from sizes.case import Argument, Call, Case, Statement
from sizes.grammar import generate
from sizes.oracle import check
from sizes.saved import save
from sizes.shrink import shrink

from harp.trace.sizes.scope import Scope

INTERPRETED = range(0, 100, 10)  # the first of ten seeds
COMPILED = range(1000, 1008)


def agrees(seed: int, backend: str) -> None:
    case = generate(seed)
    finding = check(case, backend).finding
    if finding is not None:
        pytest.fail(f"seed {seed}: {finding.kind} in call {finding.call} of\n{case.source}{case.calls}\n{finding.text}")


@pytest.mark.slow
@pytest.mark.parametrize("first", INTERPRETED)
def test_interpreted(first):
    for seed in range(first, first + 10):
        agrees(seed, "numpy")


@pytest.mark.parametrize("seed", COMPILED)
def test_compiled(seed):
    agrees(seed, "c")


def broken(seed: int = 0) -> Case:
    """A case that fails if guards are forgotten, with statements and calls that have nothing to do with it."""
    texts = ("v0 = a + 1", "v1 = a * 2 if a.shape[0] > b.shape[0] else a", "v2 = b.reshape(-1)", "v3 = v1 + v0")
    return Case(
        seed,
        (Argument("a", 1, "float64"), Argument("b", 1, "int64")),
        tuple(Statement(text[:2], text) for text in texts),
        ("v2", "v3"),
        tuple(Call(((n,), (m,))) for n, m in ((5, 5), (8, 3), (0, 0), (2, 6), (7, 4))),
    )


def test_forgotten_guards_are_found_and_made_small(monkeypatch, tmp_path):
    assert check(broken()).finding is None
    monkeypatch.setattr(Scope, "guard", lambda scope, relation, p, reason: scope._facts.add((relation, p)))
    finding = check(broken()).finding
    assert finding is not None and finding.kind == "wrong values"

    def fails(case: Case) -> bool:
        found = check(case).finding
        return found is not None and found.kind == finding.kind

    small = shrink(broken(), fails, seconds=1000)
    assert len(small.statements) == 1 and len(small.calls) == 2

    path = save(tmp_path, small, finding, "numpy", ["if expression"])
    assert path is not None and save(tmp_path, small, finding, "numpy", ["if expression"]) is None
    shown = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True).stdout
    assert shown.count("NumPy:") == shown.count("harp:") == 2


def test_a_seed_is_one_case():
    assert generate(7) == generate(7) != generate(8)
