"""Exported functions, called from C under gcc's sanitizers: the same bits as in Python, whatever the sizes."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from tests.backends.c.export.callers import GCC, GXX, SANITIZED, STRICT, caller, compiled, run, types_of

pytestmark = pytest.mark.skipif(not GCC, reason="needs gcc")

f32, f64, i32, bool_ = harp.f32, harp.f64, harp.i32, harp.bool_


def cases_of(arguments, sizes, seed=0):
    """For each combination of sizes: these, and random arrays of the shapes that the signatures have then."""
    rng = np.random.default_rng(seed)
    named = list(dict.fromkeys(d for a in arguments for d in a.shape if isinstance(d, str)))
    cases = []
    for values in sizes:
        of = dict(zip(named, values, strict=True))
        arrays = []
        for a in arguments:
            shape = [of.get(d, d) for d in a.shape]
            arrays.append((rng.normal(size=shape) * (20 if a.dtype.is_integer else 1)).astype(a.dtype.numpy))
        cases.append((values, arrays))
    return cases


def same_bits(folder, name, entry, function, cases, flags=SANITIZED, command=(), runner=()):
    """Call an exported function from C, and the same in Python."""
    wanted = b""
    for _, arrays in cases:
        leaves = [np.asarray(leaf) for leaf in harp.tree.leaves(harp.jit(function)(*arrays))]
        wanted += 2 * b"".join(leaf.tobytes() for leaf in leaves)
    inputs, outputs = types_of((folder / f"{name}.h").read_text(), entry)
    main = caller(name, entry, inputs, list(zip(outputs, leaves, strict=True)), len(cases[0][0]))
    program = compiled(folder, name, main, command, flags)
    assert run([*runner, str(program)], cases) == wanted


def loss(w, b, x, y):
    scores = hnp.tanh(x @ w) @ b
    return hnp.mean(hnp.logsumexp(scores, axis=1) - hnp.sum(scores * y, axis=1))


NETWORK = (f32[7, "h"], f32["h", 3], f32["n", 7], f32["n", 3])
SIZES = ((1, 1), (5, 3), (40, 33), (200, 300), (3, 0))


MODES = {"sanitized": SANITIZED, "fast": ("-O2", "-march=native", "-fopenmp"), "portable": ("-O1", "-DNET_PORTABLE")}


@pytest.mark.parametrize("mode", MODES)
def test_function_and_gradient(tmp_path, mode):
    step = harp.value_and_grad(loss, argnums=(0, 1))
    harp.export({"loss": (loss, *NETWORK), "step": (step, *NETWORK)}, tmp_path, "net")
    same_bits(tmp_path, "net", "step", step, cases_of(NETWORK, SIZES), MODES[mode])


def test_entries_share_kernels(tmp_path):
    harp.export({"one": (lambda x: hnp.exp(x) * 2, f32["n"])}, tmp_path, "alone")
    harp.export({name: (lambda x: hnp.exp(x) * 2, f32["n"]) for name in ("one", "two")}, tmp_path, "both")
    alone, both = ((tmp_path / f"{name}.c").read_text() for name in ("alone", "both"))
    assert alone.count("harp_kernel0(const") == both.count("harp_kernel0(const") == 1
    assert "harp_kernel1" not in both


def mixed(x, k, flags):
    z = hnp.where(flags, x, -x)
    whole = {"sum": k.sum(), "order": hnp.argsort(z), "sorted": hnp.sort(k)}
    return {**whole, "near": z > 0, "z": z * (1 + 2j), "half": hnp.unwrap(z.astype(harp.f16))}


def test_several_dtypes(tmp_path):
    arguments = (f64["n"], i32["n"], bool_["n"])
    harp.export({"mixed": (mixed, *arguments)}, tmp_path, "kinds")
    same_bits(tmp_path, "kinds", "mixed", mixed, cases_of(arguments, ((1,), (0,), (100,), (5000,))))


def loops(first, x, k):
    def step(state, row):
        return state * 0.5 + hnp.sin(row), state.sum()

    last, sums = harp.scan(step, first, x)
    return last, sums, harp.while_loop(lambda k: k < 1000, lambda k: k * 3 + 1, hnp.abs(k[0]) + 1)


def test_loops(tmp_path):
    arguments = (f32["m"], f32["n", "m"], i32[2])
    harp.export({"loops": (loops, *arguments)}, tmp_path, "steps")
    same_bits(tmp_path, "steps", "loops", loops, cases_of(arguments, ((1, 1), (0, 7), (7, 0), (4, 9))))


def halves(x, y):
    first, second = x.reshape(2, -1)
    return first * second + y[3], x[:3] @ y[:3]


def test_guards_are_checked(tmp_path):
    harp.export({"halves": (halves, np.ones(10), np.ones(6)), "last": (lambda x: x[-1], np.ones(2))}, tmp_path, "cut")
    header = (tmp_path / "cut.h").read_text()
    assert "int64_t x_0, int64_t y_0" in header and " * where " in header
    results = [("double", np.ones(1)), ("double", np.ones(()))]
    program = compiled(tmp_path, "cut", caller("cut", "halves", ["double"] * 2, results, 2))
    x, y = np.arange(8.0), np.arange(4.0)
    wanted = np.concatenate([x[:4] * x[4:] + 3, [x[:3] @ y[:3]]])
    np.testing.assert_array_equal(np.frombuffer(run([str(program)], [((8, 4), (x, y))])), np.tile(wanted, 2))
    for sizes, code, words in (((7, 4), 4, "x_0"), ((8, 3), None, "y_0"), ((-2, 4), 2, "a size is negative")):
        found, _, message = run([str(program)], [(sizes, (x, y))]).decode().partition(" ")
        assert int(found) == code or (code is None and int(found) > 3)
        assert words in message


def test_sizes_that_are_too_large(tmp_path):
    harp.export({"outer": (lambda x, y: x[:, None] * y, f64["n"], f64["m"])}, tmp_path, "big")
    program = compiled(tmp_path, "big", caller("big", "outer", ["double"] * 2, [("double", np.ones((1, 1)))], 2))
    assert run([str(program)], [((1 << 40, 1 << 40), (np.ones(0), np.ones(0)))]).decode() == "3 the sizes are too large"


def test_caller_in_cpp_and_two_files(tmp_path):
    """Files with the same kernels can be linked."""
    square = lambda a: a @ a.T
    for name in ("one", "two"):
        harp.export({"square": (square, f32["n", "m"])}, tmp_path, name)
    main = caller("one", "square", ["float"], [("float", np.ones((1, 1), np.float32))], 2).replace("NULL", "nullptr")
    (tmp_path / "main.cpp").write_text(main.replace('#include "one.h"', '#include "one.h"\n#include "two.h"'))
    for name in ("one", "two"):
        subprocess.run([GCC, *STRICT, "-O1", "-c", f"{name}.c"], check=True, cwd=tmp_path)
    command = [GXX or GCC, "-std=c++17", *STRICT[1:], "main.cpp", "one.o", "two.o", "-lm"]
    subprocess.run([*command, "-o", "main"], check=True, cwd=tmp_path)
    ((_, arrays),) = cases = cases_of([f32["n", "m"]], [(9, 5)])
    assert run([str(tmp_path / "main")], cases) == 2 * np.asarray(harp.jit(square)(*arrays)).tobytes()


TABLES = {
    "floats": np.array([1.5, -0.0, np.inf, -np.inf, np.nan, 1e-310, 0.1]),
    "singles": np.array([1e-45, 0.1, -np.inf], np.float32),
    "integers": np.array([np.iinfo(np.int64).min, -1, np.iinfo(np.int64).max]),
    "halves": np.array([0.1, np.inf], np.float16),
    "complex": np.array([1 + 2j, complex(0, -np.inf)]),
    "bools": np.array([True, False]),
    "nothing": np.zeros((0, 3)),
}


def test_captured_arrays(tmp_path):
    """Also that the same array is written once, and that integers wrap."""
    tables = lambda: {name: hnp.asarray(table)[::-1] for name, table in TABLES.items()}
    f = lambda x: tables() | {"x": x * 3 + TABLES["integers"]}
    harp.export({"tables": (f, harp.i64[3]), "again": (f, harp.i64[3])}, tmp_path, "data")
    assert (tmp_path / "data.c").read_text().count("static const double data_harp_table") == 3
    x = np.array([np.iinfo(np.int64).max, -1, 5])
    same_bits(tmp_path, "data", "tables", f, [((), (x,))])


def test_kernels_of_the_user(tmp_path):
    scaled = harp.kernel("y[i] = a * sin(x[i]);", {"a": "f32[]", "x": "f32[n]"}, {"y": "f32[n]"}, {"i": "n"})
    f = lambda x: hnp.sqrt(scaled(hnp.float32(2), x)) + x
    harp.export({"f": (f, f32["n"])}, tmp_path, "own")
    same_bits(tmp_path, "own", "f", f, [((n,), (np.linspace(0, 3, n, dtype=np.float32),)) for n in (0, 1, 30)])


OTHERS = {
    "aarch64": (("aarch64-linux-gnu-gcc",), ("-O2", "-static"), ("qemu-aarch64",)),
    "zig": ((sys.executable, "-m", "ziglang", "cc"), ("-O2",), ()),
    "wasm": ((sys.executable, "-m", "ziglang", "cc"), ("-O2", "-target", "wasm32-wasi"), ("node", "--no-warnings")),
}
_WASI = """
import { readFile } from 'node:fs/promises';
import { WASI } from 'node:wasi';
const wasi = new WASI({ version: 'preview1', args: [], env: {}, preopens: {} });
const module = await WebAssembly.compile(await readFile(process.argv[2]));
wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
"""


@pytest.mark.slow
@pytest.mark.parametrize("machine", OTHERS)
def test_other_compilers_and_machines(tmp_path, machine):
    command, flags, runner = OTHERS[machine]
    missing = [tool for tool in (command[0], *runner[:1]) if not shutil.which(tool)]
    if missing or ("ziglang" in command and not importlib.util.find_spec("ziglang")):
        pytest.skip(f"needs {missing or 'ziglang'}")
    if machine == "wasm":
        (tmp_path / "run.mjs").write_text(_WASI)
        runner = (*runner, str(tmp_path / "run.mjs"))
    step = harp.value_and_grad(loss, argnums=(0, 1))
    harp.export({"step": (step, *NETWORK)}, tmp_path, "net")
    # The sign of a NaN, which a batch of none has, is the processor's.
    same_bits(tmp_path, "net", "step", step, cases_of(NETWORK, SIZES[:4]), flags, command, runner)


# What a file asks of the C library, for a compiler that has none beside it.
_MSVC = {
    "math.h": "#define INFINITY ((float)1e300)\n#define NAN (INFINITY * 0)\n#define isfinite(x) ((x) - (x) == 0)\n"
    + "".join(f"double {f}(double); float {f}f(float);\n" for f in ("fabs", "floor", "sqrt", "rint"))
    + "".join(f"double {f}(double, double); float {f}f(float, float);\n" for f in ("copysign", "fmod"))
    + "double fma(double, double, double); float fmaf(float, float, float);",
    "stdlib.h": "",
    "malloc.h": "#include <stddef.h>\nvoid *_aligned_malloc(size_t, size_t); void _aligned_free(void *);",
    "string.h": "#include <stddef.h>\nvoid *memcpy(void *, const void *, size_t); void *memset(void *, int, size_t);\n"
    "int memcmp(const void *, const void *, size_t);",
}


def ordered(x, k):
    """Also transposed copies, and integers that wrap."""
    return hnp.argsort(x, axis=1), hnp.sort(k), hnp.cumsum(x, axis=0).T + 0, k * k * k


@pytest.mark.slow
def test_another_compiler_of_c11(tmp_path):
    """That knows nothing of gcc's language."""
    if not shutil.which("tcc"):
        pytest.skip("needs tcc")
    step = harp.value_and_grad(loss, argnums=(0, 1))
    harp.export({"step": (step, *NETWORK)}, tmp_path, "net")
    same_bits(tmp_path, "net", "step", step, cases_of(NETWORK, SIZES[:4]), (), ("tcc",))
    harp.export({"ordered": (ordered, f64["n", "m"], i32["n"])}, tmp_path, "order")
    cases = cases_of((f64["n", "m"], i32["n"]), ((1, 1), (40, 33), (0, 3)))
    for command in (("tcc",), ("tcc", "-std=c11")):
        same_bits(tmp_path, "order", "ordered", ordered, cases, (), command)


@pytest.mark.slow
def test_what_msvc_reads_has_nothing_of_gnu(tmp_path):
    """By clang with MSVC's macros and without gcc's, where an extension of GNU is an error."""
    if not importlib.util.find_spec("ziglang"):
        pytest.skip("needs ziglang")
    (tmp_path / "msvc").mkdir()
    for name, text in _MSVC.items():
        (tmp_path / "msvc" / name).write_text(text)
    step = harp.value_and_grad(loss, argnums=(0, 1))
    entries = {"step": (step, *NETWORK), "ordered": (ordered, f64["a", "b"], i32["a"])}
    harp.export(entries, tmp_path, "net")
    command = [sys.executable, "-m", "ziglang", "cc", "-target", "x86_64-windows-msvc", "-Imsvc", *STRICT]
    subprocess.run([*command, "-Wgnu", "-Wno-unused-parameter", "-c", "net.c"], check=True, cwd=tmp_path, timeout=600)


_RUST = """
use std::ptr::null_mut;

extern "C" {
    fn fit_gradient(w: *const f32, x: *const f32, y: *const f32, out: *mut f32, n: i64, scratch: *mut u8) -> i32;
}

fn main() {
    let (mut w, mut gradient) = ([0f32; 3], [0f32; 3]);
    let (x, y) = ([1f32, 2.0, 3.0, 4.0, 5.0, 7.0], [0.5f32, -0.5]);
    for _ in 0..100 {
        let (data, labels, result) = (x.as_ptr(), y.as_ptr(), gradient.as_mut_ptr());
        assert_eq!(unsafe { fit_gradient(w.as_ptr(), data, labels, result, 2, null_mut()) }, 0);
        for k in 0..3 { w[k] -= 0.0625 * gradient[k]; }
    }
    println!("{} {} {}", w[0].to_bits(), w[1].to_bits(), w[2].to_bits());
}
"""


@pytest.mark.slow
def test_caller_in_rust(tmp_path):
    if not shutil.which("rustc"):
        pytest.skip("needs rustc")
    gradient = harp.grad(lambda w, x, y: hnp.mean((hnp.tanh(x @ w) - y) ** 2))
    harp.export({"gradient": (gradient, f32[3], f32["n", 3], f32["n"])}, tmp_path, "fit")
    (tmp_path / "main.rs").write_text(_RUST)
    subprocess.run([GCC, *STRICT, "-O2", "-march=native", "-c", "fit.c"], check=True, cwd=tmp_path)
    linked = ["-C", "link-arg=fit.o", "-C", "link-arg=-lm"]
    subprocess.run(["rustc", "main.rs", *linked], check=True, cwd=tmp_path, timeout=600)
    printed = subprocess.run([str(tmp_path / "main")], check=True, capture_output=True, text=True).stdout
    w, step = np.zeros(3, np.float32), harp.jit(gradient)
    x, y = np.array([[1, 2, 3], [4, 5, 7]], np.float32), np.array([0.5, -0.5], np.float32)
    for _ in range(100):
        w = w - np.float32(0.0625) * np.asarray(step(w, x, y))
    assert np.array_equal(np.array(printed.split(), np.uint32), w.view(np.uint32))
