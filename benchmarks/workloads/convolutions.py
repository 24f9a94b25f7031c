"""Convolutions and maxima of windows, forward and in their derivatives, by the functions of `lax`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from benchmarks.harness import Call, Goal
from benchmarks.peers import PEERS
from benchmarks.workload import Arguments, Comparison, Function

LIBRARIES = {"harp": "harp.jax", "jax": "jax"}  # where functions have the names of JAX
TOLERANCE = 1e-4


def library(peer: str) -> Any:
    """What has `numpy`, `lax`, `nn` and `grad` as JAX has them."""
    return importlib.import_module(LIBRARIES[peer])


def weighted(lib: Any, function: Function, by: int | tuple[int, ...], *given: object) -> object:
    """The gradient by some arguments, where the last one given is the cotangent of the result."""
    return lib.grad(lambda *args: lib.numpy.sum(function(*args) * given[-1]), by)(*given[:-1])


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Numbers around 0."""
    return rng.standard_normal(shape, np.float32)


# The libraries --------------------------------------------------------------------------------------------------------


def _conv(lib: Any, x, w, stride=1, pad=0, dilation=1, gaps=1, depthwise=False, last=False):
    rank = x.ndim - 2
    space = "HW"[-rank:]
    spec = (f"N{space}C", f"{space}IO", f"N{space}C") if last else None
    each = [(number,) * rank for number in (stride, gaps, dilation)]
    groups = (x.shape[-1] if last else x.shape[1]) if depthwise else 1
    return lib.lax.conv_general_dilated(x, w, each[0], [(pad, pad)] * rank, each[1], each[2], spec, groups)


def _max_pool(lib: Any, x):
    return lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")


def _own(function: Callable[..., object], by: int | None, peer: str, *given: object) -> object:
    lib = library(peer)
    return function(lib, *given) if by is None else weighted(lib, partial(function, lib), by, *given)


def _jax(function: Callable[..., object], by: int | None, *given: object) -> Call:
    return PEERS["jax"].call(PEERS["jax"].compile(partial(_own, function, by, "jax"), 1), given)


PLACES = [(1, -1), ((0, 1), (-1, -2)), (1, -1)]  # of channels in the array, the kernel, the cotangent: first and last


def _last(*given: object) -> list[np.ndarray]:
    """With channels last."""
    return [np.ascontiguousarray(np.moveaxis(np.asarray(x), *at)) for x, at in zip(given, PLACES, strict=False)]


def _jax_nhwc(function: Callable[..., object], by: int | None, *given: object) -> Call:
    """With channels last. Axes are moved before the clock starts, and behind it in a view."""
    call = _jax(partial(function, last=True), by, *_last(*given))
    first, last = PLACES[by or 0]
    return lambda: np.moveaxis(np.asarray(call()), last, first)


def _numpy_nhwc(by: int | None, *given: np.ndarray, **options: Any) -> np.ndarray:
    moved = [np.moveaxis(x, last, first) for x, (first, last) in zip(given, PLACES, strict=False)]
    return np.moveaxis(_conv_numpy(by, *moved, **options), *PLACES[by or 0])


# NumPy: a product of matrices for each place of the window ------------------------------------------------------------


def _places(shape, window, stride: int, dilation: int) -> Iterator[tuple[Any, Any]]:
    """Each place of a window, and the elements of the array there, for all windows."""
    counts = [(n - (k - 1) * dilation - 1) // stride + 1 for n, k in zip(shape, window, strict=True)]
    for place in product(*map(range, window)):
        starts = [dilation * i for i in place]
        parts = (slice(i, i + stride * (c - 1) + 1, stride) for i, c in zip(starts, counts, strict=True))
        yield (..., *place), (..., *parts)


def _conv_numpy(by: int | None, x, w, cotangent=None, stride=1, pad=0, dilation=1, gaps=1, depthwise=False):
    rank, groups = x.ndim - 2, x.shape[1] if depthwise else 1
    wide = np.zeros((*x.shape[:2], *(gaps * (n - 1) + 1 + 2 * pad for n in x.shape[2:])), x.dtype)
    inner = (..., *(slice(pad, n - pad, gaps) for n in wide.shape[2:]))
    wide[inner] = x
    grouped = w.reshape(groups, -1, *w.shape[1:])
    split = None if cotangent is None else cotangent.reshape(len(x), groups, -1, *cotangent.shape[2:])
    result = [0, np.zeros_like(wide), np.zeros_like(grouped)][0 if by is None else by + 1]
    for place, elements in _places(wide.shape[2:], w.shape[2:], stride, dilation):
        part = wide[elements].reshape(len(x), groups, -1, *wide[elements].shape[2:])
        if by is None:
            result = result + np.einsum("bgc...,goc->bgo...", part, grouped[place], optimize=True)
        elif by == 0:
            slopes = np.einsum("bgo...,goc->bgc...", split, grouped[place], optimize=True)
            result[elements] += slopes.reshape(wide[elements].shape)
        else:
            flat = (p.reshape(*p.shape[:3], -1) for p in (split, part))
            result[place] = np.einsum("bgop,bgcp->goc", *flat, optimize=True)
    if by == 0:
        return result[inner]
    return result.reshape(w.shape) if by else result.reshape(len(x), -1, *result.shape[-rank:])


def _max_pool_numpy(by: int | None, x, cotangent=None):
    parts = [elements for _, elements in _places(x.shape[2:], (3, 3), 2, 1)]
    largest = np.max(np.stack([x[elements] for elements in parts]), axis=0)
    if by is None:
        return largest
    result, free = np.zeros_like(x), np.ones(largest.shape, bool)
    for elements in parts:
        first = free & (x[elements] == largest)
        result[elements] += np.where(first, cotangent, 0)
        free &= ~first
    return result


# Rows -----------------------------------------------------------------------------------------------------------------


def _given(rng: np.random.Generator, *sizes: int, rank: int, cotangent: bool, options: dict[str, Any]) -> Arguments:
    batch, inputs, outputs, n, k = sizes
    of_group = 1 if options.get("depthwise") else inputs
    x = normal(rng, batch, inputs, *(n,) * rank)
    w = normal(rng, outputs, of_group, *(k,) * rank) / np.float32(of_group * k**rank) ** 0.5
    if not cotangent:
        return x, w
    wide, covered = n + 2 * options.get("pad", 0), (k - 1) * options.get("dilation", 1) + 1
    return x, w, normal(rng, batch, outputs, *((wide - covered) // options.get("stride", 1) + 1,) * rank)


def _image(rng: np.random.Generator, batch: int, channels: int, n: int, *, cotangent: bool) -> Arguments:
    x = normal(rng, batch, channels, n, n)
    return (x, normal(rng, batch, channels, *((n - 3) // 2 + 1,) * 2)) if cotangent else (x,)


def _row(name: str, sizes: tuple[int, ...], small: tuple[int, ...], by: int | None = None, rank=2, **options: Any):
    function = partial(_conv, **options)
    return Comparison(
        f"conv/{name}", Goal(1), partial(_given, rank=rank, cotangent=by is not None, options=options), sizes, small,
        own={"harp": partial(_own, function, by, "harp"), "numpy": partial(_conv_numpy, by, **options)},
        calls={"jax": partial(_jax, function, by), "jax nhwc": partial(_jax_nhwc, function, by)}, tolerance=TOLERANCE,
    )  # fmt: skip


def _row_last(name: str, sizes: tuple[int, ...], small: tuple[int, ...], by: int | None = None, **options: Any):
    """Channels are last for all."""
    function = partial(_conv, last=True, **options)
    make = partial(_given, rank=2, cotangent=by is not None, options=options)
    return Comparison(
        f"conv/{name}", Goal(1), lambda rng, *sizes: tuple(_last(*make(rng, *sizes))), sizes, small,
        own={"harp": partial(_own, function, by, "harp"), "numpy": partial(_numpy_nhwc, by, **options)},
        calls={"jax": partial(_jax, function, by)}, tolerance=TOLERANCE,
    )  # fmt: skip


def _pool(name: str, by: int | None) -> Comparison:
    own = {peer: partial(_own, _max_pool, by, peer) for peer in LIBRARIES}
    make = partial(_image, cotangent=by is not None)
    own["numpy"] = partial(_max_pool_numpy, by)
    return Comparison(f"pool/{name}", Goal(1), make, (32, 64, 56), (2, 3, 9), own=own, tolerance=1e-6)


IMAGES, SMALL = (32, 64, 64, 56), (2, 3, 4, 7)

WORKLOADS = (
    _row("3x3", (*IMAGES, 3), (*SMALL, 3), pad=1),
    _row("3x3-by-input", (*IMAGES, 3), (*SMALL, 3), 0, pad=1),
    _row("3x3-by-weights", (*IMAGES, 3), (*SMALL, 3), 1, pad=1),
    _row("3x3-stride-2", (*IMAGES, 3), (*SMALL, 3), pad=1, stride=2),
    _row("3x3-stride-2-by-input", (*IMAGES, 3), (*SMALL, 3), 0, pad=1, stride=2),
    _row_last("3x3-channels-last", (*IMAGES, 3), (*SMALL, 3), pad=1),
    _row_last("3x3-channels-last-by-input", (*IMAGES, 3), (*SMALL, 3), 0, pad=1),
    _row_last("3x3-channels-last-by-weights", (*IMAGES, 3), (*SMALL, 3), 1, pad=1),
    _row("1x1", (*IMAGES, 1), (*SMALL, 1)),
    _row("depthwise-3x3", (*IMAGES, 3), (2, 3, 3, 7, 3), pad=1, depthwise=True),
    _row("1d-dilation-4", (32, 64, 64, 2048, 3), (2, 3, 4, 15, 3), rank=1, pad=4, dilation=4),
    _row("transposed-3x3", (32, 64, 64, 28, 3), (*SMALL, 3), pad=1, gaps=2),
    _pool("max-3x3", None),
    _pool("max-3x3-gradient", 0),
)
