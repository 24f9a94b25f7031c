"""Cases that are parts of models: attention, convolutions written with slices, chains of layers."""

from __future__ import annotations

from benchmarks.costs.case import Case, both, forward, gradient, integers, normal, uniform

TOKENS, WIDTH, HEADS = 128, 64, 8


def softmax(xp, x):
    """Along the last axis."""
    raised = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return raised / xp.sum(raised, axis=-1, keepdims=True)


def attention(xp, q, k, v):
    """Of several heads: (n, d) to (n, d)."""
    n, d = q.shape
    q, k, v = (x.reshape(n, HEADS, d // HEADS).transpose(1, 0, 2) for x in (q, k, v))
    weights = softmax(xp, q @ k.transpose(0, 2, 1) * (d // HEADS) ** -0.5)
    return (weights @ v).transpose(1, 0, 2).reshape(n, d)


def ragged_attention(xp, q, k, v, lengths):
    """Of a batch of sequences, each of a length of its own: what lies beyond is masked."""
    mask = xp.arange(q.shape[1])[None, :] < lengths[:, None]
    scores = q @ k.transpose(0, 2, 1) * q.shape[2] ** -0.5
    return softmax(xp, xp.where(mask[:, None, :], scores, -1e9)) @ v


def pool(xp, x):
    """The largest of each two by two elements."""
    n, m = x.shape
    return xp.max(x.reshape(n // 2, 2, m // 2, 2), axis=(1, 3))


def convolution(xp, x, w):
    """Images (n, h, w) and a kernel of 3 x 3, as a sum of nine slices."""
    h, m = x.shape[1] - 2, x.shape[2] - 2
    return sum(x[:, i : i + h, j : j + m] * w[i, j] for i in range(3) for j in range(3))


def convolutional(xp, x, first, second):
    """Two layers, from one channel to four and to eight."""
    h, m = x.shape[1] - 2, x.shape[2] - 2
    y = sum(x[:, i : i + h, j : j + m, None] * first[i, j] for i in range(3) for j in range(3))
    y = xp.maximum(y, 0.0)
    h, m = h - 2, m - 2
    return sum(y[:, i : i + h, j : j + m] @ second[i, j] for i in range(3) for j in range(3))


def layers(xp, x, weights):
    """48 small dense layers."""
    for k in range(48):
        x = xp.tanh(x @ weights[k])
    return x


MODELS: list[Case] = [
    *both("model/attention", TOKENS, [normal("n", WIDTH)] * 3, attention),
    *both("model/ragged-attention", 32, [normal("n", 32, 32)] * 3 + [integers(1, 33, "n")], ragged_attention),
    *both("model/max-pool", 256, [normal("n", 128)], pool),
    *both("model/convolution", 32, [normal("n", 32, 32), normal(3, 3)], convolution),
    *both(
        "model/convolutional-network",
        16,
        [normal("n", 32, 32), normal(3, 3, 4), normal(3, 3, 4, 8)],
        convolutional,
    ),
    *gradient(
        "model/softmax-layer",
        500,
        [normal("n", 64), normal(64, 32)],
        lambda xp, x, w: softmax(xp, xp.tanh(x @ w)),
        argnums=(1,),
    ),
    *forward("model/48-layers", 16, [normal("n", 64), uniform(-0.2, 0.2, 48, 64, 64)], layers),
]
