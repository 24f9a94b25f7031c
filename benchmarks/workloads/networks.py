"""Attention, and training steps of three small networks, each a function of JAX's names that both libraries run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison, Function
from benchmarks.workloads.convolutions import LIBRARIES, library, normal, weighted

RATE = 0.1
Loss = Callable[..., object]


def _each(function: Callable[..., object]) -> dict[str, Function | str]:
    """The function on each library."""
    return {peer: partial(_run, function, peer) for peer in LIBRARIES}


def _run(function: Callable[..., object], peer: str, *given: object) -> object:
    return function(library(peer), *given)


# Attention ------------------------------------------------------------------------------------------------------------


def _heads(rng: np.random.Generator, *shape: int, count: int) -> Arguments:
    """Queries, keys, values, and a cotangent: (batch, length, heads, width)."""
    return tuple(normal(rng, *shape) for _ in range(count))


def attention(lib: Any, q, k, v):
    """By the function of `nn`."""
    return lib.nn.dot_product_attention(q, k, v)


def attention_gradient(lib: Any, *given):
    """By all three operands."""
    return weighted(lib, partial(attention, lib), (0, 1, 2), *given)


def _attention_numpy(q, k, v, cotangent=None):
    q, k, v = (np.swapaxes(part, 1, 2) for part in (q, k, v))
    scale = q.dtype.type(q.shape[-1] ** -0.5)
    p = scale * q @ np.swapaxes(k, -1, -2)
    p = np.exp(p - p.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    if cotangent is None:
        return np.swapaxes(p @ v, 1, 2)
    slopes = np.swapaxes(cotangent, 1, 2)
    of_p = slopes @ np.swapaxes(v, -1, -2)
    of_s = scale * p * (of_p - np.sum(p * of_p, axis=-1, keepdims=True))
    gradient = of_s @ k, np.swapaxes(of_s, -1, -2) @ q, np.swapaxes(p, -1, -2) @ slopes
    return tuple(np.swapaxes(part, 1, 2) for part in gradient)


# Training steps -------------------------------------------------------------------------------------------------------


def _step(loss: Loss, lib: Any, params, *batch):
    """The loss, and parameters one step down its gradient."""
    value, gradient = lib.value_and_grad(partial(loss, lib))(params, *batch)
    return value, [p - RATE * g for p, g in zip(params, gradient, strict=True)]


def _cross_entropy(lib: Any, scores, labels):
    logs = lib.nn.log_softmax(scores)
    return -lib.numpy.mean(lib.numpy.take_along_axis(logs, labels[..., None], axis=-1))


def _weights(rng: np.random.Generator, *shape: int, inputs: int = 0) -> np.ndarray:
    return normal(rng, *shape) / np.float32(inputs or shape[0]) ** 0.5


def _images(rng: np.random.Generator, batch: int, size: int, channels: int) -> Arguments:
    params = []
    for inputs, outputs in ((3, channels), (channels, 2 * channels)):
        params += [_weights(rng, outputs, inputs, 3, 3, inputs=9 * inputs), np.zeros(outputs, np.float32)]
    params += [_weights(rng, 2 * channels, 10), np.zeros(10, np.float32)]
    return params, normal(rng, batch, 3, size, size), rng.integers(10, size=batch)


def convolutional(lib: Any, params, x, labels):
    """Twice a convolution, relu and the largest of 2 x 2; the means of channels; one matrix."""
    for w, b in zip(params[:4:2], params[1:4:2], strict=True):
        x = lib.nn.relu(lib.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None])
        x = lib.lax.reduce_window(x, -np.inf, lib.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return _cross_entropy(lib, lib.numpy.mean(x, axis=(2, 3)) @ params[4] + params[5], labels)


LAYERS, OF_LAYER, HEADS = 2, 6, 4


def _text(rng: np.random.Generator, batch: int, length: int, width: int, letters: int) -> Arguments:
    params = [_weights(rng, letters, width, inputs=width)]
    for _ in range(LAYERS):
        params += [np.ones(width, np.float32), _weights(rng, width, 3 * width), _weights(rng, width, width)]
        params += [np.ones(width, np.float32), _weights(rng, width, 4 * width), _weights(rng, 4 * width, width)]
    return params, rng.integers(letters, size=(batch, length + 1))


def transformer(lib: Any, params, text):
    """Two layers with the norms before each part, causal, with the embedding as the last matrix."""
    x = params[0][text[:, :-1]]
    batch, n, width = x.shape
    for k in range(LAYERS):
        scale, qkv, out, other, up, down = params[1 + OF_LAYER * k :][:OF_LAYER]
        parts = lib.numpy.split(lib.nn.standardize(x) * scale @ qkv, 3, axis=-1)
        q, key, v = (part.reshape(batch, n, HEADS, width // HEADS) for part in parts)
        x = x + lib.nn.dot_product_attention(q, key, v, is_causal=True).reshape(batch, n, width) @ out
        x = x + lib.nn.gelu(lib.nn.standardize(x) * other @ up) @ down
    return _cross_entropy(lib, lib.nn.standardize(x) @ params[0].T, text[:, 1:])


def _sequences(rng: np.random.Generator, steps: int, batch: int, inputs: int, hidden: int) -> Arguments:
    params = [_weights(rng, size, 3 * hidden) for size in (inputs, hidden)]
    params += [np.zeros(3 * hidden, np.float32) for _ in range(2)] + [_weights(rng, hidden)]
    return params, normal(rng, steps, batch, inputs), normal(rng, batch)


def gru(lib: Any, params, xs, ys):
    """The mean square error of what the last state says."""
    of_input, of_state, bias, state_bias, out = params

    def step(h, x):
        r, z, n = lib.numpy.split(x, 3, axis=-1)
        own_r, own_z, own_n = lib.numpy.split(h @ of_state + state_bias, 3, axis=-1)
        new, kept = lib.numpy.tanh(n + lib.nn.sigmoid(r + own_r) * own_n), lib.nn.sigmoid(z + own_z)
        return new + kept * (h - new), None

    start = lib.numpy.zeros((xs.shape[1], of_state.shape[0]), xs.dtype)
    last, _ = lib.lax.scan(step, start, xs @ of_input + bias)
    return lib.numpy.mean((last @ out - ys) ** 2)


ATTENTION, FEW = (4, 512, 8, 64), (2, 5, 3, 4)


def _training(loss: Loss, make: Callable[..., Arguments], sizes: tuple[int, ...], small: tuple[int, ...]) -> Comparison:
    own = _each(partial(_step, loss))
    return Comparison(
        f"networks/{loss.__name__}-step", Goal(1), make, sizes, small, own=own, tolerance=1e-3, truth="jax"
    )


WORKLOADS = (
    Comparison(
        "networks/attention", Goal(1), partial(_heads, count=3), ATTENTION, FEW,
        own={**_each(attention), "numpy": _attention_numpy}, tolerance=1e-4,
    ),
    Comparison(
        "networks/attention-gradient", Goal(1), partial(_heads, count=4), ATTENTION, FEW,
        own={**_each(attention_gradient), "numpy": _attention_numpy}, tolerance=1e-4,
    ),
    _training(convolutional, _images, (32, 32, 32), (3, 8, 4)),
    _training(transformer, _text, (16, 128, 128, 96), (2, 5, 8, 7)),
    _training(gru, _sequences, (100, 64, 32, 64), (6, 3, 2, 5)),
)  # fmt: skip
