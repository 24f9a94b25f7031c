"""From a traced graph to something that runs: one program for each distinct graph in the process.

A graph is put into canonical form, lowered, printed as C, compiled and loaded; or an earlier process has left the
library in the cache, and a record of which one it is. Graphs that are equal up to the names of inputs and sizes share
the program. Where there is no compiler, the NumPy interpreter runs the graph.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast
from weakref import ref

import attrs
import numpy as np

from harp.backends.devices import known_device
from harp.backends.options import CompileOptions
from harp.backends.protocol import Executable
from harp.backends.runtime import lapack, memory
from harp.backends.runtime.arguments import address, reader, room_for_pointers
from harp.backends.runtime.executable import CExecutable, Interface
from harp.backends.runtime.host_calls import with_functions
from harp.backends.runtime.load import find_and_load, pointer
from harp.backends.runtime.pool import threads_of_this_thread
from harp.backends.toolchain.cache import count_hit
from harp.backends.toolchain.records import Pairs, Record, recall_any, record_key, remember
from harp.backends.toolchain.toolchain import find_toolchain, problem
from harp.config import CPU, counters, log, settings, show
from harp.errors import AddressError, HarpError, OutOfMemoryError
from harp.locks import compiler_imports, forkable_lock, importing
from harp.trace.array.array import Array, Donation, give_up
from harp.trace.eval.host_calls import Functions, take_error
from harp.trace.eval.inside import Access
from harp.trace.graph.graph import Graph, digest, inline
from harp.trace.graph.node import Input
from harp.trace.index.polynomial import product
from harp.trace.resident import ResidentArray
from harp.trace.scalar.dtypes import NDArray
from harp.trace.sizes.signature import canonical, python_source, sizes_of
from harp.trace.source_locations import Site, user_site
from harp.trace.trees import TreeSpec
from harp.transforms.jit.calls import GeneratedBody, Namespace, assembly, names

# The names of the arguments and the lines of the nodes, which the errors of a checked program tell.
_Origin = tuple[tuple[str, ...], tuple[Site | None, ...]]
_Key = tuple[bytes, str, CompileOptions, tuple[int, ...], _Origin | None]

_lock = forkable_lock(sys.modules[__name__])  # of `_making`
_making: dict[_Key, threading.Lock] = {}
_programs: dict[_Key, ref[CompiledProgram]] = {}
# These are kept for functions that are made again and again; others live as long as a function that uses them.
_RECENT = 64
_recent: deque[CompiledProgram] = deque(maxlen=_RECENT)
_warned: set[str] = set()


os.register_at_fork(after_in_child=_making.clear)


@attrs.frozen(eq=False)
class CompiledProgram:
    """A graph in canonical form with the kernel that computes it.

    `donated` are the donated inputs, `taken` pairs of one of them and the output that lives in its memory.
    `checked` says whether a call checks its addresses; a kernel with `accesses` has an output for what it finds.
    """

    graph: Graph
    kernel: Executable
    sizes: int  # how many the kernel takes
    donated: tuple[int, ...] = ()
    taken: Pairs = ()
    checked: bool = False
    accesses: tuple[Access, ...] = ()


def backend_name(device: str | None = None) -> str:
    """That of a device, by default of the one that `harp.default_device` says; of "cpu", "c" where there is a
    compiler, else "numpy". Raises DeviceError."""
    device = known_device(device or settings.device)
    if device == CPU:
        return "numpy" if find_toolchain() is None else "c"
    return device


def calls_lapack(device: str | None) -> bool:
    """Whether programs for a device call LAPACK themselves."""
    return backend_name(device) == "c" and lapack.is_there()


def _warn() -> None:
    """What is wrong with the compiler is a warning, given once."""
    text = problem()
    if text is not None and text not in _warned:
        _warned.add(text)
        file, line = user_site() or (__file__, 1)
        warnings.warn_explicit(text, RuntimeWarning, file, line)


def program_for(
    graph: Graph,
    options: CompileOptions,
    donated: tuple[int, ...] = (),
    check: bool = False,
    device: str | None = None,
) -> CompiledProgram:
    """The process's program for this graph; made at most once. Different programs are made at the same time."""
    renamed = canonical(graph)
    name = backend_name(device)
    origin = _origin(graph, renamed) if check else None
    key = digest(renamed), name, options, donated, origin
    found = _made(key)
    if found is not None:
        return found
    with _lock:
        making = _making.setdefault(key, threading.Lock())
    with making:
        found = _made(key)
        if found is None:
            found = _make(renamed, key)
            _keep(key, found)
            _making.pop(key, None)
    return found


def _made(key: _Key) -> CompiledProgram | None:
    """The program with this key, if there is one."""
    reference = _programs.get(key)
    found = None if reference is None else reference()
    if found is not None and found is not (_recent[-1] if _recent else None):
        _recent.append(found)
    return found


def _keep(key: _Key, program: CompiledProgram) -> None:
    """Make a program known to other functions. Those that nobody uses any more are forgotten."""
    for other, reference in _programs.copy().items():
        if reference() is None:
            _programs.pop(other, None)
    _programs[key] = ref(program)
    _recent.append(program)


def forget() -> None:
    """Make programs anew from now on; functions keep theirs."""
    _programs.clear()
    _recent.clear()


def _origin(graph: Graph, renamed: Graph) -> _Origin:
    """Where a graph comes from: equal graphs of other lines have the same form otherwise."""
    return tuple(i.name for i in graph.inputs), tuple(map(renamed.sites.get, renamed.nodes()))


def _named(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph in canonical form, but for the names of its inputs."""
    made: dict[Input, Input] = {
        node: Input(node.uid, name, node.shape, node.dtype) for node, name in zip(graph.inputs, names, strict=True)
    }
    renamed = inline(graph, made)
    return Graph(tuple(made.values()), renamed.outputs, renamed.sites)


def _make(graph: Graph, key: _Key) -> CompiledProgram:
    show(2, "graph", graph)
    content, name, options, donated, origin = key
    check = origin is not None
    if origin is not None:
        graph = _named(graph, origin[0])
    sizes = len(sizes_of(graph))
    # Those who watch the compiler want it to run. The table of accesses is not part of a record.
    recorded = name in ("c", "numpy") and (name == "c" or find_toolchain() is None)
    recorded = recorded and not (settings.verify or settings.debug or check)
    recalled = _recalled(graph, sizes, key) if recorded else None
    accesses: tuple[Access, ...] = ()
    if name == "c" or (name == "numpy" and recalled is None):
        _warn()  # but not those who need no compiler
    if recalled is not None:
        kernel, taken = recalled
    else:
        with compiler_imports(), importing:
            from harp.transforms.jit.lowering import compiled  # the compiler: not before it is used

        record = record_key(content, options, donated) if recorded else None
        kernel, taken, accesses = compiled(graph, name, options, donated, check)
        # The compiler may have turned out to be another one than was thought.
        if record and record == record_key(content, options, donated) and isinstance(kernel, CExecutable):
            remember(record, Record(kernel.library.key, *kernel.interface, kernel.uses_scratch, taken))
    counters.add("programs")
    return CompiledProgram(graph, kernel, sizes, donated, taken, check, accesses)


def _recalled(graph: Graph, sizes: int, key: _Key) -> tuple[Executable, Pairs] | None:
    """The kernel that an earlier process has left in the cache, with a record of it, and what it takes over."""
    content, _, options, donated, _ = key
    record = recall_any(content, options, donated)
    if record is None:
        return None
    interface = Interface(record.inputs, record.outputs, record.sizes)
    expected = len(graph.inputs) + len(graph.captured), len(graph.outputs), sizes
    fits = interface == expected and _is_taken(graph, donated, record.donated)
    library = find_and_load(record.library, interface.names) if fits else None
    if library is None:
        log.debug("the program of a record is not in the cache: %s", record)
        return None
    counters.add("cache_hits")
    count_hit()
    return CExecutable(library, interface, record.uses_scratch), record.donated


def _is_taken(graph: Graph, donated: tuple[int, ...], pairs: Pairs) -> bool:
    """Whether these can be the outputs that live in inputs."""
    inputs, outputs = [k for k, _ in pairs], [k for _, k in pairs]
    return len({*inputs}) == len({*outputs}) == len(pairs) and all(
        source in donated
        and 0 <= target < len(graph.outputs)
        and graph.inputs[source].dtype is graph.outputs[target].dtype
        and graph.inputs[source].shape == graph.outputs[target].shape
        for source, target in pairs
    )


def body(
    program: CompiledProgram,
    captured: Sequence[NDArray],
    treedef: TreeSpec,
    weak: Sequence[bool],
    threads: int | None = None,
    donations: Sequence[Donation] = (),
    functions: Functions = (),
) -> GeneratedBody:
    """What a call does when its arguments are buffers and the guards hold: code for this program.

    `donations` say to which arguments the donated inputs were given, `functions` are those that the program calls.
    """
    inputs = [f"b{k}" for k in range(len(program.graph.inputs))]
    outputs = [f"o{k}" for k in range(len(program.graph.outputs))]
    sizes = [f"n{k}" for k in range(program.sizes)]
    kernel = program.kernel
    namespace = _namespace(program, captured)
    namespace |= {f"g{k}": donation for k, donation in zip(program.donated, donations, strict=True)}
    taken = {output: number for number, output in program.taken}
    results = [f"r{k}" for k in range(len(outputs))]
    filled = [*outputs, "fault"] if program.accesses else outputs
    make = _output if kernel.memory is None else _device_output
    assembled, result = assembly(treedef, results, namespace)
    lines = [
        *(_fits(program, k) for k in range(len(inputs)) if program.checked),
        "try:",
        "    pass",  # there may be nothing to make room for
        *["    fault = empty(3, int64)"] * bool(program.accesses),
        *(line for k in range(len(outputs)) if k not in taken for line in make(program, k)),
        # First nobody can get at a donated array any more, then it is asked who has its memory.
        *(f"    if isinstance(h{k}, Array): give_up(h{k}, g{k})" for k in program.donated),
        *(f"    o{o} = {_taking(program, k)}" for k, o in program.taken),
        *_placing(program, filled, len(captured)),
        "except (MemoryError, ValueError, OverflowError) as error:",
        f"    raise too_large({names(sizes)}, error) from None",
        f"if {_call(program, inputs, filled, sizes, len(captured))}:",
        f"    raise failed({names(sizes)})",
        *["if fault[0]: raise outside(*fault.tolist())"] * bool(program.accesses),
        *([_noting_scratch(sizes)] if isinstance(kernel, CExecutable) and kernel.uses_scratch else []),
        *map(_handle if kernel.memory is None else _resident, results, outputs, weak),
        *assembled,
        f"return {result}",
    ]
    if threads and isinstance(kernel, CExecutable):
        namespace["call"] = _limited(cast(Callable[..., int], namespace["call"]), threads)
    if functions:
        namespace["call"] = with_functions(cast(Callable[..., int], namespace["call"]), functions)
    return GeneratedBody(inputs, sizes, lines, namespace, program.donated, _reading if kernel.packed else None)


def _output(program: CompiledProgram, number: int) -> Iterator[str]:
    """The lines that make room for an output. Whether that is a large one is asked only where it can be."""
    node = program.graph.outputs[number]
    extents = [python_source(p) for p in node.shape]
    for axis, p in enumerate(node.shape):
        if len(p.terms) > 1:  # a sum: computed once
            yield f"    e{axis} = {extents[axis]}"
            extents[axis] = f"e{axis}"
    shape = names(extents)
    least = -(-memory.large_among(len(program.graph.outputs)) // node.dtype.itemsize)
    # NumPy takes a number in less time than a tuple of one.
    plain, count = f"empty({extents[0] if len(extents) == 1 else shape}, d{number})", product(node.shape)
    if count.constant is not None and count.constant < least:
        yield f"    o{number} = {plain}"
    else:
        yield f"    o{number} = {plain} if {'*'.join(extents)} < {least} else large({shape}, d{number})"


def _device_output(program: CompiledProgram, number: int) -> Iterator[str]:
    """The line that makes room for an output on a device."""
    shape = names([python_source(p) for p in program.graph.outputs[number].shape])
    yield f"    o{number} = memory.make({shape}, d{number})"


def _taking(program: CompiledProgram, number: int) -> str:
    """The memory of a donated input, or a copy of it."""
    if program.kernel.memory is not None:
        others = names([f"b{k}" for k in range(len(program.graph.inputs)) if k != number])
        return f"memory.taken(b{number}, {others})"
    return f"b{number} if type(h{number}) is Array and alone(b{number}) else copied(b{number})"


def _fits(program: CompiledProgram, number: int) -> str:
    """The line of a checked program that asks whether an argument has the shape that was assumed."""
    shape = names([python_source(p) for p in program.graph.inputs[number].shape])
    return f"if b{number}.shape != {shape}: raise misfit({number}, b{number}.shape, {shape})"


def _handle(name: str, buffer: str, weak: bool) -> str:
    """The line that makes a result: what the constructor of `Array` does, in two thirds of the time."""
    return f"{name} = new(Array); {name}._node = {name}._level = None; {name}._value = {buffer}; {name}._weak = {weak}"


def _resident(name: str, buffer: str, weak: bool) -> str:
    """The line that makes a result on a device."""
    return f"{name} = ResidentArray({buffer}, {weak})"


def _limited(call: Callable[..., int], threads: int) -> Callable[..., int]:
    """The call in so many threads, whatever other functions use."""

    def limited(*arguments: object) -> int:
        with threads_of_this_thread(threads):
            return call(*arguments)

    return limited


def _reading(expected: Sequence[tuple[np.dtype[np.generic], int]]) -> Namespace | None:
    """Names for what reads arrays of these dtypes and ranks at once."""
    found = reader(expected)
    if found is None:
        return None
    made = {"read": found.read, "expected": found.expected, "layout": found.layout, "kept": found.kept}
    return made | {"address": address, "room_for_sizes": found.room_for_sizes, "unpack": found.numbers}


def _placing(program: CompiledProgram, outputs: Sequence[str], captured: int) -> Iterator[str]:
    """The lines that put pointers to captured arrays and outputs behind those to the inputs of a packed program."""
    if program.kernel.packed is not None:
        first = len(program.graph.inputs)
        pointers = [f"c{k}" for k in range(captured)] + [f"pointer({name})" for name in outputs]
        yield from (f"    places[{first + k}] = {name}" for k, name in enumerate(pointers))


def _call(
    program: CompiledProgram, inputs: Sequence[str], outputs: Sequence[str], sizes: Sequence[str], captured: int
) -> str:
    """The call of the kernel: with pointers and numbers one after the other, or in arrays, where it is compiled."""
    constants = [f"c{k}" for k in range(captured)]
    if program.kernel.packed is not None:
        return "call(places, numbers)"
    if program.kernel.function is None:
        return f"call({names([*inputs, *constants])}, {names(outputs)}, {names(sizes)})"
    before, after = ([f"pointer({name})" for name in group] for group in (inputs, outputs))
    return f"call({', '.join([*before, *constants, *after, *sizes])})"


def _namespace(program: CompiledProgram, captured: Sequence[Any]) -> dict[str, object]:
    kernel = program.kernel
    function = kernel.function or kernel.packed
    compiled = function is not None
    found: dict[str, object] = {
        "Array": Array,
        "new": object.__new__,
        "empty": np.empty,
        "large": memory.large,
        "give_up": give_up,
        "alone": memory.alone,
        "copied": _copied,
        "failed": _failed,
        "too_large": _too_large,
        "call": function or kernel,
        "pointer": pointer,
        "kernel": kernel,  # the code is unloaded with the last function that calls it
    }
    if kernel.packed is not None:
        extra = bool(program.accesses)
        found["room"] = room_for_pointers(
            len(program.graph.inputs) + len(captured) + len(program.graph.outputs) + extra
        )
    if kernel.memory is not None:
        found |= {"memory": kernel.memory, "ResidentArray": ResidentArray}
        captured = [kernel.memory.upload(array) for array in captured]
    if isinstance(kernel, CExecutable):
        latest: list[Sequence[int] | None] = [None]
        found |= {"latest": latest, "note_scratch": partial(_note_scratch, kernel, latest)}
    if program.checked:
        found |= {"int64": np.int64, "misfit": partial(_misfit, program), "outside": partial(_outside, program)}
    found |= {f"d{k}": output.dtype.numpy for k, output in enumerate(program.graph.outputs)}
    return found | {f"c{k}": pointer(array) if compiled else array for k, array in enumerate(captured)}


def _noting_scratch(sizes: Sequence[str]) -> str:
    """The line that notes the scratch memory of a call. It depends on the sizes only, and asking the program takes half
    as long as a small call, so the program is asked when the sizes are not those of the latest call."""
    return f"if latest[0] != {names(sizes)}: note_scratch({names(sizes)})"


def _note_scratch(kernel: CExecutable, latest: list[Sequence[int] | None], sizes: Sequence[int]) -> None:
    counters.raise_to("scratch_bytes", kernel.scratch_bytes(sizes))
    latest[0] = sizes


def _copied(buffer: NDArray) -> NDArray:
    """Its elements in memory of their own. Raises MemoryError."""
    make = memory.large if buffer.nbytes >= memory.LARGE else np.empty
    result = make(buffer.shape, buffer.dtype)
    np.copyto(result, buffer)
    return result


def _misfit(program: CompiledProgram, number: int, found: tuple[int, ...], assumed: tuple[int, ...]) -> AddressError:
    return AddressError(
        f"argument {program.graph.inputs[number].name} has the shape {found}, and the program was made for {assumed}: "
        "a bug in harp; please report it, with the function and the shapes and dtypes of its arguments"
    )


def _outside(program: CompiledProgram, number: int, index: int, size: int) -> HarpError:
    return program.accesses[number - 1].error(index, size)


def _failed(sizes: tuple[int, ...]) -> BaseException:
    """Why the kernel has not run to its end: Python was interrupted, or there is no memory."""
    interrupted = take_error()
    if interrupted is not None:
        return interrupted
    return OutOfMemoryError(f"the scratch memory of a call with sizes {sizes} cannot be had; call it on smaller parts")


def _too_large(sizes: tuple[int, ...], error: Exception) -> OutOfMemoryError:
    return OutOfMemoryError(f"a result of a call with sizes {sizes} does not fit into memory: {error}")
