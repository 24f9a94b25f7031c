"""A training step: 784-512-256-10 units, relu, softmax cross-entropy, SGD with momentum."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from types import ModuleType

import numpy as np

from benchmarks.harness import Call, Goal, Row, Settings, sample
from benchmarks.peers import PEERS
from benchmarks.workload import Arguments, Comparison, Measurement, fewer
from benchmarks.workloads.matmul import relu
from benchmarks.workloads.reductions import logsumexp

WIDTHS, BATCH, SMALL_WIDTHS, SMALL_BATCH = (784, 512, 256, 10), 128, (12, 9, 7, 4), 5
RATE, MOMENTUM = 0.1, 0.9
Step = Callable[..., object]


def arguments(rng: np.random.Generator, batch: int, *widths: int) -> Arguments:
    """Parameters, momentum, images and labels (one-hot)."""
    params = []
    for inputs, outputs in pairwise(widths):
        weights = rng.standard_normal((inputs, outputs)) * np.sqrt(2 / inputs)
        params += [weights.astype(np.float32), np.zeros(outputs, np.float32)]
    labels = np.eye(widths[-1], dtype=np.float32)[rng.integers(widths[-1], size=batch)]
    return params, [np.zeros_like(p) for p in params], rng.random((batch, widths[0]), np.float32), labels


def loss(xp: ModuleType, params, x, labels):
    """Mean cross-entropy of the labels."""
    w1, b1, w2, b2, w3, b3 = params
    hidden = relu(xp, relu(xp, x @ w1 + b1) @ w2 + b2)
    scores = hidden @ w3 + b3
    return xp.mean(logsumexp(xp, scores) - xp.sum(scores * labels, axis=1))


def update(params, momentum, gradient):
    """New parameters and momentum: fresh arrays, nothing is changed in place."""
    momentum = [MOMENTUM * m + g for m, g in zip(momentum, gradient, strict=True)]
    return [p - RATE * m for p, m in zip(params, momentum, strict=True)], momentum


def _numpy_step(params, momentum, x, labels):
    """The same with a gradient by hand."""
    w1, b1, w2, b2, w3, b3 = params
    h1 = np.maximum(x @ w1 + b1, 0.0)
    h2 = np.maximum(h1 @ w2 + b2, 0.0)
    scores = h2 @ w3 + b3
    normaliser = logsumexp(np, scores)
    value = np.mean(normaliser - np.sum(scores * labels, axis=1))
    d3 = (np.exp(scores - normaliser[:, None]) - labels) / len(x)
    d2 = (d3 @ w3.T) * (h2 > 0)
    d1 = (d2 @ w2.T) * (h1 > 0)
    pairs = ((x, d1), (h1, d2), (h2, d3))
    gradient = [part for inputs, d in pairs for part in (inputs.T @ d, np.sum(d, axis=0))]
    return value, *update(params, momentum, gradient)


def traced(package: str) -> Step:
    """The step by `value_and_grad` of harp or jax, not yet compiled."""
    differentiated = importlib.import_module(package).value_and_grad(partial(loss, PEERS[package].xp()))

    def step(params, momentum, x, labels):
        value, gradient = differentiated(params, x, labels)
        return value, *update(params, momentum, gradient)

    return step


def _torch(compiled: bool) -> Step:
    import torch

    forward, new = partial(loss, torch), update
    if compiled:
        torch._dynamo.reset()
        forward, new = torch.compile(forward), torch.compile(update)

    def step(params, momentum, x, labels):
        params = [p.detach().requires_grad_() for p in params]
        value = forward(params, x, labels)
        gradient = torch.autograd.grad(value, params)
        with torch.no_grad():
            return value.detach(), *new(params, momentum, gradient)

    return step


def _donated(package: str, *given: object) -> Call:
    """Parameters and momentum are donated at each call, which starts from the results of the one before."""
    step = importlib.import_module(package).jit(traced(package), donate_argnums=(0, 1))
    wait = PEERS[package].wait or (lambda result: result)
    xp = PEERS[package].xp()
    state = [[xp.asarray(np.array(part)) for part in group] for group in given[:2]]

    def call() -> object:
        value, *state[:] = step(*state, *given[2:])
        return wait((value, *state))

    return call


def steps(name: str) -> Step:
    """A new step of a peer, which compiles at its first call and waits for its results."""
    if name == "numpy":
        return _numpy_step
    if name == "harp":
        return importlib.import_module("harp").jit(traced("harp"))
    if name == "jax":
        jitted, wait = PEERS["jax"].compile(traced("jax"), 1), PEERS["jax"].wait
        return lambda *given: wait(jitted(*given))
    return _torch(compiled=name == "torch.compile")


def _call(name: str, *given: object) -> Call:
    return partial(steps(name), *given)


CALLS = {name: partial(_call, name) for name in ("harp", "numpy", "jax", "torch", "torch.compile")}


def new_sizes(settings: Settings, row: Row) -> None:
    """Twenty batch sizes that a step has not seen, after one that it has: all that their calls take."""
    widths, first = (SMALL_WIDTHS, SMALL_BATCH) if settings.quick else (WIDTHS, BATCH)
    rng, rounds = np.random.default_rng(0), fewer(settings, 3).rounds
    batches = [arguments(rng, first + extra, *widths) for extra in range(21)]
    times: dict[str, list[float]] = {}
    end = time.monotonic() + 2 * settings.budget
    for turn in range(rounds):
        if turn and time.monotonic() > end:  # JAX compiles for half a minute
            break
        for name in ("harp", *(n for n in settings.peers if n in CALLS)):
            peer = PEERS[name]
            if peer.prepare:
                peer.prepare(settings.threads)
            if name == "jax":
                importlib.import_module("jax").clear_caches()
            step, own = steps(name), [peer.arguments(batch) for batch in batches]
            step(*own[0])
            seconds = sample(lambda step=step, own=own: [step(*given) for given in own[1:]])
            times.setdefault(name, []).append(seconds)
    row.take(times)
    if "jax" in times:
        row.figure = statistics.median(times["jax"]) / row.medians["harp"]


WORKLOADS = (
    Comparison(
        "mlp/step", Goal(1.3), arguments, (BATCH, *WIDTHS), (SMALL_BATCH, *SMALL_WIDTHS),
        calls={**CALLS, **{f"{name} donated": partial(_donated, name) for name in ("harp", "jax")}}, tolerance=1e-3,
    ),
    Measurement("mlp/20-new-batch-sizes", Goal(50), new_sizes),
)  # fmt: skip
