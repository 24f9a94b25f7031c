"""Gather and Scatter as programs: what they mean at every size, what runs in parallel, and what is read once."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import AddressError, VerificationError
from harp.lower.graph.simplify import simplify
from harp.lower.loopir.loops import For, LoopKind, walk
from harp.lower.pipeline import lower
from harp.lower.verify.interpreter import execute
from harp.lower.verify.verify import verify_program
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Gather, MapReduce, Put, Scatter, positions
from harp.trace.graph.verify import verify_graph
from harp.trace.graph.view import pad, view
from harp.trace.index.bounds import nonnegative
from harp.trace.index.polynomial import ONE, ZERO, Index, Indirect, Symbol, as_index, loop, of
from harp.trace.scalar.dtypes import f32, i32, i64
from harp.trace.scalar.expr import Operand, Position, cast, const
from harp.trace.scalar.ops import Op, Reduce
from tests.lower.graphs import WIDE, K, M, N, elementwise, graph, parameter, unary

X, TABLE = parameter(N, name="x"), parameter(N, M, name="table")
AT, UPDATES = parameter(K, dtype=i64, name="at"), parameter(K, M, name="updates")
ZERO_FILL = const(0, f32)


def own_positions(*shape: Index, axis: int = 0) -> MapReduce:
    return MapReduce(shape, (), Position(positions(shape)[axis]))


def shifted(index: MapReduce) -> MapReduce:
    return elementwise(lambda a: a + const(-1, a.dtype), index)


PLACED = Scatter(TABLE, (AT,), UPDATES, Put.SET)
GRAPHS = {
    "gather": Gather(TABLE, (AT,)),
    "gather or fill": Gather(TABLE, (AT,), ZERO_FILL),
    "of a computed array": Gather(unary(Op.EXP, TABLE), (AT,)),
    "of a sum": Gather(MapReduce((N, M), (TABLE,), Operand(f32, 0), Reduce.SUM, (1,)), (AT,)),
    "computed indices": Gather(TABLE, (shifted(AT),)),
    "indices of a view": Gather(TABLE, (view(AT, (K,), (K - 1 - loop(0, K),)),)),
    "pairs": Gather(TABLE, (AT, shifted(AT))),
    "own rows": Gather(UPDATES, (own_positions(K), AT)),
    "twice": Gather(Gather(TABLE, (AT,), ZERO_FILL), (AT,), ZERO_FILL),
    "indices that are gathered": Gather(TABLE, (Gather(AT, (AT,), const(0, i64)),)),
    "sum of rows": MapReduce((K, M), (Gather(TABLE, (AT,)),), Operand(f32, 0), Reduce.SUM, (1,)),
    "sum of columns": MapReduce((K, M), (Gather(TABLE, (AT,)),), Operand(f32, 0), Reduce.SUM, (0,)),
    "inside a pad": pad(Gather(X, (AT,)), [1], [1], ZERO_FILL),
    "of a view, inside a pad": pad(
        Gather(view(X, (N,), (N - 1 - loop(0, N),)), (AT,), ZERO_FILL), [2], [1], const(1, f32)
    ),
    "of a pad in a pad, inside a pad": pad(
        Gather(pad(pad(X, [1], [1], const(1, f32)), [1], [1], const(2, f32)), (AT,)), [1], [1], const(3, f32)
    ),
    "of a view of what is gathered": Gather(
        view(Gather(view(X, (N,), (N - 1 - loop(0, N),)), (AT,), ZERO_FILL), (K,), (K - 1 - loop(0, K),)),
        (AT,),
        const(2, f32),
    ),
    "read by an expression": unary(Op.SIN, Gather(X, (AT,), ZERO_FILL)),
    "of a padded array": Gather(pad(X, [1], [0], ZERO_FILL), (AT,)),
    **{f"scatter {kind.name}": Scatter(TABLE, (AT,), UPDATES, kind) for kind in Put},
    "clipped": Scatter(TABLE, (AT,), UPDATES, Put.ADD, True),
    "into zeros": Scatter(MapReduce((N, M), (), ZERO_FILL), (AT,), UPDATES, Put.ADD),
    "into a map": Scatter(unary(Op.EXP, TABLE), (AT,), unary(Op.SIN, UPDATES), Put.ADD),
    "one after the other": Scatter(PLACED, (shifted(AT),), UPDATES, Put.ADD),
    "and read again": Gather(PLACED, (AT,), ZERO_FILL),
    "updates that read the base": Scatter(TABLE, (AT,), Gather(TABLE, (AT,), ZERO_FILL), Put.MULTIPLY),
    "own elements": Scatter(UPDATES, (own_positions(K), AT), elementwise(lambda a: cast(a, f32), AT), Put.ADD),
    "sums of rows": Scatter(X, (AT,), MapReduce((K, M), (UPDATES,), Operand(f32, 0), Reduce.SUM, (1,)), Put.ADD),
}
SIZES = [(5, 3, 7), (1, 1, 1), (4, 40, 3), (3, 0, 2), (2, 5, 0), (3, 3, 3)]


def arrays_for(g: Graph, n: int, m: int, k: int) -> list[np.ndarray]:
    rng = np.random.default_rng(n + m + k)
    numbers = {N: n, M: m, K: k}
    made = {}
    for name, parameter_ in {"x": X, "table": TABLE, "at": AT, "updates": UPDATES}.items():
        shape = tuple(numbers[p] for p in parameter_.shape)
        made[name] = rng.integers(-n - 2, n + 2, shape) if name == "at" else rng.random(shape, np.float32)
    return [made[i.name] for i in g.inputs]


@pytest.mark.parametrize("name", GRAPHS)
def test_programs_do_what_the_graph_means(name):
    g = graph(GRAPHS[name])
    verify_graph(g)
    program = lower(g, WIDE).program
    assert not [text for text in verify_program(program) if "inside" in text], "bounds that are not proved"
    for n, m, k in SIZES:
        arrays, sizes = arrays_for(g, n, m, k), {p.atom: v for p, v in ((N, n), (M, m), (K, k))}
        try:
            expected = interpret(g, arrays, sizes, check=True)
        except AddressError:  # the nearest element of none: a guard of the trace
            continue
        found = execute(program, arrays, sizes)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)


def parallel_loops(output) -> list[str]:
    kernels = lower(graph(output), WIDE).program.kernels
    heads = [(kernel.name, h) for kernel in kernels for s in walk(kernel.body) for h in getattr(s, "heads", ())]
    return [name for name, h in heads if isinstance(h, For) and h.kind is LoopKind.PARALLEL]


def calls(output) -> list[str]:
    """The names of the kernels that the program calls, in order."""
    program = lower(graph(output), WIDE).program
    return [program.kernels[call.kernel].name for call in program.calls]


def test_what_runs_in_parallel():
    """Rows that are read are apart; rows that are written may meet, their columns not; own rows are apart."""
    assert parallel_loops(GRAPHS["gather"]) == ["copy"]
    # Of the blocks of many updates also the sums: they are cleared, filled and added.
    assert parallel_loops(GRAPHS["scatter ADD"]) == ["copy", *["scatter"] * 4]
    assert parallel_loops(GRAPHS["own elements"]) == ["copy", "scatter"]
    assert (
        parallel_loops(GRAPHS["sums of rows"]).count("scatter") == 3
    )  # of the remainder each update may meet the next


def test_places_are_read_once_before_inner_loops():
    text = lower(graph(GRAPHS["scatter ADD"]), WIDE).loops
    scatter = text.split("kernel 1 scatter(in0: i64[s0], ")[1]
    for name, array in (("p0", "sums0[i2, p0, "), ("p1", "out0[p1, ")):
        _, _, inner = scatter.partition(f"let {name} = in0[")
        assert array in inner and "in0[" not in inner.split("\n", 1)[1].split("let")[0]


def test_a_base_that_nobody_else_reads_is_made_in_place():
    (slot,) = lower(graph(GRAPHS["into a map"]), WIDE).program.scratch  # the sums of blocks of many updates
    assert len(slot.buffers[0].shape) == 3
    assert calls(GRAPHS["one after the other"]) == ["copy", "scatter", "map", "scatter"]
    base = unary(Op.EXP, TABLE)
    both = graph(Scatter(base, (AT,), UPDATES, Put.ADD), base)
    arrays, sizes = arrays_for(both, 4, 3, 5), {N.atom: 4, M.atom: 3, K.atom: 5}
    found = execute(lower(both, WIDE).program, arrays, sizes)
    np.testing.assert_allclose(found[1], np.exp(arrays[0]), rtol=1e-6)
    np.testing.assert_allclose(found[0], interpret(both, arrays, sizes)[0], rtol=1e-6)


def test_what_is_certain_to_be_inside_is_no_element_of_an_array():
    text = lower(graph(GRAPHS["own rows"]), WIDE).loops
    assert "copy(in0: f32[s0, s1], in1: i64[s0], out0: f32[s0], s0, s1)" in text
    assert "out0[4096*i1 + i2] = in0[4096*i1 + i2, in1[4096*i1 + i2]]" in text


def test_a_gathered_number_is_a_number():
    number = MapReduce((N,), (), ZERO_FILL)
    assert simplify(graph(Gather(number, (AT,)))).outputs == (MapReduce((K,), (), ZERO_FILL),)
    other = Gather(number, (AT,), const(1, f32))
    assert simplify(graph(other)).outputs == (other,)


@pytest.mark.parametrize(
    ("node", "match"),
    [
        (Gather(X, (AT, AT)), "2 indices into 1 axes"),
        (Gather(X, (X,)), "not integers of one shape"),
        (Gather(TABLE, (AT, parameter(N, dtype=i64))), "not integers of one shape"),
        (Gather(X, (AT,), const(0, i32)), "fill of dtype i32"),
        (Scatter(TABLE, (AT,), TABLE, Put.SET), "updates"),
    ],
)
def test_the_verifier_of_graphs(node, match):
    with pytest.raises(VerificationError, match=match):
        verify_graph(graph(node))


def test_picks_are_atoms_with_bounds():
    class Named:
        name = "a"

    array, (n, k) = Named(), (of(Symbol(0, 0, "n")), of(Symbol(0, 1, "k")))
    inside, missing = of(Indirect(array, (loop(0, k),), n)), of(Indirect(array, (loop(0, k),), n, True))
    assert nonnegative(n - 1 - inside) and nonnegative(inside) and nonnegative(n - missing)
    assert not nonnegative(n - 1 - missing)
    assert inside is of(Indirect(array, (loop(0, k),), n)) and inside is not missing
    assert repr(inside) == "a[i0]" and as_index(0) is ZERO and loop(0, ONE) is ZERO


def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    i, u = rng.integers(0, 50, 4000), rng.standard_normal((4000, 300)).astype(np.float32)
    expected = np.zeros((50, 300), np.float32)
    np.add.at(expected, i, u)
    for threads in (1, 2, 3):
        function = harp.jit(lambda i, u: hnp.zeros((50, u.shape[1]), hnp.float32).at[i].add(u), threads=threads)
        np.testing.assert_array_equal(np.asarray(function(i, u)), expected)


def test_a_donated_array_is_changed_in_place():
    g = graph(GRAPHS["one after the other"])
    program = lower(g, WIDE, donated=(0,)).program
    assert program.donated == ((0, 0),) and sorted(k.name for k in program.kernels) == ["map", "scatter", "scatter"]
    reading = graph(GRAPHS["updates that read the base"])
    assert not lower(reading, WIDE, donated=(0,)).program.donated
    arrays, sizes = arrays_for(g, 4, 3, 5), {N.atom: 4, M.atom: 3, K.atom: 5}
    np.testing.assert_allclose(execute(program, arrays, sizes)[0], interpret(g, arrays, sizes)[0], rtol=1e-6)


def test_donated_arrays():
    function = harp.jit(lambda x, i, u: (x.at[i].add(u), i + 1), donate_argnums=(0, 1))
    x, i, u = np.ones((4, 3), np.float32), np.array([1, 1]), np.ones((2, 3), np.float32)
    found, more = function(hnp.asarray(x), hnp.asarray(i), u)
    np.add.at(x, i, u)
    np.testing.assert_array_equal(np.asarray(found), x)
    np.testing.assert_array_equal(np.asarray(more), i + 1)


def test_of_the_labels_only_is_computed_what_is_wanted():
    """A logarithm of probabilities for each row, where its label is: the others are not computed, nor stored."""

    def loss(x, labels):
        logs = x - hnp.logsumexp(x, axis=1, keepdims=True)
        return -hnp.mean(hnp.take_along_axis(logs, labels[:, None], axis=1))

    x, labels = np.random.default_rng(0).normal(size=(40, 7)), np.arange(40) % 7
    compiled = harp.jit(loss)
    kept = [buffer for slot in compiled.lower(x, labels)._program.scratch for buffer in slot.buffers]
    assert all(len(buffer.shape) < 2 for buffer in kept)
    logs = x - np.log(np.exp(x).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(float(compiled(x, labels)), -logs[np.arange(40), labels].mean())
    spread = harp.jit(lambda x, i: hnp.exp(x)[i])  # of rows that may be wanted several times all are computed once
    np.testing.assert_allclose(np.asarray(spread(x, labels)), np.exp(x)[labels])
    assert len(spread.lower(x, labels)._program.scratch) == 1
