"""Run by test_sanitizers.py: programs of many kinds at ragged sizes in several threads, or code with one mistake.

python sanitized.py sound | checked | outside | address | undefined | thread
"""

import sys
from functools import partial
from itertools import product

import numpy as np

import harp
import harp.numpy as hnp
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.runtime.load import build_and_load, pointer
from harp.backends.runtime.pool import runtime
from harp.config import settings
from harp.errors import AddressError
from harp.trace.array.primitives import emit
from harp.trace.graph.node import Put, Scatter, View
from harp.trace.index.polynomial import Loop, of
from harp.transforms.jit import jit as jit_module

SIZES = ((1, 1, 1), (0, 3, 2), (3, 0, 7), (33, 17, 16), (70, 300, 65), (600, 64, 40), (2, 700, 129))
SIZES += ((35, 17, 1), (90, 300, 1))


def _places(count):
    """Inside the axis or not: each use says by its mode that both are meant."""
    return hnp.arange(count) * 3 - 5


def _scattered(a, places, updates):
    return a.at[places].add(updates, mode="drop").at[places].get(mode="clip")


FUNCTIONS = {
    "product": (lambda a, b: a @ b, lambda a, b: a @ b),
    "strided": (lambda a, b: a[::-1] @ b[:, ::-2], lambda a, b: a[::-1] @ b[:, ::-2]),
    "transposed": (lambda a, b: a.T @ (a @ b), lambda a, b: a.T @ (a @ b)),
    "columns": (lambda a, b: hnp.sum(a, axis=0), lambda a, b: a.sum(axis=0)),
    "everything": (lambda a, b: hnp.sum(b) + hnp.sum(a * a), lambda a, b: b.sum() + (a * a).sum()),
    "rows": (lambda a, b: a - hnp.logsumexp(a, axis=1, keepdims=True), None),
    "elementwise": (lambda a, b: (hnp.exp(b) * 2, hnp.tanh(b) - hnp.sin(b)), None),
    "gathered": (lambda a, b: a.at[:, _places(a.shape[1])].get(mode="clip") @ b, None),
    "scattered": (lambda a, b: _scattered(hnp.exp(b), _places(b.shape[0]), b), None),
    "across": (lambda a, b: (a.T + 1, b[::-1].T * 2), None),
    "joined": (lambda a, b: hnp.concatenate([a, a[::-1]], axis=0), lambda a, b: np.concatenate([a, a[::-1]])),
}


def loss(params, x, labels):
    w1, b1, w2, b2 = params
    scores = hnp.tanh(x @ w1 + b1) @ w2 + b2
    return hnp.mean(hnp.logsumexp(scores, axis=1) - hnp.sum(scores * labels, axis=1))


def sound() -> None:
    harp.set_threads(3)
    compiled = {name: harp.jit(f) for name, (f, _) in FUNCTIONS.items()}
    step = harp.jit(harp.value_and_grad(loss))
    for (n, m, k), dtype in product(SIZES, (np.float32, np.float64)):
        rng = np.random.default_rng(n)
        a, b = rng.normal(size=(n, m)).astype(dtype), rng.normal(size=(m, k)).astype(dtype)
        for name, (_, wanted) in FUNCTIONS.items():
            if name == "rows" and m == 0:
                continue
            found = compiled[name](a, b)
            if wanted is not None:
                tolerance = 1e-3 if dtype is np.float32 else 1e-9
                np.testing.assert_allclose(np.asarray(found), wanted(a, b), rtol=tolerance, atol=tolerance)
        step([b, np.ones(k, dtype), np.ones((k, 10), dtype), np.ones(10, dtype)], a, np.ones((n, 10), dtype))
    x = np.arange(300_000, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda x: x * 2 + 1)(x)), x * 2 + 1)
    x = np.random.default_rng(0).standard_normal(140_000, np.float32)
    order = np.argsort(x, kind="stable")
    for found, places in (harp.jit(lambda x: (hnp.sort(x), hnp.argsort(x)))(y) for y in (x, x[:1000])):
        wanted = order[order < len(found)]
        np.testing.assert_array_equal(np.asarray(places), wanted)
        np.testing.assert_array_equal(np.asarray(found), x[wanted])
    table, whole = x[order], (x * 1e6).astype(np.int64)
    np.testing.assert_array_equal(np.asarray(harp.jit(hnp.searchsorted)(table, x)), np.searchsorted(table, x))
    np.testing.assert_array_equal(np.asarray(harp.jit(hnp.sort)(whole)), np.sort(whole))
    np.testing.assert_array_equal(np.asarray(harp.jit(hnp.argsort)(whole)), np.argsort(whole, kind="stable"))
    for y in (x, x[:1000]):
        sums = harp.jit(lambda x: hnp.cumsum(x))(y), harp.jit(harp.grad(lambda x: hnp.sum(hnp.cumsum(x))))(y)
        np.testing.assert_allclose(np.asarray(sums[0]), np.cumsum(y, dtype=np.float64), atol=0.1)
        np.testing.assert_array_equal(np.asarray(sums[1]), np.arange(len(y), 0, -1))
    assert float(hnp.min(harp.jit(lambda key, x: harp.random.gamma(key, x * x + 1))(harp.random.key(0), x))) > 0
    half = x.astype(np.float16)
    found = harp.jit(harp.grad(lambda x: hnp.sum(hnp.tanh(x) / (x * x + 1))))(half)
    assert np.isfinite(np.asarray(found, np.float32)).all()
    assert harp.stats()["compiler_runs"] and runtime() is not None


def checked() -> None:
    """The same programs, which compare every index with its array."""
    settings.check = True
    assert "fault" in harp.jit(FUNCTIONS["joined"][0]).lower(np.ones((2, 3)), np.ones((3, 1))).loops
    sound()


def outside() -> None:
    """Programs that would leave their arrays, by mistake: the first two are checked, the last one is not."""

    def beyond(x):
        n = x._node.shape[0]
        return emit(View(x._node, (n,), (of(Loop(0, n)) + 1,)))

    def nearest(x, places):
        return emit(Scatter(x._node, (places._node,), places.astype(x.dtype)._node, Put.SET, True))

    for f, arguments in ((beyond, [np.ones(2000)]), (nearest, [np.ones(0), np.arange(3)])):
        try:
            harp.jit(f, check=True)(*arguments)
        except AddressError as error:
            print(error)
    print("unchecked", flush=True)
    jit_module.unproved = lambda *_: ()  # which would stop the call
    harp.jit(beyond, check=False)(np.ones(2000))


MISTAKES = {
    "address": "int f(float *a, int64_t n) { a[n] = 1; return 0; }",
    "undefined": "int f(float *a, int64_t n) { return 1 << (n + 30); }",
    "thread": """
        typedef void part(void *, int64_t, int64_t);
        HARP_EXPORT void (*run)(part *, void *, int64_t, double);
        static void add(void *given, int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) ((volatile float *)given)[2] += 1; /* behind a status */
        }
        HARP_EXPORT int f(float *a, int64_t n) { a[0] = a[1] = 0; run(add, a, n*100000, 1e9); return 0; }
    """,
}


def broken(mistake: str) -> None:
    head = '#include <stdint.h>\n#define HARP_EXPORT __attribute__((visibility("default")))\n'
    text = MISTAKES[mistake] if mistake == "thread" else f"HARP_EXPORT {MISTAKES[mistake]}"
    library = build_and_load(Source((Unit(head + text),)), CompileOptions(), names=["f"])
    threads = runtime()
    if mistake == "thread" and threads is not None:
        harp.set_threads(3)
        library.point("run", threads, "harp_pool_run")
    array = np.ones(2000, np.float32)
    library.function("f", "int(*)(void *, int64_t)")(pointer(array), len(array))


if __name__ == "__main__":
    RUNS = {"sound": sound, "checked": checked, "outside": outside}
    RUNS.get(sys.argv[1], partial(broken, sys.argv[1]))()
