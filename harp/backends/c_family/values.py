"""Lines of a C function, and values printed into them: shared or long parts become named temporaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from harp.backends.c_family import fast_path
from harp.backends.c_family.index import IndexPrinter
from harp.backends.c_family.scalar import TYPES, application, headers, literal
from harp.errors import VerificationError
from harp.lower.loopir.loops import Buffer, For, Load, Repeat, Space
from harp.lower.loopir.text import CodeLine
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import DType, bool_, f32, i64
from harp.trace.scalar.expr import Apply, Const, Expr, Position, const, walk
from harp.trace.scalar.ops import Op

# Longer expressions are split into named parts: compilers bound the depth of parentheses, and readers their patience.
_LONGEST = 72


class Lines:
    """The text of a function under construction, inside of these loops. `uses` are the headers and library kernels that
    it needs, `opened` is the number of its loops; a function that `fails` has a status, which is 0 at first."""

    def __init__(self, loops: tuple[For | Repeat, ...] = ()) -> None:
        self.lines: list[CodeLine] = []
        self.uses: set[str] = set()
        self.depth = 1
        self.loops = loops
        self.opened = 0
        self.fails = False
        self._outside: list[tuple[For | Repeat, ...]] = []  # the loops round each open block

    def add(self, text: str, stores: bool = False, call: int | None = None) -> None:
        self.lines.append(CodeLine(self.depth, text, self.loops, stores, call))

    def open(self, text: str, *loops: For | Repeat) -> None:
        """Begin a block; with `loops` it is their body."""
        self._outside.append(self.loops)
        self.loops += loops
        self.opened += len(loops)
        self.add(f"{text} {{" if text else "{")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.add("}")
        self.loops = self._outside.pop()

    def other(self) -> None:
        """End one branch and begin the other."""
        self.depth -= 1
        self.add("} else {")
        self.depth += 1


def printed(lines: Iterable[CodeLine]) -> str:
    return "\n".join("    " * line.depth + line.text for line in lines)


def code(text: str) -> list[CodeLine]:
    """A text as lines, in no loops."""
    return [CodeLine(0, line) for line in text.split("\n")]


def bare(text: str) -> str:
    """The text without parentheses round the whole."""
    if not text.startswith("("):
        return text
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if position == len(text) - 1 else text
    return text


def _application(e: Apply, texts: Mapping[Expr, str], uses: Mapping[Expr, int]) -> str:
    """An operation on the texts of its operands. cast<f32>(cast<f16>(a)) of a float32 is a rounding."""
    inner = e.operands[0]
    if e.op is Op.CAST and e.dtype is f32 and isinstance(inner, Apply) and inner.op is Op.CAST and uses[inner] == 1:
        rounded = inner.operands[0]
        if inner.dtype.is_stored and not inner.dtype.is_tiny and rounded.dtype is f32:
            text = texts[rounded]
            return text if _is_rounded(rounded, inner.dtype) else f"harp_round_{inner.dtype.name}({text})"
    return application(e, [texts[a] for a in e.operands])


def _branches(order: Sequence[Expr]) -> set[Expr]:
    """The choices, calls and loads that only one side of a choice needs. `order` has operands first. As parts of the
    choice they would be branches, or loads that may fail, and gcc would not vectorise the loop."""
    sides = set[Expr]()
    for e in reversed(order):
        is_choice = isinstance(e, Apply) and e.op is Op.SELECT
        sides.update(e.args if e in sides else e.args[1:] if is_choice else ())
    return {e for e in sides if _is_branch(e)}


def _is_branch(e: Expr) -> bool:
    if isinstance(e, Load):
        return not e.conditions
    # A number of 16 bits may be part of a rounding, of which its conversion is no value of its own.
    return isinstance(e, Apply) and (e.op is Op.SELECT or bool(headers(e))) and not e.dtype.is_stored


def _is_rounded(e: Expr, half: DType) -> bool:
    """Whether a float32 is certain to be representable in a half dtype."""
    if not isinstance(e, Apply) or e.op not in (Op.CAST, Op.NEG, Op.ABS):
        return False
    return e.operands[0].dtype is half if e.op is Op.CAST else _is_rounded(e.operands[0], half)


class ValuePrinter:
    """Prints one value of the scalar language after another, each with its own temporaries. With `near` it calls the
    twins for common arguments."""

    def __init__(self, index: IndexPrinter, element: Callable[[Buffer, tuple[Index, ...]], str], lines: Lines) -> None:
        self._index = index
        self._element = element
        self._lines = lines
        self._temporaries = 0
        self._widens = False  # whether a value of more than a byte is printed
        self.near = False

    def text(self, root: Expr) -> str:
        """A primary expression of C for the value; adds lines that name its parts."""
        self._widens = root.dtype.itemsize > 1
        if not isinstance(root, Apply):
            return self._leaf(root)
        order = list(walk((root,)))
        uses = dict.fromkeys(order, 0)
        for e in order:
            for a in e.args:
                uses[a] += 1
        branches = _branches(order)
        texts: dict[Expr, str] = {}
        for e in order:
            text = self._application(e, texts, uses) if isinstance(e, Apply) else self._leaf(e)
            self._lines.uses.update(headers(e) if isinstance(e, Apply) else ())
            if e is not root and (e in branches or self._named(e, uses[e], text)):
                text = self.name(e, text)
            texts[e] = text
        return texts[root]

    def _application(self, e: Apply, texts: Mapping[Expr, str], uses: Mapping[Expr, int]) -> str:
        if self.near and fast_path.has_twin(e):
            return fast_path.call(e, [texts[a] for a in e.operands])
        return _application(e, texts, uses)

    def name(self, e: Expr, text: str) -> str:
        """A temporary that holds the value."""
        name = f"t{self._temporaries}"
        self._temporaries += 1
        self._lines.add(f"const {TYPES[e.dtype]} {name} = {bare(text)};")
        return name

    def _named(self, e: Expr, uses: int, text: str) -> bool:
        if isinstance(e, Const) or text.isidentifier():
            return False
        # A call that notes uncommon arguments must run in every iteration: behind a condition it would not vectorise.
        return uses > 1 or len(text) > _LONGEST or (self.near and fast_path.has_twin(e))

    def _leaf(self, e: Expr) -> str:
        if isinstance(e, Const):
            return literal(e)
        if isinstance(e, Position):
            number = e.index.constant
            return f"({self._index.text(e.index)})" if number is None else literal(const(number, i64))
        if isinstance(e, Load):
            return self._load(e)
        raise VerificationError(f"{e!r} cannot stand in a kernel: only constants, positions and loads are leaves")

    def _load(self, e: Load) -> str:
        text = self._element(e.buffer, e.index)
        if e.buffer.dtype is bool_ and self._widens:
            # x != 0 of any byte; of that comparison gcc 12 makes no masks for doubles, with AVX-512
            text = f"(-(int){text} < 0)"
        elif e.buffer.dtype is bool_ and e.buffer.space is Space.INPUT:
            text = f"({text} != 0)"  # NumPy's views can put any byte into a bool
        if not e.conditions:
            return text
        if e.fill is None:
            raise VerificationError(f"{e!r} has conditions but no fill")
        return f"({self._index.mask(e.conditions)} ? {text} : {literal(e.fill)})"


def plain(text: str) -> str:
    """The text, made fit for a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("\n", " ").replace("\\", "/")
