"""The Fourier transforms of NumPy and of the array API standard.

A transform is one call inside of a program, compiled once for all sizes, of the function that NumPy itself calls, and
which multiplies by the factor of `norm`; it is linear, so that its derivatives are transforms. Where `n` differs from
the length of an axis, this is cut or filled up in the loop that writes the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, cast

from harp.errors import ArgumentError
from harp.numpy.complexes import conj
from harp.numpy.creation import arange, zeros
from harp.numpy.elementwise import where as chosen
from harp.numpy.joining import roll
from harp.numpy.linalg.batches import at_once
from harp.numpy.manipulation import reshape
from harp.numpy.padding import pad
from harp.trace.array.arithmetic import in_common
from harp.trace.array.array import Array, node_of
from harp.trace.array.primitives import as_named, emit_results, normalize_axis
from harp.trace.graph.matrix_functions import MATRICES, MatrixFunction, MatrixOp
from harp.trace.graph.node import Foreign
from harp.trace.scalar.dtypes import DTypeLike, complex_of, computing, f64, i8, real_of
from harp.trace.sizes.size import Size, require_at_least_one, resolve, to_index
from harp.trace.source_locations import plural, where
from harp.transforms.autodiff.custom import custom_vjp
from harp.transforms.autodiff.grad import stop_gradient

__all__ = [
    *("fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft"),
    *("irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"),
]

Norm = Literal["backward", "ortho", "forward"] | None
Count = int | Size
_Scale = tuple[bool, bool]


def fft(a: object, n: Count | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The discrete Fourier transform along an axis, `y[k] = sum(x[j] * exp(-2j*pi*j*k/n))`: NumPy's function.

    `n` is the length of the transform: the axis is cut, or filled up with zeros; without it, its length. `norm` is
    "backward" (the same as None), "ortho", by which the result is divided by sqrt(n), or "forward", by n. The result is
    complex, of as many bits as `a`; integers and bool are float64.

    Raises ArgumentError for an `n` below 1, and for other norms, AxisError for an axis that `a` does not have.

    >>> import harp.numpy as hnp
    >>> hnp.fft.fft(hnp.asarray([1.0, 0.0, 0.0, 1.0]))
    Array([2.+0.j, 1.+1.j, 0.+0.j, 1.-1.j])
    """
    return _complex("fft", a, n, axis, norm, False)


def ifft(a: object, n: Count | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `fft`: NumPy's function. It is divided by n, unless `norm` says otherwise.

    Raises as `fft`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.ifft(hnp.asarray([2.0, 1 + 1j, 0, 1 - 1j]))
    Array([1.+0.j, 0.+0.j, 0.+0.j, 1.+0.j])
    """
    return _complex("ifft", a, n, axis, norm, True)


def rfft(a: object, n: Count | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The first n//2 + 1 elements of the `fft` of real numbers, of which the others are conjugates: NumPy's function.

    Raises as `fft`, and ArgumentError for complex numbers.

    >>> import harp.numpy as hnp
    >>> hnp.fft.rfft(hnp.asarray([1.0, 0.0, 0.0, 1.0]))
    Array([2.+0.j, 1.+1.j, 0.+0.j])
    """
    array = _operand("rfft", a, False)
    along = normalize_axis(axis, array.ndim)
    count = _count("rfft", array.shape[along] if n is None else n)
    return _along(array, along, count, partial(_half, _scale(norm, False)))


def irfft(a: object, n: Count | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `rfft`, n real numbers: NumPy's function.

    Of an axis of m elements there are 2*(m - 1) if `n` is left out. Raises as `fft`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.irfft(hnp.asarray([2.0, 1 + 1j, 0]))
    Array([1., 0., 0., 1.])
    """
    array = _operand("irfft", a, True)
    along = normalize_axis(axis, array.ndim)
    count = _count("irfft", 2 * (array.shape[along] - 1) if n is None else n)
    return _along(array, along, count // 2 + 1, partial(_whole, _scale(norm, True), zeros(count, i8)))


def hfft(a: object, n: Count | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The `fft`, n real numbers, of a signal of which the first n//2 + 1 elements are given and the others are their
    conjugates: NumPy's function.

    Raises as `fft`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.hfft(hnp.asarray([1.0, 2.0, 3.0]))
    Array([ 8., -2.,  0., -2.])
    """
    return irfft(conj(_operand("hfft", a, True)), n, axis, _exchanged(norm))


def ihfft(a: object, n: Count | None = None, axis: int = -1, norm: Norm = None) -> Array:
    """The inverse of `hfft`: NumPy's function.

    Raises as `rfft`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.ihfft(hnp.asarray([8.0, -2.0, 0.0, -2.0]))
    Array([1.-0.j, 2.-0.j, 3.-0.j])
    """
    return conj(rfft(a, n, axis, _exchanged(norm)))


def fftn(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] | None = None, norm: Norm = None) -> Array:
    """The `fft` along several axes, all if `axes` is None: NumPy's function. `s` has the lengths, or -1, for each.

    Raises as `fft`, and ArgumentError if `s` and `axes` have not the same length.

    >>> import harp.numpy as hnp
    >>> hnp.fft.fftn(hnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]])
    """
    return _several(fft, a, s, axes, norm)


def ifftn(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] | None = None, norm: Norm = None) -> Array:
    """The inverse of `fftn`: NumPy's function.

    Raises as `fftn`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.ifftn(2 * hnp.eye(2)).real
    Array([[1., 0.],
           [0., 1.]])
    """
    return _several(ifft, a, s, axes, norm)


def rfftn(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] | None = None, norm: Norm = None) -> Array:
    """The `rfft` along the last of several axes, and then the `fft` along the others: NumPy's function.

    Raises as `fftn`, and ArgumentError for complex numbers and for no axes.

    >>> import harp.numpy as hnp
    >>> hnp.fft.rfftn(hnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    array = as_named(a, "argument a of rfftn")
    *others, (count, last) = _pairs("rfftn", array, s, axes)
    return _in_turn(fft, rfft(array, count, last, norm), others, norm)


def irfftn(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] | None = None, norm: Norm = None) -> Array:
    """The inverse of `rfftn`: NumPy's function. The last axis has 2*(m - 1) real numbers if `s` does not say more.

    Raises as `fftn`, and ArgumentError for no axes.

    >>> import harp.numpy as hnp
    >>> hnp.fft.irfftn(hnp.fft.rfftn(hnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]])
    """
    array = as_named(a, "argument a of irfftn")
    *others, (count, last) = _pairs("irfftn", array, s, axes)
    return irfft(_in_turn(ifft, array, others, norm), count, last, norm)


def fft2(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """`fftn` along the last two axes, or two others: NumPy's function. Raises as `fftn`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.fft2(hnp.eye(2))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 2.+0.j]])
    """
    return fftn(a, s, axes, norm)


def ifft2(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """`ifftn` along the last two axes, or two others: NumPy's function. Raises as `ifftn`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.ifft2(2 * hnp.eye(2)).real
    Array([[1., 0.],
           [0., 1.]])
    """
    return ifftn(a, s, axes, norm)


def rfft2(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """`rfftn` along the last two axes, or two others: NumPy's function. Raises as `rfftn`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.rfft2(hnp.ones((2, 2)))
    Array([[4.+0.j, 0.+0.j],
           [0.+0.j, 0.+0.j]])
    """
    return rfftn(a, s, axes, norm)


def irfft2(a: object, s: Sequence[Count] | None = None, axes: Sequence[int] = (-2, -1), norm: Norm = None) -> Array:
    """`irfftn` along the last two axes, or two others: NumPy's function. Raises as `irfftn`.

    >>> import harp.numpy as hnp
    >>> hnp.fft.irfft2(hnp.fft.rfft2(hnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]])
    """
    return irfftn(a, s, axes, norm)


def fftfreq(n: Count, d: object = 1.0, *, dtype: DTypeLike | None = None, device: object = None) -> Array:
    """The n frequencies of an `fft` of samples with the distance `d`, from 0 up and then the negative ones.

    The result is float64 or `dtype`. Raises ArgumentError for an `n` below 1.

    >>> import harp.numpy as hnp
    >>> hnp.fft.fftfreq(4, 0.5)
    Array([ 0. ,  0.5, -1. , -0.5])
    """
    count = _count("fftfreq", n)
    k = arange(count, dtype=dtype or float, device=device)
    frequencies: Array = chosen(k < (count + 1) // 2, k, k - count) / (count * d)
    return frequencies


def rfftfreq(n: Count, d: object = 1.0, *, dtype: DTypeLike | None = None, device: object = None) -> Array:
    """The n//2 + 1 frequencies of an `rfft` of n samples with the distance `d`.

    The result is float64 or `dtype`. Raises ArgumentError for an `n` below 1.

    >>> import harp.numpy as hnp
    >>> hnp.fft.rfftfreq(4, 0.5)
    Array([0. , 0.5, 1. ])
    """
    count = _count("rfftfreq", n)
    frequencies: Array = arange(count // 2 + 1, dtype=dtype or float, device=device) / (count * d)
    return frequencies


def fftshift(x: object, axes: int | Sequence[int] | None = None) -> Array:
    """The array with the frequency 0 in the middle of the axes, or of all: NumPy's function. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.fft.fftshift(hnp.arange(5))
    Array([3, 4, 0, 1, 2])
    """
    return _shifted(x, axes, lambda size: size // 2)


def ifftshift(x: object, axes: int | Sequence[int] | None = None) -> Array:
    """The inverse of `fftshift`: NumPy's function. Raises AxisError.

    >>> import harp.numpy as hnp
    >>> hnp.fft.ifftshift(hnp.arange(5))
    Array([2, 3, 4, 0, 1])
    """
    return _shifted(x, axes, lambda size: -(size // 2))


def _operand(name: str, a: object, is_complex: bool) -> Array:
    """Numbers in the dtype in which to compute. Raises ArgumentError for what is no array, or not real."""
    array = as_named(a, f"argument a of {name}")
    kind = computing(array.kind if array.kind.is_inexact else f64)
    if kind.is_complex and not is_complex:
        raise ArgumentError(f"{name} takes real numbers, not {array.dtype}; take .real, or call fft{where()}")
    return in_common(array, complex_of(kind) if is_complex else kind)


def _count(name: str, n: Any) -> Any:
    if not isinstance(n, Size):
        try:
            n = n.__index__()
        except (AttributeError, TypeError):
            raise ArgumentError(f"n of {name} is a size, not {n!r}{where()}") from None
        if n < 1:
            raise ArgumentError(f"a transform of {n} numbers is not defined: n of {name} is 1 or more{where()}")
        return n
    require_at_least_one(n.index, lambda: f"a transform of no numbers is not defined: n of {name} is {n}")
    return n


def _complex(name: str, a: object, n: Count | None, axis: int, norm: Norm, inverse: bool) -> Array:
    array = _operand(name, a, True)
    along = normalize_axis(axis, array.ndim)
    count = _count(name, array.shape[along] if n is None else n)
    return _along(array, along, count, partial(_all, inverse, _scale(norm, inverse)))


def sized(name: str, array: Array, axis: int, n: Any) -> Array:
    """An axis with n elements: cut, or filled up with zeros. Raises ArgumentError for an n below 1."""
    return _resized(array, axis, _count(name, n))


def _resized(array: Array, axis: int, count: Any) -> Array:
    if resolve(node_of(array).shape[axis]) is resolve(to_index(count)):
        return array
    padded = pad(array, [(0, count if k == axis else 0) for k in range(array.ndim)])
    return padded[(slice(None),) * axis + (slice(0, count),)]


def _along(array: Array, axis: int, count: Any, transform: Callable[[Array], Array]) -> Array:
    """The transform of an axis with so many elements."""
    array = _resized(array, axis, count)
    front, back = array.shape[:axis], array.shape[axis + 1 :]
    made = transform(reshape(array, (*front, count, math.prod(back))))
    return reshape(made, (*front, made.shape[-2], *back))


def _pairs(name: str, array: Array, s: Any, axes: Any) -> list[tuple[Any, int]]:
    """A length and an axis for each transform; an axis may be there several times."""
    s, axes = ((given,) if isinstance(given, (int, Size)) else given for given in (s, axes))
    if axes is None:
        axes = range(array.ndim) if s is None else range(-len(s), 0)
    if s is not None and len(s) != len(axes):
        raise ArgumentError(f"s of {name} has {plural(len(s), 'lengths')} for {plural(len(axes), 'axes')}{where()}")
    if not axes and name in ("rfftn", "irfftn"):
        raise ArgumentError(f"{name} needs an axis at least{where()}")
    along = [normalize_axis(axis, array.ndim) for axis in axes]
    sizes = [array.shape[axis] for axis in along]
    if s is not None:
        sizes = [size if isinstance(n, int) and n == -1 else n for n, size in zip(s, sizes, strict=True)]
    elif name == "irfftn":
        sizes[-1] = 2 * (sizes[-1] - 1)
    return list(zip(sizes, along, strict=True))


def _in_turn(transform: Callable[..., Array], array: Array, pairs: Sequence[tuple[Any, int]], norm: Norm) -> Array:
    for n, axis in reversed(pairs):
        array = transform(array, n, axis, norm)
    return array


def _several(transform: Callable[..., Array], a: object, s: Any, axes: Any, norm: Norm) -> Array:
    array = _operand(transform.__name__ + "n", a, True)
    return _in_turn(transform, array, _pairs(transform.__name__ + "n", array, s, axes), norm)


def _shifted(x: object, axes: Any, by: Callable[[Any], Any]) -> Array:
    array = as_named(x, "argument x of a shift")
    for axis in range(array.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes:
        array = roll(array, by(array.shape[normalize_axis(axis, array.ndim)]), axis)
    return array


def _scale(norm: Norm, inverse: bool) -> _Scale:
    """Whether results are divided by n, and whether by its root."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ArgumentError(f"norm is 'backward', 'ortho' or 'forward', not {norm!r}{where()}")
    return norm != "ortho" and inverse is (norm != "forward"), norm == "ortho"


def _exchanged(norm: Norm) -> Norm:
    return "forward" if norm in (None, "backward") else "backward" if norm == "forward" else norm


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _all(inverse: bool, scale: _Scale, x: Array) -> Array:
    return _called(MatrixFunction(MatrixOp.FFT, (*scale, inverse)), x)


_all.defvjp(
    lambda inverse, scale, x: (_all(inverse, scale, x), None),
    lambda inverse, scale, kept, ct: (_all(inverse, scale, ct),),
)


@partial(custom_vjp, nondiff_argnums=(0,))
def _half(scale: _Scale, x: Array) -> Array:
    return _called(MatrixFunction(MatrixOp.RFFT, scale), x)


@partial(custom_vjp, nondiff_argnums=(0,))
def _whole(scale: _Scale, like: Array, y: Array) -> Array:
    """As many real numbers as another array has elements."""
    return _called(MatrixFunction(MatrixOp.IRFFT, scale), y, like.shape[0])


def _weights(count: Any, like: Array) -> Array:
    """How often an element of half a transform is there in the whole one."""
    k = arange(count // 2 + 1)[:, None]
    return in_common(chosen((k == 0) | (2 * k == count), 1.0, 2.0), real_of(like.kind))


# The sum over k of Re(ct[k] * exp(-2i*pi*j*k/n)) is the whole transform of conj(ct), of which each counts once.
_half.defvjp(
    lambda scale, x: (_half(scale, x), zeros(x.shape[-2], i8)),
    lambda scale, like, ct: (_whole(scale, like, conj(ct) / _weights(like.shape[0], ct)),),
)
_whole.defvjp(
    lambda scale, like, y: (_whole(scale, like, y), like),
    lambda scale, like, ct: (None, conj(_half(scale, ct)) * _weights(like.shape[0], ct)),
)


def _called(function: MatrixFunction, x: Array, *length: Any) -> Array:
    """The transforms along the last axis but one, whose results have a length that is given or follows."""
    found = at_once(partial(MATRICES[function.op].numpy, *length, *function.flags), x)
    if found is not None:
        (values,) = found
        return cast(Array, values)
    node = node_of(stop_gradient(x))
    *calls, count, inner = map(resolve, node.shape)
    results = function.results([(count, inner), *((resolve(to_index(n)),) for n in length)], node.dtype)
    return emit_results(Foreign(function, tuple(calls), (node,), results))[0]
