"""The cheap gradient principle: a gradient costs a small constant times its function, whatever the sizes.

Of every function in the table of checked gradients, the cost of the gradient of the sum of its results is compared with
that of the function itself. One step is an operation (a special one such as exp is twelve), a comparison, a read or a
write of an element; the elements of arguments and results count with the function, which may leave most of them alone
where its gradient has to be written in full.
"""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.numpy.padding import MODES

PATH = pathlib.Path(__file__).resolve().parents[2] / "numpy" / "test_gradients.py"
SPEC = importlib.util.spec_from_file_location("checked_gradients", PATH)
assert SPEC is not None and SPEC.loader is not None
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)

SIZE = 1000
FACTOR = 5

# What is too expensive today, and why: the degrees of the function and of its gradient, or the factor if they agree.
# Nothing may be added. What has become cheaper fails until it is taken out, or its number is lowered.
TIES = "elements that are the extremum are counted, and share: the extremum is read and compared twice more"
TOO_DEAR: dict[str, tuple[tuple[int, int] | float, str]] = {
    "histogram_bin_edges": (5.4, TIES),
    "max": (5.4, TIES),
    "min": (5.4, TIES),
    "ptp": (5.7, TIES),
}


def parts(result):
    return [result] if isinstance(result, harp.Array) else list(result)


def compared(function, *arguments) -> tuple[int, int] | float:
    """How the cost of its gradient compares with that of a function."""
    which = tuple(range(len(arguments)))
    gradient = harp.grad(lambda *x: sum(hnp.sum(p) for p in parts(function(*x))), argnums=which)
    return versus(function, gradient, *arguments)


def versus(function, gradient, *arguments) -> tuple[int, int] | float:
    """The degrees of a function and of another if that is higher, else how many times as expensive the other is."""
    own, other = (harp.jit(f).lower(*arguments).cost() for f in (function, gradient))
    whole = own.steps + own.elements
    if other.steps.degree > whole.degree:
        return whole.degree, other.steps.degree
    steps, other_steps = (cost.at(*[SIZE] * len(cost.names)) for cost in (own, other))
    return other_steps.steps / (steps.steps + steps.elements)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE.CASES)
def test_gradients_are_cheap(name):
    found = compared(*TABLE.CASES[name])
    expensive = isinstance(found, tuple) or found > FACTOR
    listed = TOO_DEAR.get(name)
    if listed is None:
        assert not expensive, f"the gradient of {name} is too expensive: {found}"
    else:
        assert expensive, f"the gradient of {name} is cheap now: take it out of the table"
        assert (found if isinstance(found, tuple) else round(found, 1)) == listed[0], listed[1]


EXTREMA = {"maximum", "minimum"}  # modes of pad, which are as expensive as max and min
VIEWS = {
    "slice": lambda x: x[1:-1, 2:],
    "steps": lambda x: x[::2, 1::3],
    "reversed": lambda x: x[::-1, ::-2],
    "transposed": lambda x: x.T,
    "row": lambda x: x[1],
    "diagonal": lambda x: hnp.diagonal(x),
    "broadcast": lambda x: x[:, None, :] + hnp.zeros((1, x.shape[1], 1)),
    "flat": lambda x: x.reshape(-1),
    "split": lambda x: x.reshape(x.shape[0], 2, -1),
    "tile": lambda x: hnp.tile(x, (2, 3)),
    "repeat": lambda x: hnp.repeat(x, 3, axis=1),
    "roll": lambda x: hnp.roll(x, (1, -2), (0, 1)),
    "windows": lambda x: hnp.stack([x[k : x.shape[0] - 2 + k] for k in range(3)]),
    "update": lambda x: x.at[1:3].set(1.0).at[:, ::2].add(x[:, ::2]),
    "pieces": lambda x: hnp.concatenate([x * k for k in range(8)]),
    **{mode: lambda x, mode=mode: hnp.pad(x, 2, mode=mode) for mode in MODES if mode not in EXTREMA},
    "odd reflection": lambda x: hnp.pad(x, 2, mode="reflect", reflect_type="odd"),
}
MATRIX = np.arange(64.0).reshape(8, 8)


@pytest.mark.parametrize("name", VIEWS)
def test_gradients_of_views_are_cheap(name):
    found = compared(VIEWS[name], MATRIX)
    assert isinstance(found, float) and found <= FACTOR, found


# Second derivatives that are too expensive today: the degrees, or the factor.
TOO_DEAR_TWICE: dict[str, tuple[int, int] | float] = {"special.betaln": 30}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*TABLE.CASES, *VIEWS])
def test_second_derivatives_are_cheap(name):
    """Those of the sum of the squares of the results, by way of the sum of the squares of the gradient."""
    function, *arguments = TABLE.CASES[name] if name in TABLE.CASES else (VIEWS[name], MATRIX)

    def squares(*given):
        return sum(hnp.sum(p * p) for p in parts(function(*given)))

    def slopes(*given):
        return sum(hnp.sum(g * g) for g in harp.grad(squares, argnums=tuple(range(len(given))))(*given))

    found = versus(function, harp.grad(slopes, argnums=tuple(range(len(arguments)))), *arguments)
    expensive = isinstance(found, tuple) or found > FACTOR**2
    if name not in TOO_DEAR_TWICE:
        assert not expensive, f"the second derivative of {name} is too expensive: {found}"
    else:
        assert expensive, f"the second derivative of {name} is cheap now: take it out of the table"
        assert (found if isinstance(found, tuple) else round(found)) == TOO_DEAR_TWICE[name]


def test_the_table_names_functions():
    assert TOO_DEAR.keys() <= TABLE.CASES.keys()


def test_what_is_dear_is_noticed():
    def of_all_pairs(x):
        return hnp.sum(x[:, None] * hnp.cos(x))

    assert versus(hnp.sum, of_all_pairs, TABLE.X[0]) == (1, 2)
    assert versus(hnp.sum, lambda x: hnp.cos(hnp.sin(x)), TABLE.X[0]) > FACTOR
    assert 0 < compared(of_all_pairs, TABLE.X[0]) < FACTOR


@pytest.mark.parametrize("depth", [1, 4, 16])
def test_the_gradient_of_a_deep_network_is_cheap(depth):
    def network(x, w):
        for _ in range(depth):
            x = hnp.tanh(x @ w)
        return hnp.sum(x)

    found = compared(network, TABLE.X, TABLE.X.T @ TABLE.X)
    assert isinstance(found, float) and found < 4, found
