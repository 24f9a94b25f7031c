"""Cases that compute: running sums, sums, products, powers, searches, and elementwise functions."""

from __future__ import annotations

import numpy as np

from benchmarks.costs.case import Case, both, forward, gradient, increasing, normal, uniform

VECTOR = 100_000
SIDE = 300  # of square matrices


def _cummax_jax(x):
    import jax

    return jax.lax.cummax(x)


def distances(xp, x, shift=0.0):
    """The distance of each point to each."""
    return xp.sqrt(xp.sum((x[:, None] - x[None]) ** 2, axis=-1) + shift)


def einsum(name, n, shapes, text):
    """A sum of products; NumPy chooses the order of products, as the others do."""
    return both(f"einsum/{name}", n, [normal(*s) for s in shapes], lambda xp, *x: xp.einsum(text, *x, optimize=True))


def chain(xp, x):
    """Forty operations, of which ten results live at the same time."""
    live = [x * (0.5 + 0.1 * k) for k in range(10)]
    for k in range(21):
        i, j = k % 10, (k + 3) % 10
        live[i] = live[i] * live[j] if k % 3 == 0 else xp.maximum(live[i], live[j]) if k % 3 == 1 else live[i] - live[j]
    return sum(live[1:], live[0])


SCANS = [
    *both("scan/flipped-cumsum", VECTOR, [normal("n")], lambda xp, x: xp.flip(xp.cumsum(xp.flip(x)))),
    *both("scan/prod", VECTOR, [normal("n")], lambda xp, x: xp.prod(1 + x * 1e-4)),
    *both("scan/cumprod", VECTOR, [normal("n")], lambda xp, x: xp.cumprod(1 + x * 1e-4)),
    *both(
        "scan/cummax",
        VECTOR,
        [normal("n")],
        lambda xp, x: xp.cummax(x),
        numpy=np.maximum.accumulate,
        jax=_cummax_jax,
    ),
    *both("scan/cumsum-flattened", SIDE, [normal("n", SIDE)], lambda xp, x: xp.cumsum(x)),
    *both("scan/cumsum", VECTOR, [normal("n")], lambda xp, x: xp.cumsum(x)),
    *both("scan/cumsum-axis0", SIDE, [normal("n", SIDE)], lambda xp, x: xp.cumsum(x, axis=0)),
    *both("scan/cumsum-axis1", SIDE, [normal("n", SIDE)], lambda xp, x: xp.cumsum(x, axis=1)),
]

REDUCTIONS = [
    *(
        case
        for axis in (0, 1)
        for case in (
            *both(f"reduce/sum3-axis{axis}", 30_000, [normal("n", 3)], lambda xp, x, a=axis: xp.sum(x, axis=a)),
            *both(f"reduce/min3-axis{axis}", 30_000, [normal("n", 3)], lambda xp, x, a=axis: xp.min(x, axis=a)),
        )
    ),
    *forward("reduce/argmax", SIDE, [normal("n", SIDE)], lambda xp, x: xp.argmax(x)),
    *forward("reduce/argmax-axis0", SIDE, [normal("n", SIDE)], lambda xp, x: xp.argmax(x, axis=0)),
    *forward("reduce/argmax-axis1", SIDE, [normal("n", SIDE)], lambda xp, x: xp.argmax(x, axis=1)),
    *forward("reduce/distances", 128, [normal("n", 32)], distances),
    *gradient("reduce/distances", 128, [normal("n", 32)], lambda xp, x: distances(xp, x, 1e-9)),
]

SEARCHES = [
    *both(
        "search/interp",
        10_000,
        [uniform(0, 1, "n"), increasing("n"), normal("n")],
        lambda xp, x, points, values: xp.interp(x, points, values),
        argnums=(0, 2),
    ),
    *forward(
        "search/searchsorted", 10_000, [increasing("n"), uniform(0, 1, "n")], lambda xp, x, y: xp.searchsorted(x, y)
    ),
    *forward(
        "search/histogram",
        VECTOR,
        [uniform(0, 1, "n"), increasing(101)],
        lambda xp, x, edges: xp.histogram(x, bins=edges)[0],
    ),
]

PRODUCTS = [
    *einsum("abc,cd,db->a", 200, [("n", 16, 16), (16, 16), (16, 16)], "abc,cd,db->a"),
    *einsum("ij,kj,k->i", 200, [("n", 64), (128, 64), (128,)], "ij,kj,k->i"),
    *einsum("ijk,lkj->il", 200, [("n", 16, 16), (32, 16, 16)], "ijk,lkj->il"),
    *einsum("ij,jk,kl->il", 200, [("n", 64), (64, 64), (64, 32)], "ij,jk,kl->il"),
    *both("product/cross", 10_000, [normal("n", 3)] * 2, lambda xp, x, y: xp.cross(x, y)),
    *(
        case
        for k in (2, 3, 4, 8)
        for case in both(f"product/batch-of-{k}x{k}", 2000, [normal("n", k, k)] * 2, lambda xp, x, y: x @ y)
    ),
    *forward("product/complex", VECTOR, [normal("n", dtype="complex128")] * 2, lambda xp, x, y: x * y),
    *forward(
        "product/complex-matrices",
        100,
        [normal("n", 64, dtype="complex128"), normal(64, 64, dtype="complex128")],
        lambda xp, x, y: x @ y,
    ),
]

ARITHMETIC = [
    *(
        case
        for power in (3, 7, -2)
        for case in both(f"arithmetic/power-{power}", VECTOR, [uniform(0.5, 2, "n")], lambda xp, x, p=power: x**p)
    ),
    *forward(
        "arithmetic/float16",
        VECTOR,
        [normal("n", dtype="float16")],
        lambda xp, x: 2.5 * x + 0.75,
    ),
    *both("arithmetic/chain-of-40", VECTOR, [normal("n")], chain),
]

RANGES = {  # of the arguments
    **dict.fromkeys(("exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh"), (-10, 10)),
    **dict.fromkeys(("log", "log2", "log10", "log1p"), (0.01, 100)),
    **dict.fromkeys(("arcsin", "arccos"), (-1, 1)),
    **dict.fromkeys(("arctan", "arcsinh", "cbrt", "rint"), (-10, 10)),
}

ELEMENTWISE = [
    *(
        case
        for name, (low, high) in RANGES.items()
        for case in forward(
            f"elementwise/{name}",
            VECTOR,
            [uniform(low, high, "n", dtype="float32")],
            lambda xp, x, name=name: getattr(xp, name)(x),
            only_n=True,
        )
    ),
    *forward(
        "elementwise/arctan2",
        VECTOR,
        [normal("n", dtype="float32")] * 2,
        lambda xp, x, y: xp.arctan2(x, y),
        only_n=True,
    ),
    *forward(
        "elementwise/pow",
        VECTOR,
        [uniform(0.1, 10, "n", dtype="float32"), uniform(-3, 3, "n", dtype="float32")],
        lambda xp, x, y: xp.pow(x, y),
        only_n=True,
    ),
]

NUMBERS: list[Case] = [*SCANS, *REDUCTIONS, *SEARCHES, *PRODUCTS, *ARITHMETIC, *ELEMENTWISE]
