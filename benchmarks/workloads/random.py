"""Random numbers: each library's own generator fills an array. The figure is NumPy's time over harp's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.harness import Call, Goal, Row, Settings, interleaved
from benchmarks.peers import PEERS
from benchmarks.workload import Measurement

COUNT, SMALL = 10_000_000, 1000
SHAPE = 2.5  # of the gamma distribution
MEANS = {"normal": 0.0, "uniform": 0.5, "gamma": SHAPE}


def _harp(name: str, dtype: str, count: int) -> Call:
    import harp

    if name == "gamma":
        compiled = harp.jit(lambda key, a, like: harp.random.gamma(key, a, like.shape))
        return partial(compiled, harp.random.key(0), np.asarray(SHAPE, dtype), np.zeros(count, np.int8))
    draw = getattr(harp.random, name)
    compiled = harp.jit(lambda key, like: draw(key, like.shape, dtype))
    return partial(compiled, harp.random.key(0), np.zeros(count, np.int8))


def _numpy(name: str, dtype: str, count: int) -> Call:
    rng = np.random.default_rng(0)
    gamma = partial(rng.standard_gamma, SHAPE)
    return partial({"normal": rng.standard_normal, "uniform": rng.random, "gamma": gamma}[name], count, dtype)


def _jax(name: str, dtype: str, count: int) -> Call:
    import jax

    more = {"a": SHAPE} if name == "gamma" else {}
    draw = jax.jit(partial(getattr(jax.random, name), shape=(count,), dtype=dtype, **more))
    return lambda: draw(jax.random.key(0)).block_until_ready()


def _torch(name: str, dtype: str, count: int) -> Call:
    import torch

    if name == "gamma":
        return partial(torch._standard_gamma, torch.full((count,), SHAPE, dtype=getattr(torch, dtype)))
    return partial({"normal": torch.randn, "uniform": torch.rand}[name], count, dtype=getattr(torch, dtype))


MAKERS: dict[str, Callable[[str, str, int], Call]] = {"harp": _harp, "numpy": _numpy, "jax": _jax, "torch": _torch}


def measure(name: str, dtype: str, settings: Settings, row: Row) -> None:
    """All peers that draw such numbers; a sample with another mean is left out."""
    calls: dict[str, Call] = {}
    for peer in ("harp", *settings.peers):
        if peer not in MAKERS:
            continue
        prepare = PEERS[peer].prepare
        if prepare:
            prepare(settings.threads)
        call = MAKERS[peer](name, dtype, SMALL if settings.quick else COUNT)
        sample = np.asarray(call())
        if sample.dtype == dtype and abs(float(sample.mean()) - MEANS[name]) < 9 / np.sqrt(sample.size):
            calls[peer] = call
        else:
            row.notes.append(f"{peer} is wrong: {sample.dtype}, mean {sample.mean()}")
    row.take(interleaved(calls, settings))
    if {"harp", "numpy"} <= row.medians.keys():
        row.figure = row.medians["numpy"] / row.medians["harp"]


WORKLOADS = tuple(
    Measurement(f"random/{name}-{dtype[0]}{dtype[-2:]}-10M", goal, partial(measure, name, dtype))
    for name, dtype, goal in (
        ("normal", "float32", Goal(3.0)),
        ("normal", "float64", Goal(1.0)),
        ("uniform", "float32", Goal(1.0)),
        ("uniform", "float64", Goal(1.0)),
        ("gamma", "float32", Goal(0.8)),
    )
)
