"""Arguments and results of compiled functions: trees, keywords, static values, captured arrays, all kinds of input."""

from __future__ import annotations

import copy
import enum
import pickle
import subprocess
import sys
import threading
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import errors


class Pair(NamedTuple):
    left: object
    right: object


def test_trees_in_and_out():
    @harp.jit
    def f(pair, extra, *, scale):
        return {"sum": pair.left + pair.right["a"], "rest": (extra[0] * scale, [extra[1]])}

    out = f(Pair(np.ones(3), {"a": np.arange(3.0)}), (np.ones((2, 2)), 5), scale=2.0)
    npt.assert_array_equal(out["sum"], [1, 2, 3])
    npt.assert_array_equal(out["rest"][0], np.full((2, 2), 2.0))
    assert int(out["rest"][1][0]) == 5
    f(Pair(np.ones(7), {"a": np.arange(7.0)}), (np.ones((0, 1)), 5), scale=2.0)
    assert f.compilations == 1


def test_static_arguments():
    @harp.jit(static_argnums=1, static_argnames="mode")
    def f(x, power, mode="plain"):
        return x**power if mode == "plain" else -(x**power)

    x = np.arange(4.0)
    npt.assert_array_equal(f(x, 2), x**2)
    npt.assert_array_equal(f(x, 3), x**3)
    npt.assert_array_equal(f(x, 3, mode="minus"), -(x**3))
    npt.assert_array_equal(f(x, 2), x**2)
    assert f.compilations == 3
    with pytest.raises(errors.StaticArgumentError, match="list"):
        f(x, [1])


def test_static_by_name_given_by_position():
    f = harp.jit(lambda x, flag: x if flag else -x, static_argnames=("flag",))
    npt.assert_array_equal(f(np.ones(2), False), -np.ones(2))
    npt.assert_array_equal(f(np.ones(2), flag=True), np.ones(2))


def test_equal_static_values_of_different_type_are_different():
    f = harp.jit(lambda x, k: x * k, static_argnums=1)
    assert f(np.ones(2, np.int32), 2).dtype == np.int32
    assert f(np.ones(2, np.int32), 2.0).dtype == np.float32


def test_python_scalars_do_not_widen():
    f = harp.jit(lambda x, s: x * s)
    assert f(np.ones(2, np.float32), 3.5).dtype == np.float32
    assert f(np.ones(2, np.float32), np.float64(3.5)).dtype == np.float64
    assert f(np.ones(2, np.int8), 2).dtype == np.int8


def test_captured_arrays_are_hidden_inputs():
    def make(constant):
        return harp.jit(lambda x: x + constant)

    first, second = np.arange(3.0), np.array([10.0, 20.0, 30.0])
    f, g = make(first), make(second)
    npt.assert_array_equal(f(np.zeros(3)), [0, 1, 2])
    before = harp.stats()["programs"]
    npt.assert_array_equal(g(np.zeros(3)), second)
    assert harp.stats()["programs"] == before  # the same program with other captured arrays
    npt.assert_array_equal(f(np.zeros(3)), [0, 1, 2])
    first[:] = 99.0
    npt.assert_array_equal(f(np.zeros(3)), [0, 1, 2])


def test_all_kinds_of_memory():
    f = harp.jit(lambda x: x * 2 + 1)
    base = np.arange(24, dtype=np.float64).reshape(4, 6)
    read_only = base.copy()
    read_only.flags.writeable = False
    unaligned = np.frombuffer(b"\0" + base.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(4, 6)
    overlapping = np.lib.stride_tricks.sliding_window_view(np.arange(9.0), 3)
    for x in (
        base.T,
        base[::-1, ::2],
        read_only,
        base.astype(">f8"),
        unaligned,
        overlapping,
        base[:0],
        np.broadcast_to(1.0, (2, 3)),
    ):
        kept = x.copy()
        npt.assert_array_equal(f(x), x * 2 + 1)
        npt.assert_array_equal(x, kept)
    npt.assert_array_equal(f(np.float64(4)), 9)
    npt.assert_array_equal(f(np.full((2, 2), np.nan)), np.full((2, 2), np.nan))


def test_the_same_array_as_two_arguments_and_as_result():
    f = harp.jit(lambda x, y: (x, x, y + x))
    x = np.arange(3.0)
    first, second, total = f(x, x)
    npt.assert_array_equal(total, 2 * x)
    x[:] = 7
    npt.assert_array_equal(first, [0, 1, 2])
    npt.assert_array_equal(second, [0, 1, 2])


def test_results_are_read_only_and_feed_back():
    f = harp.jit(lambda x: x + 1)
    out = f(f(np.zeros(3)))
    npt.assert_array_equal(out, np.full(3, 2.0))
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(out)[0] = 1
    with pytest.raises(errors.MutationError):
        out[0] = 1


def test_results_cannot_be_made_writable():
    for f in (lambda x: x + 1, lambda x: (x + 1, x), lambda x: hnp.sum(x), lambda x: hnp.zeros((0, 2))):
        result = harp.jit(f)(np.zeros(3))
        view = np.asarray(result[0] if isinstance(result, tuple) else result)
        assert not view.base.flags.writeable
        with pytest.raises(ValueError):
            view.flags.writeable = True


def test_jit_in_jit_and_in_grad():
    inner = harp.jit(lambda x: hnp.sin(x) * x)
    outer = harp.jit(lambda x: inner(x) + inner(x * 2))
    x = np.linspace(0.1, 1, 5)
    npt.assert_allclose(outer(x), np.sin(x) * x + np.sin(2 * x) * 2 * x, rtol=1e-12)
    gradient = harp.jit(harp.grad(lambda x: hnp.sum(inner(x))))
    npt.assert_allclose(gradient(x), np.cos(x) * x + np.sin(x), rtol=1e-12)


def test_threads_share_a_function():
    f = harp.jit(lambda x: hnp.sum(x * x, axis=1))
    failures: list[BaseException] = []

    def work(k):
        try:
            for n in range(1, 30):
                x = np.full((n, k + 1), float(k))
                npt.assert_array_equal(f(x), (x * x).sum(1))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert f.compilations == 1


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        (np.array([object()]), errors.UnsupportedDTypeError),
        (np.array(["a"]), errors.UnsupportedDTypeError),
        (np.zeros(2, np.longdouble), errors.UnsupportedDTypeError),
        ("text", errors.ArgumentError),
        (object(), errors.ArgumentError),
        (2**70, errors.ArgumentError),
        (np.ma.masked_array([1.0, 2.0], [True, False]), errors.ArgumentError),
        ([np.ma.masked_array([1.0, 2.0])], errors.ArgumentError),
    ],
)
def test_bad_arguments_name_the_argument(argument, error):
    with pytest.raises(error, match="argument weights"):
        harp.jit(lambda x, weights: x)(np.ones(2), weights=argument)


def test_bad_results_and_values():
    with pytest.raises(errors.OutputError):
        harp.jit(lambda x: "text")(np.ones(2))
    with pytest.raises(errors.ConcretizationError):
        harp.jit(lambda x: x if x[0] > 0 else -x)(np.ones(2))
    with pytest.raises(errors.ConcretizationError):
        harp.jit(lambda x: np.isnat(x))(np.ones(2))
    with pytest.raises(errors.MutationError):

        def assign(x):
            x[0] = 1.0
            return x

        harp.jit(assign)(np.ones(2))
    with pytest.raises(errors.ArgumentError):
        harp.jit(3)


def test_too_large_for_memory():
    f = harp.jit(lambda n: hnp.zeros(n), static_argnums=0)
    with pytest.raises(errors.OutOfMemoryError):
        f(2**60)
    outer = harp.jit(lambda x, y: x[:, None] + y)
    with pytest.raises(errors.OutOfMemoryError):
        outer(np.broadcast_to(np.float64(1), 2**22), np.broadcast_to(np.float64(1), 2**24))


def test_arguments_beyond_memory():
    big = np.broadcast_to(1.0, 2**50)
    for argument in (big, [big], big[::2]):
        with pytest.raises(errors.OutOfMemoryError, match="shape") as caught:
            harp.jit(lambda x: x)(argument)
        assert __file__ in str(caught.value)


def test_the_compiler_is_loaded_with_the_first_program():
    """Importing harp, and computing at once, need neither the lowering nor a compiler nor optree."""
    code = (
        "import sys, numpy as np; before = set(sys.modules);"  # a coverage tool may have loaded hashlib itself
        "import harp, harp.numpy as hnp; hnp.sum(hnp.exp(np.ones(3)));"
        "late = ('harp.lower', 'harp.backends.c', 'optree', 'subprocess', 'hashlib');"
        "print([m for m in late if m in set(sys.modules) - before])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@harp.jit
def module_level(x):
    return x + 1


class Model:
    def __init__(self, scale):
        self.scale = scale

    @partial(harp.jit, static_argnums=0)
    def apply(self, x):
        return x * self.scale

    @harp.jit
    def forgotten(self, x):
        return x * self.scale

    @classmethod
    @partial(harp.jit, static_argnums=0)
    def name_length(cls, x):
        return x * len(cls.__name__)

    @staticmethod
    @harp.jit
    def outside(x):
        return x + 1

    @harp.jit
    @staticmethod
    def inside(x):
        return x + 1


def test_methods():
    two, three = Model(2.0), Model(3.0)
    assert float(two.apply(4.0)) == 8.0 and float(three.apply(4.0)) == 12.0 and float(two.apply(x=4.0)) == 8.0
    assert Model.apply.compilations == two.apply.compilations == 2
    assert float(Model.apply(two, 4.0)) == 8.0
    assert float(Model.name_length(2.0)) == float(two.name_length(2.0)) == 10.0
    for function in (Model.outside, two.outside, Model.inside, two.inside, harp.jit(lambda x: two.outside(x))):
        assert float(function(1.0)) == 2.0
    with pytest.raises(errors.ArgumentError, match="static_argnums=0") as caught:
        two.forgotten(1.0)
    assert __file__ in str(caught.value)
    assert float(harp.jit(two.forgotten)(1.0)) == 2.0
    with pytest.raises(errors.ArgumentError, match="above"):
        harp.jit(classmethod(lambda cls, x: x))


def test_copies_and_pickles_are_the_function_itself(monkeypatch):
    monkeypatch.setitem(sys.modules, module_level.__module__, sys.modules.get(__name__, sys.modules["__main__"]))
    monkeypatch.setattr(sys.modules[module_level.__module__], "module_level", module_level, raising=False)
    monkeypatch.setattr(sys.modules[module_level.__module__], "Model", Model, raising=False)
    for f in (module_level, Model.apply):
        assert pickle.loads(pickle.dumps(f)) is f and copy.copy(f) is f and copy.deepcopy([f])[0] is f
    local = harp.jit(lambda x: x)
    assert copy.deepcopy(local) is local


def test_a_function_without_arrays():
    """Nothing goes in, nothing comes out, and nothing fails."""
    assert harp.jit(lambda x: x)(None) is None
    assert harp.jit(lambda x: ())(np.ones(3)) == ()


class Colour(enum.IntEnum):
    RED = 3


class Metres(float):
    pass


@pytest.mark.parametrize("number", [Colour.RED, Metres(2.5)])
def test_numbers_of_a_subclass(number):
    """They are what Python's own are: weak, in one program with these."""
    f = harp.jit(lambda x, n: x * n)
    x = np.arange(3, dtype=np.float32)
    for _ in range(3):
        result = f(x, number)
        npt.assert_array_equal(result, x * np.float32(number))
        assert result.dtype == np.float32
    f(x, number.__pos__())
    assert f.compilations == 1


def test_named_arguments_are_not_a_positional_pair():
    f = harp.jit(lambda a, y=None: a[0] * 100 + y["y"] if isinstance(a, tuple) else a + y)
    x, z = np.arange(3.0), np.ones(3)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(f(x, y=z)), x + z)
        np.testing.assert_array_equal(np.asarray(f((x,), {"y": z})), x * 100 + z)
    assert f.compilations == 2
