"""What functions make of unusual arguments, against NumPy: its numbers, or an error of harp that says what is wrong."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors

A, INF, NAN = np.array, np.inf, np.nan
ONES, WIDE = np.ones((2, 3)), 2**53

SAME = {
    "narrow positions": lambda xp: xp.ravel_multi_index((A([99], "u1"), A([3], "u1")), (100, 120)),
    "int32 positions": lambda xp: xp.ravel_multi_index((A([50000], "i4"), A([1], "i4")), (100000, 100000)),
    "int8 positions": lambda xp: xp.ravel_multi_index((A([100, 9], "i1"),), (7,), mode="clip"),
    "int8 around": lambda xp: xp.ravel_multi_index((A([-100, 9], "i1"), A([3, -4])), (7, 300), mode="wrap"),
    "a flat position": lambda xp: xp.unravel_index(A([200], "u1"), (300, 2)),
    "one mask": lambda xp: xp.piecewise(A([-1.0, 2.0]), A([True, False]), [lambda v: -v, lambda v: v * 10]),
    "a list of bools": lambda xp: xp.piecewise(A([-1.0, 2.0]), [True, False], [lambda v: -v, lambda v: v * 10]),
    "rows of masks": lambda xp: xp.piecewise(A([-1.0, 2.0]), A([[True, False], [False, True]]), [5.0, 6.0]),
    "one bool": lambda xp: xp.piecewise(A([-1.0, 2.0]), True, [1.0]) if xp is hnp else A([1.0, 1.0]),
    "bools of a number": lambda xp: xp.piecewise(A(3.0), [True, False], [5.0, 6.0, 7.0]),
    "powers of int8": lambda xp: xp.vander(A([100], "i1"), 3),
    "powers of uint32": lambda xp: xp.vander(A([2**31, 1], "u4"), 2, increasing=True),
    "powers of uint64": lambda xp: xp.vander(A([2**40], "u8"), 2),
    "powers of bool": lambda xp: xp.vander(A([True, False]), 3),
    "int64 in uint64": lambda xp: xp.isin(A([WIDE, WIDE + 1]), A([WIDE + 1], "u8")),
    "uint64 in int64": lambda xp: xp.isin(A([WIDE, WIDE + 1], "u8"), A([WIDE + 1]), invert=True),
    "negative in uint64": lambda xp: xp.isin(A([-1, 5]), A([2**64 - 1, 5], "u8")),
    "uint64 in negative": lambda xp: xp.isin(A([2**64 - 1, 5], "u8"), A([-1, 5])),
    "no positions": lambda xp: xp.ix_([]),
    "no positions and a mask": lambda xp: xp.ix_([], [True, False]),
    "widths of an array": lambda xp: xp.pad(ONES, A([[1, 2], [2, 1]])),
    "one pair in an array": lambda xp: xp.pad(ONES, A([1, 2])),
    "cuts in an array": lambda xp: xp.array_split(np.arange(5), A([1, 3])),
    "cuts of split": lambda xp: xp.split(np.arange(5), A([1, 3])),
    "a truncated fill": lambda xp: xp.pad(A([1], "u1"), 1, constant_values=1.5),
    "ends": lambda xp: xp.ediff1d(A([1, 2], "i1"), to_end=A([30], "i1"), to_begin=A([1, 2], "i1")),
    "float ends": lambda xp: xp.ediff1d(A([1.0, 2.0]), to_end=NAN),
    "equal edges": lambda xp: xp.histogram(A([1.0, 2.0]), [1, 1, 2]),
    "range in an array": lambda xp: xp.histogram(A([1.0, 2.0]), 2, range=A([0.0, 4.0])),
    "weights of a matrix": lambda xp: xp.histogram(ONES, 2, range=(0, 2), weights=2 * ONES),
    "weights of columns": lambda xp: xp.average(ONES, axis=1, weights=A([1, 2, 3])),
    "no bins": lambda xp: xp.digitize(A([1.0, 2.0]), A([])),
}

# What NumPy refuses, too; the error of harp; and what its message says.
WRONG = {
    "float positions": (lambda xp: xp.ravel_multi_index((A([1.0]),), (2,)), errors.DTypeError, "ravel_multi_index"),
    "float places": (lambda xp: xp.unravel_index(1.5, (2, 3)), errors.DTypeError, "unravel_index"),
    "large": (lambda xp: xp.ravel_multi_index((A([1]),) * 2, (2**40, 2**40)), errors.ShapeError, "more elements"),
    "modes": (lambda xp: xp.ravel_multi_index((A([1]),), (2,), mode=["wrog"]), errors.ArgumentError, "mode"),
    "mask": (lambda xp: xp.piecewise(ONES[0], [A([True] * 4)], [1.0]), errors.ShapeError, "piecewise"),
    "NaN piece": (lambda xp: xp.piecewise(A([1]), [A([True])], [NAN]), errors.IntegerRangeError, "piecewise"),
    "NaN diagonal": (lambda xp: _filled(xp, A([[1]]), NAN), errors.IntegerRangeError, "fill_diagonal is nan"),
    "NaN around": (lambda xp: xp.pad(A([1]), 1, constant_values=NAN), errors.IntegerRangeError, "constant_values"),
    "NaN end": (lambda xp: xp.ediff1d(A([1, 2]), to_end=NAN), errors.DTypeError, "to_end"),
    "pad mode": (lambda xp: xp.pad(ONES, 1, ["edge"]), errors.ArgumentError, "modes"),
    "pad pairs": (lambda xp: xp.pad(ONES, A([1, 2, 3])), errors.ShapeError, "pad_width"),
    "cuts": (lambda xp: xp.array_split(ONES[0], A([0.5])), errors.HarpError, "array_split"),
    "a number": (lambda xp: xp.asarray(-INF, "u1"), errors.IntegerRangeError, "-inf does not fit uint8"),
    "a list": (lambda xp: xp.asarray([NAN, 1.0], "i4"), errors.IntegerRangeError, "int32"),
    "mean": (lambda xp: xp.nanmean(A([1.0, NAN]), dtype="int32"), errors.DTypeError, "nanmean"),
    "var": (lambda xp: xp.nanvar(A([1.0, NAN]), dtype="int32"), errors.DTypeError, "nanvar"),
    "std": (lambda xp: xp.nanstd(A([1.0, NAN]), dtype="int32"), errors.DTypeError, "nanstd"),
    "range": (lambda xp: xp.histogram(ONES, 3, range=(3, 0)), errors.ArgumentError, "decreases"),
    "no range": (lambda xp: xp.histogram(ONES, 3, range=3), errors.ArgumentError, "range"),
    "three ends": (lambda xp: xp.histogram(ONES, 3, range=(1, 2, 3)), errors.ArgumentError, "range"),
    "infinite": (lambda xp: xp.histogram(ONES, 3, range=(0, INF)), errors.ArgumentError, "finite"),
    "NaN": (lambda xp: xp.histogram(A([1.0, NAN]), 3), errors.ArgumentError, "finite"),
    "edges": (lambda xp: xp.histogram(ONES, A([3.0, 2.0])), errors.ArgumentError, "increase"),
    "bins": (lambda xp: xp.histogram(ONES, 0), errors.ShapeError, "bins of histogram"),
    "float bins": (lambda xp: xp.histogram(ONES, 2.5), errors.ArgumentError, "bins of histogram"),
    "close": (lambda xp: xp.histogram(A([2**62, 2**62 + 100]), 4), errors.ArgumentError, "float64"),
    "one weight": (lambda xp: xp.histogram(ONES[0], 2, weights=A([5.0])), errors.ShapeError, "weights"),
    "one count": (lambda xp: xp.bincount(A([0, 3, 1]), A([1])), errors.ShapeError, "weights"),
    "minlength": (lambda xp: xp.bincount(A([0, 3, 1]), None, -2), errors.ShapeError, "minlength of bincount"),
    "a row": (lambda xp: xp.average(ONES, weights=A([[1, 2, 3]])), errors.ShapeError, "weights"),
    "a row along": (lambda xp: xp.average(ONES, axis=0, weights=A([[1, 2, 3]])), errors.ShapeError, "weights"),
    "few": (lambda xp: xp.average(ONES, axis=0, weights=A([1])), errors.ShapeError, "weights"),
    "which": (lambda xp: xp.average(ONES, weights=A([1, 2])), errors.ShapeError, "weights of average"),
}

# What NumPy repeats, passes on, does not have, or leaves to the machine.
OURS = {
    "-inf around": (lambda: hnp.pad(A([1], "u1"), 1, constant_values=-INF), errors.IntegerRangeError, "-inf"),
    "far around": (lambda: hnp.pad(A([1], "u1"), 1, constant_values=1e3), errors.IntegerRangeError, "1000"),
    "NaN of an array": (lambda: hnp.fill_diagonal(A([[1]]), A([NAN])), errors.IntegerRangeError, "fill_diagonal"),
    "few values": (lambda: hnp.fill_diagonal(np.ones((3, 3)), A([1.0, 2.0])), errors.ShapeError, "fill_diagonal"),
    "full of NaN": (lambda: hnp.full(2, NAN, "i4"), errors.IntegerRangeError, "nan does not fit int32"),
    "like NaN": (lambda: hnp.full_like(A([1]), NAN), errors.IntegerRangeError, "nan does not fit int64"),
    "NaN for none": (lambda: hnp.nonzero(A([1]), size=2, fill_value=NAN), errors.IntegerRangeError, "nan"),
    "float grid": (lambda: hnp.ix_(A([1.5])), errors.DTypeError, "ix_"),
    "length": (lambda: hnp.bincount(A([0, 3, 1]), length=-2), errors.ShapeError, "length of bincount"),
    "narrow end": (lambda: hnp.ediff1d(A([1, 2], "i1"), to_end=300), errors.IntegerRangeError, "300"),
}


def _filled(xp: object, x: np.ndarray, value: float) -> object:
    if xp is np:
        x = x.copy()
        np.fill_diagonal(x, value)
        return x
    return hnp.fill_diagonal(x, value)


def _agree(ours: object, truth: object) -> None:
    if isinstance(truth, (list, tuple)):
        assert len(ours) == len(truth)
        for a, b in zip(ours, truth, strict=True):
            _agree(a, b)
    else:
        assert np.asarray(ours).dtype == np.asarray(truth).dtype
        np.testing.assert_array_equal(np.asarray(ours), truth)


@pytest.mark.parametrize("name", SAME)
def test_same(name: str) -> None:
    _agree(SAME[name](hnp), SAME[name](np))


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name: str) -> None:
    call, error, says = WRONG[name]
    with pytest.raises(error, match=says):
        call(hnp)
    with pytest.raises((TypeError, ValueError, IndexError, OverflowError)):
        call(np)


@pytest.mark.parametrize("name", OURS)
def test_ours(name: str) -> None:
    call, error, says = OURS[name]
    with pytest.raises(error, match=says):
        call()


def test_large_unsigned_positions_are_outside() -> None:
    far = A([2**63 + 5, 3], "u8")
    clipped, around = (hnp.ravel_multi_index((far,), (7,), mode=mode) for mode in ("clip", "wrap"))
    assert np.asarray(clipped).tolist() == [6, 3] and np.asarray(around).tolist() == [(2**63 + 5) % 7, 3]
    assert np.asarray(hnp.bincount(far, length=4)).tolist() == [0, 0, 0, 1]
    with pytest.raises(errors.IndexOutOfRangeError):
        hnp.unravel_index(far, (7,))


def test_arrays_of_harp_as_plain_integers() -> None:
    _agree(hnp.pad(ONES, hnp.asarray([[1, 2], [0, 1]])), np.pad(ONES, [(1, 2), (0, 1)]))
    _agree(hnp.array_split(ONES[0], hnp.asarray([1])), np.array_split(ONES[0], [1]))


@harp.jit
def _count(x: harp.Array, sized: harp.Array, edges: harp.Array) -> tuple[object, ...]:
    size = sized.shape[0]
    flat = hnp.ravel_multi_index((x, x), (size, size))
    return hnp.bincount(x, length=size), hnp.digitize(x.astype("f8"), edges), flat


def test_sizes_beyond_narrow_positions_in_jit() -> None:
    """Sizes that int8 does not hold, and no edges, in one program."""
    x = A([1, 100, 2, 1], "i1")
    for size, edges in ((300, [0.5, 1.5]), (200, [1.5, 0.5, 0.0]), (101, []), (1000, [1.0])):
        counts, bins, flat = _count(x, np.zeros(size), A(edges))
        _agree(counts, np.bincount(x, minlength=size))
        _agree(bins, np.digitize(x, A(edges)))
        _agree(flat, np.ravel_multi_index((x, x), (size, size)))
    assert _count.compilations == 1


def test_captured_edges_are_known_in_jit() -> None:
    counts, _ = harp.jit(lambda x: hnp.histogram(x, A([0.0, 1.0, 2.0])))(A([0.5, 1.0, 2.0]))
    _agree(counts, A([1, 2]))
    with pytest.raises(errors.ArgumentError, match="increase"):
        harp.jit(lambda x: hnp.histogram(x, A([2.0, 1.0])))(A([0.5]))


def test_weights_in_jit_have_the_shape() -> None:
    weigh = harp.jit(lambda x, w: hnp.bincount(x, w, length=4))
    with pytest.raises(errors.ShapeError, match="bincount, for x and weights"):
        weigh(A([0, 3, 1]), np.ones(1))
