"""`python -m benchmarks.random_quality [count]`: statistical tests of harp.random with many numbers.

Each line has the smallest of many p-values, times their number: about 1 or more is what chance gives, and below 1e-4 a
fault. The keys are new in every run, unless a seed is given after the count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

COUNT = 4_000_000
Draw = Callable[..., np.ndarray]


def main(count: int, seed: int) -> bool:
    """Run all tests and print a line for each; whether none found a fault."""
    import harp

    print(f"{count} numbers for each key, seed {seed}")
    keys = [np.asarray(k) for k in harp.random.split(harp.random.key(seed), 8)]
    good = True
    for name, found in tests(keys, count):
        worst = min(min(found) * len(found), 1.0)
        good &= worst > 1e-4
        print(f"{name:60} {worst:.3g}{'' if worst > 1e-4 else '  FAULT'}")
    return good


def tests(keys: list[np.ndarray], count: int) -> Iterator[tuple[str, list[float]]]:
    """Names and p-values."""
    import harp

    like = np.zeros(count, np.int8)
    words = harp.jit(lambda k, x: harp.random.bits(k, x.shape))
    drawn = [np.asarray(words(k, like)) for k in keys]
    yield "bits: each is 1 in half of the words", [p for w in drawn for p in bit_counts(w)]
    yield "bits: all values of each byte", [bytes_even(w >> np.uint32(8 * b)) for w in drawn for b in range(4)]
    yield "bits: bytes of neighbours", [pairs_even(w[:-1], w[1:]) for w in drawn]
    yield "bits: bytes of elements 2**16 apart", [pairs_even(w[: -(1 << 16)], w[1 << 16 :]) for w in drawn]
    yield "bits: split keys", [pairs_even(a, b) for a, b in pairwise(drawn)]
    folded = [np.asarray(words(np.asarray(harp.random.fold_in(keys[0], i)), like)) for i in range(4)]
    yield "bits: keys with 0, 1, 2, 3 folded in", [pairs_even(a, b) for a, b in pairwise(folded)]
    seeds = [np.asarray(words(np.asarray(harp.random.key(1 << i)), like)) for i in range(0, 64, 8)]
    yield "bits: seeds of one bit", [pairs_even(a, b) for a, b in pairwise(seeds)]
    yield from distributions(keys, like)


def distributions(keys: list[np.ndarray], like: np.ndarray) -> Iterator[tuple[str, list[float]]]:
    """Kolmogorov and Smirnov's test of each distribution, and correlations between keys."""
    from scipy import stats

    import harp

    r = harp.random
    laws: dict[str, tuple[Callable[..., object], Callable[..., np.ndarray]]] = {}
    for dtype in ("float32", "float64"):
        laws |= {
            f"uniform {dtype}": (lambda k, x, d=dtype: r.uniform(k, x.shape, d), stats.uniform.cdf),
            f"normal {dtype}": (lambda k, x, d=dtype: r.normal(k, x.shape, d), stats.norm.cdf),
            f"exponential {dtype}": (lambda k, x, d=dtype: r.exponential(k, x.shape, d), stats.expon.cdf),
            f"gumbel {dtype}": (lambda k, x, d=dtype: r.gumbel(k, x.shape, d), stats.gumbel_r.cdf),
        }
        for a in (0.5, 1.0, 2.5, 100.0):
            parameter = np.asarray(a, dtype)
            laws[f"gamma({a}) {dtype}"] = lambda k, x, a=parameter: r.gamma(k, a, x.shape), stats.gamma(a).cdf
    noise = lambda k, x: r.uniform(r.fold_in(k, 1), x.shape)  # noqa: E731
    counts = {
        **{f"poisson({a})": (lambda k, s, a=a: r.poisson(k, a, s), stats.poisson(a)) for a in (3.0, 10.0, 300.0)},
        **{f"binomial({n}, 0.3)": (lambda k, s, n=n: r.binomial(k, n, 0.3, s), stats.binom(n, 0.3)) for n in (9, 50)},
    }
    for name, (draw, law) in counts.items():
        laws[name] = lambda k, x, draw=draw: draw(k, x.shape) - noise(k, x), partial(smoothed, law)
    for name, (draw, law) in laws.items():
        compiled = harp.jit(draw)
        samples = [np.asarray(compiled(k, like)).astype(np.float64) for k in keys]
        yield name, [float(stats.kstest(sample, law).pvalue) for sample in samples]
        together = np.corrcoef(samples)[np.triu_indices(len(samples), 1)] * np.sqrt(like.size)
        yield f"{name}: correlations of split keys", (2 * stats.norm.sf(np.abs(together))).tolist()


def smoothed(law: Any, x: np.ndarray) -> np.ndarray:
    """The distribution function of a count less a uniform number, which is continuous."""
    above = np.ceil(x)
    return np.asarray(law.cdf(above - 1) + law.pmf(above) * (x - above + 1))


def bit_counts(words: np.ndarray) -> list[float]:
    """Of each bit: is it 1 in half of the words?"""
    from scipy import stats

    ones = np.array([np.count_nonzero(words & np.uint32(1 << b)) for b in range(32)])
    return (2 * stats.norm.sf(np.abs(2 * ones - words.size) / np.sqrt(words.size))).tolist()


def bytes_even(words: np.ndarray) -> float:
    """Are all values of the lowest byte as frequent?"""
    from scipy import stats

    return float(stats.chisquare(np.bincount(words & np.uint32(255), minlength=256)).pvalue)


def pairs_even(a: np.ndarray, b: np.ndarray) -> float:
    """Are all pairs of leading bytes as frequent?"""
    from scipy import stats

    pairs = ((a >> np.uint32(24)) << np.uint32(8)) | (b >> np.uint32(24))
    return float(stats.chisquare(np.bincount(pairs, minlength=65536)).pvalue)


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(not main(given[0] if given else COUNT, given[1] if len(given) > 1 else time.time_ns()))
