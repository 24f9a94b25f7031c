"""`harp.export`: compiled functions for programs without Python, as a file of C and its header.

The sizes that callers pass are those of the arguments' axes, each once: axes that are equal in all calls, because a
guard or a declaration says so, are one size, and those that are numbers are none. Guards that say no more than this are
left out; the others are checked by the functions of C.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from harp.backends import get
from harp.backends.c.emit.standalone import Entry, Parameter, macros, standalone
from harp.errors import ArgumentError, ExportError
from harp.lower.loopir.program import Program
from harp.lower.target import Target
from harp.trace.graph.body import graph_of
from harp.trace.graph.graph import Graph
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.graph.node import Foreign, HostCall, WithBody
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, of
from harp.trace.sizes.proofs import unproved
from harp.trace.sizes.scope import Scope
from harp.trace.sizes.signature import by_appearance, canonical
from harp.trace.source_locations import Site, kind_of, where
from harp.trace.tracer import Argument, Traced, trace_with
from harp.trace.trees import Tree, labels, unflatten
from harp.transforms.jit.lowering import printed, to_be_shown

# Words of C and C++, macros of gcc, and names that functions and <stdint.h> use: no names of parameters.
_WORDS = frozenset(
    re.findall(
        r"\w+",
        """alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class
        co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue decltype
        default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int
        long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
        reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
        template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
        virtual void volatile wchar_t while xor xor_eq
        linux unix bytes code int64_t scratch NULL""",
    )
)
# The machine that loops are made for: the file is the same wherever it is written, if there are such multiply-adds.
_VECTOR, _CORES = 32, 8
_NAME = re.compile(r"(?!harp_)[A-Za-z]\w*", re.ASCII)
_Exported = tuple[Callable[..., Tree], *tuple[object, ...]]


def export(entries: Mapping[str, _Exported], path: str | os.PathLike[str], name: str) -> None:
    """Write functions as C, for programs without Python: `name.c` and `name.h` in the folder `path`.

    `entries` has, by the name of a function of C, a tuple of a function and its arguments: signatures such as
    `harp.f32["n", 3]`, or arrays. Of arrays each axis is a size; how they decide questions about sizes is checked at
    each call. Functions are compiled as by `jit`, and a jitted one is written like the function itself; those of one
    file share kernels. They compute the same bits as in Python. The header says which arrays and sizes each one takes.

    The file is C11 for gcc and clang, needs the C library with its mathematical functions only, and no other file.

    Raises ArgumentError for names that are none in C and entries that are no such tuples; ExportError for what needs
    Python or LAPACK, with its line; OSError where files cannot be written; and what tracing raises, such as
    InconclusiveSizeError.

    >>> import harp, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export({"twice": (lambda x: x * 2, harp.f32["n"])}, folder, "numbers")
    ...     header = pathlib.Path(folder, "numbers.h").read_text()
    >>> print(*[line for line in header.splitlines() if "twice" in line], sep="\\n")
    /* numbers: twice; written by harp.export
    /* twice: (x: float32[n]) -> (out: float32[n]) */
    int numbers_twice_shapes(int64_t n, int64_t out[1]);
    int64_t numbers_twice_scratch(int64_t n);
    int numbers_twice(const float *x, float *out, int64_t n, void *scratch);
    """
    if not isinstance(entries, Mapping) or not entries:
        raise ArgumentError(f"entries is a dict of functions with arguments, not {kind_of(entries)}{where()}")
    for label in (name, *entries):
        if not isinstance(label, str) or not _NAME.fullmatch(label):
            raise ArgumentError(f"{label!r} is no name of a file or a function of C, or begins with harp_{where()}")
    own = {f"{name}_message", *macros(name)} | {
        f"{name}_{label}_{ending}" for label in entries for ending in ("shapes", "scratch")
    }
    for label in entries:
        if f"{name}_{label}" in own:
            raise ArgumentError(f"entry {label!r} has the name of another function or macro of the file{where()}")
    here = get("c").target()
    assert here is not None
    target = Target(vector_bytes=_VECTOR, fma=here.fma, cores=_CORES)
    made = []
    for label, entry in entries.items():
        if not isinstance(entry, tuple) or not entry:
            raise ArgumentError(
                f"entry {label!r} is a tuple of a function and its arguments, such as (f, harp.f32['n']), not "
                f"{kind_of(entry)}{where()}"
            )
        scope, arguments, traced = trace_with("export", entry[0], entry[1:])
        _require_exportable(label, traced.graph, scope)
        program = to_be_shown(canonical(traced.graph), target, (), False).program
        made.append(_entry(label, program, scope, arguments, traced))
    texts = printed(lambda _: standalone(name, made, target.fma), made[0].program)
    for suffix, text in zip((".c", ".h"), texts, strict=True):
        (Path(path) / f"{name}{suffix}").write_text(text, encoding="utf-8")


def _require_exportable(label: str, graph: Graph, scope: Scope) -> None:
    """Raise ExportError for what a program asks of Python."""
    for text, site in _not_exportable(graph, scope):
        place = f"\n  at {site[0]}:{site[1]}" if site else ""
        raise ExportError(f"{label!r} cannot be exported: {text}{place}")


def _not_exportable(graph: Graph, scope: Scope) -> Iterator[tuple[str, Site | None]]:
    yield from _calls(graph)
    for check in scope.integer_checks.values():
        text = f"a Python integer that {check.complaint} is refused at each call, by Python; give it a dtype"
        yield f"{text}{check.place}", None
    for claim in unproved(graph, [guard._replace(index=scope.resolve(guard.index)) for guard in scope.guards]):
        yield "that a view stays inside its array is asked at each call, by Python", claim.site


def _calls(graph: Graph) -> Iterator[tuple[str, Site | None]]:
    """The calls of Python and of LAPACK, also in loops."""
    for node in graph.nodes():
        if isinstance(node, WithBody):
            yield from ((text, site or graph.site(node)) for text, site in _calls(graph_of(node.body)))
        if isinstance(node, HostCall):
            yield "it calls a function of Python for what that does, such as harp.debug.print", graph.site(node)
        if isinstance(node, Foreign) and isinstance(node.routine, MatrixFunction):
            yield f"{node.routine.content()} is a function of LAPACK, which comes with NumPy", graph.site(node)
        elif isinstance(node, Foreign) and not isinstance(node.routine, KernelSource):
            yield f"{getattr(node.routine, 'name', 'a routine')} is a function of Python", graph.site(node)


def _entry(label: str, program: Program, scope: Scope, arguments: Sequence[Argument], traced: Traced) -> Entry:
    """The program with its parameters in C."""
    graph = traced.graph
    passed: dict[Index, Atom] = {}  # the size that is passed for all axes of this extent
    known: dict[Atom, Index] = {}
    for axis in (p.atom for argument in arguments for p in argument.shape):
        if axis is not None:
            extent = scope.resolve(of(axis))
            known[axis] = extent if extent.constant is not None else of(passed.setdefault(extent, axis))
    for quotient, value in scope.quotients:
        known[quotient] = Substitution(known)(value)
    sizes = Substitution(known)
    guards = ((guard.relation, sizes(guard.index), guard.reason) for guard in scope.guards)
    taken: set[str] = set()
    results = labels("out", unflatten(traced.treedef, range(len(graph.outputs))))
    return Entry(
        label,
        program,
        {axis: _fresh(repr(axis), taken) for axis in passed.values()},
        tuple(Parameter(_fresh(a.name, taken), a.dtype, sizes.each(a.shape)) for a in arguments),
        tuple(
            Parameter(_fresh(text, taken), o.dtype, sizes.each(o.shape))
            for text, o in zip(results, graph.outputs, strict=True)
        ),
        tuple(sizes(of(size)) for size in by_appearance(graph)),
        tuple((r, p, f"{p} {r.value} ({reason})") for r, p, reason in guards if p.constant is None),
        tuple(node.captured.array for node in graph.captured),
    )


def _fresh(text: str, taken: set[str]) -> str:
    """A name in C that says the same as `params['w']`, and is not taken yet."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "x"
    name = f"x{name}" if name[0].isdigit() else name
    while name in taken or name in _WORDS:
        name += "_"
    taken.add(name)
    return name
