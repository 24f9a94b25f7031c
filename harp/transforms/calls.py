"""Generated Python for calls: a tree put together, and the short way from arguments to results.

The short way serves the calls that are like the one before. It asks all that the long way through `JitFunction` asks
(tree, types, dtypes, ranks, order in memory, guards), each with the fewest steps, and where an answer differs it leaves
the call to the long way, which knows more cases and raises the errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import NamedTuple, cast

import numpy as np

from harp.trace.array import Array
from harp.trace.dtypes import NUMBERS, Buffer
from harp.trace.signature import GraphSignature
from harp.trace.trees import Tree, TreeSpec, children, ordered, unflatten

Namespace = dict[str, object]
# From input buffers, the sizes of a program, and the leaves that the buffers are of, to the tree of its results.
Runner = Callable[[list[Buffer], tuple[int, ...], Sequence[object]], Tree]
# From the arguments of a call that are not static, in a list with those that are named, to its results, or MISS.
ShortWay = Callable[[Tree], Tree]

MISS = object()


class Body(NamedTuple):
    """Lines of a function, in which inputs and sizes have these names, and what else the lines name.

    The leaf of input k has the name h{k} where it is donated, and its buffer no other name than that of the input.
    """

    inputs: list[str]
    sizes: list[str]
    lines: list[str]
    namespace: Namespace
    donated: tuple[int, ...] = ()


# NumPy's bits for C order and aligned.
_BEHAVED = 0x101


class Leaf(NamedTuple):
    """What an argument's leaf must be."""

    dtype: np.dtype[np.generic]
    ndim: int
    weak: bool


def assembly(spec: TreeSpec, leaves: Sequence[str], namespace: Namespace) -> tuple[list[str], str]:
    """Lines that put the expressions `leaves` into a tree, from the bottom up, and the expression of the tree."""
    lines: list[str] = []
    rest = iter(leaves)

    def build(spec: TreeSpec) -> str:
        if not spec:
            return next(rest)
        parts = list(map(build, children(spec)))
        name = f"t{len(lines)}"
        lines.append(f"{name} = {_whole(spec, parts, namespace)}")
        return name

    return lines, build(spec)


def _whole(spec: TreeSpec, parts: Sequence[str], namespace: Namespace) -> str:
    """One level of a tree, of expressions for its parts."""
    head = spec[0]
    if head is None:
        return "None"
    if head is tuple:
        return names(parts)
    if head is list:
        return f"[{', '.join(parts)}]"
    if head is dict:
        keys = cast(tuple[object, ...], spec[1])
        values = dict(zip(ordered(keys), parts, strict=True))
        return f"{{{', '.join(f'{_constant(key, namespace)}: {values[key]}' for key in keys)}}}"
    level = _constant((head, *[()] * len(parts)), namespace)
    namespace["unflatten"] = unflatten
    return f"unflatten({level}, {names(parts)})"


def names(parts: Sequence[str]) -> str:
    """A tuple of these."""
    return f"({''.join(part + ', ' for part in parts)})"


def _constant(value: object, namespace: Namespace) -> str:
    """An expression for a value."""
    if type(value) is str:
        return repr(value)
    name = f"k{len(namespace)}"
    namespace[name] = value
    return name


def preceded(body: Body, name: str, function: Callable[..., None], arguments: Sequence[str]) -> Body:
    """The body of a program after a call of a function, which may raise; programs that need none pay nothing for it."""
    lines = [f"{name}({', '.join(arguments)})", *body.lines]
    return body._replace(lines=lines, namespace={**body.namespace, name: function})


def runner(body: Body) -> Runner:
    """The body as a function of buffers and sizes."""
    source = [
        "def run(buffers, sizes, leaves):",
        f"    {names(body.inputs)} = buffers",
        *(f"    h{k} = leaves[{k}]" for k in body.donated),
        *["    buffers.clear()"] * bool(body.donated),
        f"    {names(body.sizes)} = sizes",
        *(f"    {line}" for line in body.lines),
    ]
    namespace = dict(body.namespace)
    exec("\n".join(source), namespace)  # names and numbers of our own making, and keys as Python writes them
    return cast(Runner, namespace["run"])


def short_way(spec: TreeSpec, leaves: Sequence[Leaf], signature: GraphSignature, body: Body) -> ShortWay | None:
    """The short way for arguments of this shape; None where it has parts that only optree knows."""
    namespace: Namespace = {**body.namespace, "MISS": MISS, "ndarray": np.ndarray, "Array": Array}
    axes, checks, sizes = signature.check_source("return MISS")
    taking = list(_taking(spec, leaves, axes, body.donated, namespace))
    if None in taking:
        return None
    source = [
        "def short_way(args):",
        "    try:",
        *(f"        {line}" for line in taking),
        # another number of arguments, parts or axes; an array that belongs to a trace; an integer that does not fit
        "    except (ValueError, AttributeError, OverflowError):",
        "        return MISS",
        *(f"    {line}" for line in checks),
        *(f"    {name} = {size}" for name, size in zip(body.sizes, sizes, strict=True)),
        *(f"    {line}" for line in body.lines),
    ]
    exec("\n".join(source), namespace)  # as above
    return cast(ShortWay, namespace["short_way"])


def _taking(
    spec: TreeSpec, leaves: Sequence[Leaf], axes: Sequence[str], donated: Sequence[int], namespace: Namespace
) -> Iterator[str | None]:
    """The lines that take arguments apart, and leave where they are not what is expected; None for optree's parts."""
    numbers, variables, sizes = iter(range(len(leaves))), count(), iter(axes)
    stack = [("args", spec)]
    while stack:
        name, spec = stack.pop()
        if not spec:
            number = next(numbers)
            yield from _taking_leaf(name, f"b{number}", leaves[number], namespace)
            if number in donated:
                yield f"h{number} = {name}"
            yield f"{names([next(sizes) for _ in range(leaves[number].ndim)])} = b{number}.shape"
            continue
        head, below = spec[0], children(spec)
        parts = [f"a{next(variables)}" for _ in below]
        if head is None:
            yield f"if {name} is not None: return MISS"
        elif head is tuple or head is list:
            yield f"if type({name}) is not {head.__name__}: return MISS"
            yield f"{names(parts)} = {name}"
        elif head is dict:
            keys = cast(tuple[object, ...], spec[1])
            by_key = dict(zip(ordered(keys), parts, strict=True))
            yield f"if type({name}) is not dict or (*{name},) != {_constant(keys, namespace)}: return MISS"
            yield f"{names([by_key[key] for key in keys])} = {name}.values()"
        else:
            yield None
        stack += [*zip(parts, below, strict=True)][::-1]


def _taking_leaf(name: str, b: str, leaf: Leaf, namespace: Namespace) -> Iterator[str]:
    dtype = _constant(leaf.dtype, namespace)
    handle = [f"if {name}._weak is not {leaf.weak}: return MISS", f"{b} = {name}._value"]
    taken = [] if leaf.weak else [("ndarray", name)]  # NumPy's arrays are never weak
    for number, (known, weak) in NUMBERS.items():
        if leaf.ndim == 0 and known.numpy is leaf.dtype and weak is leaf.weak:
            namespace["asarray"] = np.asarray
            taken.append((_constant(number, namespace), f"asarray({name}, {dtype})"))
    for word, (kind, value) in zip(["if", *["elif"] * len(taken)], taken, strict=False):
        yield f"{word} type({name}) is {kind}: {b} = {value}"
    yield f"{'elif' if taken else 'if'} type({name}) is not Array: return MISS"
    yield "else:"
    yield from (f"    {line}" for line in handle)
    # NumPy has one object for each native dtype, but for those that were pickled or have metadata
    yield f"if {b}.dtype is not {dtype} or {b}.flags.num & {_BEHAVED} != {_BEHAVED}: return MISS"
