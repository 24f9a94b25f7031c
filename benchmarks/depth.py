"""Programs that repeat themselves: how the time to compile grows with the number of repetitions.

python -m benchmarks.depth

Blocks of a transformer, forward and with gradient, a chain of operations, and steps of a Kalman filter that Python has
unrolled. Each row is a process of its own, which finds the kernels of harp's library compiled, and nothing else:
distinct kernels, their lines of C, seconds of Python's and the compiler's CPU time, and those of the first call in all.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HEADS = 4
ROWS = (
    *(("blocks", n) for n in (2, 6, 12, 24)),
    *(("blocks-gradient", n) for n in (2, 6, 12, 24)),
    *(("chain", n) for n in (1000, 4000)),
    *(("kalman", n) for n in (40, 160)),
)


def norm(xp, x, scale, shift):
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    return centred / xp.sqrt(xp.mean(centred**2, axis=-1, keepdims=True) + 1e-5) * scale + shift


def gelu(xp, x):
    return 0.5 * x * (1 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def block(xp, p, x):
    """Attention with heads, and two layers: (b, n, d) to (b, n, d)."""
    b, n, d = x.shape
    h = norm(xp, x, p["scale1"], p["shift1"])
    q, k, v = ((h @ p[w]).reshape(b, n, HEADS, d // HEADS).transpose(0, 2, 1, 3) for w in ("q", "k", "v"))
    scores = q @ k.transpose(0, 1, 3, 2) * 0.125
    weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    weights = weights / xp.sum(weights, axis=-1, keepdims=True)
    x = x + (weights @ v).transpose(0, 2, 1, 3).reshape(b, n, d) @ p["o"]
    h = norm(xp, x, p["scale2"], p["shift2"])
    return x + gelu(xp, h @ p["in"] + p["bias1"]) @ p["out"] + p["bias2"]


def network(xp, blocks, x):
    for p in blocks:
        x = block(xp, p, x)
    return xp.sum(x**2)


def parameters(count, d):
    rng = np.random.default_rng(0)
    shapes = dict.fromkeys(("scale1", "shift1", "scale2", "shift2", "bias2"), (d,))
    shapes |= dict.fromkeys("qkvo", (d, d)) | {"in": (d, 4 * d), "out": (4 * d, d), "bias1": (4 * d,)}
    return [{k: (rng.normal(size=s) * 0.1).astype(np.float32) for k, s in shapes.items()} for _ in range(count)]


def chain(length):
    def f(x):
        y = x
        for k in range(length):
            y = y + x if k % 2 else y * 1.01
        return y

    return f


def kalman(steps):
    def f(a, q, h, r, zs, x, p):
        for k in range(steps):
            x, p = a @ x, a @ p @ a.T + q
            s = h @ p @ h.T + r
            gain = p @ h.T / s[0, 0]
            x, p = x + gain @ (zs[k] - h @ x), p - gain @ h @ p
        return x

    return f


def case(name, count):
    """A function of harp's, and its arguments."""
    import harp
    import harp.numpy as hnp

    if name.startswith("blocks"):
        x = np.random.default_rng(1).normal(size=(2, 32, 64)).astype(np.float32)
        f = lambda blocks, x: network(hnp, blocks, x)  # noqa: E731
        return (harp.value_and_grad(f) if "gradient" in name else f), (parameters(count, 64), x)
    if name == "chain":
        return chain(count), (np.ones(64, np.float32),)
    eye = np.eye(4, dtype=np.float32)
    zs = np.ones((count, 1), np.float32)
    return kalman(count), (eye, eye, eye[:1], eye[:1, :1], zs, eye[0], eye)


def child(name, count):
    """One row, in this process."""
    import harp

    f, arguments = case(name, count)
    lines = str(harp.jit(f).lower(*arguments).source).count("\n")
    before, start, cpu = os.times(), time.perf_counter(), time.process_time()
    harp.jit(f)(*arguments)
    after = os.times()
    compiler = sum(after[2:4]) - sum(before[2:4])
    seconds = time.process_time() - cpu, compiler, time.perf_counter() - start
    kernels = harp.stats()["kernels_compiled"]
    print(f"{name:>16}{count:>6}{kernels:>9}{lines:>8}" + "".join(f"{s:>10.2f}" for s in seconds), flush=True)


def main():
    print(f"{'program':>16}{'times':>6}{'kernels':>9}{'lines':>8}{'Python s':>10}{'C s':>10}{'call s':>10}", flush=True)
    with tempfile.TemporaryDirectory() as directory:
        environment = {**os.environ, "HARP_CACHE_DIR": directory}
        for warm in ("blocks-gradient", "kalman"):  # compiles the kernels of the library
            arguments = [sys.executable, "-m", "benchmarks.depth", warm, "1"]
            subprocess.run(arguments, env=environment, check=True, stdout=subprocess.DEVNULL)
        kept = {path for path in Path(directory).iterdir() if is_library(path)}
        for name, count in ROWS:
            for path in Path(directory).iterdir():
                if path not in kept:
                    path.unlink()
            arguments = [sys.executable, "-m", "benchmarks.depth", name, str(count)]
            subprocess.run(arguments, env=environment, check=True)


def is_library(path):
    """Whether an object file has no kernel of a program."""
    return path.suffix == ".o" and b"harp_kernel" not in path.read_bytes()


if __name__ == "__main__":
    child(sys.argv[1], int(sys.argv[2])) if sys.argv[1:] else main()
