"""Signatures of kernels as text: `T[n, 2*m + 1]` is a dtype or a name for one, and sizes made of names.

Where a size is a name alone it is named by that axis; other sizes are integers made of such names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

import attrs

from harp.errors import KernelError
from harp.trace.index.division import floordiv, maximum, minimum, mod
from harp.trace.index.polynomial import Index, as_index
from harp.trace.scalar.dtypes import ALL, ArraySignature, DType
from harp.trace.source_locations import where

_FORM = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\[(.*)\])?\s*", re.DOTALL)
_DTYPES: Mapping[str, DType] = {dtype.name: dtype for dtype in ALL}
_OPERATORS: Mapping[type[ast.operator], Callable[[Index, Index], Index]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: floordiv,
    ast.Mod: mod,
}
# Products with sizes are computed in 64 bits.
_LARGEST = 1 << 32
_FUNCTIONS: Mapping[str, Callable[[Index, Index], Index]] = {"min": minimum, "max": maximum}


@attrs.frozen
class Extent:
    """A size as an expression of names."""

    text: str
    tree: ast.expr

    @property
    def name(self) -> str | None:
        """The name, if it is one alone."""
        return self.tree.id if isinstance(self.tree, ast.Name) else None

    @property
    def names(self) -> list[str]:
        """The names in it."""
        calls = {id(n.func) for n in ast.walk(self.tree) if isinstance(n, ast.Call)}
        return [n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and id(n) not in calls]

    def value(self, known: Mapping[str, Index]) -> Index:
        """It, for these sizes."""
        return _value(self.tree, known)


def _value(e: ast.expr, known: Mapping[str, Index]) -> Index:
    if isinstance(e, ast.Name):
        return known[e.id]
    if isinstance(e, ast.Constant) and type(e.value) is int and abs(e.value) <= _LARGEST:
        return as_index(e.value)
    if isinstance(e, ast.BinOp) and type(e.op) in _OPERATORS:
        return _OPERATORS[type(e.op)](_value(e.left, known), _value(e.right, known))
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in _FUNCTIONS and len(e.args) == 2:
        return _FUNCTIONS[e.func.id](*(_value(a, known) for a in e.args))
    raise ValueError(ast.unparse(e))


@attrs.frozen
class Declared:
    """An array as it was declared: `type` is a dtype, or a name for the dtype of all arrays that have it."""

    name: str
    type: DType | str
    extents: tuple[Extent, ...]

    def dtype(self, types: Mapping[str, DType]) -> DType:
        """Its dtype, where names for dtypes stand for these."""
        return self.type if isinstance(self.type, DType) else types[self.type]

    def __str__(self) -> str:
        return f"{self.type}[{', '.join(e.text for e in self.extents)}]"


def declared(name: str, given: object, kernel: str) -> Declared:
    """The declaration of an array. Raises KernelError."""
    if isinstance(given, ArraySignature):
        return Declared(name, given.dtype, tuple(extent(str(size), f"{name!r} of {kernel}") for size in given.shape))
    found = _FORM.fullmatch(given) if isinstance(given, str) else None
    if found is None:
        raise KernelError(
            f"{name!r} of {kernel} is declared as {given!r}; write a dtype or a name for one, and sizes, "
            f"such as 'T[n, 3]' or 'f32[n]', with none for a number: 'T[]'{where()}"
        )
    kind, sizes = found[1], (found[2] or "").strip()
    parts = (
        ast.parse(f"({sizes},)", mode="eval").body if sizes and _parses(f"({sizes},)") else ast.Tuple([], ast.Load())
    )
    if sizes and not (isinstance(parts, ast.Tuple) and parts.elts):
        raise KernelError(f"the sizes of {name!r} of {kernel} cannot be read: {given!r}{where()}")
    assert isinstance(parts, ast.Tuple)
    extents = tuple(extent(ast.unparse(part), f"{name!r} of {kernel}") for part in parts.elts)
    return Declared(name, _DTYPES.get(kind, kind), extents)


def _parses(text: str) -> bool:
    try:
        ast.unparse(ast.parse(text, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # surrogates are no text, and there is a depth
        return False
    return True


def extent(given: object, what: str) -> Extent:
    """A size. Raises KernelError for what is no expression of names, integers, `+ - * // %`, `min` and `max`."""
    text = str(given)
    if _parses(text):
        tree = ast.parse(text, mode="eval").body
        found = Extent(ast.unparse(tree), tree)
        try:
            found.value(dict.fromkeys(found.names, as_index(1)))
        except (ValueError, RecursionError):
            pass
        else:
            return found
    raise KernelError(
        f"{text!r} is no size of {what}: sizes are made of names, integers up to 2**32, + - * // %, min, max{where()}"
    )
