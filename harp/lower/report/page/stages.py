"""The panes of what comes before loops: the lines of the user, the graph, and the schedule."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Sequence
from itertools import groupby

from harp.lower.report.page.lines import Line, Pane, Section
from harp.lower.report.page.links import Links
from harp.lower.schedule.schedule import Schedule, group_texts
from harp.trace.graph.graph import node_names, node_texts
from harp.trace.graph.node import Node
from harp.trace.source_locations import Site

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
