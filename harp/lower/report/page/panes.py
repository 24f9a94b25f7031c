"""The panes of the page: the lines of the user, the graph, the schedule, loop nests, and C or OpenCL C.

For each line of C the printer says which loops it is in, which are loops of the nests; the nodes stored in the
innermost one are those of the line. Loops of a grid are not loops in OpenCL C: all lines of the launched function are
in them.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from harp.lower.loopir.loops import For, Head, Kernel, LocalCall, Nest, Repeat, Row, Stmt, Store, walk
from harp.lower.loopir.text import CodeLine, TextLine, calls, declarations, kernel_head, statement_lines
from harp.lower.report.page.links import Links
from harp.lower.schedule.schedule import Schedule, group_texts
from harp.trace.graph.graph import node_names, node_texts
from harp.trace.graph.node import Node
from harp.trace.source_locations import Site


class Line(NamedTuple):
    """A line of a pane.

    `name` is the target of links. Selecting the line shows all lines, in all panes, with one of its `picks` among their
    `keys`; `links.py` lists the kinds of keys. `calls` are the program's calls that it belongs to, if these are not the
    section's.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()


class Section(NamedTuple):
    """Lines with a title, which belong to calls; a section without a title is always open."""

    title: str
    lines: tuple[Line, ...]
    calls: tuple[int, ...] = ()
    note: str = ""
    is_open: bool = True


class Pane(NamedTuple):
    """One stage. `kind` is its name in the style sheet, and its language."""

    kind: str
    title: str
    sections: tuple[Section, ...]

    @property
    def lines(self) -> list[Line]:
        """The lines of all sections, in order."""
        return [line for section in self.sections for line in section.lines]


# The numbers of lines that are shown before and after a line that made a node; others are left out.
_BEFORE, _AFTER = 2, 1


def function_pane(links: Links) -> Pane:
    """The lines of the user that made nodes, with a few lines round them."""
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
    """The nodes; consecutive nodes of one source line are grouped."""
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
                line_keys = [f"u{links.lines[site_inside]}"] if site_inside else []
                keys = tuple(dict.fromkeys((*line_keys, *links.named("p", wholes))))
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
    """A line about a node: it selects the line that stores the node, or the node of which it is a part."""
    keys = links.named("n", [node])
    line = [f"u{links.lines[links.site_of[node]]}"] if node in links.site_of else []
    return Line(name, text, (*keys, *line, *links.named("p", wholes)), (*keys, *links.named("r", wholes)))


def _title(site: Site | None) -> str:
    return f"{os.path.basename(site[0])}:{site[1]}" if site else "arguments"


def _content(site: Site | None) -> str:
    return linecache.getline(*site).strip() if site else ""


def names_of_inputs(links: Links, names: Sequence[str]) -> str:
    """The user's names for the inputs of the graph."""
    return ", ".join(f"{i.name} = {name}" for i, name in zip(links.graph.inputs, names, strict=False))


_INDENT = "  "
# If there are more kernels than this, they are closed when the page appears.
_OPEN = 40


class KernelLines(NamedTuple):
    """The lines of a kernel's loop nests and of its C."""

    nests: tuple[Line, ...]
    c: tuple[Line, ...]


def kernel_lines(number: int, kernel: Kernel, code: Sequence[CodeLine], links: Links) -> KernelLines:
    """The lines of a kernel in both forms, linked by their loops. Loops of library routines are not in the C."""
    texts = statement_lines(kernel.body)
    numbers: dict[int, int] = {}  # numbers of loops, by identity
    in_nests = [_numbered(loops, numbers) for loops in _loops_round(texts)]
    for call in (s for s in walk(kernel.body) if isinstance(s, LocalCall)):
        for of_function, of_first_call in zip(_heads(call.function.body), _heads(call.body), strict=True):
            numbers.setdefault(id(of_function), numbers[id(of_first_call)])
    in_c = [_numbered(line.loops, numbers) for line in code]
    stored: dict[int, dict[Node, None]] = {}  # by the innermost loop round a store; -1 is outside of all loops
    in_code: dict[int, dict[Node, None]] = {}  # by the innermost of these loops that is in the C
    printed = {loop for loops in in_c for loop in loops}
    lines = [_linked(f"l{number}.head", kernel_head(kernel, f"{number} "), number, (), links)]
    for text, loops in zip(texts, in_nests, strict=True):
        nodes = dict.fromkeys(_stored(text.of, number, links))
        stored.setdefault(_last(loops), {}).update(nodes)
        in_code.setdefault(_last([loop for loop in loops if loop in printed]), {}).update(nodes)
    for k, (text, loops) in enumerate(zip(texts, in_nests, strict=True)):
        begins = isinstance(text.of, (For, Repeat))
        shown = stored.get(_last(loops), {}) if begins else _stored(text.of, number, links)
        lines.append(_linked(f"l{number}.{k}", f"{_INDENT}{text}", number, loops, links, shown))
    c = []
    for k, (line, loops) in enumerate(zip(code, in_c, strict=True)):
        shown = in_code.get(_last(loops), {}) if loops or line.stores else ()
        c.append(_linked(f"c{number}.{k}", _narrow(line), number, loops, links, shown))
    return KernelLines(tuple(lines), tuple(c))


def _loops_round(texts: Sequence[TextLine]) -> Iterator[tuple[For | Repeat, ...]]:
    """The loops round each line: those above it with less indentation, and the one that it begins."""
    opened: list[tuple[int, For | Repeat]] = []
    for depth, _, of in texts:
        opened = [(outer, loop) for outer, loop in opened if outer < depth]
        if isinstance(of, (For, Repeat)):
            opened.append((depth, of))
        yield tuple(loop for _, loop in opened)


def _heads(s: Stmt) -> list[For]:
    return [head for part in walk(s) if isinstance(part, Nest) for head in part.heads if isinstance(head, For)]


def _numbered(loops: Sequence[For | Repeat], numbers: dict[int, int]) -> tuple[int, ...]:
    return tuple(numbers.setdefault(id(loop), len(numbers)) for loop in loops)


def _stored(of: Stmt | Head, kernel: int, links: Links) -> tuple[Node, ...]:
    if not isinstance(of, (Store, Row)):
        return ()
    return links.stored(kernel, of.buffer if isinstance(of, Store) else of.target)


def _narrow(line: CodeLine) -> str:
    """The line with half of its indentation, like loop nests: panes are narrow."""
    text = line.text.lstrip(" ")
    return " " * (2 * line.depth + (len(line.text) - len(text)) // 2) + text


def _last(loops: Sequence[int]) -> int:
    return loops[-1] if loops else -1


def _linked(name: str, text: str, kernel: int, loops: Sequence[int], links: Links, nodes: Iterable[Node] = ()) -> Line:
    """A line in loops. It selects the innermost one, and the parts of the nodes that are stored in it."""
    inside = [f"k{kernel}l{loop}" for loop in loops] or [f"k{kernel}top"]
    keys = (*dict.fromkeys(inside), *links.named("r", nodes))
    return Line(name, text, keys, (inside[-1], *links.named("p", nodes)))


def nests_pane(links: Links, kernels: Sequence[KernelLines]) -> Pane:
    """The parameters and the memory of the program, its kernels, and its calls in order."""
    program = links.program
    head = tuple(Line("", text) for text in declarations(program))
    sections = [Section("program", head, is_open=len(head) < 20)]
    for number, kernel in enumerate(program.kernels):
        calls_of = links.calls_of_kernel.get(number, ())
        title, is_open = f"kernel {number} {kernel.name}", len(kernels) <= _OPEN
        sections.append(Section(title, kernels[number].nests, calls_of, _times(len(calls_of)), is_open))
    call_lines = tuple(Line(f"call{k}", text, calls=(k,)) for k, text in enumerate(calls(program)))
    sections.append(Section("calls in order", call_lines))
    return Pane("nests", "Loop nests", tuple(sections))


def c_pane(links: Links, kernels: Sequence[KernelLines], own: Sequence[CodeLine], language: str) -> Pane:
    """The C of the kernels, in the order of the program, and of the functions that call them."""
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
