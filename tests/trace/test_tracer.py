"""Tracing: what a function may take and return, dtypes, errors with the user's line, and what is captured."""

from __future__ import annotations

import collections
import operator
import threading

import numpy as np
import pytest

import harp.numpy as hnp
from harp.errors import (
    ArgumentError,
    ConcretizationError,
    DTypeError,
    HarpError,
    InconclusiveSizeError,
    IntegerRangeError,
    LeakedTracerError,
    MutationError,
    OutputError,
    ShapeError,
    SignatureError,
    UnsupportedDTypeError,
    VerificationError,
)
from harp.trace import source_locations
from harp.trace.array.primitives import as_array
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Constant, Input, MapReduce, View, fresh_input
from harp.trace.graph.verify import verify_graph
from harp.trace.index.polynomial import Symbol, loop, of
from harp.trace.scalar import dtypes
from harp.trace.scalar.dtypes import (
    ALL,
    accumulator,
    as_dtype,
    bf16,
    bool_,
    c64,
    c128,
    f16,
    f32,
    f64,
    i8,
    i32,
    i64,
    inexact,
    promote,
)
from harp.trace.scalar.expr import Operand
from harp.trace.sizes import levels
from harp.trace.sizes.scope import Scope
from harp.trace.tracer import Argument, declare, leaf_names, parameter_names, size_arguments, trace, trace_function
from harp.transforms.jit.jit import jit

NATIVE = [d for d in ALL if not d.is_packaged]  # those that NumPy has itself


def line_of(function, offset=1):
    return f"{__file__}:{function.__code__.co_firstlineno + offset}"


# -- arguments and results


def test_names():
    def function(x, params, *rest):
        return x

    graph = trace(function, f32["n"], {"w": f32["n", "m"], "b": (f32["m"], f32[()])}, f32[3], f32[3])
    assert [i.name for i in graph.inputs] == [
        "x",
        "params['b'][0]",
        "params['b'][1]",
        "params['w']",
        "rest[0]",
        "rest[1]",
    ]
    assert graph.inputs[3].shape[0] is graph.inputs[0].shape[0]
    names = leaf_names(lambda a, *, scale: a, [[1, 2]], {"scale": 3})
    assert names == ["a[0]", "a[1]", "scale"]
    assert parameter_names(lambda x, y=1: x, 3) == ["x", "y", "argument 2"]
    assert parameter_names(max, 2)[1] in ("argument 1", "args[1]")


def test_names_of_sizes():
    graph = trace(lambda params: params["w"], {"w": np.zeros((2, 3))})
    assert repr(graph.inputs[0].shape) == "(params__w_0, params__w_1)"


def test_trees_out():
    Point = collections.namedtuple("Point", "x y")
    graph = trace(lambda x: {"b": [x + 1, None], "a": Point(x, (2.0, x.shape[0]))}, f64["n"])
    assert [o.shape for o in graph.outputs] == [graph.inputs[0].shape, (), (), graph.inputs[0].shape]
    assert [o.dtype for o in graph.outputs] == [f64, f64, i64, f64]


@pytest.mark.parametrize("value", ["text", object(), {1, 2}, range(3), print], ids=lambda value: type(value).__name__)
def test_bad_results(value):
    with pytest.raises(OutputError, match=r"'function' returned .* of type") as caught:

        def function(x):
            return x, value

        trace(function, np.zeros(3))
    assert type(value).__name__ in str(caught.value)


@pytest.mark.parametrize("value", ["text", object(), {1, 2}, range(3)], ids=lambda value: type(value).__name__)
def test_bad_arguments(value):
    with pytest.raises(ArgumentError, match="argument second is a"):
        trace(lambda first, second: first, np.zeros(3), value)


def test_signatures_where_arrays_are_needed():
    for call in (lambda: jit(lambda x: x + 1)(f64[3]), lambda: jit(lambda x: x + 1).lower(f64["n"])):
        with pytest.raises(ArgumentError, match=r"argument x is a signature where an array .*harp\.trace"):
            call()


@pytest.mark.parametrize("dtype", [object, "U3", "S2", np.clongdouble, "datetime64[s]", np.longdouble, [("a", int)]])
def test_unsupported_dtypes_name_the_argument(dtype):
    with pytest.raises(UnsupportedDTypeError, match=r"argument x\['w'\].*is not supported"):
        trace(lambda x: x, {"w": np.zeros(3, dtype)})
    with pytest.raises(UnsupportedDTypeError):
        as_dtype(dtype)


def test_a_large_integer_argument():
    with pytest.raises(ArgumentError, match="argument x: the integer"):
        trace(lambda x: x, 2**70)


def test_lists_inside_are_not_arrays():
    for operation in (operator.add, operator.matmul):
        with pytest.raises(TypeError):
            trace(lambda x, operation=operation: operation(x, [1.0, 2.0]), np.zeros(2))
    with pytest.raises(ArgumentError, match=r"list is not an array .*harp\.numpy\.asarray") as caught:
        trace(lambda x: hnp.exp([1.0, 2.0]), np.zeros(2))
    assert __file__ in str(caught.value)
    with pytest.raises(UnsupportedDTypeError):
        trace(lambda x: x + np.array([1, None]), np.zeros(2))


def test_foreign_byte_order_and_strides():
    for array in (np.arange(3.0).astype(">f8"), np.arange(6.0)[::2]):
        assert trace(lambda x: x, array).inputs[0].dtype is f64


def test_numbers_are_weak():
    graph = trace(lambda x, s: x * s, np.zeros(3, np.float32), 2.5)
    assert graph.inputs[1].dtype is f64 and graph.outputs[0].dtype is f32


# -- dtypes


@pytest.mark.parametrize("a", NATIVE, ids=str)
@pytest.mark.parametrize("b", NATIVE, ids=str)
def test_promotion_of_arrays_is_numpys(a, b):
    expected = np.result_type(a.numpy, b.numpy)
    assert promote([a, b]).numpy == expected
    graph = trace(lambda x, y: (x + y, hnp.where(x == x, x, y)), a["n"], b["n"])
    assert [o.dtype.numpy for o in graph.outputs] == [expected, expected]


def test_promotion_of_bfloat16():
    """As float16, which gives float32 beside it."""
    for other in (d for d in ALL if not d.is_tiny):
        expected = promote([f16, other])
        assert promote([bf16, other]) is promote([other, bf16])
        if other is f16 or other is bf16:
            assert promote([bf16, other]) is (f32 if other is f16 else bf16)
        else:
            assert promote([bf16, other]) is (bf16 if expected is f16 else expected)


@pytest.mark.parametrize("scalar", [True, 2, 2.5, 1j], ids=repr)
@pytest.mark.parametrize("dtype", [d for d in ALL if not d.is_tiny], ids=str)
def test_a_python_scalar_does_not_widen(dtype, scalar):
    """NumPy 2's rule where the kinds fit; where the kind changes the width stays, and bool takes the default."""
    graph = trace(lambda x: (x * scalar, scalar * x), dtype["n"])
    (result,) = {o.dtype for o in graph.outputs}
    if type(scalar) is complex and not dtype.is_complex:
        assert result is (c128 if dtype is bool_ or dtype.itemsize == 8 else c64)
    elif type(scalar) is float and not dtype.is_inexact:
        assert result is (f64 if dtype is bool_ or dtype.itemsize == 8 else f32)
    elif dtype is bf16:
        assert result is bf16
    else:
        assert result.numpy == np.result_type(dtype.numpy, scalar)


def test_numpy_scalars_are_strong():
    graph = trace(lambda x: (x * np.float64(2), x * np.float32(2), x + np.int8(1)), f32["n"])
    assert [o.dtype for o in graph.outputs] == [f64, f32, f32]


def test_weak_results_stay_weak():
    graph = trace(lambda x: (x * (hnp.asarray(2.0) * 1), x * (x.shape[0] / 2), x * -(x.shape[0] * 0.5)), f32["n"])
    assert [o.dtype for o in graph.outputs][1:] == [f32, f32]


def test_table_of_dtypes():
    for dtype in ALL:
        assert inexact(dtype).numpy == (
            dtype.numpy if dtype.is_inexact else np.float32 if dtype.itemsize < 4 else np.float64
        )
        if not dtype.is_packaged:
            assert accumulator(dtype).numpy == np.sum(np.zeros(1, dtype.numpy)).dtype
    assert repr(f32["batch", 784]) == "f32[batch, 784]" and f32[()].shape == () and f32["n"].shape == ("n",)


def test_integers_that_do_not_fit():
    with pytest.raises(IntegerRangeError, match=r"300 does not fit int8") as caught:
        trace(lambda x: x + 300, i8["n"])
    assert __file__ in str(caught.value)
    with pytest.raises(OverflowError):
        trace(lambda x: x + 2**63, i64["n"])
    assert trace(lambda x: x + 2**63, dtypes.u64["n"]).outputs[0].dtype is dtypes.u64


def test_operations_that_a_dtype_does_not_have():
    for function, dtype in [
        (operator.sub, bool_), (operator.and_, f32), (operator.lshift, f32), (operator.pow, bool_),
        (operator.mod, bool_), (lambda x, y: -x, bool_), (lambda x, y: ~x, f32),
    ]:  # fmt: skip
        with pytest.raises(DTypeError, match="is not defined for") as caught:
            trace(lambda x, y, function=function: function(x, y), dtype["n"], dtype["n"])
        assert __file__ in str(caught.value)


# -- what leaves a trace


def test_leaked_arrays_raise():
    kept = []

    def leak(x):
        kept.append(x * 2)
        return x

    trace(leak, np.zeros(3))
    for use in (lambda: kept[0] + 1, lambda: kept[0].shape, lambda: np.asarray(kept[0]), lambda: kept[0].sum()):
        with pytest.raises(LeakedTracerError, match="'leak' was used outside"):
            use()
    with pytest.raises(LeakedTracerError):
        trace(lambda x: x + kept[0], np.zeros(3))
    with pytest.raises(LeakedTracerError):
        trace(lambda x: kept[0], np.zeros(3))


def inner(function, array):
    """A nested trace, as a transform opens one."""
    level = levels.current()
    argument = Argument("y", array.kind, tuple(s.index if hasattr(s, "index") else of(s) for s in array.shape))
    return trace_function(lambda arrays: function(*arrays), [argument], level.scope, "nested").graph


def test_inner_tracers_raise():
    kept = []

    def function(x):
        inner(lambda y: kept.append(y * 2) or y, x)
        return x + kept[0]

    with pytest.raises(LeakedTracerError, match="'nested'"):
        trace(function, np.zeros(3))


def test_outer_arrays_may_be_used_inside():
    graphs = []

    def function(x):
        graphs.append(inner(lambda y: y * x, x))
        return x

    trace(function, np.zeros(3))
    (graph,) = graphs
    used = {node for node in graph.nodes() if isinstance(node, Input)}
    assert len(used) == 2 and len(graph.inputs) == 1


def test_levels_close_after_an_error():
    with pytest.raises(ZeroDivisionError):
        trace(lambda x: 1 // 0, np.zeros(3))
    assert levels.current() is None
    with levels.enter(Scope(), "f") as level:
        assert levels.current() is level and level.depth == 0
        with levels.enter(level.scope, "g") as nested, levels.suspended():
            assert levels.current() is None and nested.depth == 1
        assert levels.current() is level and not nested.open


def test_threads_trace_apart():
    graphs, barrier = {}, threading.Barrier(4)

    def work(number):
        def function(x):
            barrier.wait()
            return (x * float(number)).sum()

        graphs[number] = trace(function, np.zeros(3))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(f"{float(number)}:f64" in repr(graphs[number]) for number in range(2, 4)) and len(graphs) == 4


# -- questions without an answer


@pytest.mark.parametrize(
    "question",
    [
        float,
        int,
        bool,
        np.asarray,
        lambda x: x.item(),
        lambda x: x.tolist(),
        list,
        lambda x: [1, 2][x],
        np.array2string,
        lambda x: x.nbytes,
    ],
)
def test_values_are_not_known(question):
    def function(x):
        return question(x[0] if question is list else x)

    with pytest.raises((ConcretizationError, TypeError)) as caught:
        trace(function, np.zeros(3))
    if question is not list:
        assert isinstance(caught.value, ConcretizationError)
        assert "trace" in str(caught.value) and __file__ in str(caught.value)


def test_the_message_says_where():
    def function(x):
        if x.sum() > 0:
            return x
        return -x

    with pytest.raises(ConcretizationError, match=r"harp\.numpy\.where") as caught:
        trace(function, np.zeros(3))
    assert line_of(function) in str(caught.value)


def test_item_assignment():
    def function(x):
        x[0] = 1.0
        return x

    with pytest.raises(MutationError, match="do not change") as caught:
        trace(function, np.zeros(3))
    assert line_of(function) in str(caught.value)


def test_shape_errors_say_where():
    def function(x, y):
        return x + y

    with pytest.raises(ShapeError, match=r"x\.shape\[1\] = 3 is not y\.shape\[0\] = 4") as caught:
        trace(function, np.zeros((2, 3)), np.zeros(4))
    assert line_of(function) in str(caught.value)


# -- declared signatures


def test_declared_signatures():
    graph = trace(lambda x, w: x @ w, f32["batch", 784], f32[784, "out"])
    assert repr(graph.outputs[0].shape) == "(batch, out)"
    assert trace(lambda x: x + 1, f32[()]).outputs[0].shape == ()


def test_declared_sizes_that_do_not_decide():
    with pytest.raises(InconclusiveSizeError, match=r"declare it: .*same name") as caught:
        trace(lambda x, y: x + y, f32["n"], f32["m"])
    assert __file__ in str(caught.value)
    with pytest.raises(InconclusiveSizeError):
        trace(lambda x: x.max(), f32["n"])
    assert trace(lambda x: x.max(), f32[3]).outputs[0].shape == ()
    assert trace(lambda x, y: x + y, f32["n"], f32["n"]).outputs[0].dtype is f32


def test_signatures_and_arrays_do_not_mix():
    with pytest.raises(ArgumentError, match="either signatures or arrays"):
        trace(lambda x, y: x, f32["n"], np.zeros(3))


def test_arguments_are_held_to_their_declaration():
    def hold(signature, shape, dtype=np.float32):
        scope = Scope()
        (argument,) = size_arguments(["x"], [(np.zeros(shape, dtype), False)], scope)
        declare(argument, signature, scope, {})
        return scope

    scope = hold(f32["n", "n"], (3, 3))
    assert len(scope.guards) == 1
    assert hold(f32["n", 3], (2, np.int64(3))).guards[0].index is not None
    with pytest.raises(SignatureError, match=r"argument x is declared f32\[n, n\], but axis 1 is .*= 4, not .*= 3"):
        hold(f32["n", "n"], (3, 4))
    with pytest.raises(SignatureError, match="axis 0"):
        hold(f32[2], (3,))
    with pytest.raises(SignatureError, match="but is f64 with 1 axis"):
        hold(f32["n"], (3,), np.float64)
    with pytest.raises(SignatureError, match="with 2 axes"):
        hold(f32["n"], (3, 3))


# -- sites and captured arrays


def test_sites_are_the_users_lines():
    def function(x):
        y = x * 2.0
        z = hnp.mean(y)
        return y - z

    graph = trace(function, np.zeros(3))
    lines = {line for file, line in graph.sites.values() if file == __file__}
    first = function.__code__.co_firstlineno
    assert lines == {first + 1, first + 2, first + 3}
    assert {file for file, _ in graph.sites.values()} == {__file__}
    assert graph.sites[graph.outputs[0]][1] == first + 3
    assert all(node in graph.sites for node in graph.nodes() if isinstance(node, MapReduce))


def test_files_beside_the_package_are_the_users():
    beside = source_locations._PACKAGE.rstrip("/\\") + "_demo.py"
    namespace = {}
    exec(compile("def f(x):\n    return x + 1.0\n", beside, "exec"), namespace)
    graph = trace(namespace["f"], np.zeros(3))
    assert graph.sites[graph.outputs[0]] == (beside, 2)


def test_captured_arrays_are_copied():
    array = np.arange(3.0)
    graph = trace(lambda x: x + array, np.zeros(3))
    array[:] = 7.0
    (captured,) = graph.captured
    assert captured.captured.array.tolist() == [0.0, 1.0, 2.0]


def test_captured_arrays_are_kept_once():
    array = np.arange(3.0)
    graph = trace(lambda x: (x + array) * array + hnp.exp(array), np.zeros(3))
    assert len(graph.captured) == 1


def test_captured_arrays_that_change_are_not_confused():
    array = np.arange(3.0)

    def function(x):
        first = x + array
        array[0] = 9.0
        return first + array

    graph = trace(function, np.zeros(3))
    assert sorted(c.captured.array[0] for c in graph.captured) == [0.0, 9.0]


def test_arrays_of_ones_own_are_captured():
    array = hnp.asarray(np.arange(3.0))
    graph = trace(lambda x: x + array * array, np.zeros(3))
    assert len(graph.captured) == 1 and isinstance(graph.captured[0], Constant)


# -- the verifier


def test_verifier():
    n, m = (of(Symbol(0, k, name)) for k, name in enumerate("nm"))
    x, y = fresh_input("x", (n,), f64), fresh_input("y", (m,), f64)
    bad = {
        "operand of shape": MapReduce((m,), (x,), Operand(f64, 0)),
        "does not have dtype": MapReduce((n,), (x,), Operand(i32, 0)),
        "operand 1": MapReduce((n,), (x,), Operand(f64, 1)),
        "axes": MapReduce((n,), (x,), Operand(f64, 0), None, (0,)),
        "indices into": View(x, (n,), (loop(0, n), loop(0, n))),
        "go together": View(x, (n,), (loop(0, n),), (n - 2,)),
        "loops": View(x, (n,), (loop(0, m),)),
    }
    for message, node in bad.items():
        with pytest.raises(VerificationError, match=message):
            verify_graph(Graph((x,), (node,), {node: ("file.py", 3)}))
    with pytest.raises(LeakedTracerError, match="'y'"):
        verify_graph(Graph((x,), (y,)))
    verify_graph(Graph((x,), (y,)), frozenset({y}))


@pytest.mark.parametrize("size", [-1, 1.5, None, "", " ", True, (1, 2)])
def test_sizes_of_a_signature_are_names_or_numbers(size):
    with pytest.raises(ArgumentError, match="axis 1") as caught:
        dtypes.f32["n", size]
    assert __file__ in str(caught.value)
    assert dtypes.f32[np.int64(3), "n", 0].shape == (3, "n", 0)


def test_errors_of_dtypes_and_results_name_the_line():
    for use in (
        lambda: as_array(np.longdouble(1)),
        lambda: as_array(np.ones(2)).astype("g"),
        lambda: as_array(np.ones(2)).astype("nothing"),
        lambda: trace(lambda x: "text", np.ones(2)),
        lambda: trace(lambda x: x, np.ones(2, "g")),
    ):
        with pytest.raises(HarpError) as caught:
            use()
        assert str(caught.value).count(f"\n  at {__file__}") == 1
