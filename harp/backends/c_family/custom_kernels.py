"""Kernels of the user: a function of one point, with the names of the user, and its call.

static inline void point(
#line 1 "harp names of kernel scaled"
const float *restrict x,
const float a,
float *restrict y,
const int64_t n,
const int64_t i)
{
typedef float T;
#line 1 "harp names of kernel scaled"
{ enum { x }; }
...
#line 1 "harp kernel scaled"
y[i] = a * x[i];
}

The user's names stand in this function only. A compiler error is then about a line of the user's text, or about one of
the names, each of which has a line of its own: a macro with a value, such as INFINITY, may pass as the name of a
parameter, but not as a member of an enumeration.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.backends.c_family.scalar import TYPES
from harp.lower.loopir.loops import Buffer, ForeignCall
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.index.polynomial import Index, product
from harp.trace.scalar.dtypes import DType, c64, c128

HEADER = "custom_kernel.h"
_POINT = "static inline __attribute__((always_inline)) void"


# Complex numbers are structs in C, with a product of harp's own; in OpenCL C they are vectors, for which `a * b` would
# mean another product.
_PAIRS = {c64: "harp_pair_f32", c128: "harp_pair_f64"}


def _type(dtype: DType) -> str:
    return _PAIRS.get(dtype, TYPES[dtype])


def buffers_of(stmt: ForeignCall) -> tuple[Buffer, ...]:
    """The arrays, in the order of the parameters: inputs, then outputs."""
    return (*stmt.sources, *stmt.targets)


def own_rank(stmt: ForeignCall, buffer: Buffer) -> int:
    """The number of axes of the array of one call."""
    return len(buffer.shape) - len(stmt.calls)


def steps_of(stmt: ForeignCall) -> list[Index]:
    """For each array, the number of elements of one call."""
    return [product(buffer.shape[len(stmt.calls) :]) for buffer in buffers_of(stmt)]


def point(stmt: ForeignCall, name: str, backend: str, linkage: str = _POINT, space: str = "") -> str:
    """The function of one point. `space` is the address space of arrays."""
    source = source_of(stmt)
    parameters = [
        f"const {_type(b.dtype)} {arg}" if own_rank(stmt, b) == 0 else f"{space}const {_type(b.dtype)} *restrict {arg}"
        for arg, b in zip(source.inputs, stmt.sources, strict=True)
    ]
    outputs = zip(source.outputs, stmt.targets, strict=True)
    parameters += [f"{space}{_type(b.dtype)} *restrict {arg}" for arg, b in outputs]
    parameters += [f"const int64_t {arg}" for arg in (*source.sizes, *source.grid)]
    names = f'#line 1 "harp names of kernel {source.name}"'
    return "\n".join(
        [
            f"{linkage} {name}(",
            names,
            ",\n".join(parameters) + ")",
            "{",
            f'#line {len(parameters) + 1} "harp names of kernel {source.name}"',
            *(f"typedef {_type(dtype)} {arg};" for arg, dtype in source.types),
            names,
            *(f"{{ enum {{ {arg} }}; }}" for arg in source.names),
            f'#line 1 "harp kernel {source.name}"',
            source.text(backend),
            "}",
        ]
    )


def point_call(stmt: ForeignCall, name: str, places: Sequence[str], numbers: Sequence[str], space: str = "") -> str:
    """The call of that function for arrays that begin at these places; `numbers` are the sizes and the point's
    coordinates."""
    arguments = []
    for number, (place, buffer) in enumerate(zip(places, buffers_of(stmt), strict=True)):
        is_input = number < len(stmt.sources)
        if buffer.dtype in _PAIRS:
            place = f"({space}{'const ' if is_input else ''}{_type(buffer.dtype)} *)({place})"
        arguments.append(f"*({place})" if is_input and own_rank(stmt, buffer) == 0 else place)
    return f"{name}({', '.join([*arguments, *numbers])});"


def source_of(stmt: ForeignCall) -> KernelSource:
    assert isinstance(stmt.routine, KernelSource)
    return stmt.routine
