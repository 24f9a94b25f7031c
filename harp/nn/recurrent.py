"""Recurrent cells, as functions of parameters, a state and inputs.

Parameters are a dict of a matrix for inputs, one for the state, and biases; gates are beside each other along the last
axis. What does not depend on the state is one product for all steps, before the loop.
"""

from __future__ import annotations

from typing import Any

from harp.nn.initializers import Initializer, glorot_uniform
from harp.nn.initializers import orthogonal as orthogonal_of
from harp.numpy.activation import sigmoid
from harp.numpy.creation import zeros
from harp.numpy.elementwise import tanh
from harp.numpy.joining import concatenate, split
from harp.numpy.linalg.products import matmul
from harp.random.streams import split as split_key
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array
from harp.trace.scalar.dtypes import DTypeLike
from harp.transforms.control.scan import scan

_Parameters = dict[str, Array]
_GLOROT, _ORTHOGONAL = glorot_uniform(), orthogonal_of()


def lstm_parameters(
    key: object,
    inputs: object,
    hidden: object,
    dtype: DTypeLike = float,
    *,
    kernel_init: Initializer = _GLOROT,
    recurrent_init: Initializer = _ORTHOGONAL,
    forget_bias: object = 1.0,
) -> _Parameters:
    """Parameters of `lstm`: "input" (inputs, 4*hidden), "state" (hidden, 4*hidden), "bias" (4*hidden), which is
    `forget_bias` for the forget gate (R. Jozefowicz and others, 2015) and 0 else.

    >>> import harp
    >>> {name: p.shape for name, p in lstm_parameters(harp.random.key(0), 3, 2).items()}
    {'input': (3, 8), 'state': (2, 8), 'bias': (8,)}
    """
    found = _matrices(key, inputs, hidden, 4, dtype, kernel_init, recurrent_init)
    none = zeros(hidden, dtype)
    return {**found, "bias": concatenate((none, none + forget_bias, none, none)).astype(dtype)}


def lstm(
    params: Any, state: Any, inputs: object, *, reverse: bool = False, checkpoint_every: object = None
) -> tuple[Any, Array]:
    """A long short-term memory over the first axis of `inputs`, (steps, ..., inputs): the last state, and all outputs.

    With i, f, g, o from x @ input + h @ state + bias, in this order, c = sigmoid(f)*c + sigmoid(i)*tanh(g), and
    h = sigmoid(o)*tanh(c). The state is (h, c), each (..., hidden). `reverse` and `checkpoint_every` are those of
    `harp.scan`. S. Hochreiter, J. Schmidhuber, 1997; F. Gers and others, 2000. Raises ShapeError for sizes that differ.

    >>> import harp, harp.numpy as hnp
    >>> params = harp.nn.lstm_parameters(harp.random.key(0), 3, 2)
    >>> (h, c), outputs = lstm(params, (hnp.zeros(2), hnp.zeros(2)), hnp.ones((5, 3)))
    >>> outputs.shape, (outputs[-1] == h).all()
    ((5, 2), Array(True))
    """

    def step(now: Any, x: Array) -> tuple[Any, Array]:
        h, c = now
        i, f, g, o = split(x + matmul(h, params["state"]), 4, -1)
        c = (sigmoid(f) * c + sigmoid(i) * tanh(g)).astype(c.kind)
        h = (sigmoid(o) * tanh(c)).astype(h.kind)
        return (h, c), h

    given = matmul(inputs, params["input"]) + params["bias"]
    first = tuple(as_array(part) for part in state)
    return scan(step, first, given, reverse=reverse, checkpoint_every=checkpoint_every)


def gru_parameters(
    key: object,
    inputs: object,
    hidden: object,
    dtype: DTypeLike = float,
    *,
    kernel_init: Initializer = _GLOROT,
    recurrent_init: Initializer = _ORTHOGONAL,
) -> _Parameters:
    """Parameters of `gru`: "input" (inputs, 3*hidden), "state" (hidden, 3*hidden), "bias" and "state_bias" (3*hidden).

    >>> import harp
    >>> {name: p.shape for name, p in gru_parameters(harp.random.key(0), 3, 2).items()}
    {'input': (3, 6), 'state': (2, 6), 'bias': (6,), 'state_bias': (6,)}
    """
    found = _matrices(key, inputs, hidden, 3, dtype, kernel_init, recurrent_init)
    none = zeros(found["input"].shape[1], dtype)
    return {**found, "bias": none, "state_bias": none}


def gru(
    params: Any, state: object, inputs: object, *, reverse: bool = False, checkpoint_every: object = None
) -> tuple[Array, Array]:
    """Gated recurrent units over the first axis of `inputs`, (steps, ..., inputs): the last state, and all of them.

    With (r, z, n) from x @ input + bias and (r', z', n') from h @ state + state_bias, in this order, h is
    z*h + (1 - z)*n, where z = sigmoid(z + z'), n = tanh(n + sigmoid(r + r')*n'). The state h is (..., hidden).
    K. Cho and others, 2014; the reset gate comes behind the product, as in cuDNN and PyTorch. Raises ShapeError for
    sizes that differ.

    >>> import harp, harp.numpy as hnp
    >>> params = harp.nn.gru_parameters(harp.random.key(0), 3, 2)
    >>> h, outputs = gru(params, hnp.zeros(2), hnp.ones((5, 3)))
    >>> outputs.shape, (outputs[-1] == h).all()
    ((5, 2), Array(True))
    """

    def step(h: Array, x: Array) -> tuple[Array, Array]:
        r, z, n = split(x, 3, -1)
        of_r, of_z, of_n = split(matmul(h, params["state"]) + params["state_bias"], 3, -1)
        new, kept = tanh(n + sigmoid(r + of_r) * of_n), sigmoid(z + of_z)
        h = (new + kept * (h - new)).astype(h.kind)
        return h, h

    given = matmul(inputs, params["input"]) + params["bias"]
    return scan(step, as_array(state), given, reverse=reverse, checkpoint_every=checkpoint_every)


def _matrices(
    key: Any, inputs: object, hidden: object, gates: int, dtype: DTypeLike, kernel: Initializer, recurrent: Initializer
) -> _Parameters:
    """A matrix for each gate, each initialised by itself."""
    keys = split_key(key, (2, gates))
    made = {}
    for name, row, init, size in (("input", keys[0], kernel, inputs), ("state", keys[1], recurrent, hidden)):
        made[name] = concatenate([init(row[k], (size, hidden), dtype) for k in range(gates)], 1)
    return made
