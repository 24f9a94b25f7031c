"""Programs as one file of C and its header, for callers without Python.

    int         NAME_ENTRY_shapes(sizes, int64_t out[2], ...)           the sizes of the outputs
    int64_t     NAME_ENTRY_scratch(sizes)                               bytes of scratch memory, -1 where a guard fails
    int         NAME_ENTRY(inputs, outputs, sizes, void *scratch)       computes
    const char *NAME_message(int code)                                  what a code that is not 0 means

The kernels, the functions that call them and the library are those of programs (`render.py`); kernels of several
entries that have the same text are one. `standalone.h` stands for the process. All names of harp get the prefix NAME_,
so that several such files can be linked.

What flags say where a program is compiled for this process is said by pragmas: only the products of the library are
contracted, and integers wrap. Where the machine has no fused multiply-add, for compilers that do not have gcc's
language, or if NAME_PORTABLE is defined, these products are plain loops with the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harp.backends.c.emit import bundle
from harp.backends.c.emit.body import KERNEL, kernel_function
from harp.backends.c.emit.function import STATIC, Function
from harp.backends.c.emit.render import Renderer, flags_of, magnitude
from harp.backends.c_family.custom_kernels import HEADER
from harp.backends.c_family.index import IndexPrinter
from harp.backends.c_family.library import KERNELS, LibraryRoutine, header, linked
from harp.backends.c_family.scalar import GENERATED, TYPES, literal
from harp.backends.c_family.values import plain, printed
from harp.lower.loopir.loops import Kernel
from harp.lower.loopir.program import Program
from harp.trace.index.polynomial import Atom, Index, Shape, product
from harp.trace.scalar.dtypes import DType, NDArray, as_dtype, real_of
from harp.trace.scalar.expr import const
from harp.trace.sizes.scope import Relation

# What can fail besides guards, by the name of the code.
_CODES = {
    "NO_MEMORY": "there is not enough memory",
    "NEGATIVE_SIZE": "a size is negative",
    "TOO_LARGE": "the sizes are too large",
}
# The flags of a unit that change what it computes, as gcc's pragmas: others only save time.
_PRAGMAS = {f"-f{flag}": flag for flag in ("no-tree-loop-if-convert", "no-tree-sink")}
_FUSED = "-ffp-contract=fast"

_HEAD = """\
#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ == 2)
#error "this computes other numbers: without -ffast-math, -Ofast and the x87 (-msse2 -mfpmath=sse), please"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang diagnostic ignored "-Wunused-function"
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "wrapv", "no-math-errno", "no-trapping-math")
#pragma GCC optimize("tree-vectorize", "vect-cost-model=dynamic")
#pragma GCC diagnostic ignored "-Wpsabi"
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#else
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-const-variable"
#pragma GCC diagnostic ignored "-Wunused-variable"
#endif
"""
_FAST = """\
#if defined({}_PORTABLE) || !defined(__OPTIMIZE__) || !defined(__GNUC__)
#define HARP_PLAIN
#elif defined(HARP_FMA) && !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
#define HARP_PLAIN
#endif
#if !defined(HARP_PLAIN)
#define HARP_BY_NAME
{}
#else
{}
#endif
"""
_FUSING = """\
#if defined(__clang__) && defined(HARP_FMA)
#pragma clang fp contract(fast)
#elif defined(HARP_FMA)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast", "expensive-optimizations")
#endif
{}
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(HARP_FMA)
#pragma GCC pop_options
#endif
"""
_WITH_PRAGMA = """\
#if !defined(__clang__) && defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("{}")
#endif
{}
#if !defined(__clang__) && defined(__GNUC__)
#pragma GCC pop_options
#endif
"""
_HEADER = """\
/* {title}
 *
 * Arrays are contiguous, in C order. bool is 0 or 1, complex numbers are pairs, halves are held as their bits.
 * Functions return 0, or a code for {name}_message, and then outputs hold nothing. `scratch` has as many bytes as the
 * function that ends with _scratch says, or is NULL: then the memory is malloc's. */
#ifndef {guard}
#define {guard}
#include <stdint.h>
#ifdef __cplusplus
extern "C" {{
#endif

enum {{ {codes} }};
const char *{name}_message(int code);

{declared}

#ifdef __cplusplus
}}
#endif
#endif
"""


class Parameter(NamedTuple):
    """An array that goes in or comes out."""

    name: str
    dtype: DType
    shape: Shape


class Entry(NamedTuple):
    """A program, and how it is called. `sizes` are the names of the parameters that are sizes; shapes, the `values` of
    the program's sizes and the guards, each with what it says, are expressions of these."""

    name: str
    program: Program
    sizes: Mapping[Atom, str]
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    values: tuple[Index, ...]
    guards: tuple[tuple[Relation, Index, str], ...]
    captured: tuple[NDArray, ...]


def macros(name: str) -> list[str]:
    """What the header, and who compiles the file, may define besides functions."""
    return [f"{name.upper()}_{word}" for word in ("H", "PORTABLE", *_CODES)]


def standalone(name: str, entries: Sequence[Entry], fma: bool) -> tuple[str, str]:
    """The file and its header. `fma` says that the programs round a product and a sum once."""
    source = _Source(name, entries, fma)
    return source.text(), source.header()


class _Source:
    """The parts of a file. Until the end, all names of harp begin with harp_."""

    def __init__(self, name: str, entries: Sequence[Entry], fma: bool) -> None:
        self.name, self.entries, self.fma = name, entries, fma
        self.named: dict[str, str] = {}  # kernels by their text
        # The texts of kernels; those with code of the user, and with C's macros for that, come last.
        self.kernels: dict[bool, list[str]] = {False: [], True: []}
        self.tables: dict[tuple[str, str], str] = {}  # captured arrays by type and content
        self.uses: set[str] = {"harp_take"}
        self.codes = {code: k for k, code in enumerate(_CODES, 1)}
        self.messages = ["", *_CODES.values()]

    def text(self) -> str:
        runs = [self._run(entry) for entry in self.entries]
        public = [text for entry in self.entries for text in self._public(entry)]
        called = [KERNELS[name] for name in sorted(self.uses) if name in KERNELS]
        simple = ["linalg/simple.h"] if any(routine.simple for routine in called) else []
        names = [GENERATED, *sorted({header(name) for name in self.uses} - {HEADER}), *simple]
        codes = [*map('#include "{}"'.format, names), *(r.unit().text for r in linked(r.name for r in called))]
        parts = [
            *["#define HARP_FMA"] * self.fma,
            bundle.headers(codes),
            *_library(called, self.name),
            *self.kernels[False],
            *[bundle.headers([f'#include "{HEADER}"'])] * any(self.kernels[True]),
            *self.kernels[True],
            *(f"static const {kind} {name}{content}" for (kind, content), name in self.tables.items()),
            *runs,
            *public,
        ]
        prefixed = re.sub(r"\bharp_", f"{self.name}_harp_", "\n".join(parts))
        return "\n".join([f'/* {self._title()} */\n{_HEAD}#include "{self.name}.h"', prefixed, self._message(), ""])

    def header(self) -> str:
        guard, name = f"{self.name.upper()}_H", self.name
        codes = ", ".join(f"{name.upper()}_{code} = {k}" for code, k in self.codes.items())
        declared = "\n\n".join(map(self._declared, self.entries))
        return _HEADER.format(title=self._title(), guard=guard, name=name, codes=codes, declared=declared)

    def _title(self) -> str:
        return f"{self.name}: {', '.join(entry.name for entry in self.entries)}; written by harp.export"

    def _run(self, entry: Entry) -> str:
        """The function that runs a program, and that of its scratch memory; its kernels are noted."""
        renderer = Renderer(entry.program, given=True)
        renderer.functions = list(map(self._kernel, entry.program.kernels))
        scratch, run = renderer.scratch(), renderer.run()
        self.uses |= run.uses
        text = "\n".join(printed(f.definition("static")) for f in (scratch, run))
        return re.sub(r"\bharp_(run|scratch)\b", rf"harp_\1_{entry.name}", text)

    def _kernel(self, kernel: Kernel) -> Function:
        """The function of a kernel, by the name that it has here."""
        function = kernel_function(kernel)
        text = printed(function.definition(STATIC))  # not inlined: slots of memory change their types between kernels
        if text not in self.named:
            self.named[text] = f"{KERNEL}{len(self.named)}"
            own = re.sub(rf"\b{KERNEL}", self.named[text], text)
            pragmas = [_PRAGMAS[flag] for flag in flags_of(kernel, function.uses) if flag in _PRAGMAS]
            self.kernels[HEADER in function.uses].append(_WITH_PRAGMA.format(pragmas[0], own) if pragmas else own)
            self.uses |= function.uses
        return function._replace(name=self.named[text])

    def _public(self, entry: Entry) -> Iterator[str]:
        """The functions of an entry that are called from outside, and the one that they ask about the sizes."""
        index = IndexPrinter(entry.sizes.__getitem__)
        values = [index.text(p) for p in entry.values]
        given = [*(p.name for p in entry.inputs), *map(self._table, entry.captured), *(p.name for p in entry.outputs)]
        check = f"harp_check_{entry.name}({', '.join(entry.sizes.values())})"
        yield _function(f"static int harp_check_{entry.name}({_of_sizes(entry)})", [*self._checks(entry), "return 0;"])
        shapes, scratch, run = self._heads(entry)
        stores = [f"{p.name}[{k}] = {index.text(extent)};" for p in entry.outputs for k, extent in enumerate(p.shape)]
        refused = [f"const int code = {check};", "if (code != 0) return code;"]
        yield _function(shapes, [*refused, *stores, "return 0;"])
        bytes_needed = f"const int64_t bytes = {check} != 0 ? -1 : harp_scratch_{entry.name}({', '.join(values)});"
        yield _function(scratch, [bytes_needed, "return bytes > 0 ? bytes + 63 : bytes;"])
        call = f"harp_run_{entry.name}({', '.join([*given, *values, 'scratch'])})"
        yield _function(run, [*refused, f"return {call} != 0 ? {self.codes['NO_MEMORY']} : 0;"])

    def _checks(self, entry: Entry) -> Iterator[str]:
        """The lines that return a code where sizes are not those that the program is for."""
        index = IndexPrinter(entry.sizes.__getitem__)
        bounds: dict[Atom, str] = {atom: f"(double){text}" for atom, text in entry.sizes.items()}
        for size in entry.sizes.values():
            yield f"if ({size} < 0) return {self.codes['NEGATIVE_SIZE']};"
        for p in dict.fromkeys(product(o.shape) * o.dtype.itemsize for o in entry.outputs):
            if p.constant is None:
                yield f"if (!({magnitude(p, bounds)} < 0x1p62)) return {self.codes['TOO_LARGE']};"
        for relation, p, text in entry.guards:
            self.messages.append(f"{entry.name} needs {text}")
            yield f"if (!({index.text(p)} {relation.value})) return {len(self.messages) - 1};"

    def _heads(self, entry: Entry) -> tuple[str, str, str]:
        """The heads of the public functions."""
        name = f"{self.name}_{entry.name}"
        inputs = [f"const {_type(p.dtype)} *{p.name}" for p in entry.inputs]
        outputs = [f"{_type(p.dtype)} *{p.name}" for p in entry.outputs]
        sizes = [f"int64_t {size}" for size in entry.sizes.values()]
        shapes = [f"int64_t {p.name}[{len(p.shape)}]" for p in entry.outputs if p.shape]
        return (
            f"int {name}_shapes({', '.join(sizes + shapes) or 'void'})",
            f"int64_t {name}_scratch({_of_sizes(entry)})",
            f"int {name}({', '.join([*inputs, *outputs, *sizes, 'void *scratch'])})",
        )

    def _declared(self, entry: Entry) -> str:
        arrays = [
            ", ".join(f"{p.name}: {p.dtype.numpy_name}[{', '.join(map(repr, p.shape))}]" for p in parameters)
            for parameters in (entry.inputs, entry.outputs)
        ]
        needs = [f" * where {plain(text)}" for *_, text in entry.guards]
        comment = "\n".join([f"/* {entry.name}: ({arrays[0]}) -> ({arrays[1]})", *needs])
        return "\n".join([f"{comment} */", *(f"{head};" for head in self._heads(entry))])

    def _message(self) -> str:
        texts = [text.encode("ascii", "backslashreplace").decode() for text in self.messages]
        quoted = ", ".join('"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"')) for text in texts)
        lines = [f"static const char *const messages[] = {{{quoted}}};"]
        lines.append(f'return code >= 0 && code < {len(texts)} ? messages[code] : "no code of this file";')
        return _function(f"const char *{self.name}_message(int code)", lines)

    def _table(self, array: NDArray) -> str:
        """The name of a captured array."""
        texts: Iterable[str]
        dtype = as_dtype(array.dtype)
        numbers = array.reshape(-1)
        if dtype.is_complex:
            dtype = real_of(dtype)
            numbers = numbers.view(dtype.numpy)
        if dtype.is_stored:
            numbers = numbers.view(f"u{dtype.itemsize}")
            texts = map(str, numbers.tolist())
        else:
            texts = (literal(const(number, dtype)) for number in numbers.tolist())
        content = f"[{max(numbers.size, 1)}] = {{{', '.join(texts) or '0'}}};"
        return self.tables.setdefault((TYPES[dtype], content), f"harp_table{len(self.tables)}")


def _library(called: Sequence[LibraryRoutine], name: str) -> Iterator[str]:
    """The units of the library: those of products, which are fast or plain loops, and all others."""
    products = [routine for routine in called if routine.simple]
    others = [routine for routine in called if not routine.simple]
    texts = {routine: bundle.unit(routine, k) for k, routine in enumerate([*linked(r.name for r in products), *others])}
    fast = [_FUSING.format(text) if _FUSED in r.flags else text for r, text in texts.items() if r not in others]
    if products:
        yield _FAST.format(name.upper(), "\n".join(fast), "\n".join(routine.simple for routine in products))
    yield from (texts[routine] for routine in others)


def _function(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, "{", *(f"    {line}" for line in lines), "}"])


def _of_sizes(entry: Entry) -> str:
    return ", ".join(f"int64_t {size}" for size in entry.sizes.values()) or "void"


def _type(dtype: DType) -> str:
    return TYPES[real_of(dtype) if dtype.is_complex else dtype]
