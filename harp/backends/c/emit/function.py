"""A C function as text: its definition, and the declaration by which another unit calls it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from harp.backends.c_family.scalar import TYPES
from harp.backends.c_family.values import Lines, code, words
from harp.lower.loopir.loops import Buffer
from harp.lower.loopir.text import CodeLine

_WIDTH = 110
STATIC = "static __attribute__((noinline))"
EXPORTED = "HARP_EXPORT"
# Of the library, but of no other one: units are compiled with hidden visibility.
SHARED = ""


class Function(NamedTuple):
    """`parameters` are pairs of a name and its declaration; a fallible function returns a status."""

    comment: str
    result: str
    name: str
    parameters: tuple[tuple[str, str], ...]
    body: tuple[CodeLine, ...]
    fallible: bool
    parts: tuple[tuple[CodeLine, ...], ...] = ()  # what stands before it, and only it uses
    uses: frozenset[str] = frozenset()  # headers and kernels of the library
    loops: int = 0  # how much there is to compile: a compiler takes about the same time for each

    def definition(self, linkage: str) -> list[CodeLine]:
        """The whole function."""
        before = [line for part in self.parts for line in (*part, *code(""))]
        head = "\n".join([f"/* {self.comment} */", *self._head(linkage), "{"])
        return [*before, *code(head), *self.body, *code("}")]

    def declaration(self) -> str:
        """What a unit says that calls a function of another unit."""
        return "\n".join(self._head(SHARED)) + ";"

    def call(self, given: Mapping[str, str]) -> str:
        """A call with these arguments for the parameters, which are named."""
        return f"{self.name}({', '.join(given[name] for name, _ in self.parameters)})"

    def _head(self, linkage: str) -> list[str]:
        """On one line where it fits, else with a few parameters to a line."""
        head = f"{linkage} {self.result} {self.name}".strip()
        texts = [text for _, text in self.parameters]
        lines = [f"{head}({', '.join(texts) or 'void'})"]
        if len(lines[0]) > _WIDTH:
            lines = [f"{head}("]
            for number, parameter in enumerate(texts):
                text = parameter + (")" if number == len(texts) - 1 else ",")
                if len(lines) == 1 or len(lines[-1]) + len(text) + 1 > _WIDTH:
                    lines.append(f"    {text}")
                else:
                    lines[-1] += f" {text}"
        return lines


def parameter(buffer: Buffer, name: str, written: bool) -> str:
    """The declaration of a pointer to a buffer."""
    return f"{'' if written else 'const '}{TYPES[buffer.dtype]} *restrict {name}"


def define(
    name: str, declared: Iterable[tuple[str, str]], lines: Lines, comment: str, drop: bool, result: str = ""
) -> Function:
    """A function with these parameters and lines. Without a `result` it returns a status where it can fail, else
    nothing; `drop` leaves out unused parameters."""
    kept = lines.pruned()
    used = {word for line in kept for word in words(line.text)}
    wanted = tuple((p, text) for p, text in declared if p in used or not drop)
    fallible = "status" in used
    body = [CodeLine(1, f"(void){p};") for p, _ in wanted if p not in used]
    body += [CodeLine(1, "int status = 0;")] if fallible else []
    body += kept
    body += [CodeLine(1, "return status;")] if fallible and not result else []
    kind = result or ("int" if fallible else "void")
    uses = frozenset(lines.uses)
    return Function(comment, kind, name, wanted, tuple(body), fallible, uses=uses, loops=lines.opened)
