"""Errors as values: `check` inside of compiled programs, and `checkify`, which returns the first that fails.

A check is a call of Python that runs where it fails, and raises. `checkify` puts the code of a message in place of
each: the token that orders calls of Python, through loops, branches and batches, is the code of the first that has
failed. Codes are digests of messages, which this process remembers.

>>> from harp import jax
>>> from harp.jax.experimental import checkify
>>> def root(x):
...     checkify.check(x >= 0, "{x} is negative", x=x)
...     return x**0.5
>>> error, value = jax.jit(checkify.checkify(root))(-4.0)
>>> error.get().splitlines()[0]
'-4.0 is negative (`check` failed)'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, wraps
from hashlib import blake2b
from itertools import product
from typing import Any

import numpy as np

from harp.debug import require_format
from harp.errors import ArgumentError, CheckError
from harp.trace.array.array import Array, marked, node_of
from harp.trace.array.host_calls import is_array, taking_arrays
from harp.trace.array.primitives import as_array, emit, emit_results, fold, map_
from harp.trace.graph.graph import Graph, inline
from harp.trace.graph.host_calls import calls_python, with_calls
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.graph.node import Cumulative, Foreign, Gather, HostCall, MapReduce, Node, Part, Scatter
from harp.trace.graph.routines import HostFunction, PureFunction
from harp.trace.scalar.dtypes import NDArray, bool_, i64
from harp.trace.scalar.expr import Apply, Expr, Operand, Position, apply, cast, const, select
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.levels import STATE, current
from harp.trace.source_locations import where
from harp.trace.tracer import Argument, function_name, leaf_names
from harp.trace.trees import Tree, flatten, unflatten
from harp.transforms.control.conditional import cond
from harp.transforms.staging import fresh_token, note_token, run, shape_of, stage, with_arrays
from harp.tree import register

JaxRuntimeError = CheckError
user_checks, nan_checks, div_checks, index_checks = (frozenset({kind}) for kind in ("user", "nan", "div", "index"))
float_checks = nan_checks | div_checks
automatic_checks = float_checks | index_checks
all_checks = automatic_checks | user_checks
# What messages there were, by their digests, and the most that are remembered.
_TEXTS: dict[int, str] = {}
_MOST = 1 << 16


def _remembered(text: str) -> int:
    """The code of a message, the same in all processes."""
    code = int.from_bytes(blake2b(text.encode(), digest_size=7).digest(), "little") + 1
    if len(_TEXTS) >= _MOST:
        _TEXTS.pop(next(iter(_TEXTS)), None)
    _TEXTS[code] = text
    return code


class Error:
    """Which check has failed first, if any: a tree of one array, with an axis for each batch."""

    def __init__(self, code: Any) -> None:
        _register()
        self.code = code

    def get(self) -> str | None:
        """The message, of a batch a line for each example that has one; None where nothing failed."""
        codes = np.asarray(self.code)
        found = {place: _text(int(codes[place])) for place in np.ndindex(codes.shape) if codes[place]}
        if not found or not codes.ndim:
            return found.get(())
        return "\n".join(f"at mapped index {', '.join(map(str, place))}: {text}" for place, text in found.items())

    def get_exception(self) -> CheckError | None:
        """The error that `throw` raises, or None."""
        text = self.get()
        return None if text is None else CheckError(text)

    def throw(self) -> None:
        """Raise CheckError with the message, if something failed; in a function that is traced this is a check."""
        check_error(self)

    def __repr__(self) -> str:
        return f"Error({self.get()})" if current() is None else "Error(...)"


@cache
def _register() -> None:
    """When the first one is made, and not while modules are imported."""
    register(Error, flatten=lambda error: ((error.code,), None), unflatten=lambda _, parts: Error(*parts))


def _text(code: int) -> str:
    return _TEXTS.get(code, "a check failed, whose message is not known any more")


def __getattr__(name: str) -> Error:
    if name == "init_error":
        return Error(0)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


class _Check(HostFunction):
    """A call that raises, of one of the kinds of checks; an `optional` one only counts where it is made a value."""

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: Callable[..., Any], optional: bool = False) -> None:
        super().__init__((lambda *values: None) if optional else self._fail)
        self.kind, self.text = kind, text

    def _fail(self, *values: NDArray) -> None:
        raise CheckError(self.text(*values))

    def code(self, token: NDArray, active: NDArray, *values: NDArray) -> list[object]:
        """The token, or the code of the message if there is no other yet."""
        return [_remembered(self.text(*values)) if active and not token else int(token)]


class _Uncounted(HostFunction):
    """Another call, among whose tokens are codes: it leaves them as they are."""

    __slots__ = ()


def check(pred: object, msg: str, *fmt_args: Tree, debug: bool = False, **fmt_kwargs: Tree) -> None:
    """Raise CheckError with the message `msg.format(*fmt_args, **fmt_kwargs)` unless `pred`, one truth value, holds.

    In a compiled program it is raised when the program gets there, also in loops, branches and batches. In a function
    of `checkify` it is an error that is returned. With `debug` it is only looked at there.

    Raises ArgumentError for a `pred` with axes, and FormatError for a placeholder without an argument.

    >>> import harp
    >>> try:
    ...     harp.jit(lambda x: (check(x > 0, "{} is not positive", x), x)[1])(-1.0)
    ... except harp.errors.CheckError as error:
    ...     print(str(error).splitlines()[0])
    -1.0 is not positive (`check` failed)
    """
    holds = as_array(pred)
    if holds.ndim:
        raise ArgumentError(f"check takes one truth value, not an array of shape {holds.shape}: use all{where()}")
    require_format(msg, fmt_args, fmt_kwargs)
    place = where()
    form = lambda *args, **kwargs: f"{msg.format(*args, **kwargs)} (`check` failed){place}"  # noqa: E731
    text, arrays = taking_arrays(form, fmt_args, fmt_kwargs)
    _require("user", map_(lambda e: ~cast(e, bool_), holds), text, arrays, debug)


def debug_check(pred: object, msg: str, *fmt_args: Tree, **fmt_kwargs: Tree) -> None:
    """`check` in functions of `checkify`, and nothing elsewhere.

    >>> debug_check(False, "not seen")
    """
    check(pred, msg, *fmt_args, debug=True, **fmt_kwargs)


def check_error(error: Error) -> None:
    """Raise CheckError if the error of a function of `checkify` has a message; a check, as `check` is one.

    >>> check_error(Error(0))
    """
    if not isinstance(error, Error):
        raise ArgumentError(f"check_error takes an Error, not a {type(error).__name__}{where()}")
    code = as_array(error.code)
    failed = fold(lambda e: ~apply(Op.EQ, e, const(0, e.dtype)), code, Reduce.MAX, range(code.ndim), False)
    _require("user", failed, lambda code: Error(code).get(), [code])


def _require(
    kind: str, failed: Array, text: Callable[..., Any], arrays: Sequence[Array], optional: bool = False
) -> None:
    level = current()
    if level is None:
        if not optional and failed:
            raise CheckError(text(*(np.array(a) for a in arrays)))
        return
    node = HostCall(level.token, node_of(failed), tuple(map(node_of, arrays)), _Check(kind, text, optional))
    emit(node)
    level.after = node


def checkify(f: Callable[..., Any], errors: frozenset[str] = user_checks) -> Callable[..., tuple[Error, Any]]:
    """The function, which returns the first check that has failed as an `Error`, and then what it returns.

    `errors` joins kinds of checks by `|`: `user_checks`, those that `check` makes; `nan_checks`, results with NaN of
    what is computed; `div_checks`, divisions by 0; `index_checks`, indices that are data and lie outside of their axes.
    It works in programs, loops, branches and batches, and derivatives of the results are those of `f`. Derivatives that
    `f` takes are checked for NaN in their results, not step by step.

    >>> import harp.numpy as hnp
    >>> error, value = checkify(lambda x: hnp.log(x), float_checks)(-1.0)
    >>> error.get().splitlines()[0]
    'nan generated by primitive: log'
    """
    unknown = set(errors) - all_checks
    if unknown:
        raise ArgumentError(f"errors of checkify has {sorted(unknown)}, which are not of {sorted(all_checks)}{where()}")

    @wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Any]:
        leaves, treedef = flatten(with_arrays((args, kwargs), function_name(f)))
        arrays = {k: as_array(leaf) for k, leaf in enumerate(leaves) if is_array(leaf)}

        def call(inputs: Sequence[Array]) -> Any:
            given, named = unflatten(
                treedef, {**dict(enumerate(leaves)), **dict(zip(arrays, inputs, strict=True))}.values()
            )
            return f(*given, **named)

        before = fresh_token()
        names = dict(enumerate(leaf_names(f, args, kwargs)))
        arguments = [Argument(names[k], a.kind, shape_of(a), a.weak) for k, a in arrays.items()]
        with _watching(errors):
            found = stage(call, arguments, function_name(f), before)
        silent = with_calls(found.graph, lambda node: _as_value(node, errors))
        calls, level = calls_python(silent), current()
        start = MapReduce((), (), const(0, i64))
        if calls and level is not None:  # after those before
            start = MapReduce((), (level.token,), select(_NEVER, const(1, i64), const(0, i64)))
        code = start if silent.token is None else silent.token
        token = code if calls and level is None else None
        whole = inline(Graph(silent.inputs, (code, *silent.outputs), silent.sites, token), {before: start})
        code_now, *results = run(whole, list(arrays.values()))
        if calls and level is not None:
            note_token(
                MapReduce((), (node_of(code_now), level.token), select(_NEVER, Operand(i64, 0), Operand(i64, 1)))
            )
        weak = zip(results, found.weak, strict=True)
        return Error(code_now), unflatten(found.treedef, [marked(result, w) for result, w in weak])

    return checked


# A token is never negative.
_NEVER = apply(Op.LT, Operand(i64, 0), const(0, i64))


def _as_value(node: HostCall | Foreign, errors: frozenset[str]) -> Node:
    """What stands for a call: of a check the token, or the code of its message. Other calls change no code."""
    if isinstance(node, Foreign):
        return node
    if isinstance(node.function, _Uncounted):
        return node
    if not isinstance(node.function, _Check):
        assert isinstance(node.function, HostFunction), "not the graph of a program"
        call = HostCall(node.token, node.active, node.operands, _Uncounted(node.function.call))
        return MapReduce(node.shape, (call,), Operand(i64, 0) + const(-1, i64))
    if node.function.kind not in errors:
        return node.token
    if not node.operands:
        first = apply(Op.EQ, Operand(i64, 0), const(0, i64)) & Operand(bool_, 1)
        code = const(_remembered(node.function.text()), i64)
        return MapReduce(node.shape, (node.token, node.active), select(first, code, Operand(i64, 0)))
    pure = PureFunction(node.function.code, "a check")

    def fails(arrays: Sequence[Array]) -> Array:
        token, active, *_ = arrays
        first = map_(lambda t, a: apply(Op.EQ, t, const(0, i64)) & a, token, active, to=(i64, bool_))
        some = fold(lambda e: e, first, Reduce.MAX, range(first.ndim), False)
        inputs = tuple(map(node_of, arrays))
        return cond(some, lambda: emit_results(Foreign(pure, node.shape, inputs, (((), i64),)))[0], lambda: token)

    arguments = [Argument(f"check {k}", i.dtype, i.shape) for k, i in enumerate(node.inputs)]
    made = stage(fails, arguments, "a check").graph
    return inline(made, dict(zip(made.inputs, node.inputs, strict=True))).outputs[0]


@contextmanager
def _watching(errors: frozenset[str]) -> Iterator[None]:
    """Within it, what is traced has the automatic checks."""
    before, seen = STATE.watch, set[object]()
    kinds = [(kind, found) for kind, found in _AUTOMATIC.items() if kind in errors]

    def watch(node: Node) -> None:
        if (current(), node) in seen:
            return
        # What it reads may have been made with it.
        new = [*(i for i in node.inputs if i not in seen), node]
        seen.update([*new, (current(), node)])
        watching, STATE.watch = STATE.watch, None
        try:
            for each, (kind, look) in product(new, kinds):
                look(kind, each)
        finally:
            STATE.watch = watching

    STATE.watch = watch if kinds else before
    try:
        yield
    finally:
        STATE.watch = before


def _fails(kind: str, shape: Any, operands: tuple[Node, ...], failed: Expr, text: str, *shown: Expr) -> None:
    """A check that fails if an element does, with the greatest ones of what is shown in its text."""
    place, axes = where(), tuple(range(len(shape)))
    some, *values = (emit(MapReduce(shape, operands, e, Reduce.MAX if axes else None, axes)) for e in (failed, *shown))
    _require(kind, some, lambda *numbers: text.format(*numbers) + place, values)


def _nan(kind: str, node: Node) -> None:
    name = ""
    if isinstance(node, MapReduce) and node.reduce is not None:
        name = node.reduce.name.lower()
    elif isinstance(node, MapReduce) and isinstance(node.expr, Apply) and node.expr.op not in (Op.SELECT, Op.CAST):
        name = node.expr.op.value
    elif isinstance(node, Cumulative):
        name = "a running sum"
    elif isinstance(node, Part) and isinstance(node.whole, Foreign):
        routine = node.whole.routine
        name = routine.op.value if isinstance(routine, MatrixFunction) else "a call"
    if name and node.dtype.is_inexact:
        element = Operand(node.dtype, 0)
        _fails(kind, node.shape, (node,), ~apply(Op.EQ, element, element), f"nan generated by primitive: {name}")


def _division(kind: str, node: Node) -> None:
    if isinstance(node, MapReduce) and isinstance(node.expr, Apply) and node.expr.op in _DIVISIONS:
        by = node.expr.operands[-1]
        _fails(kind, node.domain, node.operands, apply(Op.EQ, by, const(0, by.dtype)), "division by zero")


_DIVISIONS = (Op.DIV, Op.FLOORDIV, Op.MOD, Op.RECIP)


def _outside(kind: str, node: Node) -> None:
    if not isinstance(node, (Gather, Scatter)) or not node.strict:
        return
    array = node.src if isinstance(node, Gather) else node.base
    for axis, (index, size) in enumerate(zip(node.indices, array.shape, strict=False)):
        at, end, none = cast(Operand(index.dtype, 0), i64), Position(size), const(np.iinfo(np.int64).min, i64)
        outside = apply(Op.LT, at, -end) | ~apply(Op.LT, at, end)
        text = f"out-of-bounds indexing: index {{}} is out of bounds for axis {axis} with size {{}}"
        _fails(kind, index.shape, (index,), outside, text, select(outside, at, none), end)


_AUTOMATIC: dict[str, Callable[[str, Node], None]] = {"nan": _nan, "div": _division, "index": _outside}
