"""Attention by blocks of keys, in memory that is linear in the lengths, forward and in all derivatives.

Of a row of logits s and of values v, softmax(s) @ v is a quotient of two sums over keys, each of which is kept beside
the largest logit m so far. A block of keys may move m; what there is then shrinks by exp(m - new m):

    l = sum of exp(s - m)       a = sum of exp(s - m)*v       result a/l

(M. Rabe, C. Staats, Self-attention does not need O(n**2) memory, 2021; T. Dao and others, FlashAttention, 2022.)

A derivative computes the weights p = exp(s - m)/l of each block once more, from m and l, which are kept:

    dv = p.T @ dout      ds = p*(dout @ v.T - sum of dout*out + l*dl)

Nothing depends on m, so no derivative flows through it. The loop adds to the derivatives of queries, and keeps nothing
of its steps, so derivatives of derivatives take linear memory, too.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, NamedTuple

from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.numpy.creation import arange, zeros, zeros_like
from harp.numpy.elementwise import exp, less_equal, log, logical_and, maximum, minimum, where
from harp.numpy.linalg.products import matmul, promoted
from harp.numpy.manipulation import broadcast_to, expand_dims, moveaxis, reshape, swapaxes, transpose
from harp.numpy.reductions import max as max_of
from harp.numpy.reductions import sum as sum_of
from harp.trace.array.arithmetic import absolute, equal, less
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, as_flag
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.dtypes import bool_, computing
from harp.trace.sizes.size import unify, wrap
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.custom import custom_vjp
from harp.transforms.autodiff.grad import stop_gradient, vjp
from harp.transforms.control.scan import in_blocks, joined, scan
from harp.transforms.staging import shape_of

# The most keys of a block: the logits of as many are computed at once.
_BLOCK = 256
# The logit of a key that is masked. It is finite, so a row of which all keys are has the mean of all values, as in JAX.
_MASKED = -0.7 * 3.4028234663852886e38


class _Terms(NamedTuple):
    """What is added to logits, and which keys queries take; each may be missing."""

    bias: Array | None
    mask: Array | None
    of_queries: Array | None
    of_keys: Array | None
    left: Array | None
    right: Array | None


def dot_product_attention(
    query: object,
    key: object,
    value: object,
    bias: object = None,
    mask: object = None,
    *,
    scale: object = None,
    is_causal: bool = False,
    query_seq_lengths: object = None,
    key_value_seq_lengths: object = None,
    local_window_size: Any = None,
    implementation: None = None,
    return_residual: bool = False,
) -> Any:
    """softmax(scale*query @ key.T + bias) @ value for each head, under JAX's names.

    `query` is (batch, T, N, H), of N heads, `key` and `value` are (batch, S, K, H), where K divides N: N/K heads share
    a key. The axis of the batch may be missing. `bias` and `mask`, truth values of what takes part, broadcast to
    (batch, N, T, S). `scale` is 1/sqrt(H) unless given. A query takes keys up to its own place if `is_causal`, those
    at most (left, right) places away by `local_window_size`, and those before `key_value_seq_lengths`, a length for
    each example; results beyond `query_seq_lengths` are 0. With `return_residual` there is a second result, the
    logarithms of the sums of exponentials, (batch, T, N), through which no derivative flows.

    Where no key is left, the result is the mean of all values, as in JAX, also of those that are masked. Floats of 16
    bits are computed in float32. Memory is linear in T and in S, for derivatives as well; see docs/networks.md.

    Raises ShapeError for axes that do not fit, DTypeError for what are no floats, or masks that are no truth values,
    ArgumentError for an `implementation`, of which there is one only.

    >>> import harp.numpy as hnp
    >>> dot_product_attention(hnp.ones((2, 1, 4)), hnp.ones((3, 1, 4)), hnp.ones((3, 1, 4))).shape
    (2, 1, 4)
    """
    if implementation is not None:
        raise ArgumentError(f"dot_product_attention has one implementation, not {implementation!r}{place()}")
    q, k, v = _operands(query, key, value)
    (batch, length, heads, width), of_keys, inner = q.shape, k.shape[2], computing(q.kind)
    groups = 1 if heads == of_keys else _groups(heads, of_keys)
    factor = 1 / as_array(width).astype(inner) ** 0.5 if scale is None else as_array(scale)
    scaled = reshape(q.astype(inner) * factor.astype(inner), (batch, length, of_keys, groups, width))
    left, right = _window(local_window_size, as_flag("is_causal", is_causal))
    terms = _Terms(
        _of_heads("bias", bias, of_keys, groups, k.shape[1]),
        _of_heads("mask", mask, of_keys, groups, k.shape[1]),
        _lengths("query_seq_lengths", query_seq_lengths, q),
        _lengths("key_value_seq_lengths", key_value_seq_lengths, q),
        left,
        right,
    )
    keys, values = (transpose(x.astype(inner), (0, 2, 1, 3)) for x in (k, v))
    out, largest, total = _attention(transpose(scaled, (0, 2, 3, 1, 4)), keys, values, terms)
    if terms.of_queries is not None:
        out = where(less(arange(length)[:, None], terms.of_queries), out, 0)
    shape = (*as_array(query).shape[:-1], v.shape[-1])
    found = reshape(transpose(out, (0, 3, 1, 2, 4)), shape).astype(q.kind)
    if not return_residual:
        return found
    sums = reshape(transpose(log(total) + largest, (0, 3, 1, 2)), shape[:-1]).astype(q.kind)
    return found, stop_gradient(sums)


# --- arguments


def _of_batch(name: str, x: object) -> Array:
    array = as_array(x)
    if array.ndim not in (3, 4):
        raise ShapeError(
            f"{name} of dot_product_attention has {plural(array.ndim, 'axes')}, not those of batch (or none), length, "
            f"heads and width{place()}"
        )
    return array if array.ndim == 4 else expand_dims(array, 0)


def _operands(query: object, key: object, value: object) -> list[Array]:
    """Queries, keys and values as (batch, length, heads, width), of one dtype, with sizes that fit."""
    q, k, v = promoted([_of_batch(name, x) for name, x in (("query", query), ("key", key), ("value", value))])
    if not q.kind.is_float:
        raise DTypeError(f"dot_product_attention takes floats, not {q.dtype}; convert with astype{place()}")
    pairs = (("key", k, 0, 0, "query", q), ("value", v, 0, 0, "key", k), ("value", v, 1, 1, "key", k))
    for name, x, i, j, other, y in (*pairs, ("value", v, 2, 2, "key", k), ("key", k, 3, 3, "query", q)):
        what = f"dot_product_attention: axis {i - 4} of {name}, {j - 4} of {other}"
        unify(shape_of(x)[i], shape_of(y)[j], lambda what=what: what)  # type: ignore[misc]
    return [q, k, v]


def _groups(heads: Any, of_keys: Any) -> Any:
    """How many heads share a key."""
    if of_keys == 0 or heads % of_keys != 0:
        raise ShapeError(f"dot_product_attention: {heads} heads of query are no multiple of {of_keys} of key{place()}")
    return heads // of_keys


def _window(size: Any, is_causal: bool) -> tuple[Array | None, Array | None]:
    """How far to the left and to the right of its place a query finds keys."""
    left, right = size if isinstance(size, (tuple, list)) else (size, size)
    if is_causal:
        right = 0 if right is None else minimum(right, 0)
    return (None if left is None else as_array(left)), (None if right is None else as_array(right))


def _of_heads(name: str, x: object, of_keys: Any, groups: Any, length: Any) -> Array | None:
    """A bias or a mask as (batch, heads of keys, groups, T, S), of which the first four may be 1."""
    if x is None:
        return None
    array = as_array(x)
    if (array.kind is bool_) is not (name == "mask"):
        raise DTypeError(
            f"{name} of dot_product_attention is of {array.dtype}; masks are truth values, biases numbers{place()}"
        )
    if array.ndim > 4:
        raise ShapeError(f"{name} of dot_product_attention has {plural(array.ndim, 'axes')}, more than 4{place()}")
    array = expand_dims(array, tuple(range(4 - array.ndim)))
    batch, heads, rows, _ = array.shape
    array = broadcast_to(array, (batch, heads, rows, length))
    return reshape(array, (batch, *((1, 1) if heads == 1 else (of_keys, groups)), rows, length))


def _lengths(name: str, x: object, q: Array) -> Array | None:
    if x is None:
        return None
    array = as_array(x)
    if not array.kind.is_integer or array.ndim != 1:
        raise DTypeError(
            f"{name} of dot_product_attention are integers, one for each example, not {array.dtype} with "
            f"{plural(array.ndim, 'axes')}{place()}"
        )
    unify(shape_of(array)[0], shape_of(q)[0], lambda: f"dot_product_attention: {name}, examples of query")
    return reshape(array, (array.shape[0], 1, 1, 1, 1))


# --- blocks


def _logits(q: Array, k: Array, bias: Array | None, mask: Array | None, first: Array, terms: _Terms) -> Array:
    """The logits of a block of keys that begins at `first`."""
    logits = matmul(q, swapaxes(k, -1, -2)[:, :, None])
    if bias is not None:
        logits = logits + bias.astype(logits.kind)
    at, key = arange(q.shape[3])[:, None], first + arange(k.shape[2])
    tests = [
        mask,
        None if terms.of_queries is None else less(at, terms.of_queries),
        None if terms.of_keys is None else less(key, terms.of_keys),
        None if terms.left is None else less_equal(at, key + terms.left),
        None if terms.right is None else less_equal(key, at + terms.right),
    ]
    found = [test for test in tests if test is not None]
    return where(reduce(logical_and, found), logits, _MASKED) if found else logits


def _over_blocks(step: Any, carry: Any, keys: Array, values: Array, terms: _Terms) -> tuple[Any, list[Array]]:
    """`step(carry, (place of the first key, keys, values, bias, mask))` for each block, and for the rest.

    Returns the carry, and what else steps return of keys, values and the bias, in this order, joined along the axis of
    keys.
    """
    size, every = shape_of(keys)[2], as_index(_BLOCK)
    given = [(keys, 2), (values, 2), (terms.bias, 4), (terms.mask, 4)]
    blocks: list[Any] = [arange(wrap(floordiv(size, every))) * _BLOCK]
    rest: list[Any] = [as_array(wrap(floordiv(size, every) * every))]
    for x, axis in given:
        if x is None:
            blocks.append(None)
            rest.append(None)
        else:
            (front,), (last,), _ = in_blocks([moveaxis(x, axis, 0)], size, every)
            blocks.append(moveaxis(front, 1, axis + 1))
            rest.append(moveaxis(last, 0, axis))
    carry, made = scan(step, carry, tuple(blocks))
    carry, more = step(carry, tuple(rest))
    whole = []
    for (_, axis), block, last in zip((given[0], given[1], given[2]), made or (), more or (), strict=False):
        whole.append(moveaxis(joined(moveaxis(block, axis + 1, 1), moveaxis(last, axis, 0)), 0, axis))
    return carry, whole


def _summed(rows: Array, keys: Array, values: Array, terms: _Terms) -> tuple[Array, Array, Array]:
    """The result, and for each row the largest logit and the sum of exponentials beside it."""

    def step(sums: tuple[Array, Array, Array], block: Any) -> tuple[Any, None]:
        largest, total, weighted = sums
        first, k, v, bias, mask = block
        logits = _logits(rows, k, bias, mask, first, terms)
        new = maximum(largest, max_of(logits, -1, initial=-math.inf))
        shift = where(less(absolute(new), math.inf), new, 0)
        powers, shrunk = exp(logits - shift[..., None]), exp(largest - shift)
        more = matmul(powers, v[:, :, None])
        return (new, shrunk * total + sum_of(powers, -1), shrunk[..., None] * weighted + more), None

    none = zeros(rows.shape[:-1], rows.kind)
    start = none - math.inf, none, zeros((*rows.shape[:-1], values.shape[-1]), rows.kind)
    (largest, total, weighted), _ = _over_blocks(step, start, keys, values, terms)
    total = total + equal(as_array(keys.shape[2]), 0).astype(total.kind)  # without keys the result is 0
    return weighted / total[..., None], largest, total


_attention = custom_vjp(_summed)


def _forward(*given: Any) -> tuple[Any, Any]:
    found = _attention(*given)
    return found, (given, found)


def _backward(kept: Any, cotangents: Any) -> tuple[Any, ...]:
    (rows, keys, values, terms), (out, largest, total) = kept
    of_out, _, of_total = cotangents
    shift = where(less(absolute(largest), math.inf), largest, 0)
    level = sum_of(of_out * out, -1) - of_total * total

    def step(of_rows: Array, block: Any) -> tuple[Array, Any]:
        first, k, v, bias, mask = block
        given = (rows, k) if bias is None else (rows, k, bias)
        logits, pull = vjp(lambda q, k, bias=None: _logits(q, k, bias, mask, first, terms), *given)
        weights = exp(logits - shift[..., None]) / total[..., None]
        of_values = sum_of(matmul(swapaxes(weights, -1, -2), of_out), 2)
        slope = weights * (matmul(of_out, swapaxes(v, -1, -2)[:, :, None]) - level[..., None])
        more, of_keys, *of_bias = pull(slope)
        return of_rows + more, (of_keys, of_values, *of_bias)

    of_rows, (of_keys, of_values, *of_bias) = _over_blocks(step, zeros_like(rows), keys, values, terms)
    of_terms = _Terms(*[None] * len(terms))
    return of_rows, of_keys, of_values, of_terms._replace(bias=of_bias[0]) if of_bias else of_terms


_attention.defvjp(_forward, _backward)
