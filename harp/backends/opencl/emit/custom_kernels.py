"""Kernels of the user on a device: each point of the grid is a work-item.

void harp_launch0_point(__global const float *restrict x, const float a, __global float *restrict y, ...) { ... }
__kernel void harp_launch0(__global const float *a0, __global const float *a1, __global float *a2, ... given)
{
    const int64_t harp_place0 = get_global_id(0);
    if (harp_is_beyond(harp_place0, given.end0)) return;
    harp_launch0_point(a0 + given.at0, *(a1 + given.at1), a2 + given.at2, given.size0, harp_place0);
}
"""

from __future__ import annotations

from harp.backends.c_family.custom_kernels import HEADER, buffers_of, places_of_point, point, point_call, steps_of
from harp.backends.c_family.scalar import TYPES
from harp.backends.c_family.values import code
from harp.backends.opencl.emit.render import LaunchCode
from harp.backends.opencl.emit.statements import DIMENSIONS
from harp.lower.loopir.loops import ForeignCall
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.index.polynomial import product


def launch(stmt: ForeignCall, number: int) -> LaunchCode:
    """The function of its launch."""
    source, buffers, name = stmt.routine, buffers_of(stmt), f"harp_launch{number}"
    assert isinstance(source, KernelSource)
    ends = {loop: f"given.end{k}" for k, loop in enumerate(places_of_point(source))}
    loops = {"harp_call": "given.calls", **ends} if stmt.calls else ends
    arrays = range(len(buffers))
    fields = [*(f"at{k}" for k in arrays), "calls", *(f"step{k}" for k in arrays)]
    fields += [*(f"end{k}" for k in range(len(ends))), *(f"size{k}" for k in range(len(source.sizes)))]
    moved = " + harp_call * given.step{0}" if stmt.calls else ""
    places = [f"a{k} + given.at{k}{moved.format(k)}" for k in arrays]
    sizes = [f"given.size{k}" for k in range(len(source.sizes))]
    parameters = [
        f"__global {'const ' if k < len(stmt.sources) else ''}{TYPES[buffer.dtype]} *a{k}"
        for k, buffer in enumerate(buffers)
    ]
    text = [
        f'#include "{HEADER}"',
        point(stmt, f"{name}_point", "opencl", "void", "__global "),
        f"struct {name} {{ {' '.join(f'int64_t {field};' for field in fields)} }};",
        f"__kernel void {name}({', '.join([*parameters, f'const struct {name} given'])})",
        "{",
        *(f"    {line}" for line in _position(loops)),
        f"    {point_call(stmt, f'{name}_point', places, sizes, '__global ')}",
        "}",
    ]
    numbers = (product(stmt.calls), *steps_of(stmt), *stmt.sizes)
    grid = (*((product(stmt.calls),) if stmt.calls else ()), *stmt.sizes[: len(source.grid)])
    return LaunchCode(name, grid, buffers, (), (), tuple(code("\n".join(text))), numbers)


def _position(loops: dict[str, str]) -> list[str]:
    """Which point a work-item is: the innermost loops have dimensions of their own, the others share the last one."""
    names = list(loops)[::-1]
    lines = []
    for dimension, name in enumerate(names[: DIMENSIONS - 1]):
        lines.append(f"const int64_t {name} = get_global_id({dimension});")
        lines.append(f"if (harp_is_beyond({name}, {loops[name]})) return;")
    outer = names[DIMENSIONS - 1 :]
    if outer:
        lines.append(f"int64_t harp_flat = get_global_id({DIMENSIONS - 1});")
    for name in outer[:-1]:
        lines += [f"const int64_t {name} = harp_flat % {loops[name]};", f"harp_flat /= {loops[name]};"]
    if outer:
        lines.append(f"const int64_t {outer[-1]} = harp_flat;")
        lines.append(f"if (harp_is_beyond(harp_flat, {loops[outer[-1]]})) return;")
    return lines
