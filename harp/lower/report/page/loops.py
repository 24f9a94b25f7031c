"""The panes of loop nests and of the C, or OpenCL C, that they are printed as.

The printer says of each line of C which loops it stands in, which are those of the loop nests; what is stored there is
what the innermost one stores. The loops of a grid are no loops in OpenCL C: all lines of the function that the host
launches stand in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harp.lower.loopir.loops import For, Head, Kernel, Repeat, Row, Stmt, Store
from harp.lower.loopir.text import CodeLine, TextLine, calls, declarations, kernel_head, statement_lines
from harp.lower.report.page.lines import Line, Pane, Section
from harp.lower.report.page.links import Links
from harp.trace.graph.node import Node

_INDENT = "  "
# Kernels that are open when the page appears; of more than these, none is.
_OPEN = 40


class KernelLines(NamedTuple):
    """The loop nests of a kernel and its C, line by line."""

    nests: tuple[Line, ...]
    c: tuple[Line, ...]


def kernel_lines(number: int, kernel: Kernel, code: Sequence[CodeLine], links: Links) -> KernelLines:
    """The lines of a kernel in both forms, linked with each other by their loops. Loops that a routine of the library
    runs are not in the C."""
    texts = statement_lines(kernel.body)
    numbers: dict[int, int] = {}  # of loops, by their identities
    in_nests = [_numbered(loops, numbers) for loops in _loops_round(texts)]
    in_c = [_numbered(line.loops, numbers) for line in code]
    stored: dict[int, dict[Node, None]] = {}  # in the innermost loop round a store; -1 is outside of all
    in_code: dict[int, dict[Node, None]] = {}  # in the innermost one that the C has
    printed = {loop for loops in in_c for loop in loops}
    lines = [_line(f"l{number}.head", kernel_head(kernel, f"{number} "), number, (), links)]
    for text, loops in zip(texts, in_nests, strict=True):
        nodes = dict.fromkeys(_stored(text.of, number, links))
        stored.setdefault(_last(loops), {}).update(nodes)
        in_code.setdefault(_last([loop for loop in loops if loop in printed]), {}).update(nodes)
    for k, (text, loops) in enumerate(zip(texts, in_nests, strict=True)):
        begins = isinstance(text.of, (For, Repeat))
        made = stored.get(_last(loops), {}) if begins else _stored(text.of, number, links)
        lines.append(_line(f"l{number}.{k}", f"{_INDENT}{text}", number, loops, links, made))
    c = []
    for k, (line, loops) in enumerate(zip(code, in_c, strict=True)):
        made = in_code.get(_last(loops), {}) if loops or line.stores else ()
        c.append(_line(f"c{number}.{k}", _narrow(line), number, loops, links, made))
    return KernelLines(tuple(lines), tuple(c))


def _loops_round(texts: Sequence[TextLine]) -> Iterator[tuple[For | Repeat, ...]]:
    """The loops that each line stands in: those above it with less indentation, and the one that it begins."""
    opened: list[tuple[int, For | Repeat]] = []
    for depth, _, of in texts:
        opened = [(outer, loop) for outer, loop in opened if outer < depth]
        if isinstance(of, (For, Repeat)):
            opened.append((depth, of))
        yield tuple(loop for _, loop in opened)


def _numbered(loops: Sequence[For | Repeat], numbers: dict[int, int]) -> tuple[int, ...]:
    return tuple(numbers.setdefault(id(loop), len(numbers)) for loop in loops)


def _stored(of: Stmt | Head, kernel: int, links: Links) -> tuple[Node, ...]:
    if not isinstance(of, (Store, Row)):
        return ()
    return links.stored(kernel, of.buffer if isinstance(of, Store) else of.target)


def _narrow(line: CodeLine) -> str:
    """The line with half of its indentation, as that of loop nests: panes are narrow."""
    text = line.text.lstrip(" ")
    return " " * (2 * line.depth + (len(line.text) - len(text)) // 2) + text


def _last(loops: Sequence[int]) -> int:
    return loops[-1] if loops else -1


def _line(name: str, text: str, kernel: int, loops: Sequence[int], links: Links, nodes: Iterable[Node] = ()) -> Line:
    """A line in loops. It picks the innermost one, and what the nodes are made of that are stored in it."""
    inside = [f"k{kernel}l{loop}" for loop in loops] or [f"k{kernel}top"]
    keys = (*dict.fromkeys(inside), *links.named("r", nodes))
    return Line(name, text, keys, (inside[-1], *links.named("p", nodes)))


def nests_pane(links: Links, kernels: Sequence[KernelLines]) -> Pane:
    """The parameters and the memory of the program, its kernels, and the calls in order."""
    program = links.program
    head = tuple(Line("", text) for text in declarations(program))
    sections = [Section("program", head, is_open=len(head) < 20)]
    for number, kernel in enumerate(program.kernels):
        own = links.calls_of_kernel.get(number, ())
        title, is_open = f"kernel {number} {kernel.name}", len(kernels) <= _OPEN
        sections.append(Section(title, kernels[number].nests, own, _times(len(own)), is_open))
    made = tuple(Line(f"call{k}", text, calls=(k,)) for k, text in enumerate(calls(program)))
    sections.append(Section("calls in order", made))
    return Pane("nests", "Loop nests", tuple(sections))


def c_pane(links: Links, kernels: Sequence[KernelLines], own: Sequence[CodeLine], language: str) -> Pane:
    """The C of the kernels, in the order of the program, and that of the functions which call them."""
    sections = []
    for number, (_, lines) in enumerate(kernels):
        title = f"kernel {number} {links.program.kernels[number].name}"
        sections.append(
            Section(title, lines, links.calls_of_kernel.get(number, ()), f"{len(lines)} lines", len(kernels) <= _OPEN)
        )
    called = (() if line.call is None else (line.call,) for line in own)
    lines = tuple(Line(f"run{k}", _narrow(line), calls=next(called)) for k, line in enumerate(own))
    return Pane("c", language, (*sections, Section("program", lines, note=f"{len(lines)} lines")))


def _times(count: int) -> str:
    return "" if count == 1 else f"called {count} times"
