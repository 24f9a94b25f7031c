"""Forward mode beside central differences and reverse mode, over all public functions that have derivatives."""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain
from harp.errors import ArgumentError, IntegerGradientError, TangentError
from harp.trace.graph.node import KINDS
from harp.transforms.autodiff import jvp, scalar_rules

PATH = pathlib.Path(__file__).resolve().parents[2] / "numpy" / "test_gradients.py"
SPEC = importlib.util.spec_from_file_location("checked_gradients", PATH)
assert SPEC is not None and SPEC.loader is not None
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)


def leaves(result) -> list[np.ndarray]:
    parts = [result] if isinstance(result, harp.Array) else list(result)
    return [np.asarray(p) for p in parts]


def directions(arguments):
    rng = np.random.default_rng(2)
    return [rng.normal(size=np.shape(a)) for a in arguments]


def test_the_table_is_complete():
    assert set(jvp.RULES) == set(KINDS)
    assert set(scalar_rules.FORWARD) <= set(scalar_rules.RULES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TABLE.CASES)
def test_against_differences_and_reverse_mode(name):
    function, *arguments = TABLE.CASES[name]
    moving = directions(arguments)
    value, tangent = harp.jvp(function, arguments, moving)
    # Systems of equations are NumPy's outside of a trace, and round in another order.
    room = 1e-14 if name.startswith(("linalg.", "poly")) else 0
    for found, expected in zip(leaves(value), leaves(function(*arguments)), strict=True):
        npt.assert_allclose(found, expected, rtol=room, atol=room)
    ends = [leaves(function(*(a + h * d for a, d in zip(arguments, moving, strict=True)))) for h in (1e-6, -1e-6)]
    tangents = leaves(tangent)
    for found, high, low in zip(tangents, *ends, strict=True):
        known = np.isfinite(high) & np.isfinite(low)
        npt.assert_allclose(found[known], ((high - low) / 2e-6)[known], rtol=2e-4, atol=2e-5)
    # <u, J v> == <J^T u, v>
    rng = np.random.default_rng(3)
    cotangents = [rng.normal(size=t.shape) for t in tangents]
    given = type(value)(map(hnp.asarray, cotangents)) if not isinstance(value, harp.Array) else cotangents[0]
    _, pullback = harp.vjp(function, *arguments)
    back = sum(np.sum(np.asarray(c) * d) for c, d in zip(pullback(given), moving, strict=True))
    npt.assert_allclose(sum(np.sum(c * t) for c, t in zip(cotangents, tangents, strict=True)), back, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["exp", "matmul", "cumprod", "sort", "pad", "max", "prod", "linalg.cross", "take"])
def test_compiled_once_for_all_sizes(name):
    """The same numbers as without a compiler, for a composition with a product and a reshape."""
    function, *arguments = TABLE.CASES[name]
    compiled = harp.jit(lambda x, v: harp.jvp(function, x, v))
    found = compiled(tuple(arguments), tuple(directions(arguments)))
    expected = harp.jvp(function, arguments, directions(arguments))
    for a, b in zip(found, expected, strict=True):
        for p, q in zip(leaves(a), leaves(b), strict=True):
            npt.assert_allclose(p, q, rtol=1e-12, atol=1e-12)


def model(w, x):
    return hnp.sum(hnp.tanh(x @ w) ** 2, axis=-1)


def test_one_program_for_all_sizes():
    compiled = harp.jit(lambda w, x, v: harp.jvp(lambda w: model(w, x), (w,), (v,)))
    rng = np.random.default_rng(0)
    for rows, inner, outer in ((0, 2, 3), (2, 0, 3), (5, 2, 0), (1, 1, 1), (33, 7, 2)):
        w, v, x = rng.normal(size=(inner, outer)), rng.normal(size=(inner, outer)), rng.normal(size=(rows, inner))
        value, tangent = compiled(w, x, v)
        inside = np.tanh(x @ w)
        npt.assert_allclose(np.asarray(value), (inside**2).sum(-1), rtol=1e-12)
        npt.assert_allclose(np.asarray(tangent), (2 * inside * (1 - inside**2) * (x @ v)).sum(-1), rtol=1e-11)
    assert compiled.compilations <= 3, "axes of one element broadcast"


@pytest.mark.skipif(find_toolchain() is None, reason="without a compiler nothing is known of vectors")
def test_derivatives_of_products_are_products():
    """Each factor has a matrix product of its own, which the library multiplies."""
    w, x = np.ones((20, 20)), np.ones((20, 20))
    pushed = harp.jit(lambda a, b, u, v: harp.jvp(hnp.matmul, (a, b), (u, v))[1]).lower(x, w, x, w)
    assert pushed.loops.count("gemm panel") >= 2


Z = np.array([0.3 + 0.4j, -1.2 + 0.1j, 0.5 - 2.0j, 0.0 + 1.0j])
COMPLEX = {
    "abs": hnp.abs,
    "real": hnp.real,
    "imag": hnp.imag,
    "conj": hnp.conj,
    "angle": hnp.angle,
    "exp": hnp.exp,
    "tanh": hnp.tanh,
    "sqrt": hnp.sqrt,
    "power": lambda z: z**3,
    "reciprocal": lambda z: 1 / z,
    "squared size": lambda z: (z * hnp.conj(z)).real,
    "cumprod": hnp.cumprod,
    "prod": hnp.prod,
}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name):
    """The derivative in a direction is that of the plane, also where the function has no complex derivative."""
    function, v = COMPLEX[name], np.array([1 - 2j, 0.3 + 1j, 1j, 0.7 + 0.2j])
    _, tangent = harp.jvp(function, (Z,), (v,))
    high, low = (np.asarray(function(Z + h * v)) for h in (1e-6, -1e-6))
    npt.assert_allclose(np.asarray(tangent), (high - low) / 2e-6, rtol=1e-6, atol=1e-8)


def test_from_real_to_complex_and_to_another_dtype():
    x, v = np.array([0.5, 2.0]), np.array([1.0, -3.0])
    _, tangent = harp.jvp(lambda x: hnp.exp(1j * x), (x,), (v,))
    npt.assert_allclose(np.asarray(tangent), 1j * np.exp(1j * x) * v)
    _, narrow = harp.jvp(lambda x: (x * x).astype("float32"), (x,), (v,))
    assert narrow.dtype == np.float32
    npt.assert_allclose(np.asarray(narrow), (2 * x * v).astype("f4"))


def test_trees_aux_and_integers():
    def function(p, x):
        return {"y": p["a"] * x, "n": hnp.argmax(x)}, x.shape[0]

    p, x = {"a": 2.0}, np.array([1.0, 5.0])
    value, tangent, aux = harp.jvp(function, (p, x), ({"a": 1.0}, np.zeros(2)), has_aux=True)
    npt.assert_array_equal(np.asarray(value["y"]), [2.0, 10.0])
    npt.assert_array_equal(np.asarray(tangent["y"]), [1.0, 5.0])
    assert int(value["n"]) == 1 and int(tangent["n"]) == 0 and int(aux) == 2


def test_linearize():
    value, pushforward = harp.linearize(lambda x, y: x * hnp.sin(y), 2.0, np.array([0.0, 1.0]))
    npt.assert_allclose(np.asarray(value), [0.0, 2 * np.sin(1)])
    for t in (1.0, -2.0):
        npt.assert_allclose(np.asarray(pushforward(t, np.zeros(2))), t * np.sin([0.0, 1.0]))
    npt.assert_allclose(np.asarray(pushforward(0.0, np.ones(2))), 2 * np.cos([0.0, 1.0]))
    _, _, aux = harp.linearize(lambda x: (x, "named"[:0] or 7), 2.0, has_aux=True)
    assert int(aux) == 7


def test_no_derivatives_are_mixed_up():
    """Two derivatives in one direction each are told apart (perturbation confusion)."""

    def inner(x):
        return harp.jvp(lambda y: x * y, (1.0,), (1.0,))[1]

    _, slope = harp.jvp(lambda x: x * inner(x), (3.0,), (1.0,))
    assert float(slope) == 6.0
    both = harp.jit(harp.grad(lambda x: x * harp.jvp(lambda y: x + y * y, (x,), (x,))[1]))
    assert float(both(2.0)) == 6 * 2.0**2


@pytest.mark.parametrize(
    ("primals", "tangents", "error", "words"),
    [
        ((np.ones(2),), (np.ones(3),), Exception, "tangent does not fit x along axis 0"),
        (
            (np.ones(2),),
            (np.ones((2, 1)),),
            TangentError,
            "the tangent is float64 with 2 axes, but x is float64 with 1",
        ),
        ((np.ones(2),), (np.ones(2, "f4"),), TangentError, "the tangent is float32"),
        ((np.ones(2),), (np.ones(2), 1.0), TangentError, "the tangents are a tree"),
        ((np.ones(2),), (), TangentError, "the tangents are a tree"),
        ((np.arange(2),), (np.arange(2),), IntegerGradientError, "argument x has dtype int64"),
        (np.ones(2), np.ones(2), ArgumentError, "a tuple of primals and a tuple of tangents"),
    ],
)
def test_what_does_not_fit(primals, tangents, error, words):
    with pytest.raises(error, match=words):
        harp.jvp(lambda x: x * 2, primals, tangents)
