"""The calls of jitted functions: the leaves of their arguments as buffers, and generated Python, which puts a tree
together and goes the short way from arguments to results.

Leaves are arrays of the host, or memory of the device that the program runs on.

The short way serves the calls that are like the one before. It asks all that the long way through `JitFunction` asks
(tree, types, dtypes, ranks, order in memory, guards), each with the fewest steps, and where an answer differs it leaves
the call to the long way, which knows more cases and raises the errors. Where there are many arrays, C reads them all at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from itertools import count
from typing import Any, NamedTuple, cast

import numpy as np

from harp.config import log
from harp.trace.array.array import Array
from harp.trace.resident import DeviceMemory, ResidentArray
from harp.trace.scalar.dtypes import NUMBERS, OF_NUMPY, ArraySignature, NDArray, plain
from harp.trace.sizes.signature import GraphSignature
from harp.trace.tracer import leaf_array
from harp.trace.trees import Tree, TreeSpec, children, flatten, ordered, unflatten


def resident(leaf: object, device: str) -> DeviceMemory | None:
    """The memory of an array that is on this device."""
    held = leaf.held if type(leaf) is ResidentArray else None
    return held if held is not None and held.device == device else None


def described(leaf: object, name: str, held: DeviceMemory | None) -> tuple[NDArray, bool]:
    """An argument as a NumPy array, and whether it is weak, as `leaf_array` has it. For memory on a device the array
    has only the shape and dtype; its numbers stay there."""
    if type(leaf) is _Example:
        return leaf.array, False
    if held is None:
        return leaf_array(leaf, name)
    return np.broadcast_to(np.zeros((), held.dtype), held.shape), cast(Array, leaf).weak


class _Example:
    """An argument of which shape and dtype are known: an array of zeros that takes no memory."""

    __slots__ = ("array",)

    def __init__(self, array: NDArray) -> None:
        self.array = array


def example_of(tree: Tree) -> Any:
    """The tree with an example for each signature whose sizes are numbers."""
    leaves, treedef = flatten(tree)
    return unflatten(treedef, [_exemplified(leaf) if isinstance(leaf, ArraySignature) else leaf for leaf in leaves])


def _exemplified(signature: ArraySignature) -> object:
    shape = [size for size in signature.shape if isinstance(size, int)]
    known = len(shape) == len(signature.shape)
    return _Example(np.broadcast_to(np.zeros((), signature.dtype.numpy), shape)) if known else signature


def warn_of_copies(
    function: str, leaves: Sequence[object], names: Sequence[str], held: Sequence[DeviceMemory | None], device: str
) -> bool:
    """Warn about arguments on other devices than the one that the function runs on; whether there are any."""
    there = {
        name: leaf.held.device
        for leaf, name, here in zip(leaves, names, held, strict=True)
        if here is None and type(leaf) is ResidentArray and leaf.held is not None
    }
    if there:
        log.warning(
            "%r runs on %s, where arguments are moved by way of the host: %s; keep them there with "
            "harp.device_put(x, %r), or let it run where they are with harp.jit(f, device=...)",
            *(function, device, ", ".join(f"{name} on {place}" for name, place in there.items()), device),
        )
    return bool(there)


def on_host(function: Callable[..., None]) -> Callable[..., None]:
    """The function with arguments that may be on a device, which are copied to the host."""

    def fetched(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(fetched, value))
        return value.host() if hasattr(value, "host") else value

    return lambda *arguments: function(*map(fetched, arguments))


def buffers_of(leaves: Sequence[object], key: list[Hashable], device: str) -> tuple[list[Any], list[int]] | None:
    """The leaves as C-contiguous buffers, and all their sizes; None if a leaf is no array or number. Extends the key by
    dtypes and ranks. Memory of the device stays there."""
    buffers: list[Any] = []
    sizes: list[int] = []
    for leaf in leaves:
        if type(leaf) is np.ndarray and leaf.dtype in OF_NUMPY:
            buffer, weak = leaf, False
        elif type(leaf) is Array and leaf._value is not None:
            buffer, weak = leaf._value, leaf._weak
        elif (number := NUMBERS.get(type(leaf))) is not None:
            dtype, weak = number
            try:
                buffer = np.asarray(leaf, dtype.numpy)
            except OverflowError:
                return None
        elif (held := resident(leaf, device)) is not None:
            buffers.append(held)
            sizes += held.shape
            key += (held.dtype, held.ndim, cast(Array, leaf).weak)
            continue
        else:
            return None
        flags = buffer.flags
        if not (flags.c_contiguous and flags.aligned):
            buffer = plain(buffer)
        buffers.append(buffer)
        sizes += buffer.shape
        key += (buffer.dtype, buffer.ndim, weak)
    return buffers, sizes


Namespace = dict[str, object]
# From input buffers, the sizes of the program, and the leaves of the buffers, to the tree of its results.
Runner = Callable[[list[NDArray], tuple[int, ...], Sequence[object]], Tree]
# From the non-static arguments of a call, in a list with the keyword arguments, to the results, or MISS.
ShortWay = Callable[[Tree], Tree]

MISS = object()


class GeneratedBody(NamedTuple):
    """Lines of a function in which inputs and sizes have these names, and the namespace of the lines.

    The leaf of a donated input k has the name h{k}, and no other name than the input's refers to its buffer. A program
    with packed arguments takes its pointers from the array `places`, which `room()` allocates and into which the caller
    of the lines puts the pointers of the inputs first; its array of sizes is `numbers`. For such a program `reading`
    returns the names of a reader for arrays of these dtypes and ranks, if there is one.
    """

    inputs: list[str]
    sizes: list[str]
    lines: list[str]
    namespace: Namespace
    donated: tuple[int, ...] = ()
    reading: Callable[[Sequence[tuple[np.dtype[np.generic], int]]], Namespace | None] | None = None


# NumPy's bits for C order and aligned.
_BEHAVED = 0x101


class Leaf(NamedTuple):
    """The properties that an argument's leaf must have."""

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
        lines.append(f"{name} = {_level_source(spec, parts, namespace)}")
        return name

    return lines, build(spec)


def _level_source(spec: TreeSpec, parts: Sequence[str], namespace: Namespace) -> str:
    """The expression of one level of a tree, of expressions for its parts."""
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
    """The source of a tuple."""
    return f"({''.join(part + ', ' for part in parts)})"


def _constant(value: object, namespace: Namespace) -> str:
    """An expression for a value."""
    if type(value) is str:
        return repr(value)
    name = f"k{len(namespace)}"
    namespace[name] = value
    return name


def preceded(body: GeneratedBody, name: str, function: Callable[..., None], arguments: Sequence[str]) -> GeneratedBody:
    """The body with a call of a function, which may raise, before it."""
    lines = [f"{name}({', '.join(arguments)})", *body.lines]
    return body._replace(lines=lines, namespace={**body.namespace, name: function})


def followed(body: GeneratedBody, name: str, function: Callable[..., None], outputs: int) -> GeneratedBody:
    """The body with a call of a function of its inputs, sizes and outputs, which may raise, before its last line."""
    *lines, end = body.lines
    call = f"{name}({names(body.inputs)}, {names(body.sizes)}, {names([f'o{k}' for k in range(outputs)])})"
    return body._replace(lines=[*lines, call, end], namespace={**body.namespace, name: function})


def _placing(body: GeneratedBody) -> list[str]:
    """Lines that put the inputs and the sizes into the arrays of a packed program."""
    if body.reading is None:
        return []
    pointers = f"places[0:{len(body.inputs)}] = [{', '.join(f'pointer({name})' for name in body.inputs)}]"
    return ["places = room()", pointers, f"numbers = [{', '.join(body.sizes)}]"]


def runner(body: GeneratedBody) -> Runner:
    """The body as a function of buffers and sizes."""
    source = [
        "def run(buffers, sizes, leaves):",
        f"    {names(body.inputs)} = buffers",
        *(f"    h{k} = leaves[{k}]" for k in body.donated),
        *["    buffers.clear()"] * bool(body.donated),
        f"    {names(body.sizes)} = sizes",
        *(f"    {line}" for line in (*_placing(body), *body.lines)),
    ]
    namespace = dict(body.namespace)
    _define(source, namespace)
    return cast(Runner, namespace.pop("run"))  # no cycle: gone functions give their programs up at once


def _define(source: Sequence[str], namespace: Namespace) -> None:
    """Run the lines: names and numbers of our own making, and keys as Python writes them."""
    exec(compile("\n".join(source), "<host code of a call>", "exec"), namespace)


def short_way(
    spec: TreeSpec, leaves: Sequence[Leaf], signature: GraphSignature, body: GeneratedBody
) -> ShortWay | None:
    """The short way for arguments of this tree; None if some of its containers are known to optree only."""
    namespace: Namespace = {**body.namespace, "MISS": MISS, "ndarray": np.ndarray, "Array": Array}
    axes, checks, sizes = signature.check_source("return MISS")
    # A reader holds the buffers in a tuple, and a donated array must have no other owner.
    read = body.reading([(leaf.dtype, leaf.ndim) for leaf in leaves]) if body.reading and not body.donated else None
    taking = list(_unpacking(spec, leaves, axes, body.donated, namespace, read is None))
    if None in taking:
        return None
    placing = _placing(body)
    if read is not None:
        namespace |= read
        taking += _reading_at_once(body.inputs, leaves, axes)
        placing = [f"numbers = {'sizes' if sizes == axes else names(body.sizes)}"]
    source = [
        "def short_way(args):",
        "    try:",
        *(f"        {line}" for line in taking),
        # another number of arguments, parts or axes; an array that belongs to a trace; an integer that does not fit
        "    except (ValueError, AttributeError, OverflowError):",
        "        return MISS",
        *(f"    {line}" for line in checks),
        *(f"    {name} = {size}" for name, size in zip(body.sizes, sizes, strict=True)),
        *(f"    {line}" for line in (*placing, *body.lines)),
    ]
    _define(source, namespace)
    return cast(ShortWay, namespace.pop("short_way"))


def _reading_at_once(inputs: Sequence[str], leaves: Sequence[Leaf], axes: Sequence[str]) -> Iterator[str]:
    """Lines that read all arrays at once, at first as if none was a harp array."""
    handles, values = [*inputs], [*inputs]
    for k, leaf in enumerate(leaves):
        if not _may_be_number(leaf):
            handles[k] = f"h{k}"
            values[k] = f"(h{k}._value if type(h{k}) is Array and not h{k}._weak else h{k})"
    asked = f"if read(given, {len(inputs)}, expected, layout, address(places), address(sizes)):"
    yield f"given = {names(handles)}"
    yield "places, sizes = room(), room_for_sizes()"
    handle = f"type({handles[0]}) is Array or " if handles else ""  # harp arrays come together
    yield asked.replace("if ", f"if {handle}", 1)
    yield f"    given = {names(values)}"
    yield f"    {asked} return MISS"
    yield f"{names(inputs)} = given"
    yield f"{names(axes)} = unpack(sizes, {len(axes)})"


def _unpacking(
    spec: TreeSpec,
    leaves: Sequence[Leaf],
    axes: Sequence[str],
    donated: Sequence[int],
    namespace: Namespace,
    one_by_one: bool,
) -> Iterator[str | None]:
    """The lines that unpack arguments, and return MISS where these are not as expected; None for optree's containers.

    Each array is read on its own, or has the name h{k} and is read later.
    """
    numbers, variables, sizes = iter(range(len(leaves))), count(), iter(axes)
    stack = [("args", spec)]
    while stack:
        name, spec = stack.pop()
        if not spec:
            number = next(numbers)
            leaf = leaves[number]
            if number in donated or not (one_by_one or _may_be_number(leaf)):
                yield f"h{number} = {name}"
            if one_by_one or _may_be_number(leaf):
                yield from _unpacking_leaf(name, f"b{number}", leaf, namespace)
            if one_by_one:
                yield from _checks_of_array(f"b{number}", leaf, [next(sizes) for _ in range(leaf.ndim)], namespace)
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


def _unpacking_leaf(name: str, b: str, leaf: Leaf, namespace: Namespace) -> Iterator[str]:
    dtype = _constant(leaf.dtype, namespace)
    handle = [f"if {name}._weak is not {leaf.weak}: return MISS", f"{b} = {name}._value"]
    kinds = [] if leaf.weak else [("ndarray", name)]  # NumPy's arrays are never weak
    for number in _number_types(leaf):
        namespace["asarray"] = np.asarray
        kinds.append((_constant(number, namespace), f"asarray({name}, {dtype})"))
    for word, (kind, value) in zip(["if", *["elif"] * len(kinds)], kinds, strict=False):
        yield f"{word} type({name}) is {kind}: {b} = {value}"
    yield f"{'elif' if kinds else 'if'} type({name}) is not Array: return MISS"
    yield "else:"
    yield from (f"    {line}" for line in handle)


def _may_be_number(leaf: Leaf) -> bool:
    """Whether the argument may be a Python number, or an array with a number's dtype."""
    return leaf.weak or not leaf.ndim


def _number_types(leaf: Leaf) -> list[type]:
    """The Python types of numbers that can stand for such an array."""
    if leaf.ndim:
        return []
    return [kind for kind, (known, weak) in NUMBERS.items() if known.numpy is leaf.dtype and weak is leaf.weak]


def _checks_of_array(b: str, leaf: Leaf, sizes: Sequence[str], namespace: Namespace) -> Iterator[str]:
    """The checks that `Reader` makes of many arrays, for one array."""
    # NumPy has one object for each native dtype, but for those that were pickled or have metadata
    dtype = _constant(leaf.dtype, namespace)
    yield f"if {b}.dtype is not {dtype} or {b}.flags.num & {_BEHAVED} != {_BEHAVED}: return MISS"
    yield f"{names(sizes)} = {b}.shape"
