"""Kernels of the user in C: loops round the function of one point, shared by threads, and their call."""

from __future__ import annotations

import re
from collections.abc import Callable

from harp.backends.c.emit.work import POINT
from harp.backends.c_family.custom_kernels import HEADER, buffers_of, point, point_call, source_of, steps_of
from harp.backends.c_family.scalar import MATH, TYPES, operation_headers
from harp.lower.loopir.loops import Buffer, ForeignCall
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.index.polynomial import Index, product
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.ops import INFO, Op

# Functions of the C library that harp replaces by its own, which compute in vectors.
_MATH = [op for ops in MATH.values() for op in ops if op not in (Op.ERFINV, Op.RINT, Op.NEXTAFTER)]
# Blocks of the outermost loop, which threads share.
_BLOCKS = 1024


def definition(stmt: ForeignCall, name: str) -> str:
    """The function that runs all calls and points; threads share blocks of the grid's outermost loop. It takes
    pointers, the number of calls, for each array the number of elements of one call, then the grid and the sizes."""
    source, arrays = source_of(stmt), range(len(buffers_of(stmt)))
    fields = {
        f"harp_a{k}": f"{'const ' if k < len(stmt.sources) else ''}{TYPES[buffer.dtype]} *restrict "
        for k, buffer in enumerate(buffers_of(stmt))
    }
    ends = [f"harp_end{k}" for k in range(len(source.grid))]
    sizes = [f"harp_size{k}" for k in range(len(source.sizes))]
    numbers = ["harp_calls", *(f"harp_step{k}" for k in arrays), *ends, *sizes, "harp_blocks"]
    fields |= dict.fromkeys(numbers, "const int64_t ")
    parameters = [f"{kind}{field}" for field, kind in fields.items() if field != "harp_blocks"]
    places = [f"harp_a{k} + harp_call * harp_step{k}" for k in arrays]
    work = " * ".join([*(f"(double){n}" for n in ("harp_calls", *ends)), str(source.operations or POINT)])
    text = [
        f"struct {name} {{ harp_job job; {' '.join(f'{kind}{field};' for field, kind in fields.items())} }};",
        f"static void {name}_part(void *given, int64_t harp_begin, int64_t harp_end)",
        "{",
        f"    const struct {name} *const args = given;",
        *(f"    {kind}{field} = args->{field};" for field, kind in fields.items() if field != "harp_calls"),
        "    for (int64_t harp_k = harp_begin; harp_k < harp_end; ++harp_k) {",
        "        const int64_t harp_call = harp_k / harp_blocks, harp_block = harp_k % harp_blocks;",
        *(f"        {line}" for line in _loops(source)),
        f"            {point_call(stmt, f'{name}_point', places, [*sizes, *_coordinates(source)])}",
        "    }",
        "}",
        f"static int {name}({', '.join(parameters)})",
        "{",
        f"    const int64_t harp_blocks = {f'harp_end0 < {_BLOCKS} ? harp_end0 : {_BLOCKS}' if ends else '1'};",
        "    if (harp_blocks <= 0) return 0;",
        f"    struct {name} args = {{ {', '.join(['{ 0, 1 }', *fields])} }};",
        f"    harp_parallel({name}_part, &args, harp_calls * harp_blocks, {work});",
        "    return args.job.status;",
        "}",
    ]
    math = _math_operations(source)
    macros = [line for op in math for line in _macro(op)]
    undone = [f"#undef {op.name.lower()}" for op in math]
    return "\n".join([*macros, point(stmt, f"{name}_point", "c"), *undone, *text])


def headers(stmt: ForeignCall) -> set[str]:
    """The headers that a unit with this kernel includes."""
    included = {HEADER, "harp_parallel"}
    for op in _math_operations(source_of(stmt)):
        included.update(operation_headers(op, f32), operation_headers(op, f64))
    return included


def _math_operations(source: KernelSource) -> list[Op]:
    """The functions of `_MATH` that the source uses: the user's text is all that says so."""
    used = set(re.findall(r"[A-Za-z_]\w*", source.text("c")))
    return [op for op in _MATH if op.name.lower() in used]


def _macro(op: Op) -> list[str]:
    """A macro that makes C's name of a function call harp's function for the type of its arguments."""
    name, arguments = op.name.lower(), ("a", "b") if INFO[op].arity == 2 else ("a",)
    kind = " + ".join(f"({a})" for a in arguments)
    choice = f"_Generic({kind}, float: harp_{name}_f32, default: harp_{name}_f64)({', '.join(arguments)})"
    return [f"#undef {name}", f"#define {name}({', '.join(arguments)}) {choice}"]


def _coordinates(source: KernelSource) -> list[str]:
    """The names of a point's coordinates."""
    return [f"harp_place{k}" for k in range(len(source.grid))]


def _loops(source: KernelSource) -> list[str]:
    """The heads of the loops over the points of a block."""
    places = _coordinates(source)
    first = [
        f"for (int64_t {i} = harp_end0 * harp_block / harp_blocks; "
        f"{i} < harp_end0 * (harp_block + 1) / harp_blocks; ++{i})"
        for i in places[:1]
    ]
    rest = enumerate(places[1:], 1)
    return [*first, *(f"for (int64_t {i} = 0; {i} < harp_end{k}; ++{i})" for k, i in rest)]


def call(stmt: ForeignCall, name: str, of_buffer: Callable[[Buffer], str], text: Callable[[Index], str]) -> str:
    """The call of the kernel for all its calls and points."""
    numbers = [product(stmt.calls), *steps_of(stmt), *stmt.sizes]
    return f"if (status == 0) status = {name}({', '.join([*map(of_buffer, buffers_of(stmt)), *map(text, numbers)])});"
