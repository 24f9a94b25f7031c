"""The scalar language: what happens to each element, as an interned DAG.

    expr = Const(value)            a number of some dtype, kept as bits
         | Operand(slot)           the element of the node's slot-th input at the current position
         | Position(index)         an exact integer (a size, a loop position) as an int64 value
         | Apply(op, args)         an operation of `harp.trace.scalar.ops`
    lowering adds one leaf, the load of a buffer's element (`harp.lower.loopir.loops.Load`).

Expressions keep the order in which they were written: only rewrites that give the same bits apply to them.
They are DAGs (a tree view of one can explode), so every walk here has a memo and no recursion.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import NamedTuple

import attrs
import numpy as np

from harp.trace.index.polynomial import Index, as_index
from harp.trace.interning import Interned, InternedBase
from harp.trace.scalar import ops
from harp.trace.scalar.dtypes import DType, NDArray, as_dtype, bool_, i64, integer_limits
from harp.trace.scalar.ops import GIVEN, INFO, Op, convert


class Expr(InternedBase, metaclass=Interned):
    """Base of the nodes. `args` are the operands; leaves have none."""

    __slots__ = ()
    dtype: DType
    positional = False  # whether it mentions a position

    @property
    def args(self) -> tuple[Expr, ...]:
        return ()

    # --- operators, element by element. Numbers take the dtype of the other operand; == is identity; and a - b is
    # a + (-b), which is the same number.

    __array_ufunc__ = None  # NumPy's numbers leave the operation to these

    def __add__(self, other: Expr | float) -> Expr:
        return apply(Op.ADD, self, _like(other, self))

    def __radd__(self, other: Expr | float) -> Expr:
        return apply(Op.ADD, _like(other, self), self)

    def __mul__(self, other: Expr | float) -> Expr:
        return apply(Op.MUL, self, _like(other, self))

    def __rmul__(self, other: Expr | float) -> Expr:
        return apply(Op.MUL, _like(other, self), self)

    def __truediv__(self, other: Expr | float) -> Expr:
        return apply(Op.DIV, self, _like(other, self))

    def __rtruediv__(self, other: Expr | float) -> Expr:
        return apply(Op.DIV, _like(other, self), self)

    def __floordiv__(self, other: Expr | float) -> Expr:
        return apply(Op.FLOORDIV, self, _like(other, self))

    def __mod__(self, other: Expr | float) -> Expr:
        return apply(Op.MOD, self, _like(other, self))

    def __and__(self, other: Expr | float) -> Expr:
        return apply(Op.AND, self, _like(other, self))

    def __or__(self, other: Expr | float) -> Expr:
        return apply(Op.OR, self, _like(other, self))

    def __xor__(self, other: Expr | float) -> Expr:
        return apply(Op.XOR, self, _like(other, self))

    def __sub__(self, other: Expr | float) -> Expr:
        return self + -_like(other, self)

    def __rsub__(self, other: Expr | float) -> Expr:
        return _like(other, self) + -self

    def __lt__(self, other: Expr | float) -> Expr:
        return apply(Op.LT, self, _like(other, self))

    def __gt__(self, other: Expr | float) -> Expr:
        return apply(Op.LT, _like(other, self), self)

    def __lshift__(self, other: Expr) -> Expr:
        return apply(Op.SHL, self, other)

    def __rshift__(self, other: Expr) -> Expr:
        return apply(Op.SHR, self, other)

    def __neg__(self) -> Expr:
        return apply(Op.NEG, self)

    def __invert__(self) -> Expr:
        return apply(Op.NOT, self)


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Const(Expr):
    """A number. Bits, not a float, so that NaN equals itself and -0.0 is not 0.0."""

    dtype: DType
    bits: bytes

    @property
    def value(self) -> NDArray:
        """The number as a 0-d array."""
        return np.frombuffer(self.bits, self.dtype.numpy)[0:1].reshape(())

    def __repr__(self) -> str:
        return f"{self.value.item()!r}:{self.dtype}"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Operand(Expr):
    """The current element of input number `slot`."""

    dtype: DType
    slot: int

    def __repr__(self) -> str:
        return f"x{self.slot}"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Position(Expr):
    """The value of an index expression, as int64."""

    index: Index
    positional = True

    @property
    def dtype(self) -> DType:  # type: ignore[override]
        return i64

    def __repr__(self) -> str:
        return f"[{self.index}]"


@attrs.frozen(eq=False, slots=True, weakref_slot=False)
class Apply(Expr):
    """op(*args); `dtype` follows from the op's row, but for casts, where it is the target."""

    op: Op
    dtype: DType
    operands: tuple[Expr, ...]
    positional: bool = attrs.field(init=False, repr=False)

    @positional.default
    def _positional(self) -> bool:
        return any(a.positional for a in self.operands)

    @property
    def args(self) -> tuple[Expr, ...]:
        return self.operands

    def __repr__(self) -> str:
        return text(self)


def _like(value: Expr | float, other: Expr) -> Expr:
    """A number in the dtype of another expression."""
    return value if isinstance(value, Expr) else const(value, other.dtype)


def const(value: object, dtype: DType) -> Const:
    """A number of this dtype; integers wrap as NumPy's casts do."""
    if isinstance(value, int) and not isinstance(value, bool) and dtype.is_integer:
        value = value & ((1 << integer_limits(dtype).bits) - 1)
        return Const(dtype, value.to_bytes(dtype.itemsize, "little" if np.little_endian else "big"))
    number = np.asarray(value)
    if number.dtype.kind == "c":
        ops.result_dtype(Op.CAST, (as_dtype(number.dtype),), dtype)  # raises where the imaginary part would be lost
    with np.errstate(over="ignore"):
        return Const(dtype, convert(number, dtype.numpy).tobytes())


def apply(op: Op, *args: Expr, cast_to: DType | None = None) -> Expr:
    """op(*args), simplified by the rewrites that give the same bits."""
    dtype = ops.result_dtype(op, tuple(a.dtype for a in args), cast_to)
    for rule in _RULES.get(op, ()):
        simpler = rule(args, dtype)
        if simpler is not None:
            return simpler
    if op not in _KEEP and all(isinstance(a, Const) for a in args):
        return _fold(op, args, dtype)
    return Apply(op, dtype, args)


def cast(a: Expr, dtype: DType) -> Expr:
    return apply(Op.CAST, a, cast_to=dtype)


def bitcast(a: Expr, dtype: DType) -> Expr:
    """The bits of a float as an unsigned integer of the same width, or the other way round."""
    return apply(Op.BITCAST, a, cast_to=dtype)


def select(condition: Expr, yes: Expr, no: Expr) -> Expr:
    return apply(Op.SELECT, condition, yes, no)


def overwritten(condition: Expr, update: Expr, before: Expr) -> Expr:
    """`update` where the condition holds, else `before`: a select that says that `before` is overwritten, so that its
    own derivative does not count there, not even an infinite one. Derivatives find such a condition by its STOP."""
    return select(condition if isinstance(condition, Const) else apply(Op.STOP, condition), update, before)


def overwriting(e: Expr) -> tuple[Expr, Expr, Expr] | None:
    """The condition, the update and what was before, if an expression is made by `overwritten`."""
    if not isinstance(e, Apply) or e.op is not Op.SELECT:
        return None
    condition, update, before = e.operands
    stops = isinstance(condition, Apply) and condition.op is Op.STOP
    return (condition.args[0], update, before) if stops else None


def less_equal(a: Expr, b: Expr) -> Expr:
    """a <= b := a < b or a == b, which is false for NaN."""
    return (a < b) | apply(Op.EQ, a, b)


# A rule returns the simpler expression or None. Every one of them gives the same bits, NaN and -0.0 included.
Rule = Callable[[tuple[Expr, ...], DType], Expr | None]


def _is_one(e: Expr) -> bool:
    return isinstance(e, Const) and e.value == 1


def _mul_by_one(args: tuple[Expr, ...], dtype: DType) -> Expr | None:  # x * 1 -> x, 1 * x -> x
    if dtype.is_complex:  # inf * (1 + 0j) has a NaN
        return None
    if _is_one(args[1]):
        return args[0]
    return args[1] if _is_one(args[0]) else None


def _add_negative_zero(args: tuple[Expr, ...], dtype: DType) -> Expr | None:  # x + -0.0 -> x, x + 0 -> x (integers)
    for a, b in (args, args[::-1]):
        if isinstance(b, Const) and b.value == 0 and (dtype.is_integer or _is_negative_zero(b.value)):
            return a
    return None


def _is_negative_zero(zero: NDArray) -> bool:
    return bool(np.signbit(zero.real) and (zero.dtype.kind != "c" or np.signbit(zero.imag)))


def _double(op: Op) -> Rule:  # op(op(x)) -> x
    def rule(args: tuple[Expr, ...], dtype: DType) -> Expr | None:
        inner = args[0]
        return inner.operands[0] if isinstance(inner, Apply) and inner.op is op else None

    return rule


def _cast_to_same(args: tuple[Expr, ...], dtype: DType) -> Expr | None:  # cast(x, dtype of x) -> x
    return args[0] if args[0].dtype is dtype else None


def _select_known(args: tuple[Expr, ...], dtype: DType) -> Expr | None:  # select(true, a, b) -> a; select(c, a, a) -> a
    condition, yes, no = args
    if isinstance(condition, Const):
        return yes if condition.value else no
    return yes if yes is no else None


def _joined(args: tuple[Expr, ...], dtype: DType) -> Expr | None:  # complex(real(x), imag(x)) -> x
    re, im = args
    if isinstance(re, Apply) and isinstance(im, Apply) and re.op is Op.REAL and im.op is Op.IMAG:
        return re.operands[0] if re.operands[0] is im.operands[0] else None
    return None


def _part(k: int) -> Rule:  # real(complex(a, b)) -> a
    def rule(args: tuple[Expr, ...], dtype: DType) -> Expr | None:
        whole = args[0]
        return cast(whole.operands[k], dtype) if isinstance(whole, Apply) and whole.op is Op.COMPLEX else None

    return rule


def _logic(absorbing: bool) -> Rule:  # x and true -> x, x and false -> false, x and x -> x; the same for or
    def rule(args: tuple[Expr, ...], dtype: DType) -> Expr | None:
        if args[0] is args[1]:
            return args[0]
        for a, b in (args, args[::-1]):
            if dtype is bool_ and isinstance(b, Const):
                return b if bool(b.value) is absorbing else a
        return None

    return rule


# Positions times numbers below this are exact integers of 64 bits, and so are sums of them; larger ones may wrap.
_FAR = 1 << 31


def _exact(e: Expr) -> Index | None:
    """The exact integer that an expression is, if that is an index expression."""
    if isinstance(e, Position):
        return e.index
    near = isinstance(e, Const) and e.dtype is i64 and -_FAR < int(e.value) < _FAR
    return as_index(int(e.value)) if near and isinstance(e, Const) else None


def _position(combine: Callable[..., Index]) -> Rule:  # [i] + [j] -> [i + j], [i] * 2 -> [2*i], -[i] -> [-i]
    def rule(args: tuple[Expr, ...], dtype: DType) -> Expr | None:
        numbers = [number for a in args if (number := _exact(a)) is not None]
        if len(numbers) < len(args) or not any(isinstance(a, Position) for a in args):
            return None
        if combine is operator.mul and all(isinstance(a, Position) for a in args):
            return None
        result = combine(*numbers)
        return Position(result) if all(-_FAR < factor < _FAR for _, factor in result.terms) else None

    return rule


def _at_most(args: tuple[Expr, ...], dtype: DType) -> Expr | None:  # [i] < [j] or [i] == [j] -> [i] < [j + 1]
    less, equal = args
    if not (isinstance(less, Apply) and isinstance(equal, Apply) and less.op is Op.LT and equal.op is Op.EQ):
        return None
    if equal.operands not in (less.operands, less.operands[::-1]):
        return None
    i, j = less.operands
    above = None if _exact(i) is None or _exact(j) is None else apply(Op.ADD, j, const(1, i64))
    return i < above if isinstance(above, (Position, Const)) else None


_RULES: Mapping[Op, tuple[Rule, ...]] = {
    Op.MUL: (_mul_by_one, _position(operator.mul)),
    Op.ADD: (_add_negative_zero, _position(operator.add)),
    Op.NEG: (_double(Op.NEG), _position(operator.neg)),
    Op.NOT: (_double(Op.NOT),),
    Op.CAST: (_cast_to_same,),
    Op.SELECT: (_select_known,),
    Op.AND: (_logic(absorbing=False),),
    Op.OR: (_logic(absorbing=True), _at_most),
    Op.COMPLEX: (_joined,),
    Op.REAL: (_part(0),),
    Op.IMAG: (_part(1),),
}

# Folding these in Python could differ from the compiled program by a rounding, or would lose the marker.
_KEEP = {op for op, info in INFO.items() if info.weight > 8} | {Op.BITCAST, Op.STOP, Op.OPAQUE, Op.FMA}


@lru_cache(maxsize=1 << 12)
def _fold(op: Op, args: tuple[Expr, ...], dtype: DType) -> Const:
    return const(evaluate(Apply(op, dtype, args), _no_leaf), dtype)


def _no_leaf(e: Expr) -> NDArray:
    raise AssertionError("only constants are folded")


def walk(roots: Iterable[Expr]) -> Iterator[Expr]:
    """Every expression below the roots once, operands before their users."""
    roots = tuple(roots)
    return iter(_below(roots[0])) if len(roots) == 1 else _walked(roots)


@lru_cache(maxsize=1 << 10)
def _below(root: Expr) -> tuple[Expr, ...]:
    """Remembered: pass after pass walks over the same values."""
    return tuple(_walked((root,)))


def _walked(roots: tuple[Expr, ...]) -> Iterator[Expr]:
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        e, ready = stack.pop()
        if ready:
            yield e
        elif e not in seen:
            seen.add(e)
            args = e.args
            if not args:
                yield e
                continue
            stack.append((e, True))
            stack += [(a, False) for a in reversed(args) if a not in seen]


def rewrite(roots: Iterable[Expr], leaf: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """The roots with every leaf replaced by `leaf(it)`, simplified again on the way up."""
    roots = tuple(roots)
    new: dict[Expr, Expr] = {}
    for e in walk(roots):
        if isinstance(e, Apply):
            args = tuple(new[a] for a in e.operands)
            same = all(a is b for a, b in zip(args, e.operands, strict=True))
            new[e] = e if same else apply(e.op, *args, cast_to=e.dtype)
        else:
            new[e] = leaf(e)
    return tuple(new[r] for r in roots)


def substitute(e: Expr, operands: Mapping[int, Expr], index: Callable[[Index], Index] | None = None) -> Expr:
    """`e` with operands replaced by slot, and its index expressions mapped."""
    if not operands and (index is None or not e.positional):
        return e

    def leaf(x: Expr) -> Expr:
        if isinstance(x, Operand):
            return operands.get(x.slot, x)
        if isinstance(x, Position) and index is not None:
            return Position(index(x.index))
        return x

    return rewrite((e,), leaf)[0]


def evaluate(e: Expr, leaf: Callable[[Expr], NDArray]) -> NDArray:
    """The value by NumPy, given the values of the leaves (constants need none)."""
    if not isinstance(e, Apply):
        return e.value if isinstance(e, Const) else leaf(e)
    leaves, steps = _small_plan(e) if _is_flat(e) else _plan(e)
    values = [x.value if isinstance(x, Const) else leaf(x) for x in leaves]
    with np.errstate(all="ignore"):
        for function, dtype, places in steps:
            value = function(*[values[k] for k in places])
            if type(value) is not np.ndarray or value.dtype is not dtype:
                value = np.asarray(value).astype(dtype, copy=False)
            values.append(value)
    return values[-1]


class _Plan(NamedTuple):
    """An expression as calls of NumPy's functions: (function, dtype, which of the values so far)."""

    leaves: tuple[Expr, ...]
    steps: tuple[tuple[Callable[..., NDArray], np.dtype[np.generic], tuple[int, ...]], ...]


def _plan(e: Expr) -> _Plan:
    order = list(walk((e,)))
    leaves = tuple(x for x in order if not isinstance(x, Apply))
    place = {x: k for k, x in enumerate(leaves)}
    steps = []
    for x in order:
        if isinstance(x, Apply):
            to = x.dtype.numpy
            function = partial(GIVEN[x.op], to=to) if x.op in GIVEN else INFO[x.op].numpy
            steps.append((function, to, tuple(place[a] for a in x.operands)))
            place[x] = len(place)
    return _Plan(leaves, tuple(steps))


_small_plan = lru_cache(512)(_plan)  # the plans of what is computed element by element outside of programs


def _is_flat(e: Apply) -> bool:
    """Whether a plan is small enough to keep: operations on leaves, or on operations on leaves."""
    return not e.positional and not any(isinstance(b, Apply) for a in e.operands for b in a.args)


def operands_in(e: Expr) -> list[Operand]:
    """The operands that occur, by slot."""
    return sorted((x for x in walk((e,)) if isinstance(x, Operand)), key=lambda x: x.slot)


def weight(e: Expr) -> int:
    """A rough cost of one evaluation, an addition being 1."""
    return sum(INFO[x.op].weight for x in walk((e,)) if isinstance(x, Apply))


def text(e: Expr) -> str:
    """A stable text: nested where it is short, with shared parts named t0, t1, ... where it is not."""
    uses: dict[Expr, int] = {}
    order = list(walk((e,)))
    for x in order:
        for a in x.args:
            uses[a] = uses.get(a, 0) + 1
    names: dict[Expr, str] = {}
    lines: list[str] = []
    for x in order:
        if not isinstance(x, Apply):
            names[x] = repr(x)
            continue
        args = ", ".join(names[a] for a in x.operands)
        name = f"{x.op.value}<{x.dtype}>" if x.op in GIVEN else x.op.value
        names[x] = f"{name}({args})"
        if x is not e and (uses[x] > 1 or len(names[x]) > 100):
            lines.append(f"t{len(lines)} = {names[x]}; ")
            names[x] = f"t{len(lines) - 1}"
    return "".join(lines) + names[e]
