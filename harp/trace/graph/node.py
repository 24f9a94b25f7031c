"""The graph's nodes: what a program *is*. Every node is immutable and interned, so equal programs are one object.

    node = Input(uid, name, shape, dtype)                 a parameter; unique to its trace
         | Constant(captured)                             an array that the function closed over, copied
         | MapReduce(domain, operands, expr, reduce, axes)    evaluate `expr` at every index of the domain over operands
                                                          of exactly that shape; reduce `axes`, if `reduce` is given
         | View(src, shape, index, conditions, fill)      no arithmetic: output position i0, i1, ... reads
                                                          src[index] where all conditions are >= 0, else `fill`
         | Gather(src, indices, fill, strict)             index by data: position (k..., j...) reads
                                                          src[indices[0][k...], indices[1][k...], ..., j...]
         | Scatter(base, indices, updates, kind)          `base`, in which updates[k..., j...] in the order of k are
                                                          put at [indices[0][k...], indices[1][k...], ..., j...]
         | Cumulative(operands, reduce, axis, backward)   running along an axis: r[i] = reduce(r[i-1], x[i]), or without
                                                          `reduce` the recurrence r[i] = a[i]*r[i-1] + b[i]
         | Contiguous(src)                                compute this here and keep it
         | RowWise(function, operands, reverse)           a function of whole rows, of `harp.trace.graph.row_functions`
         | Examples(operand, number, size)                the operand in all examples of a batch, along a new first axis
         | HostCall(token, active, operands, function)    a call of a function of Python, for what it does
         | Iteration(length, operands, body, tested, reverse)   a body that runs again and again on what it carries
         | Custom(operands, body, derivative)             a body that runs once, whose derivatives somebody has given
         | Foreign(routine, calls, operands, results, sizes)    a routine of the user, for what it returns
         | Part(whole, number)                            one of the results of an Iteration, a Custom or a Foreign

Shapes are tuples of index expressions. In a MapReduce's `expr` and a View's index map, Loop(k, extent of axis k) is
the position along axis k of the domain or of the view's shape.

A Cumulative starts from the identity of `reduce`, the recurrence from 0: before the first element or, if it goes
`backward`, behind the last one.

An Iteration's operands are what its body carries at first, arrays with an element of their first axis for each
iteration, and arrays that are the same in all. Its body, a `Body`, takes the number of the iteration and these, and
gives what is carried on, and elements of arrays that it makes. Its results are what is carried in the end, and these
arrays. If it is `tested`, the first of what it carries is a truth value, and it ends before the first iteration in
which this is false: such a loop takes no elements of arrays, and of those that it makes nobody reads what it has not
made then. Without length it makes none. If it goes in `reverse`, the last iteration runs first.

An Examples stands in a function of one example, inside of a `vmap` with an axis name: batching turns it into the array
of all examples. `number` is the example's own number, so a batch in which that differs is the one that it speaks of.

A HostCall calls its function once for each element of its token, in row-major order, where `active` is true, with the
elements of its operands at that place. Its value is the token and 1. A call takes the value of the one before it as its
token: so graphs are pure, calls keep their order, and a call runs if and only if somebody reads its value.

A Foreign calls its routine for each element of the shape `calls`, in any order, as often as anybody likes, or never.
The indices of a Gather or Scatter are integer arrays of one shape, one for each of the first axes. A negative index
counts from the end. Outside the axis a Gather reads `fill`, or without one the nearest element; a Scatter drops the
update, or puts it at the nearest element if it `clips`. What goes to the nearest element needs an axis that has one:
that is a guard.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from itertools import count

import attrs
import numpy as np

from harp.trace.graph.kernel_source import Routine
from harp.trace.graph.routines import HostFunction
from harp.trace.graph.row_functions import ROWS, RowOp
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, Loop, Shape, as_index, loop
from harp.trace.interning import Interned, InternedBase, InternedByName
from harp.trace.scalar.dtypes import DType, NDArray, as_dtype, bool_, i64
from harp.trace.scalar.expr import Const, Expr
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.source_locations import Site


class Node(InternedBase, metaclass=Interned):
    """Base of the nodes. `inputs` are the nodes that it reads."""

    __slots__ = ()
    shape: Shape
    dtype: DType

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.dtype}{list(self.shape)}>"


_uids = count()


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Input(Node):
    """A parameter. Two parameters are never the same node, whatever their shapes: `uid` tells them apart."""

    uid: int
    name: str
    shape: Shape
    dtype: DType


def fresh_input(name: str, shape: Shape, dtype: DType) -> Input:
    return Input(next(_uids), name, shape, dtype)


class Captured:
    """A contiguous array that nobody writes to: what a function closed over, copied before it gets here."""

    __slots__ = ("array",)

    def __init__(self, private: NDArray) -> None:
        self.array = np.require(private, as_dtype(private.dtype).numpy, "C").view()
        self.array.flags.writeable = False

    def __reduce__(self) -> tuple[object, ...]:
        return Captured, (self.array,)


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Constant(Node):
    """A captured array: a hidden input of the program, not part of its source."""

    captured: Captured
    shape: Shape = attrs.field(init=False)
    dtype: DType = attrs.field(init=False)

    @shape.default
    def _shape(self) -> Shape:
        return tuple(map(as_index, self.captured.array.shape))

    @dtype.default
    def _dtype(self) -> DType:
        return as_dtype(self.captured.array.dtype)


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class MapReduce(Node):
    """All arithmetic. The shape is the domain without the reduced axes."""

    domain: Shape
    operands: tuple[Node, ...]
    expr: Expr
    reduce: Reduce | None = None
    axes: tuple[int, ...] = ()
    shape: Shape = attrs.field(init=False)

    @shape.default
    def _shape(self) -> Shape:
        return tuple(extent for axis, extent in enumerate(self.domain) if axis not in self.axes)

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.expr.dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.operands


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class View(Node):
    """Another way to index `src`. `fill` is there exactly if there are conditions."""

    src: Node
    shape: Shape
    index: tuple[Index, ...]
    conditions: tuple[Index, ...] = ()
    fill: Const | None = None

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.src.dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.src,)


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Gather(Node):
    """Elements of `src` at places that are data. The shape is that of the indices, then the axes that they leave.

    Where it is `strict`, nobody has said what an index outside means: a checked program reports it."""

    src: Node
    indices: tuple[Node, ...]
    fill: Const | None = None
    strict: bool = False
    shape: Shape = attrs.field(init=False)

    @shape.default
    def _shape(self) -> Shape:
        return self.indices[0].shape + self.src.shape[len(self.indices) :]

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.src.dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.src, *self.indices)


class Put(enum.Enum):
    """What a Scatter makes of the element that is there and an update: the update, or an operation on both."""

    SET = None
    ADD = Op.ADD
    MULTIPLY = Op.MUL
    MIN = Op.MIN
    MAX = Op.MAX

    __hash__ = object.__hash__  # by C, as keys of nodes need it


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Scatter(Node):
    """`base` with updates at places that are data. Updates of one place take turns in row-major order of the indices;
    so of those that are set the last one is there in the end. `unique` says that no place has two, and `strict` is as
    that of a Gather."""

    base: Node
    indices: tuple[Node, ...]
    updates: Node
    kind: Put
    clips: bool = False
    unique: bool = False
    strict: bool = False

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.base.shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.base.dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.base, *self.indices, self.updates)


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Cumulative(Node):
    """A running sum, product, maximum or minimum along an axis; without `reduce`, of operands a and b, the recurrence
    r = a*r' + b. Its cotangents are recurrences again, in the other direction."""

    operands: tuple[Node, ...]
    reduce: Reduce | None
    axis: int
    backward: bool = False

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.operands[0].shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.operands[0].dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.operands


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Contiguous(Node):
    """The materialisation point: `src` is computed once, here, and stored."""

    src: Node

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.src.shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.src.dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.src,)


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class RowWise(Node):
    """A function of whole rows: sorting, searching. It has the shape of its last operand, with the same rows in all."""

    function: RowOp
    operands: tuple[Node, ...]
    reverse: bool = False

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.operands[-1].shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return i64 if ROWS[self.function].positions else self.operands[-1].dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.operands


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Examples(Node):
    """The operand in all `size` examples of the batch in which `number` is the number of the example."""

    operand: Node
    number: Node
    size: Index

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return (self.size, *self.operand.shape)

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return self.operand.dtype

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.operand, self.number)


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class HostCall(Node):
    """A call of a function of Python. All operands have the shape of the token, and then one of their own. In the graph
    of a program the function is a number: the functions are the caller's, like captured arrays."""

    token: Node
    active: Node
    operands: tuple[Node, ...]
    function: HostFunction | int

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return self.token.shape

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return i64

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.token, self.active, *self.operands)


@attrs.frozen(eq=False, weakref_slot=False)
class Body(InternedBase, metaclass=InternedByName):
    """What happens in one iteration: a graph of its own, over nothing but its inputs.

    `inputs` are the number of the iteration (int64), what is carried, the elements of arrays, and what is the same in
    all iterations; `outputs` what is carried on, `carried` arrays, and then elements of arrays. Inputs are numbered by
    their places, so that equal bodies are equal. `sites` says which line of the user made a node, as that of a `Graph`:
    bodies that are written on different lines are different ones, so that errors name the right one. Of a loop that
    `recomputes` reverse mode keeps no state of each step, but computes them again from a few."""

    inputs: tuple[Input, ...]
    outputs: tuple[Node, ...]
    carried: int
    sliced: int
    sites: tuple[tuple[Node, Site], ...] = ()
    recomputes: bool = False

    def place(self) -> tuple[range, range, range]:
        """Which inputs are carried, elements, and the same in all iterations."""
        first, second = 1 + self.carried, 1 + self.carried + self.sliced
        return range(1, first), range(first, second), range(second, len(self.inputs))


def body_input(place: int, shape: Shape, dtype: DType) -> Input:
    """The input of a body at a place: the same for all bodies, since no node is of two of them."""
    return Input(-1 - place, f"b{place}", shape, dtype)


class Several(Node):
    """Base of the nodes with several results. It has no value itself: a `Part` is one of its results."""

    __slots__ = ()
    operands: tuple[Node, ...]

    @property
    def shape(self) -> Shape:  # type: ignore[override]
        return ()

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return bool_

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.operands

    @property
    def count(self) -> int:
        """How many results there are."""
        raise NotImplementedError

    def result(self, number: int) -> tuple[Shape, DType]:
        """The shape and dtype of a result."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Part, ...]:
        """All results."""
        return tuple(Part(self, number) for number in range(self.count))


class WithBody(Several):
    """Base of those with a graph of their own."""

    __slots__ = ()
    body: Body

    @property
    def count(self) -> int:
        return len(self.body.outputs)

    def result(self, number: int) -> tuple[Shape, DType]:
        output = self.body.outputs[number]
        return output.shape, output.dtype


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Iteration(WithBody):
    """Structured control flow. Without length it is tested."""

    length: Index | None
    operands: tuple[Node, ...]
    body: Body
    tested: bool = False
    reverse: bool = False

    def result(self, number: int) -> tuple[Shape, DType]:
        output = self.body.outputs[number]
        if number < self.body.carried:
            return output.shape, output.dtype
        assert self.length is not None, "nobody knows how many elements the arrays would have"
        return (self.length, *output.shape), output.dtype


class Derivative:
    """Base of what somebody has given as derivatives; see `harp.transforms.autodiff.custom`."""

    __slots__ = ()


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Custom(WithBody):
    """A function with derivatives of its own. Lowering puts its body in its place; the body's first input is 0."""

    operands: tuple[Node, ...]
    body: Body
    derivative: Derivative


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Foreign(Several):
    """Calls of a routine, which `sizes` are told besides. In the graph of a program a function of Python is a number.
    `results` are shapes and dtypes of one call; all operands have the shape `calls`, and then one of their own."""

    routine: Routine | int
    calls: Shape
    operands: tuple[Node, ...]
    results: tuple[tuple[Shape, DType], ...]
    sizes: tuple[Index, ...] = ()

    @property
    def count(self) -> int:
        return len(self.results)

    def result(self, number: int) -> tuple[Shape, DType]:
        return self.calls + self.results[number][0], self.results[number][1]


@attrs.frozen(eq=False, repr=False, slots=True, weakref_slot=False)
class Part(Node):
    """A result of a node that has several, by number."""

    whole: Several
    number: int
    shape: Shape = attrs.field(init=False)  # kept, for a loop asks its body, whose loops ask theirs
    dtype: DType = attrs.field(init=False)

    @shape.default
    def _shape(self) -> Shape:
        return self.whole.result(self.number)[0]

    @dtype.default
    def _dtype(self) -> DType:
        return self.whole.result(self.number)[1]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.whole,)


KINDS: tuple[type[Node], ...] = (
    Input,
    Constant,
    MapReduce,
    View,
    Gather,
    Scatter,
    Cumulative,
    Contiguous,
    RowWise,
    Examples,
    HostCall,
    Iteration,
    Custom,
    Foreign,
    Part,
)


def positions(shape: Shape) -> tuple[Index, ...]:
    """The loop along each axis: the identity index map."""
    return tuple(loop(axis, extent) for axis, extent in enumerate(shape))


def at(shape: Shape, index: tuple[Index, ...]) -> Substitution:
    """The substitution that puts `index` for the positions along the axes of `shape`."""
    loops: dict[Atom, Index] = {Loop(axis, extent): index[axis] for axis, extent in enumerate(shape)}
    return Substitution(loops)


def _inputs(node: Node) -> tuple[Node, ...]:
    return node.inputs


def walk(roots: Iterable[Node], reads: Callable[[Node], tuple[Node, ...]] = _inputs) -> Iterator[Node]:
    """Every node below the roots once, after what it `reads`; no recursion, however deep the graph."""
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(reads(node)) if child not in seen)
