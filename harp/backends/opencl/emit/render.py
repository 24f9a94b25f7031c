"""Kernels of the loop IR as OpenCL C: the statements of C, in functions that a grid of work-items runs.

    struct sizes { long in0, out0, s0, i0; };                      offsets of the arrays, sizes, loops of the host
    __kernel void harp_launch0(__global const float *in0_, __global float *out0_, const struct sizes given)
    {
        __global const float *restrict in0 = in0_ + given.in0;
        const int64_t s0 = given.s0, i1 = get_global_id(0);
        if (harp_is_beyond(i1, s0)) return;
        ...
    }

Names follow positions, so that kernels that differ in names only are one source, as in C.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harp.backends.c_family.library import KERNELS, PROCESS
from harp.backends.c_family.scalar import GENERATED, TYPES
from harp.backends.c_family.statements import parameters
from harp.backends.c_family.values import code, plain
from harp.backends.opencl.emit.statements import WorkGroup, WorkItem, points
from harp.lower.device.grid import grid_of
from harp.lower.device.groups import ITEMS, has_workspace, is_shared, private_arrays, sub_group
from harp.lower.loopir.effects import effects, free_names
from harp.lower.loopir.loops import Buffer, For, ForeignCall, Kernel, Nest, Repeat, Stmt, Store, walk
from harp.lower.loopir.nests import nest
from harp.lower.loopir.program import formals
from harp.lower.loopir.text import CodeLine
from harp.trace.index.polynomial import Atom, Index, Loop
from harp.trace.scalar import expr
from harp.trace.scalar.dtypes import c128, f64

DOUBLES = (f64, c128)


class LaunchCode(NamedTuple):
    """A function of the source. `grid` are the extents of its loops from the outside in; `room` are the sizes in bytes
    of the parts of the workspace of each work-item, or each group. Its parameters are the buffers, that workspace if
    there is one, and a struct of numbers: the offset of each buffer, the values of `names`, and `numbers` more. With
    `items`, a group of at most so many work-items runs each iteration of the grid. `in_turns` says that the launch has
    one dimension, that there may be fewer groups than iterations, and that the workspace is per group."""

    name: str
    grid: tuple[Index, ...]
    buffers: tuple[Buffer, ...]
    names: tuple[Atom, ...]
    room: tuple[Index, ...]
    lines: tuple[CodeLine, ...]
    numbers: int = 0
    items: int = 0
    in_turns: bool = False
    doubles: bool = False  # whether it computes with doubles, also as parts of complex numbers
    is_users: bool = False  # whether it has text of the user


def loop_name(loop: Loop) -> str:
    """The name of a loop of the host."""
    return f"i{loop.axis}"


def text(kernel: Kernel, launched: Iterable[LaunchCode]) -> list[CodeLine]:
    """The lines of a kernel's launches, without the library that it includes."""
    head = code(f'/* {plain(kernel.name)} */\n\n#include "{GENERATED}"')
    return [*head, *(line for f in launched for line in (*code(""), *f.lines)), *code("")]


def launch(kernel: Kernel, stmt: Stmt, number: int, loops: tuple[For | Repeat, ...]) -> LaunchCode:
    """The function of a launch, inside of these loops of the host."""
    known = parameters(kernel)
    used = effects(stmt)
    buffers = tuple(b for b in formals(kernel) if b in used.touched)
    outer = [name for name in free_names(stmt) if isinstance(name, Loop)]
    names: dict[Atom, str] = {s: known[s] for s in kernel.sizes} | {loop: loop_name(loop) for loop in outer}
    texts = {b: known[b] for b in buffers}
    shared = is_shared(stmt)
    constant, lanes = frozenset(b for b in buffers if b not in used.writes), sub_group(stmt)
    body = WorkGroup(texts, names, constant, lanes) if shared else WorkItem(texts, names, constant)
    body.name = name = f"harp_launch{number}"
    grid = points(stmt) if isinstance(stmt, ForeignCall) else grid_of(stmt)
    body.lines.loops = loops
    body.iteration(grid, nest(stmt.heads[len(grid) :], stmt.body) if isinstance(stmt, Nest) else stmt)
    names = {atom: text for atom, text in names.items() if text in body.used}
    fields = [*texts.values(), *names.values()]
    room = ["__global char *harp_room"] if body.room else []
    arrays = [f"__global {_const(b, used.writes)}{TYPES[b.dtype]} *{text}_" for b, text in texts.items()]
    numbers_parameter = [f"const struct {name} given"] if fields else []
    exactly = f"__attribute__((reqd_work_group_size({ITEMS}, 1, 1))) " if lanes or any(private_arrays(stmt)) else ""
    exactly += f"__attribute__((intel_reqd_sub_group_size({lanes}))) " if lanes else ""
    head = [
        *includes(body.lines.uses),
        *body.functions,
        *([f"struct {name} {{ {' '.join(f'int64_t {field};' for field in fields)} }};"] if fields else []),
        f"__kernel HARP_WHOLE_VECTORS {exactly}void {name}({', '.join([*arrays, *room, *numbers_parameter])})",
        "{",
        *(
            f"    __global {_const(b, used.writes)}{TYPES[b.dtype]} *restrict {t} = {t}_ + given.{t};"
            for b, t in texts.items()
        ),
        *(f"    const int64_t {text} = given.{text};" for text in names.values()),
        *["    int status = 0;"] * body.lines.fails,
    ]
    return LaunchCode(
        name,
        tuple(h.loop.extent for h in grid),
        buffers,
        tuple(names),
        tuple(body.room),
        (*code("\n".join(head)), *body.lines.lines, *code("}")),
        items=ITEMS if shared else 0,
        in_turns=has_workspace(stmt),
        doubles=_computes_in_doubles(stmt),
        is_users=bool(body.functions),
    )


def _computes_in_doubles(stmt: Stmt) -> bool:
    """Whether a value or an array is of doubles."""
    values = (part.value for part in walk(stmt) if isinstance(part, Store))
    dtypes = {*(e.dtype for e in expr.walk(values)), *(buffer.dtype for buffer in effects(stmt).touched)}
    return not dtypes.isdisjoint(DOUBLES)


def _const(buffer: Buffer, written: frozenset[Buffer]) -> str:
    return "" if buffer in written else "const "


def includes(uses: Iterable[str]) -> list[str]:
    """The includes of a launch: headers, and for each function of the library its template with macros, once in a
    source."""
    lines: list[str] = []
    for name in sorted({*uses} - {GENERATED, *PROCESS}):
        routine = KERNELS.get(name)
        if routine is None:
            lines.append(f'#include "{name}"')
            continue
        macros = dict(routine.macros)
        folder, lanes = routine.header.partition("/")[0].upper(), macros.get("HARP_LANES", "")
        guard = f"HAS_{folder}_{macros['HARP_DTYPE']}_{lanes}"
        lines += [f"#ifndef {guard}", f"#define {guard}"]
        lines += [f"#define {macro} {value}" for macro, value in routine.macros]
        lines += [f'#include "{routine.header}"']
        lines += [f"#undef {macro}" for macro, _ in routine.macros]
        lines += ["#endif"]
    return lines
