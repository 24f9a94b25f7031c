"""The short way of a call: it serves what is like the call before, and leaves everything else to the long way."""

from __future__ import annotations

import pickle
from collections import OrderedDict, namedtuple

import numpy as np
import numpy.testing as npt
import optree
import pytest

import harp
import harp.numpy as hnp
from harp import errors
from harp.backends.runtime import arguments
from harp.transforms.jit.calls import MISS

pytestmark = pytest.mark.usefixtures("processor")

Point = namedtuple("Point", "x y")
F32 = np.float32


def warm(f, *args):
    """So often that the short way is made, and taken."""
    for _ in range(3):
        result = f(*args)
    return result


def served(f, *args, **kwargs) -> bool:
    """For functions without static arguments."""
    short_way = f._short_ways.get(())
    return short_way is not None and short_way([args, kwargs] if kwargs else args) is not MISS


def add(x, y):
    return x + 2 * y


@pytest.fixture
def pair():
    f = harp.jit(add)
    warm(f, np.ones((2, 3), F32), np.ones((2, 3), F32))
    assert served(f, np.ones((2, 3), F32), np.ones((2, 3), F32))
    return f


def strided(x):
    return np.repeat(x, 2, axis=1)[:, ::2]


def misaligned(x):
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


def read_only(x):
    x = x.copy()
    x.setflags(write=False)
    return x


CONVERSIONS = {
    "strided": (strided, False),
    "column order": (np.asfortranarray, False),
    "misaligned": (misaligned, False),
    "other byte order": (lambda x: x.astype(">f4"), False),
    "masked, nothing hidden": (lambda x: np.ma.array(x), False),
    "other dtype": (lambda x: x.astype(np.float64), False),
    "integers": (lambda x: x.astype(np.int8), False),
    "number": (lambda x: 2.0, False),
    "NumPy number": (lambda x: F32(2), False),
    "other rank": (lambda x: x[0], False),
    "size 1": (lambda x: x[:1], False),
    "read-only": (read_only, True),
    "dtype that was pickled": (lambda x: x.view(pickle.loads(pickle.dumps(x.dtype))), None),
    "dtype with metadata": (lambda x: x.view(np.dtype(F32, metadata={"a": 1})), False),
    "harp array": (lambda x: harp.jit(lambda x: x)(x), True),
    "strided harp array": (lambda x: hnp.asarray(strided(x)), None),
    "subclass": (lambda x: x.view(type("Mine", (np.ndarray,), {})), False),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_each_kind_of_argument(pair, name):
    convert, short = CONVERSIONS[name]
    x = np.arange(6, dtype=F32).reshape(2, 3)
    try:
        given = convert(x)
        expected = add(np.asarray(given), x)
        got = [pair(given, x), pair(given, x), pair(x, given), pair(x, x)]
    except errors.ArgumentError:
        assert name == "masked, nothing hidden"
        return
    npt.assert_array_equal(got[0], expected)
    npt.assert_array_equal(got[1], expected)
    npt.assert_array_equal(got[2], add(x, np.asarray(given)))
    npt.assert_array_equal(got[3], add(x, x))
    if short is not None:
        fresh = harp.jit(add)
        warm(fresh, x, x)
        assert served(fresh, given, x) is short


def many(*given):
    return sum(given[1:], given[0] * 2)


@pytest.mark.parametrize("place", [0, 7])
@pytest.mark.parametrize("name", CONVERSIONS)
def test_each_kind_of_argument_among_many(name, place):
    """Which are read at once."""
    convert, short = CONVERSIONS[name]
    x = np.arange(6, dtype=F32).reshape(2, 3)
    f, given = harp.jit(many), [x * k for k in range(10)]
    warm(f, *given)
    assert served(f, *given)
    try:
        given[place] = convert(x)
        expected = many(*(np.asarray(a) for a in given))
        for _ in range(2):
            npt.assert_array_equal(f(*given), expected)
    except errors.ArgumentError:
        assert name == "masked, nothing hidden"
        return
    if short is not None:
        fresh = harp.jit(many)
        warm(fresh, *[x] * 10)
        assert served(fresh, *given) is short


class Pretender:
    """Has the attributes of a harp array."""

    _weak, _value, _node, _level = False, np.ones((2, 3), F32), None, None


def test_other_objects_and_weak_arrays_among_many():
    x = np.arange(6, dtype=F32).reshape(2, 3)
    f = harp.jit(many)
    warm(f, *[x] * 9)
    weak = harp.jit(lambda: 2.0)()
    for other in (Pretender(), None, [x], weak):
        assert not served(f, x, other, *[x] * 7)
    assert not served(f, *[x] * 8) and not served(f, *[x] * 10)
    npt.assert_array_equal(f(x, weak, *[x] * 7), 9 * x + 2)
    kept = []
    harp.jit(lambda x: kept.append(x) or x)(x)
    with pytest.raises(errors.LeakedTracerError):
        f(x, kept[0], *[x] * 7)


def test_many_of_different_dtypes_ranks_and_sizes():
    """Numbers, weak ones too, and empty arrays; captured arrays and results come behind the arguments."""
    captured = np.arange(3.0)

    def g(tree, n, s):
        total = sum(hnp.sum(x) for x in tree["w"])
        return [total * n + s + captured, *[x * 2 for x in tree["w"]]]

    f = harp.jit(g)
    shapes = [(3,), (2, 5), (), (4, 0), (1, 2, 3), (7,)]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        w = [np.asarray(rng.integers(0, 9, [n + seed * (n > 1) for n in shape]), d) for shape, d in zip(
            shapes, (F32, np.float64, np.int32, np.int8, bool, np.float64), strict=True)]  # fmt: skip
        first, *others = f({"w": w}, seed, np.float64(3))
        npt.assert_allclose(first, sum(float(x.sum()) for x in w) * seed + 3 + captured)
        for got, x in zip(others, w, strict=True):
            npt.assert_array_equal(got, x * 2)
    assert f.compilations == 1 and served(f, {"w": w}, 3, np.float64(3))


def test_without_reading_at_once(monkeypatch):
    """As where arrays are laid out otherwise."""
    monkeypatch.setattr(arguments, "_is_as_assumed", lambda library: False)
    x = np.arange(6, dtype=F32).reshape(2, 3)
    f = harp.jit(many)
    npt.assert_array_equal(warm(f, *[x] * 9), 10 * x)
    assert served(f, *[x] * 9) and not served(f, *[x] * 8, np.asfortranarray(x))
    npt.assert_array_equal(f(*[x] * 8, np.asfortranarray(x)), 10 * x)


def test_guards_are_checked(pair):
    """Sizes that were equal are not: another trace, in turns with the first."""
    for shape in ((2, 3), (5, 3), (0, 3), (1, 1)):
        for other in (shape, (1, shape[1]), shape):
            x, y = np.ones(shape, F32), np.full(other, 3, F32)
            npt.assert_array_equal(pair(x, y), add(x, y))
    with pytest.raises(errors.ShapeError):
        pair(np.ones((2, 3), F32), np.ones((2, 4), F32))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_arguments(pair, count):
    with pytest.raises(TypeError):
        pair(*[np.ones((2, 3), F32)] * count)


def test_keywords_and_tracing(pair):
    x = np.ones((2, 3), F32)
    npt.assert_array_equal(pair(y=x, x=2 * x), 4 * x)
    npt.assert_array_equal(harp.jit(lambda x: pair(x, x) * 2)(x), 6 * x)
    npt.assert_array_equal(harp.grad(lambda x: hnp.sum(pair(x, x)))(x), 3 * x)


def test_an_array_of_a_trace(pair):
    kept = []
    harp.jit(lambda x: kept.append(x) or x)(np.ones((2, 3), F32))
    with pytest.raises(errors.LeakedTracerError):
        pair(kept[0], np.ones((2, 3), F32))


def test_weak_arrays(pair):
    """They take the dtype of what they meet, so they need a trace of their own."""
    weak = harp.jit(lambda: 2.0)()
    assert weak.weak and not served(pair, weak, weak)
    f = harp.jit(lambda x, y: x + y)
    x = np.ones(3, F32)
    for _ in range(3):
        assert f(x, weak).dtype == F32
        assert f(x, np.float64(2) * np.ones(())).dtype == np.float64
        assert f(weak, weak).weak and not f(x, x).weak


TREES = [
    {"w": 1.0, "b": [2.0, (3.0, None)], "a": {}},
    [[], (1.0,), {"x": 2.0, 3: None}],
    ({1: 1.0, 2: (2.0,)}, {True: 3.0}, {(1, "a"): 4.0}),
    {"quote'\"\n\ud800": 1.0},
    Point(1.0, [2.0]),
    OrderedDict(b=1.0, a=2.0),
    [1.0, Point({"y": 2.0}, None)],
]


def arrays(tree, factor=1.0):
    return optree.tree_map(lambda leaf: np.full(3, leaf * factor), tree)


@pytest.mark.parametrize("tree", TREES, ids=lambda tree: type(tree).__name__)
def test_trees_in_and_out(tree):
    f = harp.jit(lambda tree: (optree.tree_map(lambda x: x * 2.0, tree), None))
    for factor in (1.0, 2.0, 3.0, 4.0):
        got, nothing = f(arrays(tree, factor))
        assert nothing is None and optree.tree_structure(got) == optree.tree_structure(tree)
        for a, b in zip(optree.tree_leaves(got), optree.tree_leaves(arrays(tree, factor)), strict=True):
            npt.assert_array_equal(a, b * 2.0)
    assert f.compilations == 1 and len(f.signatures) == 1
    assert (f._short_ways[()] is None) == any(isinstance(part, (Point, OrderedDict)) for part in (tree, *tree))


def test_trees_that_differ():
    """In keys, their order, types or lengths: none is taken for the one before."""
    f = harp.jit(lambda tree: [*tree.values()] if isinstance(tree, dict) else [x * 10.0 for x in tree])
    one, two = np.ones(2), np.full(2, 2.0)
    for tree in ({"a": one, "b": two}, {"b": one, "a": two}, {"a": one, "c": two}, {"a": one}, {}, [one, two], (two,)):
        expected = [*tree.values()] if isinstance(tree, dict) else [x * 10.0 for x in tree]
        for got in (f(tree), f(tree), f({"a": one, "b": two}) and f(tree)):
            assert len(got) == len(expected)
            for a, b in zip(got, expected, strict=True):
                npt.assert_array_equal(a, b)


def test_deep_trees():
    tree = np.ones(2)
    for _ in range(150):
        tree = [tree]
    got = warm(harp.jit(lambda tree: (tree,)), tree)[0]
    for _ in range(150):
        (got,) = got
    npt.assert_array_equal(got, np.ones(2))


def test_results_cannot_be_written(pair):
    result = np.asarray(warm(pair, np.ones((2, 3), F32), np.ones((2, 3), F32)))
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 1


def test_no_arguments_and_no_results():
    f, g = harp.jit(lambda: hnp.ones(3)), harp.jit(lambda x: None)
    for _ in range(3):
        npt.assert_array_equal(f(), np.ones(3))
        assert g(np.ones(2)) is None


def test_static_arguments():
    f = harp.jit(lambda x, n: x * n, static_argnums=1)
    x = np.ones(2)
    for n in (2, 3, 2, 3, 2.0, 3, True, 1, 1.0, True):
        result = f(x, n)
        npt.assert_array_equal(result, np.full(2, n))
        assert result.dtype == np.float64
    assert [*f._short_ways] == [((1, (int, 2)),), ((1, (int, 3)),), ((1, (bool, True)),)]
    for short_way in f._short_ways.values():
        assert short_way((x,)) is not MISS and short_way((x, 2)) is MISS and short_way(((x,), {"n": x})) is MISS


def test_static_arguments_by_name():
    f = harp.jit(lambda x, *, n, y: x * n + y, static_argnames="n")
    x = np.arange(3.0)
    for n, y in ((2, x), (3, x), (2, 2 * x), (3, 3 * x), (2, np.ones((2, 1))), (3, x)):
        npt.assert_array_equal(f(x, n=n, y=y), x * n + y)
        npt.assert_array_equal(f(x, y=y, n=n), x * n + y)


def test_named_arguments():
    """In any order and number, and after calls without names: none is taken for the one before."""
    f, x, y = harp.jit(lambda x, y: x - y), np.ones(3), np.arange(3.0)
    for _ in range(3):
        for result in (f(x=x, y=y), f(y=y, x=x), f(x, y=y), f(x, y)):
            npt.assert_array_equal(result, x - y)
    warm(lambda: f(x, y=y))
    assert served(f, x, y=y) and not served(f, x=x, y=y) and not served(f, x, y) and not served(f, x, z=y)
    for wrong in (lambda: f(x, z=y), lambda: f(x, y, y=y), lambda: f(x)):
        with pytest.raises(TypeError):
            wrong()


def test_named_arguments_are_donated():
    f = harp.jit(lambda x, y: x + y, donate_argnames="y")
    for _ in range(4):
        y = hnp.ones(3) * 1
        npt.assert_array_equal(f(np.ones(3), y=y), np.full(3, 2.0))
        with pytest.raises(errors.DonatedError):
            y + 1


def test_results_that_do_not_fit():
    f = harp.jit(lambda x: x[:, None] + x)
    warm(f, np.ones(3))
    with pytest.raises(errors.OutOfMemoryError):
        f(np.ones(1 << 28))


def test_demands_are_checked():
    """Of integers that take on the dtype of an array, at every call."""
    f, number = harp.jit(lambda x, s: x + s), harp.jit(lambda s: s)
    x = np.ones(3, np.int8)
    npt.assert_array_equal(warm(f, x, number(5)), np.full(3, 6))
    assert f(x, number(5)).dtype == np.int8 and served(f, x, number(5))
    for _ in range(2):
        with pytest.raises(errors.IntegerRangeError):
            f(x, number(300))


NUMBERS = [2, 2.5, True, 1j, np.float32(2), np.float64(2), np.int8(3), np.uint64(3), np.bool_(True), np.complex64(1j)]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: f"{type(n).__name__}")
@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_numbers_go_the_short_way(number, dtype):
    f = harp.jit(lambda x, n: (x * n, [n + n]))
    x = np.arange(3).astype(dtype)
    found = warm(f, x, number)
    assert served(f, x, number) and f.compilations == 1
    for n in (number, type(number)(0)):
        product, (double,) = f(x, n)
        np.testing.assert_array_equal(np.asarray(product), x * n)
        np.testing.assert_array_equal(np.asarray(double), np.asarray(n) + n if type(n) is not bool else n + n > 0)
        assert product.dtype == found[0].dtype


def test_numbers_of_other_kinds_leave_it():
    f = harp.jit(lambda x, n: x * n)
    x = np.arange(3, dtype=F32)
    assert warm(f, x, 2).dtype == F32 and served(f, x, 3)
    for other in (2.5, True, np.float32(2), np.array(2), np.float64(2)):
        assert not served(f, x, other)
        np.testing.assert_array_equal(np.asarray(f(x, other)), x * other)
        warm(f, x, 2)
    with pytest.raises(errors.ArgumentError, match="does not fit int64"):
        f(x, 2**70)
    assert not served(f, x, np.ones(3, F32))


EXPORTS = {
    "asarray": np.asarray,
    "buffer": lambda h: np.asarray(memoryview(np.asarray(h))),
    "dlpack": np.from_dlpack,
    "pickle": lambda h: np.asarray(pickle.loads(pickle.dumps(h))),
    "harp's dlpack": lambda h: np.asarray(hnp.from_dlpack(h)),
    "transpose": lambda h: np.asarray(h.T),
    "part": lambda h: np.asarray(h[1:]),
    "reshape": lambda h: np.asarray(h.reshape(3, 2)),
    "captured": lambda h: np.asarray(harp.jit(lambda: (h, h + 1))()[0]),
}


@pytest.mark.parametrize("name", EXPORTS)
def test_what_a_result_shows_cannot_be_written_to(name, pair):
    """Results are made writable: they are closed before anyone sees their memory."""
    x = np.arange(6, dtype=F32).reshape(2, 3)
    for _ in range(2):
        result = pair(x, x)
        shown = EXPORTS[name](result)
        with pytest.raises(ValueError):
            shown.flags.writeable = True
        while isinstance(shown, np.ndarray):
            assert not shown.flags.writeable
            shown = shown.base
        npt.assert_array_equal(result, 3 * x)


def test_results_are_made_as_the_constructor_makes_them(pair):
    made, ours = pair(np.ones((2, 3), F32), np.ones((2, 3), F32)), hnp.ones((2, 3))
    for slot in harp.Array.__slots__:
        assert type(getattr(made, slot)) is type(getattr(ours, slot))
