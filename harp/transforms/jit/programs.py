"""From a traced graph to something that runs: one program for each distinct graph in the process.

A graph is put into canonical form, lowered, printed as C, compiled and loaded; or an earlier process has left the
library in the cache, and a record of which one it is. Graphs that are equal up to the names of inputs and sizes share
the program. Where there is no compiler, the NumPy interpreter runs the graph.
"""

from __future__ import annotations

import importlib
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
from harp.backends.runtime.executable import TOO_MUCH, CExecutable, FirstCExecutable, Interface
from harp.backends.runtime.host_calls import with_functions
from harp.backends.runtime.load import find_and_load, import_compiler, pointer
from harp.backends.runtime.pool import runtime, threads_of_this_thread
from harp.backends.toolchain.background import later
from harp.backends.toolchain.cache import count_hit
from harp.backends.toolchain.compilers import Toolchain
from harp.backends.toolchain.records import Pairs, Record, may_have_records, recall_any, record_key, remember
from harp.backends.toolchain.toolchain import find_toolchain, problem
from harp.config import CPU, counters, log, settings, show
from harp.errors import AddressError, HarpError, OutOfMemoryError, ToolchainError
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

# The names of the arguments and the source lines of the nodes, which errors of a checked program mention.
_Origin = tuple[tuple[str, ...], tuple[Site | None, ...]]
_Key = tuple[bytes, str, CompileOptions, tuple[int, ...], _Origin | None]

_lock = forkable_lock(sys.modules[__name__])  # of `_making`
_making: dict[_Key, threading.Lock] = {}
_programs: dict[_Key, ref[CompiledProgram]] = {}
# The last programs are kept for functions that are made again and again; others live as long as a function uses them.
_RECENT = 64
_recent: deque[CompiledProgram] = deque(maxlen=_RECENT)
_begun: list[bool] = []
_warned: set[str] = set()


os.register_at_fork(after_in_child=_making.clear)


@attrs.frozen(eq=False)
class CompiledProgram:
    """A graph in canonical form with the kernel that computes it.

    `donated` are the donated inputs, `taken` pairs of one of them and the output that lives in its memory. A `checked`
    program checks its addresses; a kernel with `accesses` has one more output for the fault that it finds.
    """

    graph: Graph
    kernel: Executable
    sizes: int  # the number of sizes that the kernel takes
    donated: tuple[int, ...] = ()
    taken: Pairs = ()
    checked: bool = False
    accesses: tuple[Access, ...] = ()


def backend_name(device: str | None = None) -> str:
    """The backend of a device, by default of `harp.default_device`. For "cpu" it is "c" where there is a compiler, else
    "numpy". Raises DeviceError."""
    device = known_device(device or settings.device)
    if device == CPU:
        return "numpy" if find_toolchain() is None else "c"
    return device


def begin(device: str | None) -> None:
    """A program is about to be traced: if it is the first one of all, the compiler is looked for, and makes what all
    programs share, while this thread imports what lowers graphs."""
    if settings.quick and not _begun and known_device(device or settings.device) == CPU and not may_have_records():
        _begun.append(True)
        import_compiler()  # the thread cannot import it while this one imports what lowers graphs
        later(_make_shared)
        with compiler_imports(), importing:
            importlib.import_module("harp.transforms.jit.lowering")


def _make_shared() -> None:
    if find_toolchain() is not None:
        runtime()


def calls_lapack(device: str | None) -> bool:
    """Whether programs for a device call LAPACK themselves."""
    return backend_name(device) == "c" and lapack.is_there()


def _warn() -> None:
    """Warn once if something is wrong with the compiler."""
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
    sizes: Sequence[int] | None = None,
) -> CompiledProgram:
    """The process's program for this graph, made at most once. Different programs may be made at the same time.

    `sizes` are those of the call that waits for it, if one does."""
    renamed, name = canonical(graph), backend_name(device)
    origin = _origin(graph, renamed) if check else None
    try:
        return _only_program(renamed, (digest(renamed), name, options, donated, origin), sizes)
    except ToolchainError:
        instead = backend_name(device)
        if instead == name:
            raise
        # The only compiler has turned out not to work.
        return _only_program(renamed, (digest(renamed), instead, options, donated, origin), sizes)


def _only_program(graph: Graph, key: _Key, sizes: Sequence[int] | None) -> CompiledProgram:
    """The program with this key, made unless it is known."""
    program = _known_program(key)
    if program is not None:
        return program
    with _lock:
        making = _making.setdefault(key, threading.Lock())
    with making:
        program = _known_program(key)
        if program is None:
            program = _make(graph, key, sizes)
            _keep(key, program)
            _making.pop(key, None)
    return program


def _known_program(key: _Key) -> CompiledProgram | None:
    """The program with this key, if there is one."""
    reference = _programs.get(key)
    program = None if reference is None else reference()
    if program is not None and program is not (_recent[-1] if _recent else None):
        _recent.append(program)
    return program


def _keep(key: _Key, program: CompiledProgram) -> None:
    """Make a program known to other functions, and forget programs that are no longer used."""
    for other, reference in _programs.copy().items():
        if reference() is None:
            _programs.pop(other, None)
    _programs[key] = ref(program)
    _recent.append(program)


def forget() -> None:
    """Forget all programs, so that later calls make them again; functions keep theirs."""
    _programs.clear()
    _recent.clear()


def _origin(graph: Graph, renamed: Graph) -> _Origin:
    """The argument names and source lines of a graph: otherwise, equal graphs of other lines share their form."""
    return tuple(i.name for i in graph.inputs), tuple(map(renamed.sites.get, renamed.nodes()))


def _named(graph: Graph, names: Sequence[str]) -> Graph:
    """The graph in canonical form, with the given names for its inputs."""
    inputs: dict[Input, Input] = {
        node: Input(node.uid, name, node.shape, node.dtype) for node, name in zip(graph.inputs, names, strict=True)
    }
    renamed = inline(graph, inputs)
    return Graph(tuple(inputs.values()), renamed.outputs, renamed.sites)


def _make(graph: Graph, key: _Key, call: Sequence[int] | None) -> CompiledProgram:
    show(2, "graph", graph)
    content, name, options, donated, origin = key
    check = origin is not None
    if origin is not None:
        graph = _named(graph, origin[0])
    sizes = len(sizes_of(graph))
    # With HARP_VERIFY or HARP_DEBUG the compiler is to run. A record does not hold the table of accesses.
    recorded = name in ("c", "numpy") and (name == "c" or find_toolchain() is None)
    recorded = recorded and not (settings.verify or settings.debug or check)
    recalled = _recalled(graph, sizes, key) if recorded else None
    accesses: tuple[Access, ...] = ()
    if name == "c" or (name == "numpy" and recalled is None):
        _warn()  # not if the program needs no compiler
    if recalled is not None:
        kernel, taken = recalled
    else:
        with compiler_imports(), importing:
            from harp.transforms.jit.lowering import compiled  # the compiler: not before it is used

        toolchain = find_toolchain()
        waits = call if recorded and settings.quick else None
        kernel, taken, accesses = compiled(graph, name, options, donated, check, waits)
        if name == "c" and toolchain != find_toolchain():
            _warn()
        if recorded and isinstance(kernel, CExecutable):
            finish = partial(_finished, kernel, taken, toolchain, content, options, donated)
            later(finish) if settings.quick else finish()
    counters.add("programs")
    return CompiledProgram(graph, kernel, sizes, donated, taken, check, accesses)


def _finished(
    kernel: CExecutable,
    taken: Pairs,
    toolchain: Toolchain | None,
    content: bytes,
    options: CompileOptions,
    donated: tuple[int, ...],
) -> None:
    """Record the full program, which may have to be made; not if the compiler has turned out to be another one."""
    full = kernel.finish() if isinstance(kernel, FirstCExecutable) else kernel
    record = record_key(content, options, donated)
    if record and toolchain == find_toolchain():
        remember(record, Record(full.library.key, *full.interface, full.uses_scratch, taken))


def _recalled(graph: Graph, sizes: int, key: _Key) -> tuple[Executable, Pairs] | None:
    """The kernel that an earlier process left in the cache, and the pairs of inputs and outputs that share memory."""
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
    """Whether these can be pairs of a donated input and the output that lives in its memory."""
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
    """The code of a call when its arguments are buffers and the guards hold.

    `donations` describe the arguments of donated inputs, `functions` are the Python functions that the program calls.
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
        "    pass",  # the try must not be empty
        *["    fault = empty(3, int64)"] * bool(program.accesses),
        *(line for k in range(len(outputs)) if k not in taken for line in make(program, k)),
        # First the donated handles give up their arrays; only then can it be asked whether the memory has other owners.
        *(f"    if isinstance(h{k}, Array): give_up(h{k}, g{k})" for k in program.donated),
        *(f"    o{o} = {_donated_memory(program, k)}" for k, o in program.taken),
        *_placing(program, filled, len(captured)),
        "except (MemoryError, ValueError, OverflowError) as error:",
        f"    raise too_large({names(sizes)}, error) from None",
        f"if {_failing(program, _call(program, inputs, filled, sizes, len(captured)))}:",
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
    return GeneratedBody(inputs, sizes, lines, namespace, program.donated, _reader_names if kernel.packed else None)


def _output(program: CompiledProgram, number: int) -> Iterator[str]:
    """The lines that allocate an output. The test whether it is a large one is generated only if it can be."""
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
    """The line that allocates an output on a device."""
    shape = names([python_source(p) for p in program.graph.outputs[number].shape])
    yield f"    o{number} = memory.make({shape}, d{number})"


def _donated_memory(program: CompiledProgram, number: int) -> str:
    """The memory of a donated input, or a copy if it has other owners."""
    if program.kernel.memory is not None:
        others = names([f"b{k}" for k in range(len(program.graph.inputs)) if k != number])
        return f"memory.taken(b{number}, {others})"
    return f"b{number} if type(h{number}) is Array and alone(b{number}) else copied(b{number})"


def _fits(program: CompiledProgram, number: int) -> str:
    """The line of a checked program that compares an argument's shape with the assumed one."""
    shape = names([python_source(p) for p in program.graph.inputs[number].shape])
    return f"if b{number}.shape != {shape}: raise misfit({number}, b{number}.shape, {shape})"


def _handle(name: str, buffer: str, weak: bool) -> str:
    """The line that makes a result: the constructor of `Array`, inlined, in two thirds of the time."""
    return f"{name} = new(Array); {name}._node = {name}._level = None; {name}._value = {buffer}; {name}._weak = {weak}"


def _resident(name: str, buffer: str, weak: bool) -> str:
    """The line that makes a result on a device."""
    return f"{name} = ResidentArray({buffer}, {weak})"


def _limited(call: Callable[..., int], threads: int) -> Callable[..., int]:
    """The call with this number of threads, whatever other functions use."""

    def limited(*arguments: object) -> int:
        with threads_of_this_thread(threads):
            return call(*arguments)

    return limited


def _reader_names(expected: Sequence[tuple[np.dtype[np.generic], int]]) -> Namespace | None:
    """The names of a reader for arrays of these dtypes and ranks; None if there is none."""
    reads = reader(expected)
    if reads is None:
        return None
    namespace = {"read": reads.read, "expected": reads.expected, "layout": reads.layout, "kept": reads.kept}
    return namespace | {"address": address, "room_for_sizes": reads.room_for_sizes, "unpack": reads.numbers}


def _placing(program: CompiledProgram, outputs: Sequence[str], captured: int) -> Iterator[str]:
    """The lines that put the pointers of captured arrays and outputs behind those of the inputs of a packed program."""
    if program.kernel.packed is not None:
        first = len(program.graph.inputs)
        pointers = [f"c{k}" for k in range(captured)] + [f"pointer({name})" for name in outputs]
        yield from (f"    places[{first + k}] = {name}" for k, name in enumerate(pointers))


def _call(
    program: CompiledProgram, inputs: Sequence[str], outputs: Sequence[str], sizes: Sequence[str], captured: int
) -> str:
    """The call of the kernel: with pointers and sizes as separate arguments, or packed into arrays."""
    constants = [f"c{k}" for k in range(captured)]
    if program.kernel.packed is not None:
        return "call(places, numbers)"
    if program.kernel.function is None:
        return f"call({names([*inputs, *constants])}, {names(outputs)}, {names(sizes)})"
    before, after = ([f"pointer({name})" for name in group] for group in (inputs, outputs))
    return f"call({', '.join([*before, *constants, *after, *sizes])})"


def _failing(program: CompiledProgram, call: str) -> str:
    """The condition that the call fails; a program for first calls may put it off."""
    first = isinstance(program.kernel, FirstCExecutable)
    return f"(status := {call}) and (status != {TOO_MUCH} or wait() or {call})" if first else call


def _namespace(program: CompiledProgram, captured: Sequence[Any]) -> dict[str, object]:
    kernel = program.kernel
    function = kernel.function or kernel.packed
    compiled = function is not None
    namespace: dict[str, object] = {
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
        namespace["room"] = room_for_pointers(
            len(program.graph.inputs) + len(captured) + len(program.graph.outputs) + extra
        )
    if kernel.memory is not None:
        namespace |= {"memory": kernel.memory, "ResidentArray": ResidentArray}
        captured = [kernel.memory.upload(array) for array in captured]
    if isinstance(kernel, FirstCExecutable):
        namespace["wait"] = kernel.wait
    if isinstance(kernel, CExecutable):
        latest: list[Sequence[int] | None] = [None]
        namespace |= {"latest": latest, "note_scratch": partial(_note_scratch, kernel, latest)}
    if program.checked:
        namespace |= {"int64": np.int64, "misfit": partial(_misfit, program), "outside": partial(_outside, program)}
    namespace |= {f"d{k}": output.dtype.numpy for k, output in enumerate(program.graph.outputs)}
    return namespace | {f"c{k}": pointer(array) if compiled else array for k, array in enumerate(captured)}


def _noting_scratch(sizes: Sequence[str]) -> str:
    """The line that notes the scratch memory of a call. It depends on the sizes only, so the program is asked, which
    takes half as long as a small call, only when the sizes have changed."""
    return f"if latest[0] != {names(sizes)}: note_scratch({names(sizes)})"


def _note_scratch(kernel: CExecutable, latest: list[Sequence[int] | None], sizes: Sequence[int]) -> None:
    counters.raise_to("scratch_bytes", kernel.scratch_bytes(sizes))
    latest[0] = sizes


def _copied(buffer: NDArray) -> NDArray:
    """A copy of the array in memory of its own. Raises MemoryError."""
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
    """The reason why the kernel has failed: Python was interrupted, or there is no memory."""
    interrupted = take_error()
    if interrupted is not None:
        return interrupted
    return OutOfMemoryError(f"the scratch memory of a call with sizes {sizes} cannot be had; call it on smaller parts")


def _too_large(sizes: tuple[int, ...], error: Exception) -> OutOfMemoryError:
    return OutOfMemoryError(f"a result of a call with sizes {sizes} does not fit into memory: {error}")
