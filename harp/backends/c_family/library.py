"""The kernels of the library: functions that programs share, each compiled once for each machine, and their calls.

A kernel is a file of `library` and the macros that it is compiled with. A program that calls one includes the header
with its prototype, and is linked with its unit and those of the kernels that it calls.

    #define HARP_T float
    #define HARP_DTYPE f32
    #define HARP_BITS 32
    #define HARP_LANES 16
    #include "linalg/gemm_panel.c"

gemm panel     ->  harp_gemm_panel_f32_x16(rows, columns, depth, &a, a_row, a_step, &b, b_step, b_column, &c, c_row)
gemm integers  ->  harp_gemm_integers_i8_u8_x8(the same)
gemv axpy      ->  harp_gemv_axpy_f32(columns, depth, &a, a_step, &b, b_step, &c)
row dots       ->  harp_row_dots_f32(rows, depth, &a, a_row, &b, b_row, &c)
dot            ->  harp_row_dots_f32(1, depth, &a, 0, &b, 0, &c)
transpose      ->  harp_transpose_32_x16(rows, columns, &b, b_row, &tile, width)
widen          ->  harp_widen_f16(count, &x, &wide)
copy and zero  ->  __builtin_memcpy(&target, &source, bytes), __builtin_memset(&target, 0, bytes)
sort by        ->  status |= harp_argsort_f32(n, &keys[row*n], &work[n], work, 0, harp_parallel);
                   harp_take_row(n, &work[n], &values[row*n], &out[row*n])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from harp.backends.c_family import fast_path
from harp.backends.c_family.scalar import MATH, TYPES
from harp.backends.protocol import Unit
from harp.lower.library import LANES, PANEL_LANES
from harp.lower.loopir.loops import Buffer, LibraryCall, LibraryOperand, Routine, Row
from harp.lower.rewrite.loop_fission import FUNCTIONS
from harp.trace.graph.matrix_functions import MatrixOp
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import ONE, ZERO, Index
from harp.trace.scalar.dtypes import ALL, DType, Kind, bf16, c64, c128, f16, f32, f64, i8, i32, real_of, u8
from harp.trace.scalar.ops import INFO, Op

_FUSED = "-ffp-contract=fast"  # fuses a product and a sum into one instruction, where there is one
_SQUARES = "-fno-ivopts"  # else gcc keeps a pointer for each row of a tile, more than there are registers
_Macros = tuple[tuple[str, object], ...]


class LibraryRoutine(NamedTuple):
    """A function of the library. `calls` are the kernels that it calls; `simple` is the macro that defines it as plain
    loops, which call none."""

    name: str
    header: str
    file: str
    macros: _Macros
    flags: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    simple: str = ""
    functions: str = ""  # the header with the functions that the file applies

    def unit(self) -> Unit:
        """The unit that compiles it."""
        macros = [f"#define {name} {value}" for name, value in self.macros]
        includes = [f'#include "{name}"' for name in (self.functions, self.file) if name]
        return Unit("\n".join([f"/* {self.name} */", *macros, *includes, ""]), self.flags, shared=True)


def kernel(stem: str, dtype: DType, lanes: int = 0) -> str:
    """The name of a kernel for this dtype (of which a transposition needs the size only) and vectors of `lanes`."""
    name = f"harp_{stem}_{8 * dtype.itemsize if stem == 'transpose' else dtype.name}"
    return f"{name}_x{lanes}" if lanes else name


def _linalg() -> Iterator[LibraryRoutine]:
    def routine(stem: str, *flags: str, lanes: int = 0, calls: tuple[str, ...] = ()) -> LibraryRoutine:
        macros: _Macros = (("HARP_T", TYPES[dtype]), ("HARP_DTYPE", dtype.name), ("HARP_BITS", 8 * dtype.itemsize))
        macros += (("HARP_LANES", lanes),) if lanes else ()
        of = (str(8 * dtype.itemsize),) if stem == "transpose" else (TYPES[dtype], dtype.name)
        simple = f"HARP_SIMPLE_{stem}({', '.join((*of, *[str(lanes)] * bool(lanes)))})"
        name, file = kernel(stem, dtype, lanes), f"linalg/{stem}.c"
        return LibraryRoutine(name, "linalg/gemm.h", file, macros, flags, calls, simple)

    for dtype in LANES:
        yield routine("gemv_axpy", _FUSED)
        yield routine("row_dots", _FUSED, _SQUARES)
        for lanes in LANES[dtype]:
            called = (kernel(stem, dtype, lanes) for stem in ("gemm_microkernel", "gemv_dot", "transpose"))
            half = (kernel("gemm_microkernel", dtype, lanes // 2),) if lanes * dtype.itemsize == 64 else ()
            yield routine("gemm_microkernel", _FUSED, lanes=lanes, calls=half)
            yield routine("gemm_panel", lanes=lanes, calls=(*called, kernel("gemv_axpy", dtype)))
            yield routine("gemv_dot", _FUSED, _SQUARES, lanes=lanes)
            yield routine("transpose", _SQUARES, lanes=lanes)


def _integers() -> Iterator[LibraryRoutine]:
    """Products of integers of 8 bits, by the dtypes of the factors."""
    for a, b, lanes in product((i8, u8), (i8, u8), PANEL_LANES[i32]):
        macros: _Macros = (("HARP_A", TYPES[a]), ("HARP_B", TYPES[b]), ("HARP_T", TYPES[i32]), ("HARP_BITS", 32))
        macros += (("HARP_DTYPE", f"{a}_{b}"), ("HARP_LANES", lanes))
        name = _of_integers(a, b, lanes)
        yield LibraryRoutine(name, "linalg/gemm.h", "linalg/gemm_integers.c", macros, ("-O3", _SQUARES))


def _of_integers(a: DType, b: DType, lanes: int) -> str:
    return f"harp_gemm_integers_{a}_{b}_x{lanes}"


def _conversions() -> Iterator[LibraryRoutine]:
    """Conversions of rows between half dtypes and float32."""
    for stem in ("widen", "narrow"):
        yield LibraryRoutine(kernel(stem, f16), "elements/convert.h", f"elements/{stem}_f16.c", ())


def _maps() -> Iterator[LibraryRoutine]:
    """Functions of the math library of each element of a row."""
    for dtype, (functions, ops) in product((f32, f64), MATH.items()):
        for op in (op for op in ops if op in FUNCTIONS):
            macros: _Macros = (("HARP_T", TYPES[dtype]), ("HARP_FLOAT", dtype.name), ("HARP_NAME", op.name.lower()))
            macros += (("HARP_ARGUMENTS", INFO[op].arity),)
            macros += (("HARP_NEAR", 1),) if dtype is f32 and op in fast_path.FUNCTIONS else ()
            header = functions.format(s=dtype.name)
            yield LibraryRoutine(_of_rows(op, dtype), "math/map.h", "math/map.c", macros, functions=header)


def _of_rows(op: Op, dtype: DType) -> str:
    return f"harp_map_{op.name.lower()}_{dtype.name}"


# The macro by which keys of floats are encoded: the bits of infinity.
_INFINITY = {f16: "0x7c00", bf16: "0x7f80", f32: "0x7f800000", f64: "0x7ff0000000000000"}


def _sorts() -> Iterator[LibraryRoutine]:
    for dtype in ALL:
        if dtype.is_complex or dtype.is_tiny:
            continue
        macros: _Macros = (("HARP_DTYPE", dtype.name), ("HARP_BITS", 8 * dtype.itemsize))
        macros += (("HARP_INFINITY", _INFINITY[dtype]),) if dtype in _INFINITY else ()
        macros += (("HARP_SIGNED", 1),) if dtype.kind is Kind.INT else ()
        for stem in ("sort", "argsort", "searchsorted"):
            yield LibraryRoutine(kernel(stem, dtype), "sort/sort.h", f"sort/{stem}.c", macros, ("-O3",))


def matrix_kernel(op: MatrixOp, dtype: DType) -> str:
    """The name of a function of matrices."""
    return kernel(op.value, dtype)


# All Fourier transforms are in one file, and exist for some dtypes only.
_TRANSFORMS: Mapping[MatrixOp, tuple[str, _Macros]] = {
    MatrixOp.FFT: ("fft", (("HARP_NAME", "fft"),)),
    MatrixOp.RFFT: ("fft", (("HARP_NAME", "rfft"), ("HARP_TO_COMPLEX", 1))),
    MatrixOp.IRFFT: ("fft", (("HARP_NAME", "irfft"), ("HARP_TO_REAL", 1))),
}


def _matrices() -> Iterator[LibraryRoutine]:
    """Calls of LAPACK, which has a letter for each dtype; `HARP_KIND` is its number."""
    for number, dtype in enumerate((f32, f64, c64, c128)):
        macros: _Macros = (("HARP_T", TYPES[dtype]), ("HARP_DTYPE", dtype.name), ("HARP_KIND", number))
        macros += (("HARP_REAL", TYPES[real_of(dtype)]),)
        macros += (("HARP_COMPLEX", 1),) if dtype.is_complex else ()
        for op in MatrixOp:
            file, more = _TRANSFORMS.get(op, (op.value, ()))
            yield LibraryRoutine(matrix_kernel(op, dtype), "lapack/functions.h", f"lapack/{file}.c", macros + more)


KERNELS: Mapping[str, LibraryRoutine] = {
    routine.name: routine
    for routines in (_linalg(), _integers(), _conversions(), _maps(), _sorts(), _matrices())
    for routine in routines
}
# Functions of the process that programs call, besides the library: see `process.h`.
PROCESS = frozenset({"harp_parallel", "harp_take", "harp_call_python", "harp_interrupted", "harp_lapack"})
# Those that functions of matrices call.
MATRICES_USE = frozenset({"harp_parallel", "harp_take", "harp_lapack"})


def header(name: str) -> str:
    """The header that declares a kernel or a function of the process; a header stands for itself."""
    return KERNELS[name].header if name in KERNELS else "process.h" if name in PROCESS else name


def linked(names: Iterable[str]) -> list[LibraryRoutine]:
    """These kernels, and all that they call."""
    routines: dict[str, LibraryRoutine] = {}
    pending = sorted(names, reverse=True)
    while pending:
        name = pending.pop()
        if name not in routines:
            routines[name] = KERNELS[name]
            pending += routines[name].calls
    return list(routines.values())


class Printer(NamedTuple):
    """How an index, an element of a buffer, its distance from the first one, and the buffer are printed."""

    text: Callable[[Index], str]
    element: Callable[[Buffer, tuple[Index, ...]], str]
    offset: Callable[[Buffer, tuple[Index, ...]], str]
    name: Callable[[Buffer], str]

    def pointer(self, operand: LibraryOperand) -> str:
        """The address of the operand's first element in the loops."""
        return f"&{self.element(operand.buffer, operand.first)}"


class Called(NamedTuple):
    """The lines of a call, and the functions that it uses; a call that `fails` sets the status."""

    lines: tuple[str, ...]
    uses: tuple[str, ...] = ()
    fails: bool = False


class Signature(NamedTuple):
    """The arguments of a kernel: extents, by the numbers of their loops, and the steps of each operand along these
    loops. The loop `ALONE` stands for one iteration."""

    stem: str
    extents: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]


ALONE = -1


# The loops of a matrix product are depth, row and column; of a vector-matrix product, depth and column; of a
# transposition, rows and columns of the source; of dots of rows, row and depth.
SIGNATURES: Mapping[Routine, Signature] = {
    Routine.GEMM_MICROKERNEL: Signature("gemm_microkernel", (1, 2, 0), ((1, 0), (0,), (1,))),
    Routine.GEMM_PANEL: Signature("gemm_panel", (1, 2, 0), ((1, 0), (0, 2), (1,))),
    Routine.GEMM_INTEGERS: Signature("gemm_integers", (1, 2, 0), ((1, 0), (0, 2), (1,))),
    Routine.GEMV_AXPY: Signature("gemv_axpy", (1, 0), ((0,), (0,), ())),
    Routine.ROW_DOTS: Signature("row_dots", (0, 1), ((0,), (0,), ())),
    Routine.DOT: Signature("row_dots", (ALONE, 0), ((ALONE,), (ALONE,), ())),
    Routine.TRANSPOSE: Signature("transpose", (0, 1), ((0,), (1,))),
    Routine.WIDEN: Signature("widen", (0,), ((), ())),
    Routine.NARROW: Signature("narrow", (0,), ((), ())),
    Routine.MAP: Signature("map", (0,), ()),
}


def call(stmt: LibraryCall, prints: Printer) -> Called:
    """The call of a kernel, or of a compiler builtin."""
    signature = SIGNATURES.get(stmt.routine)
    if signature is None:
        return Called((_BUILTINS[stmt.routine](stmt, prints),))
    narrowest = min((operand.buffer.dtype for operand in stmt.operands), key=lambda dtype: dtype.itemsize)
    name = kernel(signature.stem, narrowest)
    name = name if name in KERNELS else kernel(signature.stem, narrowest, stmt.lanes)
    if stmt.function is not None:
        name = _of_rows(stmt.function, narrowest)
        signature = signature._replace(steps=((),) * len(stmt.operands))
    if stmt.routine is Routine.GEMM_INTEGERS:
        name = _of_integers(stmt.operands[0].buffer.dtype, stmt.operands[1].buffer.dtype, stmt.lanes)
    arguments = ["1" if number == ALONE else prints.text(stmt.loops[number].extent) for number in signature.extents]
    for operand, numbers in zip(stmt.operands, signature.steps, strict=True):
        steps = ("0" if n == ALONE else prints.offset(operand.buffer, operand.steps[n]) for n in numbers)
        arguments += [prints.pointer(operand), *steps]
    return Called((f"{name}({', '.join(arguments)});",), (name,))


def _bytes(stmt: LibraryCall, prints: Printer) -> str:
    """The size of the target in bytes."""
    factors = [f"(size_t)({prints.text(loop.extent)})" for loop in stmt.loops if loop.extent is not ONE]
    return "*".join([*factors, f"sizeof({TYPES[stmt.operands[-1].buffer.dtype]})"])


def _memcpy(stmt: LibraryCall, prints: Printer) -> str:
    source, target = map(prints.pointer, stmt.operands)
    return f"__builtin_memcpy({target}, {source}, {_bytes(stmt, prints)});"


def _memset(stmt: LibraryCall, prints: Printer) -> str:
    return f"__builtin_memset({prints.pointer(stmt.operands[0])}, 0, {_bytes(stmt, prints)});"


_BUILTINS: Mapping[Routine, Callable[[LibraryCall, Printer], str]] = {Routine.COPY: _memcpy, Routine.ZERO: _memset}
_STEMS: Mapping[RowOp, str] = {
    RowOp.SORT: "sort",
    RowOp.ORDER: "argsort",
    RowOp.SORT_BY: "argsort",
    RowOp.SEARCH: "searchsorted",
}


def row_call(row: Row, prints: Printer) -> Called:
    """The call that sorts or searches one row; and if values are sorted by keys, the call that permutes them."""

    def pointer(buffer: Buffer, start: Index = ZERO) -> str:
        return f"&{prints.element(buffer, (*row.at_of(buffer), start))}"

    keys, *values = row.sources
    name, length = kernel(_STEMS[row.function], keys.dtype), prints.text(row.lane.extent)
    if row.function is RowOp.SEARCH:
        rows = f"{prints.text(keys.shape[-1])}, {pointer(keys)}"
        part = f"{length}, {pointer(values[0], row.start)}, {pointer(row.target, row.start)}"
        return Called((f"{name}({rows}, {part}, {int(row.reverse)});",), (name,))
    assert row.work is not None
    target = pointer(row.target)
    places = f"harp_places(&{prints.element(row.work, (row.lane.extent,))})" if values else target
    arguments = f"{length}, {pointer(keys)}, {places}, {prints.name(row.work)}, {int(row.reverse)}, harp_parallel"
    lines = [f"status |= {name}({arguments});"]
    if values:
        lines += ["if (status == 0)", f"    harp_take_row({length}, {places}, {pointer(values[0])}, {target});"]
    return Called(tuple(lines), (name, "harp_parallel"), fails=True)
