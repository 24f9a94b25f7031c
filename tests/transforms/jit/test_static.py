"""Static arguments: how they are named, and which values are the same."""

from __future__ import annotations

import collections
import dataclasses
import math

import numpy as np
import pytest

import harp
from harp import errors
from harp.trace.interning import identity

Pair = collections.namedtuple("Pair", "left right")

DIFFERENT = [
    0,
    False,
    0.0,
    -0.0,
    np.float32(0.0),
    np.float32(-0.0),
    np.float64(0.0),
    math.nan,
    0j,
    complex(0.0, -0.0),
    (0,),
    (0.0,),
    (-0.0,),
    (False,),
    ((0,),),
    ((0.0,),),
    Pair(0, 1),
    (0, 1),
    frozenset({0}),
    frozenset({0.0}),
    frozenset({(0, 1.0)}),
    frozenset({(0, 1)}),
    "0",
    None,
]


def test_keys_tell_values_apart():
    assert len({identity(value) for value in DIFFERENT}) == len(DIFFERENT)


@pytest.mark.parametrize("make", [lambda: float("nan"), lambda: (1, (float("nan"),)), lambda: Pair(1.5, {}.get(0))])
def test_keys_of_the_same_value_are_equal(make):
    assert identity(make()) == identity(make())


def test_nested_values_of_different_type_are_different():
    f = harp.jit(lambda x, s: x * s[0], static_argnums=1)
    assert f(np.arange(2), (1,)).dtype == np.int64 and f(np.arange(2), (1.0,)).dtype == np.float64
    sign = harp.jit(lambda x, s: x * math.copysign(1.0, s), static_argnums=1)
    assert float(sign(1.0, 0.0)) == 1.0 and float(sign(1.0, -0.0)) == -1.0


def test_nan_is_traced_once():
    traces = []
    f = harp.jit(lambda x, s: (traces.append(s), x)[1], static_argnums=1)
    for _ in range(3):
        f(np.ones(2), float("nan"))
    assert len(traces) == 1


def test_values_with_an_equality_of_their_own():
    @dataclasses.dataclass(frozen=True)
    class Options:
        scale: float

    traces = []
    f = harp.jit(lambda x, s: (traces.append(s), x * s.scale)[1], static_argnums=1)
    for scale in (2.0, 2.0, 3.0):
        assert float(f(1.0, Options(scale))) == scale
    assert len(traces) == 2


@pytest.mark.parametrize("answer", [np.array([True, False]), NotImplementedError])
def test_values_that_do_not_compare(answer):
    class Arrays:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            return answer if isinstance(answer, np.ndarray) else np.zeros(3)

    f = harp.jit(lambda x, s: x, static_argnums=1)
    with pytest.raises(errors.StaticArgumentError, match="argument 1") as caught:
        f(np.ones(2), Arrays())
    assert __file__ in str(caught.value)
    with pytest.raises(errors.StaticArgumentError):
        f(np.ones(2), (1, [2]))


def test_a_number_is_static_by_keyword_too():
    f = harp.jit(lambda x, n: x * len(range(n)), static_argnums=1)
    assert float(f(2.0, n=3)) == float(f(2.0, 3)) == 6.0
    g = harp.jit(lambda x, n, m: x * len(range(n)) + len(range(m)), static_argnames=("m", "n"))
    assert float(g(2.0, m=1, n=3)) == float(g(2.0, 3, m=1)) == float(g(2.0, 3, 1)) == 7.0
    positional = harp.jit(lambda n, /, x: x * len(range(n)), static_argnames="n")
    assert float(positional(3, 2.0)) == 6.0


def test_negative_numbers_count_from_the_end_of_the_parameters():
    def f(x, n=2, kind="plain"):
        return x**n if kind == "plain" else -(x**n)

    g = harp.jit(f, static_argnums=-1)
    assert float(g(3.0)) == 9.0  # x is the last of the arguments, but not of the parameters
    assert float(g(3.0, 2, "minus")) == -9.0 and float(g(3.0, kind="minus")) == -9.0
    assert float(harp.jit(f, static_argnums=(-2, 2))(3.0, 3)) == 27.0


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"static_argnums": 2}, "has 2, but"),
        ({"static_argnums": -3}, "has -3, but"),
        ({"static_argnums": 1.0}, "not 1.0"),
        ({"static_argnums": True}, "not True"),
        ({"static_argnums": "x"}, "not 'x'"),
        ({"static_argnums": None}, "not None"),
        ({"static_argnames": "m"}, "has 'm'"),
        ({"static_argnames": ("x", "m")}, "has 'm'"),
        ({"static_argnames": 1}, "not 1"),
        ({"static_argnames": (1,)}, "not 1"),
        ({"options": {"optimize": 1}}, "CompileOptions"),
    ],
)
def test_wrong_options(options, match):
    with pytest.raises(errors.ArgumentError, match=match) as caught:
        harp.jit(lambda x, n: x, **options)
    assert __file__ in str(caught.value)


def test_functions_of_any_number_of_arguments():
    f = harp.jit(lambda *args, **kwargs: args[0] * args[2] * kwargs["k"], static_argnums=(2,), static_argnames="k")
    assert float(f(2.0, 1.0, 3, k=5)) == 30.0
    with pytest.raises(errors.ArgumentError, match="end is not known"):
        harp.jit(lambda *args: args[0], static_argnums=-1)
