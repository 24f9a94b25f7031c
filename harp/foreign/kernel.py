"""`kernel`: functions whose code is C, or OpenCL C, of the user; and what their source can use: names that mean nothing
else in these languages, and text that ends with its function.

The names of macros are found by the compiler, which knows them.
"""

from __future__ import annotations

import inspect
import keyword
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from harp.errors import ArgumentError, KernelError, SignatureError
from harp.foreign.signature import Declared, Extent, declared, extent
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import as_integer, as_named, emit
from harp.trace.eval.host_calls import call_pure
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.node import Foreign
from harp.trace.graph.routines import PureFunction
from harp.trace.index.polynomial import Index, Shape, as_index
from harp.trace.scalar.dtypes import ALL, DType, bool_, computing, promote_weak, u8
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import describe, require_at_least_one, resolve_all, unify
from harp.trace.source_locations import plural, printable, where
from harp.trace.tracer import require_function

_BACKENDS = ("c", "opencl")


class Kernel:
    """A function of arrays that is written in C; see `harp.kernel`."""

    def __init__(
        self, source: KernelSource, inputs: Sequence[Declared], outputs: Sequence[Declared], grid: Sequence[Extent]
    ) -> None:
        self._source, self._inputs, self._outputs, self._grid = source, inputs, outputs, grid
        self.__name__ = source.name
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        self.__signature__ = inspect.Signature([inspect.Parameter(d.name, kind) for d in inputs])

    def __repr__(self) -> str:
        given, made = (", ".join(f"{d.name}: {d}" for d in group) for group in (self._inputs, self._outputs))
        return f"<kernel {self.__name__!r} ({given}) -> ({made})>"

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """The output, or a tuple of several. Raises ArgumentError, SignatureError for arguments that do not fit, and
        ShapeError for sizes that differ."""
        try:
            given = self.__signature__.bind(*args, **kwargs).args
        except TypeError as error:
            raise ArgumentError(f"kernel {self.__name__!r}: {error}{where()}") from None
        arrays = [as_named(a, self._argument(d)) for d, a in zip(self._inputs, given, strict=True)]
        types = self._types(arrays)
        arrays = [self._of_dtype(d, a, types) for d, a in zip(self._inputs, arrays, strict=True)]
        known = self._sizes(arrays)
        dtypes = [d.dtype(types) for d in self._outputs]
        results = [(self._shape(d, known), _stored(dtype)) for d, dtype in zip(self._outputs, dtypes, strict=True)]
        source = attrs.evolve(self._source, types=tuple(sorted((name, computing(t)) for name, t in types.items())))
        sizes = (*(e.value(known) for e in self._grid), *(known[name] for name in source.sizes))
        made = _run(source, [_converted(a, computing(a.kind)) for a in arrays], results, sizes)
        outputs = [_converted(a, dtype) for a, dtype in zip(made, dtypes, strict=True)]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _argument(self, d: Declared) -> str:
        return f"argument {d.name!r} of kernel {self.__name__!r}"

    def _types(self, arrays: Sequence[Array]) -> dict[str, DType]:
        """What the names for dtypes stand for: numbers of Python take on the dtype of others."""
        types: dict[str, DType] = {}
        pairs = [(d, a) for d, a in zip(self._inputs, arrays, strict=True) if isinstance(d.type, str)]
        for weak in (False, True):
            for d, a in pairs:
                if a.weak is weak:
                    types.setdefault(str(d.type), a.kind)
        return types

    def _of_dtype(self, d: Declared, array: Array, types: Mapping[str, DType]) -> Array:
        """The argument, if it has the dtype that was declared; a number of Python in that dtype."""
        dtype = d.dtype(types)
        if array.ndim != len(d.extents):
            raise SignatureError(
                f"{self._argument(d)} is declared as {d}, and has {plural(array.ndim, 'axes')}, not "
                f"{len(d.extents)}{where()}"
            )
        if array.weak and promote_weak(dtype, array.kind.kind) is dtype:
            array = array.astype(dtype)
        if array.kind is not dtype:
            stands = f", and {d.type} is {dtype}" if isinstance(d.type, str) else ""
            raise SignatureError(
                f"{self._argument(d)} is declared as {d}{stands}, but its dtype is {array.kind}; cast it with "
                f".astype{where()}"
            )
        return array

    def _sizes(self, arrays: Sequence[Array]) -> dict[str, Index]:
        """What the names for sizes are: equal names are equal sizes, by a guard."""
        known: dict[str, Index] = {}
        axes = [
            (d, axis, e, size)
            for d, array in zip(self._inputs, arrays, strict=True)
            for axis, (e, size) in enumerate(zip(d.extents, _shape_of(array), strict=True))
        ]
        for _, _, e, size in axes:
            if e.name is not None:
                known.setdefault(e.name, size)
        for d, axis, e, size in axes:
            what = f"axis {axis} of {self._argument(d)}, which is declared as {d}"
            wanted = e.value(known)
            unify(size, wanted, lambda what=what, e=e: f"{what}, is not {e.text}")  # type: ignore[misc]
        return known

    def _shape(self, d: Declared, known: Mapping[str, Index]) -> Shape:
        """The shape of an output. Raises ShapeError for one with sizes below 0."""
        shape = tuple(e.value(known) for e in d.extents)
        for e, size in zip(d.extents, shape, strict=True):
            require_at_least_one(
                size + 1,
                lambda e=e, size=size: (  # type: ignore[misc]
                    f"output {d.name!r} of kernel {self.__name__!r} has {e.text} = {describe(size)} elements"
                ),
            )
        return resolve_all(shape)


def _stored(dtype: DType) -> DType:
    """In which dtype the source stores an output. For truth values it stores bytes: 0, or anything else."""
    return u8 if dtype is bool_ else computing(dtype)


def _converted(array: Array, dtype: DType) -> Array:
    return array if array.kind is dtype else array.astype(dtype)


def _run(
    source: KernelSource,
    arrays: Sequence[Array],
    results: Sequence[tuple[Shape, DType]],
    sizes: Sequence[Index],
) -> list[Array]:
    if current() is not None:
        node = Foreign(source, (), tuple(map(node_of, arrays)), tuple(results), resolve_all(tuple(sizes)))
        return [emit(part) for part in node.parts]
    numbers = [(_numbers(shape), dtype) for shape, dtype in results]
    found = call_pure(source, (), [np.asarray(a) for a in arrays], numbers, _numbers(sizes))
    return [from_numpy(value) for value in found]


def _shape_of(array: Array) -> Shape:
    if current() is None:
        return tuple(map(as_index, np.shape(np.asarray(array))))
    return resolve_all(node_of(array).shape)


def _numbers(shape: Sequence[Index]) -> tuple[int, ...]:
    return tuple(p.constant for p in shape if p.constant is not None)


def kernel(
    source: str | Mapping[str, str],
    inputs: Mapping[str, object],
    outputs: Mapping[str, object],
    grid: Mapping[str, object],
    *,
    name: str = "kernel",
    reference: Callable[..., Any] | None = None,
    operations: int | None = None,
) -> Kernel:
    """A function of arrays whose code is C, for programs, and OpenCL C, for those on a device.

    `source` is the body of a function that runs for each point of `grid`, a dict of names and extents, in any order or
    at the same time. It is one text for both languages, or a dict with the keys "c" and "opencl". In it, each input and
    output is a pointer to its elements in row-major order, an input without axes is a number, sizes and the coordinates
    of the point are `int64_t`, floats of 16 bits are `float`, and complex numbers are structs: `z.re`, `z.im`.

    `inputs` and `outputs` declare the arrays: `{"x": "T[n, 3]"}` has the dtype `T`, whichever that is, and two axes, of
    which the first one has a size that is called `n`. Equal names are equal dtypes and sizes. Sizes of outputs and
    extents are made of such names: `"2*n + 1"`. `T` is the name of the type in the source, too.

    No two points may store to the same element. An output that has the shape of the grid is to be stored in full, one
    element by each point; others are zeros at first. `reference(*arrays)` computes the outputs with NumPy, where there
    is no compiler. `operations` are those of a point, for costs. For a gradient, call the kernel in a function with a
    `harp.custom_vjp`.

    The result is called with arrays, in the order of `inputs` or by name, and returns an array, or a tuple of several.
    Raises KernelError for what is not well declared, and, when a program is made, with what the compiler says.

    >>> import harp, numpy as np
    >>> scaled = kernel("y[i] = a * x[i];", {"a": "T[]", "x": "T[n]"}, {"y": "T[n]"}, {"i": "n"}, name="scaled")
    >>> scaled
    <kernel 'scaled' (a: T[], x: T[n]) -> (y: T[n])>
    >>> harp.jit(lambda x: scaled(2, x) + 1)(np.arange(3.0))
    Array([1., 3., 5.])
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise KernelError(f"{name!r} is no name for a kernel: it is letters, digits and underscores{where()}")
    what = f"kernel {name!r}"
    _require_mappings(what, inputs=inputs, outputs=outputs, grid=grid)
    given = [declared(key, d, what) for key, d in inputs.items()]
    made = [declared(key, d, what) for key, d in outputs.items()]
    extents = [extent(size, what) for size in grid.values()]
    sizes = list(dict.fromkeys(e.name for d in given for e in d.extents if e.name is not None))
    types = list(dict.fromkeys(d.type for d in given if isinstance(d.type, str)))
    _require_known(what, given, made, extents, sizes, types)
    check_names(what, [*inputs, *outputs, *grid, *sizes, *types])
    whole = KernelSource(
        name,
        _texts(source, what),
        tuple(inputs),
        tuple(outputs),
        tuple(grid),
        tuple(sizes),
        (),
        tuple([e.text for e in d.extents] != [e.text for e in extents] for d in made),
        None if operations is None else as_integer(f"operations of {what}", operations),
        _reference(reference, what, len(made)),
    )
    return Kernel(whole, given, made, extents)


def _require_mappings(what: str, **given: object) -> None:
    """Raise KernelError for what has no names."""
    examples = {"inputs": "{'x': 'T[n]'}", "outputs": "{'y': 'T[n]'}", "grid": "{'i': 'n'}"}
    for argument, value in given.items():
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            raise KernelError(
                f"{argument} of {what} is a mapping from names, such as {examples[argument]}, not {value!r}{where()}"
            )


def _require_known(
    what: str,
    given: Sequence[Declared],
    made: Sequence[Declared],
    extents: Sequence[Extent],
    sizes: Sequence[str],
    types: Sequence[str],
) -> None:
    """Raise KernelError for a name of a size or dtype that no input says."""
    if not made:
        raise KernelError(f"{what} has no outputs{where()}")
    used = [*extents, *(e for d in (*given, *made) for e in d.extents)]
    for name in (name for e in used for name in e.names):
        if name not in sizes:
            raise KernelError(f"{what}: no axis of an input has the size {name!r} alone{where()}")
    for d in made:
        if isinstance(d.type, str) and d.type not in types:
            raise KernelError(f"{what}: no input says what the dtype {d.type!r} of {d.name!r} is{where()}")


def _texts(source: str | Mapping[str, str], what: str) -> tuple[tuple[str, str], ...]:
    texts = dict(source) if isinstance(source, Mapping) else dict.fromkeys(_BACKENDS, source)
    if not texts or not set(texts) <= {*_BACKENDS} or not all(isinstance(text, str) for text in texts.values()):
        raise KernelError(f"the source of {what} is a text, or a dict of texts for 'c' and 'opencl'{where()}")
    return tuple((backend, checked_text(what, texts[backend])) for backend in _BACKENDS if backend in texts)


def _reference(function: Callable[..., Any] | None, what: str, count: int) -> PureFunction | None:
    """It, with its results in a list."""
    if function is None:
        return None
    require_function("reference", function)
    compute = function

    def call(*arrays: object) -> list[object]:
        found = compute(*arrays)
        results = [_as_stored(value) for value in ([found] if count == 1 else found)]
        if len(results) != count:
            raise KernelError(f"the reference of {what} returns {plural(len(results), 'arrays')}, not {count}")
        return results

    return PureFunction(call, f"the reference of {what}")


def _as_stored(value: object) -> object:
    """A result of a reference in the dtype in which a source would store it."""
    if not isinstance(value, (bool, np.ndarray, np.generic)):
        return value
    array = np.asarray(value)
    known = next((dtype for dtype in ALL if dtype.numpy_name == array.dtype.name), None)
    return array if known is None else array.astype(_stored(known).numpy, copy=False)


_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = """
    auto bool break case char complex const constant continue default do double else enum extern float for generic
    global goto half if imaginary inline int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t kernel
    local long main pipe private register restrict return short signed sizeof size_t static struct switch typedef
    uchar uint ulong uniform union unsigned ushort vec_step void volatile while
"""
_TAKEN = frozenset(_WORDS.split())
_LINE_BREAK = re.compile(r"\r\n?")
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_JOINED = re.compile(r"(?:\\|\?\?/)[ \t\f\v]*$", re.MULTILINE)
# Comments, strings and characters.
_NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_OPEN_COMMENT = re.compile(r"/\*")
# A directive, whose sign can be written in three ways. Those of conditions and the like end with the function.
_HASH = r"^[ \t\f\v]*(?:#|%:|\?\?=)[ \t\f\v]*"
_INCLUDE = re.compile(_HASH + "include", re.MULTILINE)
_DIRECTIVE = re.compile(_HASH + r"(?!(?:if|ifdef|ifndef|elif|else|endif|pragma|error|warning)\b)\w", re.MULTILINE)
_CONDITION = re.compile(_HASH + "(?:if|elif|else)", re.MULTILINE)
# Braces can be written in three ways.
_BRACE = re.compile(r"[{}]|<%|%>|\?\?<|\?\?>")
_PROBLEMS = (
    (_NO_TEXT, "has a character that no file of text has; remove it"),
    (_JOINED, "ends with a backslash, which makes the next line a part of this one; remove it"),
    (_OPEN_COMMENT, "opens a comment that is not closed; close it with */"),
    (_INCLUDE, "cannot include a file in the body of a function; functions such as sqrt and exp are there without"),
    (_DIRECTIVE, "changes what follows the source, too; write `const int width = 3;` in place of a macro"),
)


def check_names(kernel: str, names: Iterable[str]) -> None:
    """Raise KernelError for a name that stands twice, or cannot stand in a source."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise KernelError(f"{kernel} has two things that are called {name!r}{where()}")
        seen.add(name)
        if not _IDENTIFIER.fullmatch(name) or name in _TAKEN or keyword.iskeyword(name) or name.startswith("harp_"):
            raise KernelError(
                f"{name!r} of {kernel} cannot be a name in C and in Python: names are letters, digits and underscores, "
                f"no words of these languages, and do not begin with harp_{where()}"
            )


def checked_text(kernel: str, text: str) -> str:
    """A source without common indentation. Raises KernelError for what reaches beyond its function."""
    text = textwrap.dedent(_LINE_BREAK.sub("\n", text)).rstrip()
    code = _NO_CODE.sub(lambda found: "\n" * found[0].count("\n") or " ", text)
    for pattern, problem in _PROBLEMS:
        found = pattern.search(text if pattern in (_NO_TEXT, _JOINED) else code)
        if found is not None:
            number = found.string.count("\n", 0, found.start()) + 1
            line = text.split("\n")[number - 1].strip()
            raise KernelError(f"line {number} of the source of {kernel} {problem}:\n  {printable(line)}{where()}")
    _require_matching_braces(kernel, text, code)
    return text


def _require_matching_braces(kernel: str, text: str, code: str) -> None:
    """Raise KernelError for a brace that ends the function round the source, or is not closed before its end. Where
    conditions of the preprocessor choose between lines, the compiler counts."""
    if _CONDITION.search(code):
        return
    opened: list[int] = []
    for found in _BRACE.finditer(code):
        number = code.count("\n", 0, found.start())
        if found[0] in ("{", "<%", "??<"):
            opened.append(number)
        elif opened:
            opened.pop()
        else:
            opened = [number]
            break
    else:
        if not opened:
            return
    line = printable(text.split("\n")[opened[0]].strip())
    raise KernelError(
        f"line {opened[0] + 1} of the source of {kernel} has a brace without its partner; the source is the body of a "
        f"function, which has its own braces:\n  {line}{where()}"
    )
