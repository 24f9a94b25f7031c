"""One trace serves every size: the graph traced at one size gives NumPy's result at all others."""

import itertools

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ShapeError
from harp.trace.eval.interpret import interpret
from harp.trace.index.polynomial import evaluate
from harp.trace.sizes.scope import Scope
from harp.trace.tracer import size_arguments, trace_function


def traced(function, *arrays):
    """The graph, its scope, and what it asks of later sizes."""
    scope = Scope()
    arguments = size_arguments([f"x{k}" for k in range(len(arrays))], [(a, False) for a in arrays], scope)
    result = trace_function(lambda xs: function(hnp, *xs), arguments, scope, "f")
    return result.graph, scope


def run(graph, scope, arrays):
    """The result, or None where a guard does not hold."""
    sizes = dict(zip(scope.symbols, itertools.chain(*(a.shape for a in arrays)), strict=False))
    for symbol, value in scope.quotients:
        sizes[symbol] = evaluate(value, sizes.__getitem__)
    if not all(guard.holds(sizes.__getitem__) for guard in scope.guards):
        return None
    (result,) = interpret(graph, arrays, sizes)
    return result


def numbers(shape):
    return np.random.default_rng(0).normal(size=shape)


VECTORS = {
    "rest": lambda np, x: x[1:],
    "most": lambda np, x: x[:-1],
    "even": lambda np, x: x[::2],
    "odd": lambda np, x: x[1::2],
    "reversed": lambda np, x: x[::-1],
    "reversed by 3": lambda np, x: x[-2::-3],
    "backwards": lambda np, x: x[4:1:-1],
    "backwards from the end": lambda np, x: x[-1:-4:-1],
    "head": lambda np, x: x[:10],
    "tail": lambda np, x: x[-10:],
    "middle": lambda np, x: x[2:-2],
    "middle of the tail": lambda np, x: x[-5:-2],
    "slice of a slice": lambda np, x: x[1:][::-1][2:],
    "differences": lambda np, x: x[1:] - x[:-1],
    "outer": lambda np, x: x[:, None] * x[None, ::-1],
    "half": lambda np, x: x[: x.shape[0] // 2],
    "sum": lambda np, x: np.sum(x),
    "mean": lambda np, x: np.mean(x),
    "var": lambda np, x: np.var(x, ddof=1),
    "any": lambda np, x: np.any(x > 0),
    "concatenate": lambda np, x: np.concatenate([x, x[:-1], x * 2]),
    "stack": lambda np, x: np.stack([x, -x], 1),
    "roll": lambda np, x: np.roll(x, 3),
    "roll back": lambda np, x: np.roll(x, -2),
    "pad": lambda np, x: np.pad(x, (1, 2)),
    "arange": lambda np, x: x + np.arange(x.shape[0]),
    "arange by 3": lambda np, x: np.arange(1, x.shape[0], 3),
    "arange down": lambda np, x: np.arange(x.shape[0], 0, -2),
    "linspace": lambda np, x: x * np.linspace(0.0, 1.0, x.shape[0]),
    "eye": lambda np, x: np.eye(x.shape[0]) * x,
    "tile": lambda np, x: np.tile(x, 3),
    "repeat": lambda np, x: np.repeat(x, 2),
    "zeros": lambda np, x: np.zeros(x.shape),
    "column": lambda np, x: np.reshape(x, (-1, 1)),
    "repeated square": lambda np, x: np.broadcast_to(x, (x.shape[0], x.shape[0])),
    "dot": lambda np, x: np.dot(x, x),
    "size": lambda np, x: x * x.shape[0],
}


@pytest.mark.filterwarnings("ignore:(Mean of empty|Degrees of freedom):RuntimeWarning")
@pytest.mark.parametrize("seen", [0, 1, 7])
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_need_no_guard(name, seen):
    graph, scope = traced(VECTORS[name], numbers(seen))
    assert not scope.guards
    for size in (0, 1, 2, 3, 4, 5, 9, 12, 23):
        x = numbers(size)
        np.testing.assert_allclose(run(graph, scope, [x]), VECTORS[name](np, x), rtol=1e-12, atol=1e-15)


MATRICES = {
    "transpose": lambda np, x: np.transpose(x)[1:],
    "softmax": lambda np, x: hnp.softmax(x, -1) if np is hnp else softmax(x),
    "flatten": lambda np, x: np.reshape(x, (-1,)),
    "keep rows": lambda np, x: np.reshape(x, (x.shape[0], x.shape[1] * 1)),
    "split and merge": lambda np, x: np.reshape(np.reshape(x, (x.shape[0], 1, x.shape[1])), (-1,)),
    "by row": lambda np, x: x - np.mean(x, axis=0, keepdims=True),
    "gram": lambda np, x: x.T @ x,
    "einsum": lambda np, x: np.einsum("ij,ik->jk", x, x),
    "diagonal": lambda np, x: np.diagonal(x, 1),
    "lower": lambda np, x: np.tril(x, 1),
    "flip": lambda np, x: np.flip(x, 1),
    "roll": lambda np, x: np.roll(x, 2, 1),
    "join": lambda np, x: np.concatenate([x, x[:, :1]], axis=1),
    "swap": lambda np, x: np.moveaxis(np.expand_dims(x, 0), 0, -1),
    "any": lambda np, x: np.all(x > 0, axis=1),
    "prod": lambda np, x: np.prod(x, axis=1),
}


def softmax(x):
    powers = np.exp(x)
    return powers / np.sum(powers, -1, keepdims=True)


@pytest.mark.filterwarnings("ignore:Mean of empty:RuntimeWarning")
@pytest.mark.parametrize("seen", [(0, 0), (1, 1), (4, 3)])
@pytest.mark.parametrize("name", MATRICES)
def test_matrices_need_no_guard(name, seen):
    graph, scope = traced(MATRICES[name], numbers(seen))
    assert not scope.guards
    for size in itertools.product((0, 1, 2, 5), repeat=2):
        x = numbers(size)
        np.testing.assert_allclose(run(graph, scope, [x]), MATRICES[name](np, x), rtol=1e-12, atol=1e-15)


def test_maximum_asks_for_elements_only():
    for name in ("max", "min", "argmax", "argmin"):
        graph, scope = traced(lambda hnp, x, name=name: getattr(hnp, name)(x, axis=1), numbers((2, 3)))
        assert len(scope.guards) == 1
        assert run(graph, scope, [numbers((2, 0))]) is None
        for shape in ((0, 1), (3, 4)):
            x = numbers(shape)
            np.testing.assert_array_equal(run(graph, scope, [x]), getattr(np, name)(x, axis=1))


def test_argmax_of_all():
    graph, scope = traced(lambda hnp, x: hnp.argmax(x), numbers((2, 3)))
    for shape in ((1, 1), (3, 4), (5, 2)):
        assert run(graph, scope, [numbers(shape)]) == np.argmax(numbers(shape))


def test_matrix_products_unify_the_inner_sizes():
    graph, scope = traced(lambda hnp, a, b: a @ b, numbers((2, 3)), numbers((3, 4)))
    assert len(scope.guards) == 1
    assert run(graph, scope, [numbers((2, 3)), numbers((4, 4))]) is None
    for m, k, n in itertools.product((0, 1, 3), repeat=3):
        a, b = numbers((m, k)), numbers((k, n))
        np.testing.assert_allclose(run(graph, scope, [a, b]), a @ b, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(x.shape[0], -1),
        lambda x: x.reshape(-1, 2 * x.shape[0]),
        lambda x: x.reshape(x.shape[0], 2, -1),
    ],
)
def test_the_rest_of_nothing_could_be_any_size(function):
    """As in NumPy, and as outside a trace: no size -1 beside a size 0; all other sizes have one program."""
    f = harp.jit(function)
    for rows in (3, 1, 7):
        x = numbers((rows, 4))
        np.testing.assert_array_equal(f(x), function(x))
    assert f.compilations == 1
    for call in (f, lambda x: function(hnp.asarray(x)), harp.jit(function)):
        with pytest.raises(ShapeError, match="-1 could be any; write the size itself"):
            call(numbers((0, 4)))


def test_the_rest_of_something_is_known():
    f = harp.jit(lambda x: x.reshape(-1, x.shape[1], 1))
    for shape in ((3, 4), (0, 4), (1, 1)):
        np.testing.assert_array_equal(f(numbers(shape)), numbers(shape)[..., None])
    assert f.compilations == 1
    graph = harp.trace(lambda x: x.reshape(x.shape[0], -1), harp.f64["n", 4])  # nobody to ask
    assert [str(size) for size in graph.outputs[0].shape] == ["n", "4"]


def test_heads_split_and_merge():
    def heads(hnp, x):
        split = hnp.reshape(x, (x.shape[0], -1, 4))
        return hnp.reshape(hnp.swapaxes(split, 0, 1), (-1, x.shape[0] * 4))

    graph, scope = traced(heads, numbers((3, 8)))
    assert run(graph, scope, [numbers((3, 9))]) is None
    for rows, columns in itertools.product((1, 2, 5), (0, 4, 12)):
        x = numbers((rows, columns))
        expected = x.reshape(rows, columns // 4, 4).swapaxes(0, 1).reshape(-1, rows * 4)
        np.testing.assert_array_equal(run(graph, scope, [x]), expected)


def test_split_in_equal_sections():
    graph, scope = traced(lambda hnp, x: hnp.split(x, 3)[1], numbers(6))
    assert run(graph, scope, [numbers(7)]) is None
    for size in (0, 3, 12):
        np.testing.assert_array_equal(run(graph, scope, [numbers(size)]), np.split(numbers(size), 3)[1])


def test_integers_ask_to_be_in_range():
    graph, scope = traced(lambda hnp, x: x[2] + x[-3], numbers(6))
    assert run(graph, scope, [numbers(2)]) is None
    assert run(graph, scope, [numbers(3)]) == 2 * 0 + numbers(3)[2] + numbers(3)[0]
    graph, scope = traced(lambda hnp, x: x[x.shape[0] // 2], numbers(6))
    assert run(graph, scope, [numbers(0)]) is None
    assert run(graph, scope, [numbers(9)]) == numbers(9)[4]


def test_sizes_as_bounds():
    def window(hnp, x, y):
        n = y.shape[0]
        return x[n:], x[:n], x[-n:] if n > 0 else x, x[::n]

    for k in range(4):
        graph, scope = traced(lambda hnp, x, y, k=k: window(hnp, x, y)[k], numbers(6), numbers(2))
        for size, n in itertools.product((0, 1, 4, 7), (1, 2, 9)):
            x, y = numbers(size), numbers(n)
            np.testing.assert_array_equal(run(graph, scope, [x, y]), window(np, x, y)[k])
