"""`harp.jit(f, check=True)`: what users see of an index outside an array, with and without a compiler."""

from __future__ import annotations

import re

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.options import CompileOptions
from harp.backends.toolchain import toolchain
from harp.config import settings
from harp.errors import AddressError, ArgumentError, IndexOutOfRangeError, NotFiniteError
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, emit
from harp.trace.graph.node import Loop, Put, Scatter, View
from harp.trace.index.polynomial import of
from harp.transforms.jit.calls import runner
from harp.transforms.jit.programs import body, program_for

BACKENDS = ["c", "numpy"]


@pytest.fixture
def backend(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setenv("HARP_CC", "none")
        toolchain.reset()
    yield request.param
    monkeypatch.undo()
    toolchain.reset()


def shifted(x: Array, by: int) -> Array:
    """x[i + by] for all i, as a mistake of harp would make it."""
    n = x._node.shape[0]
    return emit(View(x._node, (n,), (of(Loop(0, n)) + by,)))


def first(x, y):
    return shifted(x, 1) + y


def second(left, right):
    return shifted(left, 1) + right


def nearest(base, places):
    """Updates of elements of an axis that may have none, of which the nearest one is wanted."""
    return emit(Scatter(base._node, (places._node,), places.astype(base.dtype)._node, Put.SET, True))


@pytest.mark.filterwarnings("ignore:.*no C compiler")
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
class TestFaults:
    def test_the_error_names_line_array_axis_index_and_size(self, backend):
        memory = np.arange(9.0)  # what is behind x can be read
        with pytest.raises(AddressError) as raised:
            harp.jit(first, check=True)(memory[:5], memory[:5])
        text = str(raised.value)
        assert re.match(
            r"x is read at \[i0 \+ 1\], where axis 0 has 5 elements and the index is 5: a bug in harp", text
        )
        line = shifted.__code__.co_firstlineno + 3
        assert text.endswith(f"at {__file__}:{line}")

    def test_equal_graphs_have_their_own_names(self, backend):
        for f, name in ((first, "x"), (second, "left"), (first, "x")):
            with pytest.raises(AddressError, match=f"^{name} is read"):
                harp.jit(f, check=True)(np.ones(3), np.ones(3))

    def test_stores(self, backend):
        f = harp.jit(nearest, check=True)
        assert f(np.ones(2), np.array([5])).tolist() == [1, 5]
        with pytest.raises(AddressError, match=r"(base|result 0) is stored to .* axis 0 has 0 elements"):
            f(np.ones(0), np.array([5]))

    def test_after_the_first_calls_too(self, backend):
        def f(x):
            n = x._node.shape[0]
            return emit(View(x._node, (n,), (of(Loop(0, n)) * 2,)))  # inside for one element

        f = harp.jit(f, check=True)
        for _ in range(3):
            assert f(np.ones(1)).tolist() == [1]
            with pytest.raises(AddressError):
                f(np.ones(2))

    def test_an_argument_that_is_not_as_large_as_the_program_takes_for_granted(self, backend):
        graph = harp.trace(lambda x, y: x + y, harp.f64["n"], harp.f64["n"])
        program = program_for(graph, CompileOptions(), (), True)
        run = runner(body(program, [], (), [False]))
        with pytest.raises(AddressError, match=r"argument y has the shape \(2,\), and the program was made for \(3,\)"):
            run([np.ones(3), np.ones(2)], (3,), [])

    def test_lines_inside_loops_and_branches(self, backend):
        def loop(x):
            def step(c, y):
                c = c + y
                return c, hnp.sum(shifted(x + c, 2))

            return harp.scan(step, 0.0, x)

        def branch(x):
            return harp.cond(
                x[0] > 0,
                lambda: hnp.sum(x),
                lambda: hnp.sum(shifted(x * 1.0, 2)),
            )

        # The view is read for itself, or where what it shows is computed.
        lines = (
            shifted.__code__.co_firstlineno + 3,
            loop.__code__.co_firstlineno + 3,
            branch.__code__.co_firstlineno + 4,
        )
        for f, x in ((loop, np.ones(4)), (branch, -np.ones(4))):
            with pytest.raises(AddressError, match=r"axis 0 has 4 elements and the index is [45]: ") as raised:
                harp.jit(f, check=True)(x)
            assert str(raised.value).endswith(tuple(f"at {__file__}:{line}" for line in lines))
        assert harp.jit(branch, check=True)(np.ones(4)) == 4

    def test_programs_of_many_arguments(self, backend):
        f = harp.jit(lambda *a: sum(a[1:], start=shifted(a[0], 0)), check=True)
        arrays = [np.full(3, float(k)) for k in range(120)]
        np.testing.assert_array_equal(f(*arrays), sum(arrays))
        with pytest.raises(AddressError):
            harp.jit(lambda *a: sum(a[1:], start=shifted(a[0], 1)), check=True)(*arrays)


def test_all_ways_to_compile():
    def f(x, k, w):
        return hnp.pad(x, 1)[k:].T @ w, x[::-1]

    x, w = np.arange(12.0).reshape(4, 3), np.ones((5, 2))
    wanted = [np.pad(x, 1)[1:].T @ w, x[::-1]]
    declared = (harp.f64["n", "m"], None, harp.f64["r", 2])
    for options in ({}, {"donate_argnums": 0}, {"threads": 2}, {"signature": declared}):
        found = harp.jit(f, static_argnums=1, check=True, **options)(hnp.asarray(x), 1, w)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(a), b)


@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
def test_captured_arrays_are_checked(backend):
    weights = np.arange(4.0)
    with pytest.raises(AddressError, match=r"^a captured array is read"):
        harp.jit(lambda x: x + shifted(as_array(weights), 2), check=True)(np.ones(4))


def test_checked_loops_are_shown_and_others_have_none():
    for check in (True, False):
        stages = harp.jit(lambda x: x[1:], check=check).lower(np.ones(3))
        assert ("fault" in stages.loops) is check
        assert ("out1" in stages.source) is check


def test_checked_and_unchecked_are_two_programs():
    f = lambda x: x[2:] * 2
    for check in (True, False, True):
        np.testing.assert_array_equal(harp.jit(f, check=check)(np.arange(5.0)), [4, 6, 8])
    unchecked = harp.jit(lambda x: shifted(x, 0)[1:], check=False)
    assert unchecked(np.arange(3.0)).tolist() == [1, 2]


def test_the_setting_is_the_default(monkeypatch):
    x = np.ones(3)
    for setting, check, expected in (
        (True, None, True),
        (True, False, False),
        (False, True, True),
        (False, None, False),
    ):
        monkeypatch.setattr(settings, "check", setting)
        assert ("fault" in harp.jit(lambda x: x[1:], check=check).lower(x).loops) is expected


def test_only_yes_or_no():
    with pytest.raises(ArgumentError, match="check is True, False or None, not 1"):
        harp.jit(lambda x: x, check=1)


@pytest.mark.parametrize("check", [False, True])
def test_nothing_is_read_of_an_axis_that_is_known_to_be_empty(check):
    """A question about its size made it a 0, and an element in front of the array was read before the loops."""

    @harp.jit(check=check)
    def f(x):
        if x.shape[0]:
            return x
        z = x.at[-1:1:-3].set(2)
        return z.at[::2].set(z[::-1][::2])

    assert np.asarray(f(np.zeros(0))).shape == (0,)
    assert "in0[" not in f.lower(np.zeros(0)).loops.split("kernel 0", 1)[1]
    np.testing.assert_array_equal(np.asarray(f(np.ones(3))), np.ones(3))


@pytest.mark.filterwarnings("ignore:.*no C compiler")
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
class TestNotFinite:
    """Results are searched for NaN and infinities, whatever the settings say."""

    def test_forward_and_backward(self, backend):
        with pytest.raises(
            NotFiniteError, match=r"nan is computed at \[1\] as log\(x0\) of x0 = -1.0\n  at .*test_checked"
        ):
            harp.jit(lambda x: hnp.log(x) * 2, check=True)(np.array([1.0, -1.0]))
        root = lambda x: hnp.sum(hnp.sqrt(x))
        with pytest.raises(NotFiniteError, match=r"inf is computed at \[0\] as .* of .*= 0.0\n  at .*test_checked"):
            harp.jit(harp.grad(root), check=True)(np.array([0.0, 1.0]))

    def test_it_names_the_step_and_ends_with_the_function(self, backend):
        def f(xs):
            return harp.scan(lambda c, x: (c + 1 / x, None), 0.0, xs)[0]

        checked = harp.jit(f, check=True)
        for _ in range(2):
            with pytest.raises(NotFiniteError, match=r"inf is computed as .*, in step 2 of a loop"):
                checked(np.array([1.0, 2.0, 0.0]))
            assert float(checked(np.array([1.0, 2.0]))) == 1.5
        assert np.isinf(float(harp.jit(f)(np.array([1.0, 2.0, 0.0]))))

    def test_what_the_arguments_have_is_no_error(self, backend):
        found = np.asarray(harp.jit(lambda x: x + 1, check=True)(np.array([np.inf, np.nan, 1.0])))
        np.testing.assert_array_equal(found, [np.inf, np.nan, 2.0])


def test_the_setting_compares_indices_only(monkeypatch):
    monkeypatch.setattr(settings, "check", True)
    assert np.isinf(float(harp.jit(lambda x: 1 / x)(0.0)))


OUTSIDE = {
    "integer": (lambda x, i: x[i], 7, "index 7 is outside axis 0 of x, which has 3 elements"),
    "from the end": (lambda x, i: x[i], -4, "index -4 is outside axis 0 of x"),
    "out of sight": (lambda x, i: x[i], 2**62, "an index of more than 18 digits is outside axis 0 of x"),
    "array": (lambda x, i: x[i], [0, 3], "index 3 is outside axis 0 of x"),
    "take": (lambda x, i: hnp.take(x, i), [0, 3], "index 3 is outside axis 0 of x"),
    "axis 1": (lambda x, i: hnp.stack([x, x, x, x])[:, i], 3, "index 3 is outside axis 1 of"),
    "along": (lambda x, i: hnp.take_along_axis(x, i, 0), [0, 3], "index 3 is outside axis 0 of x"),
    "set": (lambda x, i: x.at[i].set(1.0), 3, "index 3 is outside axis 0 of"),
    "add": (lambda x, i: x.at[i].add(1.0), [0, -4], "index -4 is outside axis 0 of"),
    "fori": (
        lambda x, i: harp.fori_loop(0, 3, lambda k, c: c + x[i + k], 0.0),
        1,
        "index 3 is outside axis 0 of",
    ),
    "step": (lambda x, n: harp.fori_loop(0, n, lambda k, c: c + x[k], 0.0), 4, "index 3 is outside axis 0 of"),
    "scan": (lambda x, i: harp.scan(lambda c, j: (c.at[j].set(9.0), None), x, i)[0], [0, 5], "index 5 is outside"),
    "cond": (lambda x, i: harp.cond(i < 9, lambda: x[i], lambda: 0.0), 7, "index 7 is outside axis 0 of"),
    "vmap": (lambda x, i: harp.vmap(lambda j: x[j])(i), [0, 3], "index 3 is outside axis 0 of x"),
    "grad": (lambda x, i: harp.grad(lambda x: x[i] ** 2)(x), 3, "index 3 is outside axis 0 of"),
    "adjoint": (lambda x, i: harp.grad(lambda x: x[i])(x), -4, "index -4 is outside axis 0 of"),
    "jvp": (lambda x, i: harp.jvp(lambda x: x[i] ** 2, (x,), (x,))[1], 3, "index 3 is outside axis 0 of x"),
}
INSIDE = {
    "from the end": (lambda x, i: x[i], -3, 0.5),
    "clip": (lambda x, i: x.at[i].get(mode="clip"), 7, 2.5),
    "fill": (lambda x, i: x.at[i].get(mode="fill", fill_value=-1.0), 7, -1.0),
    "drop": (lambda x, i: x.at[i].add(1.0, mode="drop"), [0, -4], [1.5, 1.5, 2.5]),
    "nearest": (lambda x, i: x.at[i].add(1.0, mode="clip"), [0, 9], [1.5, 1.5, 3.5]),
    "branch": (lambda x, i: harp.cond(i < 3, lambda: x[i], lambda: -1.0), 7, -1.0),
    "slice": (lambda x, i: harp.lax.dynamic_slice(x, (i,), (2,)), 5, [1.5, 2.5]),
    "some": (lambda x, i: harp.vmap(lambda j: harp.cond(j < 3, lambda: x[j], lambda: -1.0))(i), [0, 3], [0.5, -1]),
}


@pytest.mark.filterwarnings("ignore:.*no C compiler")
@pytest.mark.parametrize("backend", BACKENDS, indirect=True)
class TestIndicesByData:
    """An index outside, where nobody has said what it means, is an error of the user, before it is moved inside."""

    @pytest.mark.parametrize("name", OUTSIDE)
    def test_an_index_outside_is_an_error(self, backend, name):
        function, index, text = OUTSIDE[name]
        with pytest.raises(IndexOutOfRangeError, match=re.escape(text)) as raised:
            harp.jit(function, check=True)(np.arange(3.0) + 0.5, np.array(index))
        assert __file__ in str(raised.value)

    @pytest.mark.parametrize("name", INSIDE)
    def test_what_somebody_has_said_is_none(self, backend, name):
        function, index, exact = INSIDE[name]
        made = harp.jit(function, check=True)(np.arange(3.0) + 0.5, np.array(index))
        np.testing.assert_array_equal(made, exact)

    def test_without_checks_it_is_the_nearest_element(self, backend):
        assert harp.jit(lambda x, i: x[i])(np.arange(3.0), 7) == 2.0
