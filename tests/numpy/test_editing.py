"""Elements put in, taken out and replaced, against NumPy: at once, in programs for all sizes, and their gradients."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors

X, V = np.arange(12.0).reshape(3, 4), np.array([5.0, -1.0, 2.0, 7.0])
B = np.array([True, False, True])


def changed(xp, name, *arguments):
    """The new array; NumPy's function changes a copy."""
    if xp is hnp:
        return getattr(hnp, name)(*arguments)
    copy = np.array(arguments[0])
    getattr(np, name)(copy, *arguments[1:])
    return copy


# Each for NumPy, whose functions get lists as they are, and for harp, of a matrix and a vector.
CASES = {
    "insert one": lambda xp, x, v: [xp.insert(v, k, 9) for k in (0, 2, 4, -1, -4)],
    "insert into rows": lambda xp, x, v: [xp.insert(x, 1, v, axis=0), xp.insert(x, -1, v[:3], axis=1)],
    "insert several at one": lambda xp, x, v: [xp.insert(v, [1], v), xp.insert(x, [1], v[:3, None], 1)],
    "insert at several": lambda xp, x, v: [xp.insert(v, [3, 0, 3, -1], v), xp.insert(x, [0, 2], 7, axis=1)],
    "insert flattened": lambda xp, x, v: [xp.insert(x, [11, 2], v[:2]), xp.insert(x, slice(0, 6, 2), v[:3])],
    "insert at a mask": lambda xp, x, v: xp.insert(x, B, v, axis=0),
    "insert at an array of one": lambda xp, x, v: [xp.insert(v, np.array(2), v[:3]), xp.insert(x, np.array(1), v, 0)],
    "delete one": lambda xp, x, v: [xp.delete(v, k) for k in (0, 2, 3, -1, -4)],
    "delete along an axis": lambda xp, x, v: [xp.delete(x, 1, 0), xp.delete(x, [0, -1, 3], 1), xp.delete(x, [], 1)],
    "delete a slice": lambda xp, x, v: [xp.delete(x, slice(1, None, 2), 1), xp.delete(x, slice(None, None, -2))],
    "delete by a mask": lambda xp, x, v: xp.delete(x, B, 0),
    "compress": lambda xp, x, v: [xp.compress(B, x, 0), xp.compress([0, 1], x, 1), xp.compress(B, x)],
    "resize": lambda xp, x, v: [xp.resize(v, (3, 3)), xp.resize(x, 5), xp.resize(v, (0, 2)), xp.resize(v[:0], (2, 2))],
    "choose": lambda xp, x, v: [
        xp.choose(np.array([2, 0, 1, 1]), [v, x[0], 9.0]),
        xp.choose(np.array([5, -2, 1, 0]), [v, v * 2], mode="wrap"),
        xp.choose(np.array([[5], [-2]]), [v, v * 2], mode="clip"),
    ],
    "place": lambda xp, x, v: changed(xp, "place", x, np.arange(12).reshape(3, 4) % 3 != 1, v[:3]),
    "put": lambda xp, x, v: [
        changed(xp, "put", x, [0, -1, 5], v[:2]),
        changed(xp, "put", x, [13, 40, -30], v, "wrap"),
        changed(xp, "put", x, 3, 8),
    ],
}  # fmt: skip


def leaves(tree):
    return tree if isinstance(tree, list) else [tree]


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int16"])
def test_at_once(dtype):
    x, v = X.astype(dtype), V.astype(dtype)
    for name, case in CASES.items():
        for found, wanted in zip(leaves(case(hnp, x, v)), leaves(case(np, x, v)), strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=name)
            assert found.dtype == wanted.dtype or name == "choose", name


@pytest.mark.slow
def test_in_programs_of_all_sizes():
    """One program, also where a size is 1; positions that do not fit it are those of a call at once."""
    program = harp.jit(
        lambda x, v: {name: leaves(case(hnp, x, v)) for name, case in CASES.items() if "put" not in name}
    )
    found = program(X, V)
    for name in found:
        for one, wanted in zip(found[name], leaves(CASES[name](np, X, V)), strict=True):
            np.testing.assert_array_equal(one, wanted, err_msg=name)

    def edited(x, at):
        return [
            hnp.insert(x, at, hnp.asarray([7.0, 8.0])[: at.shape[0]]),
            hnp.insert(x, x.shape[0] // 2, 7.0),
            hnp.delete(x, at, assume_unique_indices=True),
            hnp.delete(x, [0, 0]),
            hnp.delete(hnp.insert(x, at[0], 5.0), at[0]),
            hnp.delete(x, hnp.s_[::2]),
            hnp.delete(x, -1),
            hnp.compress(x > 2, x, size=3, fill_value=-1.0),
            hnp.resize(x, (2, 5)),
            hnp.place(x, x > 1, hnp.asarray([-1.0, -2.0])),
            hnp.put(x, at, hnp.asarray([-1.0])),
        ]

    program = harp.jit(edited)
    for size in (1, 2, 3, 8):
        x, at = np.arange(size) + 1.0, np.array([size - 1, 0])[: min(size, 2)]
        new = np.array([7.0, 8.0])
        kept = np.append(x[x > 2], [-1.0] * 3)[:3]
        wanted = [
            np.insert(x, at, new[: len(at)]), np.insert(x, size // 2, 7.0), np.delete(x, at),
            np.delete(x, [0]), x, x[1::2], x[:-1], kept, np.resize(x, (2, 5)),
            changed(np, "place", x, x > 1, new * 0 + [-1, -2]), changed(np, "put", x, at, [-1.0]),
        ]  # fmt: skip
        for k, (a, b) in enumerate(zip(program(x, at), wanted, strict=True)):
            np.testing.assert_array_equal(a, b, err_msg=f"{k} of {size}")
    assert program.compilations <= 3


def test_zeros_at_the_ends():
    x = np.array([0.0, 0, 1, 0, 2, 0])
    for trim in ("f", "b", "fb"):
        np.testing.assert_array_equal(hnp.trim_zeros(x, trim), np.trim_zeros(x, trim))


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: hnp.insert(V, 5, 1.0), errors.IndexOutOfRangeError, "5"),
        (lambda: hnp.insert(V, [5, 0], 1.0), errors.IndexOutOfRangeError, "insert is outside an axis of size 4"),
        (lambda: hnp.insert(np.arange(3), 1, 2.5), errors.DTypeError, "the values of insert"),
        (lambda: hnp.insert(X, 1, np.ones(3), axis=0), errors.ShapeError, "axis 1"),
        (lambda: hnp.delete(V, 4), errors.IndexOutOfRangeError, "4"),
        (lambda: hnp.delete(V, [4]), errors.IndexOutOfRangeError, "delete is outside an axis of size 4"),
        (lambda: harp.jit(hnp.delete)(V, np.array([1])), errors.ConcretizationError, "assume_unique_indices"),
        (lambda: hnp.place(V, V > 0, 1.0, inplace=True), errors.ArgumentError, "place returns the new one"),
        (lambda: hnp.put(V, [4], 1.0), errors.IndexOutOfRangeError, "4"),
        (lambda: hnp.choose(np.array([2]), [V, V]), errors.IndexOutOfRangeError, "outside 2 choices"),
        (lambda: hnp.choose(np.array([0]), [V], mode="x"), errors.ArgumentError, "not 'x'"),
        (lambda: hnp.compress(X > 0, X), errors.ShapeError, "a vector, not 2 axes"),
        (lambda: harp.jit(hnp.trim_zeros)(V), errors.ConcretizationError, "trim_zeros keeps"),
    ],
)
def test_errors(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
