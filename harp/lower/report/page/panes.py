"""The panes of the page: the lines of the user, the graph, the schedule, loop nests, and C or OpenCL C.

The printer says of each line of C which loops it stands in, which are those of the loop nests; what is stored there is
what the innermost one stores. The loops of a grid are no loops in OpenCL C: all lines of the function that the host
launches stand in them.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from harp.lower.loopir.loops import For, Head, Kernel, Repeat, Row, Stmt, Store
from harp.lower.loopir.text import CodeLine, TextLine, calls, declarations, kernel_head, statement_lines
from harp.lower.report.page.links import Links
from harp.lower.schedule.schedule import Schedule, group_texts
from harp.trace.graph.graph import node_names, node_texts
from harp.trace.graph.node import Node
from harp.trace.source_locations import Site


class Line(NamedTuple):
    """A line of a pane.

    `name` is where a link leads to. Who picks the line is shown all lines, in all panes, whose `keys` have one of its
    `picks`; what keys there are says `links.py`. `calls` are the calls of the program that it has a part in, where they
    are not those of its section.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()


class Section(NamedTuple):
    """Lines under a title, which belong to calls; a section of no title is always open."""

    title: str
    lines: tuple[Line, ...]
    calls: tuple[int, ...] = ()
    note: str = ""
    is_open: bool = True


class Pane(NamedTuple):
    """One stage. `kind` names it in the style of the page, and what it is written in."""

    kind: str
    title: str
    sections: tuple[Section, ...]

    @property
    def lines(self) -> list[Line]:
        """Of all sections in order."""
        return [line for section in self.sections for line in section.lines]


# Lines that are shown before a line that made a node, and after it; what lies between such places is left out.
_BEFORE, _AFTER = 2, 1


def function_pane(links: Links) -> Pane:
    """The lines of the user that made nodes, and a few round them."""
    nodes_at: dict[Site, list[Node]] = {}
    inner = ((node, site) for node, sites in links.inner.items() for site in dict.fromkeys(sites) if site)
    for node, site in (*links.site_of.items(), *inner):
        nodes_at.setdefault(site, []).append(node)
    sections = []
    for file, group in groupby(links.lines, key=lambda site: site[0]):
        numbers = [line for _, line in group]
        text = linecache.getlines(file)
        shown = {n for number in numbers for n in range(number - _BEFORE, number + _AFTER + 1)}
        lines: list[Line] = []
        for n in sorted(n for n in shown if 1 <= n <= max(len(text), *numbers)):
            if lines and n - 1 not in shown:
                lines.append(Line("", "     ..."))
            content = f"{n:4} {text[n - 1].rstrip() if n <= len(text) else ''}"
            site = file, n
            lines.append(_user_line(site, content, nodes_at[site], links) if site in nodes_at else Line("", content))
        sections.append(Section(os.path.basename(file), tuple(lines)))
    return Pane("function", "Function", tuple(sections))


def _user_line(site: Site, text: str, nodes: Sequence[Node], links: Links) -> Line:
    name = f"u{links.lines[site]}"
    wholes = dict.fromkeys(whole for node in nodes for whole in links.wholes.get(node, ()))
    keys = (name, *links.named("n", nodes), *links.named("p", wholes))
    return Line(name, text, keys, (name, *links.named("r", wholes)), links.calls_of(nodes))


def graph_pane(links: Links) -> Pane:
    """The nodes, those together that follow each other and come from the same line of the user."""
    texts = node_texts(links.graph)
    sections = []
    for site, group in groupby(texts, key=links.site_of.get):
        lines = []
        for node in group:
            name, wholes = f"g{links.nodes[node]}", links.wholes.get(node, ())
            head, *inner = texts[node].split("\n")
            whole = _node_line(name, head, node, wholes, links)._replace(calls=links.calls_of([node]))
            lines.append(whole)
            for k, (text, site_inside) in enumerate(zip(inner, links.inner.get(node, ()), strict=True)):
                own = [f"u{links.lines[site_inside]}"] if site_inside else []
                keys = tuple(dict.fromkeys((*own, *links.named("p", wholes))))
                lines.append(whole._replace(name=f"{name}b{k}", text=text, keys=keys))
        sections.append(Section(_title(site), tuple(lines), note=_content(site)))
    names, outputs = node_names(links.graph), links.graph.outputs
    text = f"return {', '.join(names[o] for o in outputs)}"
    sections.append(Section("", (Line("results", text, (), tuple(links.named("n", outputs))),)))
    return Pane("graph", "Graph", tuple(sections))


def schedule_pane(schedule: Schedule, links: Links) -> Pane:
    """A section for each kernel of the schedule."""
    sections, count = [], 0
    for number, (group, (head, texts)) in enumerate(zip(schedule.groups, group_texts(schedule), strict=True)):
        lines = []
        for step, text in zip(group.steps, texts, strict=True):
            lines.append(_node_line(f"s{count}", text, step.node, links.parts[number].get(step.node, ()), links))
            count += 1
        title, _, reason = head.partition(", kept: ")
        sections.append(Section(title, tuple(lines), links.calls_of_group.get(number, ()), f"kept: {reason}"))
    return Pane("schedule", "Schedule", tuple(sections))


def _node_line(name: str, text: str, node: Node, wholes: Iterable[Node], links: Links) -> Line:
    """A line about a node: it picks what stores the node, or that which it is a part of."""
    own = links.named("n", [node])
    line = [f"u{links.lines[links.site_of[node]]}"] if node in links.site_of else []
    return Line(name, text, (*own, *line, *links.named("p", wholes)), (*own, *links.named("r", wholes)))


def _title(site: Site | None) -> str:
    return f"{os.path.basename(site[0])}:{site[1]}" if site else "arguments"


def _content(site: Site | None) -> str:
    return linecache.getline(*site).strip() if site else ""


def names_of_inputs(links: Links, names: Sequence[str]) -> str:
    """What the inputs of the graph are to the user."""
    return ", ".join(f"{i.name} = {name}" for i, name in zip(links.graph.inputs, names, strict=False))


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
