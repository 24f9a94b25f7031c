import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.lower.loopir.origin import Storage

S = Storage
VECTOR, MATRIX = np.ones(20), np.ones((20, 20))


def sorted_twice(x, i):
    y = hnp.sort(x)
    return y.at[i].set(0.0), y


def read_later(x, i):
    y = hnp.sort(x)
    return y.at[i].set(0.0) + y.sum() + y


def part_read_later(x, i):
    y = x * 2
    z = y.at[i].set(1.0)
    return z, y[0] + z[0]


def looped(step):
    return lambda x, i: lax.fori_loop(0, 10, step, x)


# A program, its argument, and for each array that it writes what is said of it.
CASES = {
    "elementwise": (lambda x, i: x + i, VECTOR, [[]]),
    "argument": (lambda x, i: x.at[i].set(0.0), VECTOR, [[S.OF_ARGUMENT]]),
    "captured": (lambda x, i: hnp.asarray(VECTOR).at[i].set(x[0]), VECTOR, [[S.OF_CAPTURED]]),
    "intermediate": (lambda x, i: (x * 2).at[i].set(0.0), VECTOR, [[S.UPDATED]]),
    "result, too": (sorted_twice, VECTOR, [[S.OF_RESULT], []]),
    "read later": (read_later, VECTOR, [[], [], [S.OF_READ]]),
    "part read later": (part_read_later, VECTOR, [[S.UPDATED_PARTS], [], []]),
    "argument as it is": (lambda x, i: (x, x + i), VECTOR, [[S.COPY], []]),
    "chain of updates": (lambda x, i: x.at[i].add(1.0).at[i + 1].set(0.0), VECTOR, [[S.OF_ARGUMENT, S.UPDATED], []]),
    "branch": (
        lambda x, i: lax.cond(x[0] > 0, lambda a: a.at[i].set(0.0), lambda a: a * 2, x),
        VECTOR,
        [[S.OF_OUTSIDE, S.IN_PLACE], [], []],
    ),
    "in place": (looped(lambda k, a: a.at[k].add(a[k - 1])), VECTOR, [[S.OF_LOOP, S.IN_PLACE]]),
    "turns": (looped(lambda k, a: a[::-1] + a), VECTOR, [[S.OF_LOOP, S.TURNS], []]),
    "parts": (looped(lambda k, a: a - a[:, k, None] * a[k]), MATRIX, [[S.OF_LOOP, S.PARTS], []]),
    "handed on": (
        lambda x, i: looped(lambda k, c: (c[1], c[0] + c[1]))((x, x * 2), i),
        VECTOR,
        [[S.OF_LOOP, S.HANDED_ON], [S.HANDS_ON], []],
    ),
}  # fmt: skip


def stages(name, donate=()):
    function, argument, expected = CASES[name]
    return harp.jit(function, donate_argnums=donate).lower(argument, 1), expected


def text(storage):
    return "; ".join(s.value for s in storage) or "is computed as a whole"


@pytest.mark.parametrize("name", CASES)
def test_arrays(name):
    lowered, expected = stages(name)
    lines = lowered.arrays.splitlines()
    assert [line.split("  ")[-1] for line in lines] == list(map(text, expected))
    assert all("test_arrays.py:" in line or " - " in line for line in lines)
    copies = lowered.loops.count("copy")
    assert copies >= sum(s.value.startswith("begins") for storage in expected for s in storage)


@pytest.mark.parametrize(("name", "expected"), [("argument", []), ("in place", [S.IN_PLACE])])
def test_donated(name, expected):
    lowered, _ = stages(name, donate=0)
    (line,) = lowered.arrays.splitlines()
    assert line.endswith("  " + text([S.DONATED, *expected]))
    assert "copy(" not in lowered.loops


def test_every_reason_has_a_case():
    used = {s for _, _, expected in CASES.values() for storage in expected for s in storage}
    assert used == set(Storage) - {S.DONATED}
