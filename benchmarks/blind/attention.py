"""Axes that are split and merged, attention, layers that normalise."""

from __future__ import annotations

from benchmarks.blind.spelling import Array, Namespace, both, integers, logsumexp, normal, softmax


def scores(xp: Namespace, x: Array, y: Array) -> Array:
    """Products of all queries and keys of four heads."""
    s, d = x.shape
    q = x.reshape(s, 4, d // 4).transpose(1, 0, 2)
    k = y.reshape(y.shape[0], 4, d // 4).transpose(1, 2, 0)
    return q @ k * 0.17


def merged_heads(xp: Namespace, x: Array, w: Array) -> Array:
    """The heads of each position side by side, projected."""
    b, h, s, d = x.shape
    return x.transpose(0, 2, 1, 3).reshape(b, s, h * d) @ w


def group_norm(xp: Namespace, x: Array) -> Array:
    """Mean 0 and variance 1 in groups of eight columns."""
    g = x.reshape(x.shape[0], 6, 8)
    g = g - g.mean(axis=2, keepdims=True)
    g = g / xp.sqrt((g * g).mean(axis=2, keepdims=True) + 1e-5)
    return g.reshape(x.shape)


def gated(xp: Namespace, x: Array) -> Array:
    """Queries, keys and values from one matrix; a value times how query and key agree."""
    s = x.shape[0]
    t = x.reshape(s, 3, 4, x.shape[1] // 12)
    q, k, v = t[:, 0], t[:, 1], t[:, 2]
    return (xp.sum(q * k, axis=-1, keepdims=True) * v).reshape(s, -1)


def pixel_shuffle(xp: Namespace, x: Array) -> Array:
    """Four channels become a square of four pixels."""
    h, w, c = x.shape
    y = x.reshape(h, w, 2, 2, c // 4).transpose(0, 2, 1, 3, 4).reshape(h * 2, w * 2, c // 4)
    return y * 2 + 1


def block_sums(xp: Namespace, x: Array) -> Array:
    """The sum of each square of 16 elements, less their mean."""
    n, m = x.shape
    s = x.reshape(n // 4, 4, m // 4, 4).sum(axis=(1, 3))
    return s - s.mean()


def causal(xp: Namespace, q: Array, k: Array, v: Array) -> Array:
    """Attention to what came before."""
    i = xp.arange(q.shape[0])
    s = xp.where(i[:, None] >= i[None, :], q @ k.T / 5.65, -1e9)
    e = xp.exp(s - s.max(axis=-1, keepdims=True))
    return (e / e.sum(axis=-1, keepdims=True)) @ v


def layer_norm(xp: Namespace, x: Array, g: Array, b: Array) -> Array:
    """Of each row, scaled and shifted."""
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / xp.sqrt(variance + 1e-5) * g + b


def rms_norm_gelu(xp: Namespace, x: Array, g: Array) -> Array:
    """Rows divided by the root of their mean square, then gelu."""
    y = x / xp.sqrt(xp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * g
    return 0.5 * y * (1 + xp.tanh(0.7978845608 * (y + 0.044715 * y**3)))


def cross_entropy(xp: Namespace, x: Array, labels: Array) -> Array:
    """The mean of minus the logarithms of the probabilities of the labels."""
    largest = x.max(axis=1, keepdims=True)
    logs = x - largest - xp.log(xp.exp(x - largest).sum(axis=1, keepdims=True))
    return -xp.take_along_axis(logs, labels[:, None], axis=1).mean()


ATTENTION = [
    *both("attention/split-heads", 128, [normal("n", 128)] * 2, scores),
    *both("attention/merged-heads", 128, [normal(2, 4, "n", 16), normal(64, 48)], merged_heads),
    *both("attention/gated", 1000, [normal("n", 96)], gated),
    *both("attention/causal", 96, [normal("n", 32)] * 3, causal),
    *both("reshape/pixel-shuffle", 48, [normal("n", "n", 32)], pixel_shuffle),
    *both("reshape/block-sums", 256, [normal("n", "n")], block_sums),
    *both("norm/groups", 1500, [normal("n", 48)], group_norm),
    *both("norm/layer", 1500, [normal("n", 64), normal(64), normal(64)], layer_norm),
    *both("norm/root-mean-square-gelu", 300, [normal("n", 96), normal(96)], rms_norm_gelu),
    *both("softmax/last-axis", 200, [normal("n", 100)], lambda xp, x: softmax(xp, x, -1)),
    *both("softmax/first-axis", 200, [normal("n", 100)], lambda xp, x: softmax(xp, x * 2, 0)),
    *both("softmax/logsumexp", 300, [normal("n", 64)], lambda xp, x: logsumexp(xp, x, 1)),
    *both("softmax/cross-entropy", 300, [normal("n", 50), integers(0, 50, "n")], cross_entropy),
]
