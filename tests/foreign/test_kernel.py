"""Kernels written in C: the same source in programs, on devices and at once, against NumPy."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain
from harp.errors import ArgumentError, KernelError, MissingRuleError, ShapeError, SignatureError

X = np.array([3.0, 1.0, 2.0])
SCALED = {"inputs": {"a": "T[]", "x": "T[n]"}, "outputs": {"y": "T[n]"}, "grid": {"i": "n"}}


MAP = {"inputs": {"x": "T[n]"}, "outputs": {"y": "T[n]"}, "grid": {"i": "n"}}


def scaled_kernel(**more):
    return harp.kernel("y[i] = a * x[i];", **SCALED, name="scaled", reference=lambda a, x: a * x, **more)


# Rows times a vector, and what passes from one row to the next; the last point has nothing to store there.
ROWS = """
    T sum = 0;
    for (int64_t k = 0; k < m; ++k)
        sum += x[i * m + k] * w[k];
    products[i] = sum;
    if (i + 1 < n)
        steps[i] = x[(i + 1) * m] - sqrt(fabs(x[i * m]));
"""


def rows_by_numpy(x, w):
    return x @ w, x[1:, 0] - np.sqrt(np.abs(x[:-1, 0]))


@pytest.fixture(scope="module")
def rows():
    return harp.kernel(
        ROWS,
        inputs={"x": "T[n, m]", "w": "T[m]"},
        outputs={"products": "T[n]", "steps": "T[max(n - 1, 0)]"},
        grid={"i": "n"},
        name="rows",
        reference=rows_by_numpy,
    )


def test_all_sizes_are_one_program(run, rows):
    f = run(lambda x, w: rows(x * 1, w))
    for n, m in ((4, 3), (1, 2), (0, 3), (3, 0), (2, 1)):
        if m == 0 and n > 0:
            continue  # it reads the first element of each row
        x, w = np.random.default_rng(n).normal(size=(n, m)), np.arange(m) + 0.5
        for found, expected in zip(f(x, w), rows_by_numpy(x, w), strict=True):
            npt.assert_allclose(found, expected, rtol=1e-12)
    if isinstance(f, harp.JitFunction):
        assert f.compilations == 1


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64", "float32", "float64"])
def test_the_types_in_the_source_are_those_of_the_arguments(run, dtype):
    x = np.array([1, 2, 3], dtype)
    found = run(lambda x: scaled_kernel()(2, x))(x)
    assert found.dtype == np.dtype(dtype)
    npt.assert_array_equal(found, 2 * x)


def test_several_types_and_fixed_ones(run):
    kernel = harp.kernel(
        "S scale = 2; y[i] = (T)(mask[i] ? x[i] * scale : which[i]);",
        inputs={"x": "S[n]", "mask": harp.bool_["n"], "which": "T[n]"},
        outputs={"y": "T[n]"},
        grid={"i": "n"},
        reference=lambda x, mask, which: np.where(mask, 2 * x, which).astype(which.dtype),
    )
    mask, which = np.array([True, False, True]), np.array([7, 8, 9], np.int32)
    found = run(lambda x, w: kernel(x, mask, w))(X, which)
    assert found.dtype == np.int32
    npt.assert_array_equal(found, [6, 8, 4])


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_floats_of_16_bits_are_computed_in_32(run, dtype):
    """And rounded once, where they are stored."""
    kernel = harp.kernel(
        "T whole = x[i] * x[i] + a; y[i] = whole; rest[i] = whole - 1;",
        {"a": "T[]", "x": "T[n]"},
        {"y": "T[n]", "rest": "T[n]"},
        {"i": "n"},
        reference=lambda a, x: (x * x + a, x * x + a - 1),
    )
    f = run(lambda a, x: kernel(a, x))
    for x in (np.random.default_rng(0).normal(size=40).astype(dtype), np.array([np.inf, np.nan, -0.0, 6e4], dtype)):
        a, wide = dtype(0.3), x.astype("f4") ** 2 + np.float32(dtype(0.3))
        with np.errstate(over="ignore"):
            expected = wide.astype(dtype), (wide - 1).astype(dtype)
        for found, wanted in zip(f(a, x), expected, strict=True):
            assert np.asarray(found).dtype == dtype
            npt.assert_array_equal(np.asarray(found).astype("f4"), wanted.astype("f4"))
    if isinstance(f, harp.JitFunction):
        assert f.compilations == 1


PRODUCT = "y[i] = (T){a.re * x[i].re - a.im * x[i].im, a.re * x[i].im + a.im * x[i].re};"


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers_are_structs(run, dtype):
    kernel = harp.kernel(PRODUCT, **SCALED, reference=lambda a, x: a * x)
    x = np.array([1 + 2j, -3j, 0.5 - 1j], dtype)
    f = run(lambda a, x: kernel(a, x + 1) - 1)
    for a in (dtype(2 - 1j), 3j, 2.0):
        found = f(a, x)
        assert found.dtype == dtype
        npt.assert_allclose(found, a * (x + 1) - 1, rtol=1e-6)
    npt.assert_allclose(run(harp.vmap(kernel, (0, None)))(x, x), np.outer(x, x), rtol=1e-6)


def test_elements_of_complex_outputs_that_no_point_stores(run):
    kernel = harp.kernel(
        "if (i % 2) y[i / 2].im = x[i].re;",
        {"x": "T[n]"},
        {"y": "T[n + 1]"},
        {"i": "n"},
        reference=lambda x: np.append(1j * x[1::2].real, np.zeros(len(x) + 1 - len(x) // 2)),
    )
    x = np.arange(1.0, 6) + 7j
    npt.assert_array_equal(run(lambda x: kernel(x))(x), [2j, 4j, 0, 0, 0, 0])


def test_a_gradient_of_complex_numbers(run):
    times = harp.custom_vjp(harp.kernel(PRODUCT, **SCALED, reference=lambda a, x: a * x))
    times.defvjp(lambda a, x: (times(a, x), (a, x)), lambda kept, ct: (hnp.sum(ct * kept[1]), times(kept[0], ct)))
    x = np.array([1 + 2j, -3j, 0.5 - 1j])
    found = run(harp.grad(lambda x: hnp.sum(hnp.abs(times(2 - 1j, x)) ** 2)))(x)
    npt.assert_allclose(found, harp.grad(lambda x: hnp.sum(hnp.abs((2 - 1j) * x) ** 2))(x), rtol=1e-12)


def test_operators_of_complex_numbers_are_refused(run, request):
    """In OpenCL C they would be taken part by part."""
    if "NumPy" in request.node.name or find_toolchain() is None:
        pytest.skip("no compiler")
    kernel = scaled_kernel()
    for x in (X + 1j, (X + 1j).astype(np.complex64)):
        with pytest.raises(KernelError, match=r"line 1 is: y\[i\] = a \* x\[i\];"):
            run(lambda x: kernel(2j, x))(x)


def test_truth_values(run):
    """What is stored is 0 or anything else; arrays have 0 and 1."""
    kernel = harp.kernel(
        "has[i] = which[i] ? x[i] & 6 : 0; same[i] = which[i];",
        {"x": "i32[n]", "which": "T[n]"},
        {"has": "bool[n]", "same": "T[n]"},
        {"i": "n"},
        reference=lambda x, which: (((x & 6) > 0) & which, which),
    )
    x, which = np.array([0, 1, 2, 4, 8, 256 + 6], np.int32), np.array([1, 1, 1, 0, 1, 1], bool)
    has, same = run(lambda x, which: kernel(x, which))(x, which)
    assert has.dtype == same.dtype == np.bool_
    npt.assert_array_equal(np.asarray(has).view(np.uint8), [0, 0, 1, 0, 0, 1])
    npt.assert_array_equal(same, which)


def test_grids_of_many_axes_in_batches(run):
    kernel = harp.kernel(
        "y[((i * b + j) * c + k) * d + l] = x[((l * c + k) * b + j) * a + i] + 1;",
        inputs={"x": "T[d, c, b, a]"},
        outputs={"y": "T[a, b, c, d]"},
        grid={"i": "a", "j": "b", "k": "c", "l": "d"},
        reference=lambda x: x.T + 1,
    )
    x = np.arange(2 * 3 * 4 * 5 * 6.0).reshape(6, 2, 3, 4, 5)
    npt.assert_array_equal(run(kernel)(x[0]), x[0].T + 1)
    npt.assert_array_equal(run(harp.vmap(kernel))(x), np.array([a.T + 1 for a in x]))


def test_batches_of_some_arguments(run, rows):
    x, w = np.random.default_rng(0).normal(size=(2, 5, 4, 3)), np.ones((5, 3))
    f = harp.vmap(harp.vmap(rows, (0, 0)), (0, None))
    products, steps = run(f)(x, w)
    npt.assert_allclose(products, x.sum(-1), rtol=1e-12)
    npt.assert_allclose(steps, x[:, :, 1:, 0] - np.sqrt(np.abs(x[:, :, :-1, 0])), rtol=1e-12)


def test_outputs_that_not_every_point_stores_are_zeros_first(run):
    kernel = harp.kernel(
        "if (place[i] < m) counts[place[i]] = i + 1;",
        inputs={"place": "i64[n]", "like": "f32[m]"},
        outputs={"counts": "i64[m]", "total": "f64[]"},
        grid={"i": "n"},
        reference=lambda place, like: (
            np.array([np.max(np.flatnonzero(place == k) + 1, initial=0) for k in range(len(like))]),
            np.zeros(()),
        ),
    )
    f = run(lambda place, like: kernel(place, like))
    for _ in range(3):
        counts, total = f(np.array([5, 0, 9]), np.zeros(7, np.float32))
        npt.assert_array_equal(counts, [2, 0, 0, 0, 0, 1, 0])
        assert float(total) == 0


def test_one_point(run):
    kernel = harp.kernel("*y = a > b ? a : b;", {"a": "T[]", "b": "T[]"}, {"y": "T[]"}, {}, reference=np.maximum)
    assert float(run(lambda a, b: kernel(a, b))(2.0, 3.0)) == 3.0


def test_loops_branches_and_what_is_round_them(run):
    kernel = scaled_kernel()

    @run
    def f(x):
        c = harp.fori_loop(0, 4, lambda k, c: kernel(2, c) + 1, x)
        _, made = harp.scan(lambda s, v: (s, kernel(v, x)), 0.0, x)
        return harp.cond(c[0] > 1, lambda c: kernel(10.0, c), lambda c: c, c), made

    result, made = f(X)
    npt.assert_array_equal(result, 10 * (16 * X + 15))
    npt.assert_array_equal(made, np.outer(X, X))


def test_a_gradient_of_its_own(run):
    """What multiplies the cotangent is a kernel, so that the rule can be turned round for forward mode."""
    forward = harp.kernel("y[i] = x[i] * tanh(x[i]);", **MAP, reference=lambda x: x * np.tanh(x))
    slope = harp.kernel(
        "T t = tanh(x[i]); y[i] = t + x[i] * (1 - t * t);",
        **MAP,
        name="slope",
        reference=lambda x: np.tanh(x) + x * (1 - np.tanh(x) ** 2),
    )
    f = harp.custom_vjp(forward)
    f.defvjp(lambda x: (f(x), x), lambda x, dy: (dy * slope(x),))
    slopes = np.tanh(X) + X * (1 - np.tanh(X) ** 2)
    gradient = run(harp.grad(lambda x: hnp.sum(f(x) * x)))(X)
    npt.assert_allclose(gradient, slopes * X + X * np.tanh(X), rtol=1e-12)
    npt.assert_allclose(run(lambda x: harp.jvp(f, (x,), (x,))[1])(X), X * slopes, rtol=1e-12)
    batch = run(harp.vmap(harp.grad(lambda x: hnp.sum(f(x)))))(np.array([X, -X]))
    npt.assert_allclose(batch, [slopes, -slopes], rtol=1e-12)
    with pytest.raises(MissingRuleError, match=r"(?s)kernel 'slope' is computed outside.*custom_vjp"):
        run(harp.grad(harp.grad(lambda x: hnp.sum(f(x * X)))))(2.0)
    with pytest.raises(MissingRuleError, match=r"(?s)kernel 'scaled' is computed outside.*custom_vjp.*test_kernel\.py"):
        run(harp.grad(lambda x: hnp.sum(scaled_kernel()(2, x))))(X)


def test_arguments_that_do_not_fit_are_named(run, rows):
    kernel = scaled_kernel()
    f = run(lambda a, x: kernel(a, x))
    with pytest.raises(SignatureError, match=r"'x' of kernel 'scaled' is declared as T\[n\], and has 2 axes, not 1"):
        f(1.0, np.ones((2, 2)))
    with pytest.raises(
        SignatureError, match=r"'x' of .* is declared as T\[n\], and T is f32, but its dtype is f64; cast"
    ):
        f(np.float32(1), np.ones(2))
    with pytest.raises(
        ShapeError, match=r"axis 0 of argument 'w' of kernel 'rows', which is declared as T\[m\], is not m"
    ):
        run(lambda x, w: rows(x, w))(np.ones((2, 3)), np.ones(2))
    with pytest.raises(ArgumentError, match="kernel 'scaled': missing a required argument: 'x'"):
        kernel(1.0)
    with pytest.raises(ArgumentError, match="argument 'x' of kernel 'scaled' is a str"):
        kernel(1.0, "x")
    fixed = harp.kernel("y[i] = x[i];", {"x": "f32[n, 3]"}, {"y": "f32[n]"}, {"i": "n"})
    with pytest.raises(ShapeError, match=r"axis 1 of argument 'x' .* is not 3"):
        run(lambda x: fixed(x))(np.ones((2, 4), np.float32))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"inputs": {"x": "T[n"}}, "'x' of kernel 'k' is declared as 'T\\[n'"),
        ({"inputs": {"x": "T[n**2]"}}, r"'n \*\* 2' is no size of 'x'"),
        ({"inputs": {"x": "T[f(n)]"}}, "is no size"),
        ({"inputs": {"x": "T[n\udcff]"}}, "the sizes of 'x' of kernel 'k' cannot be read"),
        ({"grid": {"i": "n" + "+1" * 3000}}, "is no size"),
        ({"outputs": {"y": "T[m]"}}, "no axis of an input has the size 'm' alone"),
        ({"outputs": {"y": "S[n]"}}, "no input says what the dtype 'S' of 'y' is"),
        ({"outputs": {}}, "has no outputs"),
        ({"grid": {"i": "k"}}, "the size 'k' alone"),
        ({"grid": {"n": "n"}}, "two things that are called 'n'"),
        ({"outputs": {"x": "T[n]"}}, "two things that are called 'x'"),
        ({"grid": {"int": "n"}}, "'int' of|'int' .* cannot be a name in C"),
        ({"inputs": {"harp_x": "T[n]"}}, "cannot be a name in C"),
        ({"inputs": {"größe": "T[n]"}}, "cannot be a name in C"),
        ({"source": {"cuda": ""}}, "a dict of texts for 'c' and 'opencl'"),
        ({"source": {}}, "a dict of texts"),
        ({"source": "# include <math.h>\ny[i] = 0;"}, "line 1 of the source of kernel 'k' cannot include a file"),
        (
            {"source": "y[i] = 0;\r  /* a */ #  define N 3"},
            r"line 2 of .* changes what follows .*\n  /\* a \*/ #  define N 3",
        ),
        ({"source": "\n/*\n*/ %:undef NULL"}, "line 3 of the source of kernel 'k' changes what follows"),
        ({"source": "#line 7"}, "changes what follows"),
        ({"source": "y[i] = 0; // C:\\\ny[i] = 1;"}, "line 1 of .* ends with a backslash"),
        ({"source": "y[i] = 0; // C:\\"}, "line 1 of .* ends with a backslash"),
        ({"source": "#\\\ndefine N 3"}, "line 1 of .* ends with a backslash"),
        ({"source": "y[i] = 0;\n/* '*' "}, "line 2 of .* opens a comment that is not closed"),
        ({"source": {"opencl": "y[i] = 0; // \ud800"}}, r"line 1 of .* has a character that no .*\n  y.* // \\ud800"),
        ({"source": "if (i > 0) {\ny[i] = x[i];"}, "line 1 of .* has a brace without its partner"),
        ({"source": "y[i] = '}';\n} void other(void) {"}, "line 2 of .* has a brace without its partner"),
        ({"source": "y[i] = x[i]; %>"}, "line 1 of .* has a brace without its partner"),
        ({"source": None}, "the source of kernel 'k' is a text, or a dict"),
        ({"name": "a b"}, "'a b' is no name for a kernel"),
        ({"name": 3}, "3 is no name for a kernel"),
        ({"inputs": {3: "T[n]"}}, "inputs of kernel 'k' is a mapping from names"),
        ({"inputs": {"assert": "T[n]"}}, "'assert' of kernel 'k' cannot be a name"),
        ({"grid": {"i": "n * 4611686018427387904"}}, "is no size of kernel 'k': .* up to 2"),
        ({"inputs": "x[n]"}, "inputs of kernel 'k' is a mapping from names, such as .*, not 'x"),
        ({"grid": "n"}, "grid of kernel 'k' is a mapping from names, such as {'i': 'n'}, not 'n'"),
    ],
)
def test_what_is_not_well_declared(change, text):
    given = {"source": ";", "inputs": {"x": "T[n]"}, "outputs": {"y": "T[n]"}, "grid": {"i": "n"}, "name": "k"}
    with pytest.raises(KernelError, match=text):
        harp.kernel(**{**given, **change})


def test_operations_are_a_number():
    with pytest.raises(ArgumentError, match="operations of kernel 'k'"):
        harp.kernel(";", {"x": "T[n]"}, {"y": "T[n]"}, {"i": "n"}, name="k", operations="many")


def test_sizes_below_zero_are_an_error(run):
    kernel = harp.kernel("y[i] = x[i];", {"x": "T[n]"}, {"y": "T[n - 2]"}, {"i": "n - 2"}, reference=lambda x: x[:-2])
    f = run(lambda x: kernel(x))
    npt.assert_array_equal(f(np.arange(5.0)), np.arange(3.0))
    assert f(np.arange(2.0)).shape == (0,)
    with pytest.raises(ShapeError, match="output 'y' of kernel 'kernel' has n - 2 = "):
        f(np.arange(1.0))


def test_errors_of_the_compiler_have_the_lines_of_the_source(run, request):
    if "NumPy" in request.node.name or find_toolchain() is None:
        pytest.skip("no compiler")
    kernel = harp.kernel("y[i] = x[i];\n\ny[i] += missing;\n", {"x": "T[n]"}, {"y": "T[n]"}, {"i": "n"}, name="wrong")
    with pytest.raises(
        KernelError, match=r"(?s)refuses kernel 'wrong' for \w+:\n  line 3 is: y\[i\] \+= missing;\n.*wrong:3"
    ):
        run(lambda x: kernel(x + 1))(X)


@pytest.mark.parametrize(
    ("body", "number", "text"),
    [
        ("T a = 2;\ny[i] = abs(x[i]);", 2, "abs is C's function of int: write fabs for floats"),
        ("T a = 2;\ny[i] = smoothed(x[i]);", 2, "smoothed"),
        ("\nfor (k = 0; k < 1; ++k) y[i] = x[i];", 2, "k"),
        ("harp_global const float *p = x;\ny[i] = p[i];", 1, "float"),
        ("int64_t *p;\np = i + 1;\ny[i] = x[i];", 2, "p = i"),
        ("double smoothed(double);\ny[i] = smoothed(x[i]);", 1, "no library for \\w+ defines; write its definition"),
        ("#if 0\ny[i] = x[i];", 1, "#if 0"),
        ("y[i] = x[i];\nreturn 3;", 2, "return"),
    ],
)
def test_what_c_lets_pass_with_a_warning_is_an_error(run, request, body, number, text):
    if "NumPy" in request.node.name or find_toolchain() is None:
        pytest.skip("no compiler")
    kernel = harp.kernel(body, **MAP, name="wrong")
    with pytest.raises(KernelError, match=text) as caught:
        run(lambda x: kernel(x))(X)
    message = str(caught.value)
    assert "noexec" not in message and "kernel 'wrong'" in message
    assert f"line {number} is: {body.splitlines()[number - 1]}" in message or "behind its last line, " in message


@pytest.mark.parametrize("dtype", ["int8", "int32"])
def test_abs_of_integers_is_that_of_c(run, dtype):
    kernel = harp.kernel("y[i] = abs(x[i]);", **MAP, reference=np.abs)
    npt.assert_array_equal(run(lambda x: kernel(x))(np.array([-3, 0, 5], dtype)), [3, 0, 5])


def named(name: str, role: str) -> harp.foreign.kernel.Kernel:
    """A kernel that copies, in which the name has this role."""
    x, y, i, n, t = (name if role == other else other for other in ("x", "y", "i", "n", "T"))
    body = f"{t} value = {x}[{i}]; if ({i} < {n}) {y}[{i}] = value;"
    return harp.kernel(body, {x: f"{t}[{n}]"}, {y: f"{t}[{n}]"}, {i: n}, name="copied", reference=np.copy)


@pytest.mark.parametrize(
    ("name", "role"),
    [("INFINITY", "x"), ("NAN", "y"), ("M_PI", "i"), ("unix", "n"), ("asm", "T"), ("NULL", "T"), ("INFINITY", "n")],
)
def test_names_that_mean_something_else_to_the_compiler(run, request, name, role):
    """OpenCL C has fewer of them."""
    kernel = named(name, role)
    try:
        found = run(lambda x: kernel(x))(X)
    except KernelError as error:
        assert f"{name!r} of kernel 'copied' cannot be a name for " in str(error) and "choose another one" in str(error)
    else:
        npt.assert_array_equal(found, X)
        assert "OpenCL" in request.node.name or "NumPy" in request.node.name or find_toolchain() is None


@pytest.mark.parametrize("name", ["a0", "given", "args", "step", "exp"])
def test_names_that_mean_nothing_to_the_user(run, name):
    for role in ("x", "i"):
        kernel = named(name, role)
        npt.assert_array_equal(run(lambda x, kernel=kernel: kernel(x))(X), X)


def test_directives_that_end_with_the_function(run):
    body = "#ifdef __OPENCL_VERSION__\nT two = 2;\n#else\nT two = 2;\n#endif\n"
    body += '/*\n#define "*/ y[i] = two * x[i]; // #define N'
    kernel = harp.kernel(body, **MAP, reference=lambda x: 2 * x)
    npt.assert_array_equal(run(lambda x: kernel(x))(X), 2 * X)


def test_a_source_for_each_backend(run, request):
    kernel = harp.kernel(
        {"c": "y[i] = x[i] + 1;", "opencl": "y[i] = x[i] + get_global_size(0) * 0 + 2;"},
        {"x": "T[n]"},
        {"y": "T[n]"},
        {"i": "n"},
        reference=lambda x: x + 3,
    )
    interpreted = "NumPy" in request.node.name or find_toolchain() is None
    by = 2 if "OpenCL" in request.node.name else 3 if interpreted else 1
    npt.assert_array_equal(run(lambda x: kernel(x))(X), X + by)


def test_a_backend_without_a_source():
    kernel = harp.kernel({"opencl": "y[i] = x[i];"}, {"x": "T[n]"}, {"y": "T[n]"}, {"i": "n"}, name="there")
    if find_toolchain() is not None:
        with pytest.raises(KernelError, match="kernel 'there' has a source for opencl, and none for c; add one"):
            harp.jit(lambda x: kernel(x))(X)
    with pytest.raises(KernelError, match="kernel 'there' cannot run here"):
        kernel(X)
    reference = harp.kernel({"opencl": "y[i] = x[i];"}, {"x": "T[n]"}, {"y": "T[n]"}, {"i": "n"}, reference=np.copy)
    npt.assert_array_equal(reference(X), X)


def test_points_may_return_early(run):
    kernel = harp.kernel(
        "y[i] = 0; if (x[i] < 2) return; y[i] = x[i];",
        {"x": "T[n]"},
        {"y": "T[n]"},
        {"i": "n"},
        reference=lambda x: np.where(x < 2, 0, x),
    )
    npt.assert_array_equal(run(lambda x: kernel(x))(X), [3, 0, 2])


def test_other_sources_are_other_programs(run):
    for factor in (2, 3):
        kernel = harp.kernel(f"y[i] = {factor} * x[i];", **MAP, reference=lambda x, k=factor: k * x)
        npt.assert_array_equal(run(lambda x, kernel=kernel: kernel(x))(X), factor * X)


def test_checked_programs_donated_arguments_and_searches_for_nan(jit):
    kernel = scaled_kernel()
    npt.assert_array_equal(harp.jit(lambda x: kernel(2, x[1:]) + 1, check=True)(X), 2 * X[1:] + 1)
    donating = jit(lambda x: kernel(2, x), donate_argnums=0)
    for _ in range(3):
        npt.assert_array_equal(donating(harp.numpy.asarray(X)), 2 * X)
    with harp.debug.nans(), pytest.raises(harp.errors.NotFiniteError, match="kernel scaled"):
        jit(lambda x: kernel(np.inf, 0 * x) + 1)(X)


def test_the_stages_show_the_kernel():
    stages = harp.jit(lambda x: scaled_kernel(operations=3)(2.0, x)).lower(X)
    assert "kernel scaled(a x -> y over i by n, T = f64)" in str(stages.graph)
    assert "out0 = kernel scaled(in0, in1) over i < s0" in stages.loops
    assert '#line 1 "harp kernel scaled"\ny[i] = a * x[i];' in stages.source
    assert stages.cost().operations.text() == "3*n"
    assert stages.cost().exact and not harp.jit(lambda x: scaled_kernel()(2.0, x)).lower(X).cost().exact


CACHED = """
import numpy as np, harp
k = harp.kernel("y[i] = 7 * x[i];", {"x": "T[n]"}, {"y": "T[n]"}, {"i": "n"}, name="cached")
print(harp.jit(lambda x: k(x))(np.ones(2)), harp.stats()["compiler_runs"])
"""


def test_programs_are_kept_for_other_processes(tmp_path, monkeypatch):
    if find_toolchain() is None:
        pytest.skip("no compiler")
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("HARP_VERIFY", "0")
    runs = [
        subprocess.run([sys.executable, "-c", CACHED], capture_output=True, text=True, check=True) for _ in range(2)
    ]
    assert runs[0].stdout.startswith("[7. 7.]") and runs[1].stdout == "[7. 7.] 0\n"


# Called so in C and in NumPy.
NAMES = ("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "cbrt")
OTHERS = {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "atanh": "arctanh", "fabs": "abs"}
FUNCTIONS = {**dict(zip(NAMES, NAMES, strict=True)), **OTHERS, "sqrt": "sqrt"}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_functions_are_those_of_the_type(run, request, dtype):
    """On the processor they are harp's own, with the same bits."""
    x = np.linspace(0.1, 0.9, 37).astype(dtype)
    calls = [*(f"{name}(x[i])" for name in FUNCTIONS), "pow(x[i], 1 - x[i])", "atan2(x[i], 2 * x[i])", "hypot(x[i], 2)"]
    body = "\n".join(f"y[i * 24 + {k}] = {call};" for k, call in enumerate(calls))

    def computed(xp, x):
        unary = [getattr(xp, name)(x) for name in FUNCTIONS.values()]
        return xp.stack([*unary, x ** (1 - x), xp.arctan2(x, 2 * x), xp.hypot(x, 0 * x + 2)], -1)

    by_numpy = lambda x: computed(np, x).astype(x.dtype)
    kernel = harp.kernel(body, {"x": "T[n]"}, {"y": "T[n, 24]"}, {"i": "n"}, reference=by_numpy)
    found = run(lambda x: kernel(x))(x)
    npt.assert_allclose(found, computed(np, x.astype("d")), rtol=1e-6 if dtype == "float32" else 1e-14)
    if "[C-" in request.node.name:
        npt.assert_array_equal(found, harp.jit(lambda x: computed(hnp, x))(x))


def test_functions_of_no_shared_library():
    """The C library has `atexit` in the files that a compiler adds to each program."""
    source = "extern int atexit(void (*)(void)); extern void tzset(void); y[i] = atexit(tzset) + x[i];"
    kernel = harp.kernel(source, {"x": "T[n]"}, {"y": "T[n]"}, {"i": "n"})
    np.testing.assert_array_equal(harp.jit(lambda x: kernel(x) * 2)(np.arange(3.0)), [0.0, 2.0, 4.0])
