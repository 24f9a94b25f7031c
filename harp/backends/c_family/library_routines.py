"""The kernels of the library: functions that programs share, each compiled once for a machine.

A kernel is a file of `library` and the macros that it is compiled with. A program that calls one includes the header
with its prototype, and is linked with its unit and those of the kernels that it calls.

    #define HARP_T float
    #define HARP_DTYPE f32
    #define HARP_BITS 32
    #define HARP_LANES 16
    #include "linalg/gemm_panel.c"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from harp.backends.c_family.scalar import TYPES
from harp.backends.protocol import Unit
from harp.lower.library.operands import LANES
from harp.trace.scalar.dtypes import ALL, DType, Kind, bf16, f16, f32, f64

_FUSED = "-ffp-contract=fast"  # a product and a sum are one instruction, where there is one
_SQUARES = "-fno-ivopts"  # else gcc has a pointer for each row of a square, more than there are registers


class LibraryRoutine(NamedTuple):
    """A function of the library. `calls` are the kernels that it calls."""

    name: str
    header: str
    file: str
    macros: tuple[tuple[str, object], ...]
    flags: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()

    def unit(self) -> Unit:
        """What is compiled."""
        macros = [f"#define {name} {value}" for name, value in self.macros]
        return Unit("\n".join([f"/* {self.name} */", *macros, f'#include "{self.file}"', ""]), self.flags, shared=True)


def gemm_microkernel(dtype: DType, lanes: int) -> str:
    """Adds a product to rows of two vectors, where the right factor has as much room."""
    return f"harp_gemm_microkernel_{dtype.name}_x{lanes}"


def gemm_panel(dtype: DType, lanes: int) -> str:
    """Adds a product to rows of two vectors."""
    return f"harp_gemm_panel_{dtype.name}_x{lanes}"


def gemv_dot(dtype: DType, lanes: int) -> str:
    """Adds a matrix, read along its rows, times a vector."""
    return f"harp_gemv_dot_{dtype.name}_x{lanes}"


def gemv_axpy(dtype: DType) -> str:
    """Adds a row vector times a matrix, read along its rows."""
    return f"harp_gemv_axpy_{dtype.name}"


def row_dots(dtype: DType) -> str:
    """Adds the sum of the products along each row of two matrices."""
    return f"harp_row_dots_{dtype.name}"


def transpose(dtype: DType, lanes: int) -> str:
    """Transposes a part of a matrix of elements of this size."""
    return f"harp_transpose_{8 * dtype.itemsize}_x{lanes}"


def sort(stem: str, dtype: DType) -> str:
    """Sorts or searches a row: `sort`, `argsort` or `searchsorted`."""
    return f"harp_{stem}_{dtype.name}"


def _linalg() -> Iterator[LibraryRoutine]:
    def kernel(name: str, stem: str, flags: tuple[str, ...] = (), calls: tuple[str, ...] = ()) -> LibraryRoutine:
        return LibraryRoutine(name, "linalg/gemm.h", f"linalg/{stem}.c", macros, flags, calls)

    for dtype in LANES:
        element = ("HARP_T", TYPES[dtype]), ("HARP_DTYPE", dtype.name), ("HARP_BITS", 8 * dtype.itemsize)
        macros: tuple[tuple[str, object], ...] = element
        yield kernel(gemv_axpy(dtype), "gemv_axpy", (_FUSED,))
        yield kernel(row_dots(dtype), "row_dots", (_FUSED, _SQUARES))
        for lanes in LANES[dtype]:
            macros = (*element, ("HARP_LANES", lanes))
            called = [function(dtype, lanes) for function in (gemm_microkernel, gemv_dot, transpose)]
            half = (gemm_microkernel(dtype, lanes // 2),) if lanes * dtype.itemsize == 64 else ()
            yield kernel(gemm_microkernel(dtype, lanes), "gemm_microkernel", (_FUSED,), half)
            yield kernel(gemm_panel(dtype, lanes), "gemm_panel", calls=(*called, gemv_axpy(dtype)))
            yield kernel(gemv_dot(dtype, lanes), "gemv_dot", (_FUSED, _SQUARES))
            yield kernel(transpose(dtype, lanes), "transpose", (_SQUARES,))


WIDEN, NARROW = "harp_widen_f16", "harp_narrow_f16"


def _conversions() -> Iterator[LibraryRoutine]:
    """Of rows of float16 to float32, and back."""
    yield LibraryRoutine(WIDEN, "elements/convert.h", "elements/widen_f16.c", ())
    yield LibraryRoutine(NARROW, "elements/convert.h", "elements/narrow_f16.c", ())


# What encodes an element as a key depends on these; of floats it is the bits of infinity.
_INFINITY = {f16: "0x7c00", bf16: "0x7f80", f32: "0x7f800000", f64: "0x7ff0000000000000"}


def _sorts() -> Iterator[LibraryRoutine]:
    for dtype in ALL:
        if dtype.kind is Kind.COMPLEX:
            continue
        macros: list[tuple[str, object]] = [("HARP_DTYPE", dtype.name), ("HARP_BITS", 8 * dtype.itemsize)]
        macros += [("HARP_INFINITY", _INFINITY[dtype])] if dtype in _INFINITY else []
        macros += [("HARP_SIGNED", 1)] if dtype.kind is Kind.INT else []
        for stem in ("sort", "argsort", "searchsorted"):
            yield LibraryRoutine(sort(stem, dtype), "sort/sort.h", f"sort/{stem}.c", tuple(macros), ("-O3",))


KERNELS: Mapping[str, LibraryRoutine] = {
    routine.name: routine for routines in (_linalg(), _conversions(), _sorts()) for routine in routines
}


# What programs use of the process, beside that library: see `process.h`.
PROCESS = frozenset({"harp_parallel", "harp_take", "harp_call_python", "harp_interrupted"})


def header(name: str) -> str:
    """What declares a kernel of the library, or a function of the process; a header stands for itself."""
    return KERNELS[name].header if name in KERNELS else "process.h" if name in PROCESS else name


def linked(names: Iterable[str]) -> list[LibraryRoutine]:
    """These kernels, and those that they call."""
    found: dict[str, LibraryRoutine] = {}
    wanted = sorted(names, reverse=True)
    while wanted:
        name = wanted.pop()
        if name not in found:
            found[name] = KERNELS[name]
            wanted += found[name].calls
    return list(found.values())
