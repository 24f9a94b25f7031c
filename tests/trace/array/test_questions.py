"""Messages for questions after numbers of traced arrays: they quote the expression, and say what to write instead."""

import math
import pickle
from math import exp

import numpy as np
import pytest
import scipy.linalg

import harp
import harp.numpy as hnp
from harp.errors import ConcretizationError, HarpError, OutputError, ShapeError
from harp.trace.array.questions import counterpart

V = np.arange(3.0)
_abs = np.vectorize(abs)


def _fill(x, n):
    buffer = np.zeros(3)
    buffer[0] = x[0]
    return buffer


def _fill_all(x, n):
    buffer = np.zeros(3)
    buffer[:] = x
    return buffer


def _while(x, n):
    while x[0] > 0:
        x = x - 1
    return x


def _assert(x, n):
    assert hnp.all(x > 0), "positive"
    return x


QUESTIONS = [
    (lambda x, n: math.sin(x[0]), r"`math\.sin\(x\[0\]\)` .* of what is computed from x .*; use harp\.numpy\.sin$"),
    (lambda x, n: 1 + exp(x[0]), r"`exp\(x\[0\]\)` .*; use harp\.numpy\.exp$"),
    (lambda x, n: math.factorial(n), r"`math\.factorial\(n\)` asks for a Python integer of n .*; make n static"),
    (lambda x, n: math.fsum(x), r"harp\.numpy has no fsum yet: call math\.fsum outside"),
    (
        lambda x, n: float(x[0]),
        r"`float\(x\[0\]\)` asks for .*leave float\(\) out, or use \.astype\(float",
    ),
    (lambda x, n: int(n), r"`int\(n\)` asks for a Python int of n .*use \.astype\(int\), or static_argnums"),
    (lambda x, n: complex(x[0]), r"\.astype\(complex\)"),
    (lambda x, n: x[0].item(), r"`x\[0\]\.item\(\)` asks for a Python number .*leave \.item\(\) out"),
    (lambda x, n: x.tolist(), r"call \.tolist\(\) on the result"),
    (lambda x, n: f"{x[0]:.3f}", r"asks for the text .*print the result of the function instead"),
    (lambda x, n: range(n), r"`range\(n\)` asks .* of n while .*make n static, .*harp\.fori_loop\(0, n, step, start\)"),
    (lambda x, n: range(x.shape[0] / 2), r"divide sizes by //, which makes a size again"),
    (lambda x, n: x.reshape(x.shape[0] / 2, -1), r"divide sizes by //"),
    (lambda x, n: hnp.zeros(n), r"`hnp\.zeros\(n\)` .*make n static, with static_argnums or static_argnames"),
    (lambda x, n: hnp.arange(n + 1), r"computed from n .*make it static"),
    (lambda x, n: x.reshape(n, -1), r"make n static"),
    (lambda x, n: [1, 2, 3][n], r"harp\.numpy\.asarray\(\[1, 2, 3\]\)\[index\]"),
    (lambda x, n: V[n], r"`V\[n\]` .*harp\.numpy\.asarray\(V\)\[index\]"),
    (lambda x, n: x[:n], r"`x\[:n\]` .*harp\.lax\.dynamic_slice_in_dim"),
    (_fill, r"`buffer\[0\]` .*buffer = harp\.numpy\.asarray\(buffer\), and write buffer = buffer\.at\[index\]\.set"),
    (_fill_all, r"buffer = buffer\.at\[index\]\.set\(value\)"),
    (lambda x, n: x if x[0] > 0 else -x, r"`x\[0\] > 0` asks for a truth value .*harp\.numpy\.where.*harp\.cond"),
    (_while, r"`x\[0\] > 0` .*; write the loop as harp\.while_loop\(condition, step, start\)"),
    (_assert, r"`hnp\.all\(x > 0\)` .*; return what must hold as a result, and assert it of the result"),
    (
        lambda x, n: "%.2f" % x[0],  # noqa: UP031
        r"print the result of the function instead",
    ),
    (lambda x, n: pickle.dumps(x), r"asks for a pickle of x .*; return the array, and pickle the result"),
    (lambda x, n: scipy.linalg.inv(x), r"`scipy\.linalg\.inv\(x\)` .*; use harp\.numpy\.linalg\.inv"),
    (lambda x, n: scipy.linalg.expm(x), r"; SciPy computes with numbers: call scipy\.linalg\S*\.expm outside"),
    (lambda x, n: x > 0 and x < 1, r"use & and \| on conditions"),
    (lambda x, n: not n, r"use ~ or harp\.numpy\.logical_not"),
    (lambda x, n: 0 < n < 3, r"write \(a < x\) & \(x < b\)"),
    (lambda x, n: 1.0 in x, r"harp\.numpy\.isin instead of `in`"),
    (lambda x, n: max(x[0], 0.0), r"`max\(x\[0\], 0\.0\)` .*harp\.numpy\.maximum\(a, b\)"),
    (lambda x, n: min(x), r"harp\.numpy\.min of an array"),
    (lambda x, n: sorted(x), r"use harp\.numpy\.sort"),
    (lambda x, n: any(x > 0), r"use harp\.numpy\.any"),
    (lambda x, n: np.array(x), r"`np\.array\(x\)` asks for the numbers of x .*use harp\.numpy\.array$"),
    (lambda x, n: np.float32(x[0]), r"use \.astype\(np\.float32\)"),
    (lambda x, n: np.random.normal(x), r"use harp\.random"),
    (lambda x, n: np.arange(x.shape[0]), r"use harp\.numpy\.arange"),
    (lambda x, n: np.vectorize(abs)(x), r"use harp\.numpy\.vectorize$"),
    (lambda x, n: _abs(x), r"use harp\.numpy\.vectorize$"),
    (lambda x, n: hnp.asarray(x).nbytes, r"asks for its number of bytes"),
]


@pytest.mark.parametrize(("function", "message"), QUESTIONS)
def test_the_remedy(function, message):
    with pytest.raises(ConcretizationError, match=f"(?m){message}") as caught:
        harp.jit(function)(np.array([0.5, 2.0, 1.0]), 3)
    assert __file__ in str(caught.value)


def test_where_numpy_hides_the_question():
    with pytest.raises(TypeError, match="traced") as caught:
        harp.jit(lambda n: np.zeros(n))(3)
    assert "make the size static" in caught.value.__notes__[0]


def test_without_source():
    namespace = {"harp": harp}
    exec("def f(x):\n    return float(x)", namespace)
    with pytest.raises(ConcretizationError, match=r"^Python asks for a Python float of x .* use harp\.numpy"):
        harp.jit(namespace["f"])(1.0)


def test_many_arguments_are_not_all_named():
    with pytest.raises(ConcretizationError, match="computed from a, b and others while"):
        harp.jit(lambda a, b, c, d: float(a + b + c + d))(1.0, 2.0, 3.0, 4.0)
    with pytest.raises(ConcretizationError, match="computed from a, b and c while"):
        harp.jit(lambda a, b, c: float(a + b + c))(1.0, 2.0, 3.0)


def test_long_expressions_are_cut():
    with pytest.raises(ConcretizationError, match=r"^`float\( x \+ 1\.0 .* \.\.\.` asks"):
        harp.jit(
            lambda x: float(
                x + 1.0 + 2.0 + 3.0 + 4.0 + 5.0 + 6.0 + 7.0 + 8.0 + 9.0 + 10.0 + 11.0 + 12.0 + 13.0  # many
            )
        )(1.0)


def test_counterparts():
    assert counterpart("math.hypot") == "harp.numpy.hypot" and counterpart("numpy.linalg.outer")
    assert counterpart("math.comb") is counterpart("numpy.linalg.nothing") is counterpart("torch.sin") is None


def test_an_error_of_ones_own_stays():
    """Only NumPy's own complaint about elements gives way to the question that caused it."""

    def function(x):
        try:
            return float(x)
        except ConcretizationError as error:
            raise ValueError("mine") from error

    with pytest.raises(ValueError, match="mine"):
        harp.jit(function)(1.0)


def forgotten(x):
    x + 1


def on_one_way(x, positive):
    if positive:
        return x


@pytest.mark.parametrize("transform", [harp.jit, harp.grad, harp.vmap, harp.value_and_grad, harp.jacrev, harp.jacfwd])
def test_a_forgotten_return(transform):
    with pytest.raises(OutputError, match=r"'forgotten' returned None: a `return` is missing") as caught:
        transform(forgotten)(np.ones(2))
    assert f"{__file__}:{forgotten.__code__.co_firstlineno}" in str(caught.value)


def test_a_return_on_one_way_only():
    f = harp.jit(on_one_way, static_argnames="positive")
    assert f(1.0, positive=True) == 1.0
    with pytest.raises(OutputError, match="in one of its branches"):
        f(1.0, positive=False)
    assert harp.jit(lambda x: None)(1.0) is None  # nothing was forgotten there


def test_options_that_functions_do_not_have():
    def own(x, axis=0):
        return x

    with pytest.raises(TypeError, match="unexpected keyword argument 'dim'") as caught:
        harp.jit(lambda x: hnp.sum(x, dim=0))(V)
    assert caught.value.__notes__ == ["harp.numpy.sum has no dim; write axis"]
    with pytest.raises(TypeError) as caught:
        harp.jit(lambda x: own(x, dim=0))(V)
    assert not hasattr(caught.value, "__notes__")


def test_arrays_are_no_keys():
    with pytest.raises(TypeError, match="unhashable") as caught:
        harp.jit(lambda k: {0: "a"}[k])(0)
    assert "harp.switch" in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: hnp.stack([x, x[:2]]), r"^stack: array 1 differs from the first \(array 0\) along axis 0"),
        (lambda x: hnp.zeros(x.shape[0] / 2), r"is not an integer; a half is n // 2"),
        (lambda x: x["a"], r"fields have no names: use a dict of arrays"),
        (lambda x: hnp.sum(v for v in (1, 2)), r"^a generator .*; make a list of its elements"),
        (lambda x: x.sum(dim=0), r"has no dim; write axis"),
        (lambda x: harp.grad(hnp.sum, x), r"as in harp\.grad\(f\)\(x\)"),
        (lambda x: harp.vmap(hnp.sin)([1.0, 2.0]), r"a list is a tree of its elements"),
        (lambda x: harp.scan(lambda c, v: (c, v), 0.0, [1.0]), r"a list is a tree of its elements"),
        (lambda x: harp.fori_loop(0, 2.0, lambda i, c: c, 0.0), r"convert them with int\(\)"),
        (lambda x: harp.vjp(hnp.sin, x)[-1](1.0), r"as harp\.numpy\.ones_like makes it"),
        (lambda x: hnp.einsum("ij,jk->ik", x[None], x), r"'jk' does not fit operand 1, which has 1 axis"),
    ],
)
def test_other_mistakes(function, message):
    with pytest.raises(HarpError, match=message):
        harp.jit(function)(V)


def test_the_truth_of_several_numbers():
    with pytest.raises(ShapeError, match=r"is a truth value, not one of shape \(3,\); reduce it by \.any\(\)"):
        bool(hnp.asarray(V) > 1)
