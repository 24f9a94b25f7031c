"""Draws a case from a seed.

A function grows by one statement at a time, which NumPy runs at the sizes of all calls at once: of a few candidates the
one stays that fails at the fewest of them. So most functions work at many sizes, and some raise at some.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Sequence

import numpy as np

from . import statements as table
from .case import Argument, Call, Case, Statement
from .shims import NUMPY

DTYPES = ("float64",) * 8 + ("int64", "int64", "int32", "bool")
LENGTHS = (0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 12)
LONGEST = {1: 12, 2: 8, 3: 4}  # by rank, so that nothing grows large
CANDIDATES = 3  # at most so many statements are tried, of which the best stays
MOST_DIGITS = 6  # factors of a value that is still exact
GROWING = 2  # rows in a function that make large arrays
HOLE = re.compile(r"\{(\w)(?::([^{}]*))?\}")


class _Unfit(Exception):
    """No value of the function fits a hole."""


class _Variable:
    """What is known of a value: its kind ("s" for sizes), its rank, and how many factors it has."""

    def __init__(self, value: object, digits: int) -> None:
        self.kind = "s" if isinstance(value, int) and not isinstance(value, bool) else np.asarray(value).dtype.kind
        self.rank = np.ndim(value)
        self.digits = digits

    def fits(self, marks: str) -> bool:
        ranks = [int(c) for c in marks if c.isdigit()]
        kinds = {"f": "f", "i": "i", "b": "b", "n": "fi"}
        wanted = "".join(kinds.get(c, "") for c in marks) or "fib"
        return (
            self.kind in wanted
            and (self.rank in ranks if ranks else self.rank <= 3)
            and ("e" not in marks or self.digits <= MOST_DIGITS)
        )


class _Drawing:
    """A function that grows, with the values that NumPy has for each call (None after an exception)."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.arguments = self._arguments()
        self.calls = self._calls()
        self.statements: list[Statement] = []
        self.growing = 0
        draft = Case(seed, self.arguments, (), (), ())
        self.spaces: list[dict[str, object] | None] = []
        for call in self.calls:
            arrays, _ = draft.given(call._replace(named=False))
            self.spaces.append(dict(zip((a.name for a in self.arguments), arrays, strict=True), flag=call.flag))
        self.variables = {a.name: _Variable(np.zeros((0,) * a.rank, a.dtype), 1) for a in self.arguments}
        self.variables["flag"] = _Variable(0, 0)

    def _arguments(self) -> tuple[Argument, ...]:
        names = "abc"[: self.rng.randint(1, 3)]
        ranks = (1, 1, 1, 1, 2, 2, 2, 2, 3, 3)
        return tuple(
            Argument(n, self.rng.choice(ranks if n == "a" else (*ranks, 0)), self.rng.choice(DTYPES)) for n in names
        )

    def _calls(self) -> tuple[Call, ...]:
        few = [self.rng.choice(LENGTHS) for _ in range(2)] + [1]  # so that some are equal
        return tuple(self._call(few) for _ in range(self.rng.randint(6, 12)))

    def _call(self, few: Sequence[int]) -> Call:
        def length(rank: int) -> int:
            return min(self.rng.choice(few if self.rng.random() < 0.6 else LENGTHS), LONGEST[rank])

        shapes = tuple(tuple(length(a.rank) for _ in range(a.rank)) for a in self.arguments)
        return Call(shapes, self.rng.choice((0, 0, 0, 1, 2)), self.rng.random() < 0.15)

    # Templates with holes.

    def fill(self, template: str, bound: dict[str, str], rows: list[str], digits: list[int]) -> str:
        """The template with its holes filled. Names that fit nothing raise `_Unfit`."""

        def hole(match: re.Match) -> str:
            letter, marks = match[1], match[2] or ""
            if letter in bound:
                return bound[letter]
            if letter in "xyz":
                bound[letter] = self._array(marks, digits)
                return bound[letter]
            if letter in "nmk":
                bound[letter] = self._atom() if marks == "a" else self._size()
                return bound[letter]
            if letter == "a":
                return f"({self._size()})" if self.rng.random() < 0.15 else self._atom()
            text = self._choice(letter, marks, bound, rows, digits)
            if letter in "jp":
                bound[letter] = text
            return text

        return HOLE.sub(hole, template)

    def _choice(self, letter: str, marks: str, bound: dict[str, str], rows: list[str], digits: list[int]) -> str:
        choose = self.rng.choice
        if letter == "c":
            return str(choose((-3, -2, -1, 0, 0, 1, 1, 2, 3, 4)))
        if letter == "p":
            return str(choose((1, 2, 2, 3, 4)))
        if letter == "w":
            return choose(marks.split("|"))
        if letter == "j":
            rank = self.variables[bound[marks]].rank
            return str(self.rng.randrange(-rank, rank)) if rank else "0"
        if letter == "q":
            return self.fill(choose(table.CONDITIONS), {}, rows, [])
        if letter == "s":
            return self.fill(choose(table.SLICES), {}, rows, [])
        if letter == "L":
            text = self.fill(choose(table.LINEAR), {}, rows, digits)
            digits += [9] * (" / " in text)
            return text
        assert letter == "E", letter
        return self._expression(rows, digits)

    def _expression(self, rows: list[str], digits: list[int]) -> str:
        name, row = self.rng.choice(list(table.EXPRESSIONS.items()))
        if row.grows and self.growing >= GROWING:
            raise _Unfit
        rows.append(name)
        found: list[int] = []
        text = self.fill(row.text, {}, rows, found)
        digits.append((sum(found) if row.cost else max(found, default=1)) + row.cost)
        return text

    def _array(self, marks: str, digits: list[int]) -> str:
        fitting = [name for name, v in self.variables.items() if v.kind != "s" and v.fits(marks)]
        if not fitting:
            raise _Unfit
        name = self.rng.choice(fitting[-3:] if self.rng.random() < 0.5 else fitting)
        digits.append(self.variables[name].digits)
        return name

    def _atom(self) -> str:
        names = [n for n, v in self.variables.items() if v.kind == "s"]
        arrays = [n for n, v in self.variables.items() if v.kind != "s" and v.rank]
        if names and self.rng.random() < 0.3:
            return self.rng.choice(names)
        name = self.rng.choice(arrays)
        axis = self.rng.randrange(self.variables[name].rank)
        return self.rng.choice((f"{name}.shape[{axis}]",) * 6 + (f"{name}.shape[-1]", f"len({name})", f"{name}.size"))

    def _size(self) -> str:
        return self.fill(self.rng.choice(table.SIZES), {}, [], [])

    # Statements.

    def _candidate(self, target: str) -> tuple[Statement, int]:
        rows: list[str] = []
        digits: list[int] = []
        if self.rng.random() < 0.7:
            text = f"v = {self._expression(rows, digits)}"
        else:
            name, template = self.rng.choice(list(table.STATEMENTS.items()))
            rows.append(name)
            text = self.fill(template, {}, rows, digits)
            product = name in ("grad", "jit of grad", "for rows", "for elements")
            digits = [sum(digits) if product else max(digits, default=1)]
        weight = max(digits, default=1)
        text = re.sub(r"\bv\b", target, text)
        return Statement(target, text, tuple(rows), weight <= MOST_DIGITS), weight

    def _run(self, statement: Statement) -> list[dict[str, object] | None]:
        code = compile(statement.text, "<statement>", "exec")
        return [None if space is None else _executed(code, space) for space in self.spaces]

    def grow(self) -> None:
        """One more statement."""
        best = None
        for _ in range(self.rng.randint(1, CANDIDATES)):
            try:
                statement, weight = self._candidate(f"v{len(self.statements)}")
            except _Unfit:
                continue
            spaces = self._run(statement)
            alive = sum(space is not None for space in spaces)
            if alive and (best is None or alive > best[0]):
                best = alive, statement, weight, spaces
        if best is None:
            return
        _, statement, weight, self.spaces = best
        self.growing += sum(name in table.EXPRESSIONS and table.EXPRESSIONS[name].grows for name in statement.rows)
        value = next(space[statement.target] for space in self.spaces if space is not None)
        variable = self.variables[statement.target] = _Variable(value, weight)
        self.statements.append(statement._replace(kind=variable.kind))


def _executed(code: object, space: dict[str, object]) -> dict[str, object] | None:
    """The values after the statement; None if it raises."""
    after = vars(NUMPY) | space
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            exec(code, after)
        except Exception:
            return None
    return after


def generate(seed: int) -> Case:
    """The case of this seed."""
    drawing = _Drawing(seed)
    for _ in range(drawing.rng.randint(2, 10)):
        drawing.grow()
    names = [s.target for s in drawing.statements]
    kept = [name for name in names if drawing.rng.random() < 0.4]
    returned = tuple(dict.fromkeys([*kept, *names[-1:]])) or (drawing.arguments[0].name,)
    return Case(seed, drawing.arguments, tuple(drawing.statements), returned, drawing.calls)
