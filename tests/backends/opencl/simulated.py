"""Programs on the simulator Oclgrind, which looks at every access to memory: run by test_simulator.py."""

from __future__ import annotations

import sys

import numpy as np
import numpy.testing as npt
import pyopencl as cl

import harp
import harp.numpy as hnp
from harp.backends.opencl import devices

rng = np.random.default_rng(0)


class FreshMemory:
    """In place of harp's pool: each array has a buffer of its own, and none is freed before the end.

    Oclgrind 21.10 needs that. Its notes on which bytes of a buffer were stored are as long as the last copy from the
    host, or as the buffer was when a kernel first saw it, and they outlive the buffer: the next one with its number
    inherits them. Where that is longer, stores behind the end of the notes are not noted, and right programs are said
    to read what nobody has stored. Where it is not, what its predecessor stored counts, and wrong programs pass.
    """

    def __init__(self, context):
        self.context, self.kept = context, []
        made = cl.Buffer

        def keep(*args, **options):
            self.kept.append(made(*args, **options))
            return self.kept[-1]

        cl.Buffer = keep

    def allocate(self, size):
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size)


def mistake(statement):
    """A kernel of 64 work-items, by pyopencl alone."""
    found = devices.device(0)
    text = f"__kernel void clash(__global float *x) {{ const size_t i = get_global_id(0); {statement} }}"
    kernel = cl.Kernel(cl.Program(found.context, text).build(), "clash")
    memory = cl.Buffer(found.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=np.ones(64, "f4"))
    kernel(found.queue, (64,), (16,), memory)
    found.queue.finish()


def race():
    mistake("x[0] = x[i] + i;")


def outside():
    mistake("x[i] = x[i + 1];")


def unstored():
    """A kernel that reads what nobody has stored, in memory that another array would have had before."""
    found = devices.device(0)
    np.asarray(harp.jit(lambda x: x + 1)(np.ones(1000, "f4")))
    text = (
        "__kernel void copy(__global const float *x, __global float *y) { y[get_global_id(0)] = x[get_global_id(0)]; }"
    )
    kernel = cl.Kernel(cl.Program(found.context, text).build(), "copy")
    kernel(found.queue, (1000,), None, found.pool.allocate(4000), found.pool.allocate(4000))
    found.queue.finish()


def small_then_large():
    """Arrays of several sizes, which would share memory."""
    f = harp.jit(lambda x: hnp.sort(x, axis=1))
    for shape in ((33, 8), (70, 300), (3, 40)):
        x = rng.random(shape) > 0.5
        npt.assert_array_equal(np.asarray(f(x)), np.sort(x, axis=1))


def by_what_others_keep(x):
    """Rows of which work-items read what others of their group have stored."""
    e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
    return e / hnp.sum(e * e[:, ::-1], axis=1, keepdims=True)


def sound():
    """A sample of the kinds of kernels, with groups and without."""
    x, y = rng.standard_normal((3, 300)).astype("f4"), rng.standard_normal((300, 20)).astype("f4")
    square = rng.standard_normal((20, 24)).astype("f4")
    rows = rng.standard_normal((40, 150)).astype("f4")  # several for each group
    tall = rng.standard_normal((70, 40)).astype("f4")
    long, many = rng.standard_normal((2100, 3)).astype("f4"), rng.integers(0, 5, 2100)
    places, z = np.array([2, 0, 2]), np.zeros((3, 4), "f4")
    programs = [
        (lambda x: hnp.sum(x, axis=1), (x,), x.sum(1)),
        (lambda x: hnp.sum(x), (x,), x.sum()),
        (lambda x: hnp.exp(x) / hnp.sum(hnp.exp(x), 1, keepdims=True), (x,), None),
        (lambda x: hnp.softmax(x), (rows,), np.exp(rows) / np.exp(rows).sum(1, keepdims=True)),
        (lambda x: harp.grad(lambda x: hnp.sum(hnp.softmax(x) * hnp.sin(x)))(x), (x,), None),
        (by_what_others_keep, (rows,), None),
        (lambda x: hnp.cumsum(x, axis=1), (x,), np.cumsum(x, 1)),
        (lambda x: hnp.argmax(x, axis=1), (x,), np.argmax(x, 1)),
        (lambda x, y: hnp.tanh(x @ y), (square, y[:24]), np.tanh(square @ y[:24])),
        (lambda x, y: x @ y, (x, y), x @ y),
        (lambda y: y.T + 1, (tall,), tall.T + 1),
        (lambda x: hnp.sort(x), (x,), np.sort(x)),
        (lambda x: hnp.sort(x), (rng.standard_normal(2100).astype("f4"),), None),
        (lambda z: z.at[places].add(1.0), (z,), np.array([[1.0] * 4, [0.0] * 4, [2.0] * 4])),
        (lambda x: hnp.var(x, axis=0), (long,), long.var(0)),
        (lambda i: hnp.zeros(5, "f4").at[i].add(1.0), (many,), np.bincount(many, minlength=5)),
        (lambda i, x: hnp.zeros((5, 3), "f4").at[i].set(x), (many, long), None),
        (lambda z, i: z.at[i].add(1.0), (z[:, 0], many % 3), np.bincount(many % 3)),
        (lambda x: harp.scan(lambda c, r: (hnp.tanh(c + r), c), hnp.zeros(300), x)[1], (x,), None),
        (lambda x: hnp.convolve(x[0], x[1, :5]), (x,), np.convolve(x[0], x[1, :5])),
        (lambda x: harp.grad(lambda x: hnp.sum(hnp.tanh(x) * hnp.cumsum(x, axis=1)))(x), (x,), None),
    ]
    for function, arguments, wanted in programs:
        found, here = np.asarray(harp.jit(function)(*arguments)), harp.jit(function, device="cpu")(*arguments)
        npt.assert_allclose(found, here, rtol=1e-4, atol=1e-4)
        if wanted is not None:
            npt.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    device = devices.device(0)
    assert "Oclgrind" in repr(device), device
    device.__dict__["is_wide"] = sys.argv[2] == "wide"
    device.__dict__["pool"] = FreshMemory(device.context)
    with harp.default_device("opencl:0"):
        {f.__name__: f for f in (race, outside, unstored, small_then_large, sound)}[sys.argv[1]]()
    print("done")
