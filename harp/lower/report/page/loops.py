"""The panes of loop nests and of the C, or OpenCL C, that they are printed as.

A line of C belongs to the loops round it, which are those of the loop nests; what is stored there is what the innermost
one stores. The loops of a grid are no loops in OpenCL C: they are round all that follows the positions of a work-item,
in the function that the host launches:

    const int64_t i1 = get_global_id(0);      for grid i1 < n:
    out0[i1] = in0[i1];                           out0[i1] = in0[i1]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from harp.lower.loopir.loops import For, Head, Kernel, LibraryCall, Repeat, Row, Stmt, Store
from harp.lower.loopir.text import TextLine, calls, declarations, kernel_head, statement_lines
from harp.lower.report.page.lines import Line, Pane, Section
from harp.lower.report.page.links import Links
from harp.lower.report.page.matching import Opened, loops_of, matched
from harp.trace.graph.node import Node

_LOOP = re.compile(r"for \(int64_t (?!turn\b)(\w+) = ")
_GRID = re.compile(r" *(?:const int64_t (i\d+) = (?:get_g|flat\b)|int64_t flat = |flat /= )")
_FIRST, _WHILE = re.compile(r" *(i\d+) = 0$"), re.compile(r" *while .*:$")  # of a loop of the host
# Functions of a part of a loop, or of what is launched, and where they are called.
_PART = re.compile(r"static .*\b(\w+)\(void \*given|__kernel .*\bharp_(launch\d+)\(")
_CALL = re.compile(r"( *)(?:harp_parallel\(|launch\(run, )(\w+),")
_STORES = re.compile(r" +(?:(?!harp_(?:parallel|take|give)\b)\w+\(.*\);|\w+(?:\[.*\])? \|?= .*;)$")
_INDENT = "  "
# Kernels that are open when the page appears; of more than these, none is.
_OPEN = 40


class KernelLines(NamedTuple):
    """The loop nests of a kernel and its C, line by line."""

    nests: tuple[Line, ...]
    c: tuple[Line, ...]


def kernel_lines(
    number: int, kernel: Kernel, unit: str, links: Links, is_called: Callable[[LibraryCall], bool]
) -> KernelLines:
    """The lines of a kernel in both forms, linked with each other by their loops. The C has no loops for those routines
    of the library that are called."""
    texts, code = statement_lines(kernel.body), unit.strip("\n").split("\n")
    nests, c = _loops_in_nests(texts, is_called), _loops_in_c(code)
    of_nests, of_c = matched(nests[0].heads, c[0].heads)
    in_nests, in_c = loops_of(nests[1], of_nests), loops_of(c[1], of_c)
    stored: dict[int, dict[Node, None]] = {}  # in the innermost loop round a store; -1 is outside of all
    for text, loops in zip(texts, in_nests, strict=True):
        stored.setdefault(_last(loops), {}).update(dict.fromkeys(_stored(text.of, number, links)))
    lines = [_line(f"l{number}.head", kernel_head(kernel, f"{number} "), number, (), links)]
    for k, (text, loops) in enumerate(zip(texts, in_nests, strict=True)):
        begins = isinstance(text.of, (For, Repeat))
        nodes = stored.get(_last(loops), {}) if begins else _stored(text.of, number, links)
        lines.append(_line(f"l{number}.{k}", f"{_INDENT}{text}", number, loops, links, nodes))
    printed = frozenset(of_c)
    of_lines: dict[int, dict[Node, None]] = {}  # the same for the C, where routines run some of the loops
    for text, loops in zip(texts, in_nests, strict=True):
        place = _last([loop for loop in loops if loop in printed])
        of_lines.setdefault(place, {}).update(dict.fromkeys(_stored(text.of, number, links)))
    made = (
        _line(f"c{number}.{k}", _narrow(text), number, loops, links, _computed(code, k, _last(loops), of_lines))
        for k, (text, loops) in enumerate(zip(code, in_c, strict=True))
    )
    return KernelLines(tuple(lines), tuple(made))


def _loops_in_nests(
    texts: Sequence[TextLine], is_called: Callable[[LibraryCall], bool]
) -> tuple[Opened, list[tuple[int, ...]]]:
    """The loops that each line stands in. Those of a routine that is called are not in the C."""
    opened, found = Opened(), []
    routine: int | None = None  # the depth of its call
    for depth, _, of in texts:
        opened.close(depth)
        if routine is not None and depth <= routine:
            routine = None
        if isinstance(of, LibraryCall) and is_called(of) and routine is None:
            routine = depth
        if isinstance(of, (For, Repeat)) and routine is None:
            opened.enter(depth, repr(of.loop))
        found.append(opened.now)
    return opened, found


def _loops_in_c(lines: Sequence[str]) -> tuple[Opened, list[tuple[int, ...]]]:
    """The loops that each line stands in; the brace that ends a loop is a line of it."""
    opened = Opened()
    found: list[tuple[int, ...]] = [()] * len(lines)
    for number, more in _in_order(lines):
        text = lines[number].lstrip(" ")
        depth = more + len(lines[number]) - len(text)
        opened.close(depth + (text == "}") if text else more)
        for outside, name in _begun(lines, number):
            opened.enter(depth - outside, name)
        found[number] = opened.now
    return opened, found


def _begun(lines: Sequence[str], number: int) -> list[tuple[bool, str]]:
    """The loops that begin at a line, from the outside in, and whether they are round the lines beside it, too."""
    line, before = lines[number], lines[number - 1] if number else ""
    head = _LOOP.match(line.lstrip(" "))
    if head:
        return [(False, head[1])]
    first = _FIRST.match(before)
    if first and _WHILE.match(line):
        return [(False, first[1])]
    if not _GRID.match(line) or _GRID.match(before):
        return []
    places = (_GRID.match(text) for text in takewhile(_GRID.match, lines[number:]))
    names = [place[1] for place in places if place and place[1]]  # from the inside out
    return [(True, name) for name in names[::-1]]


def _in_order(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines by number, and how much further they are indented: functions of a part of a loop, which stand before
    the one that calls them, are where they are called."""
    parts: dict[str, range] = {}
    for number, line in enumerate(lines):
        begins = _PART.match(line)
        if begins:
            parts[begins[1] or begins[2]] = range(
                number, next(k for k in range(number, len(lines)) if lines[k] == "}") + 1
            )
    inside = {number for part in parts.values() for number in part}
    for number, line in enumerate(lines):
        if number not in inside:
            yield number, 0
            call = _CALL.match(line)
            if call:
                yield from ((k, len(call[1])) for k in parts.get(call[2], ()))


def _stored(of: Stmt | Head, kernel: int, links: Links) -> tuple[Node, ...]:
    if not isinstance(of, (Store, Row)):
        return ()
    return links.stored(kernel, of.buffer if isinstance(of, Store) else of.target)


def _computed(code: Sequence[str], k: int, loop: int, of_lines: Mapping[int, Mapping[Node, None]]) -> Iterable[Node]:
    """What a line of C may have a part in; outside of loops, one that stores something or calls a routine, but not the
    status where there is no memory."""
    stores = _STORES.match(code[k]) and not code[k - 1].endswith(" == NULL) {")
    return of_lines.get(loop, ()) if loop >= 0 or stores else ()


def _narrow(line: str) -> str:
    """The line with half of its indentation, as that of loop nests: panes are narrow."""
    text = line.lstrip(" ")
    return " " * ((len(line) - len(text)) // 2) + text


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


def c_pane(links: Links, kernels: Sequence[KernelLines], units: Sequence[str], own: str, language: str) -> Pane:
    """The C of the kernels, in the order of the program, and that of the functions which call them."""
    sections = []
    for number, (_, lines) in enumerate(kernels):
        title = f"kernel {number} {links.program.kernels[number].name}"
        sections.append(
            Section(title, lines, links.calls_of_kernel.get(number, ()), f"{len(lines)} lines", len(kernels) <= _OPEN)
        )
    lines = _lines_of_calls(own, units)
    return Pane("c", language, (*sections, Section("program", lines, note=f"{len(lines)} lines")))


def _lines_of_calls(own: str, units: Sequence[str]) -> tuple[Line, ...]:
    """The functions that are exported: the calls of kernels stand in the order of the program."""
    names = {found[1] for text in units if (found := re.match(r"#define \w+ (\w+)", text))}
    called = re.compile(r" {4}(?:if \(status == 0\) )?(?:status = )?(\w+)\(.*\);$| {4}kernel\d+\(run, ")
    lines: list[Line] = []
    number = 0
    for k, line in enumerate(own.strip("\n").split("\n")):
        found = called.match(line)
        is_call = found is not None and (found[1] is None or found[1] in names)
        lines.append(Line(f"run{k}", _narrow(line), calls=(number,) if is_call else ()))
        number += is_call
    return tuple(lines)


def _times(count: int) -> str:
    return "" if count == 1 else f"called {count} times"
