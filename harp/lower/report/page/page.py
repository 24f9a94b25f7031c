"""The page as HTML: a head with the program's cost, and the panes side by side.

All text is escaped; style and script are part of the page, which loads nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from html import escape
from string import Template
from typing import NamedTuple, Protocol, cast

import attrs

from harp.lower.loopir.program import Program
from harp.lower.loopir.text import CodeLine
from harp.lower.report.counts import Count
from harp.lower.report.page.links import Links
from harp.lower.report.page.panes import (
    Line,
    Pane,
    Section,
    c_pane,
    function_pane,
    graph_pane,
    kernel_lines,
    names_of_inputs,
    nests_pane,
    schedule_pane,
)
from harp.lower.report.report import Cost, footprint
from harp.lower.schedule.build import Built
from harp.lower.schedule.schedule import Schedule

# Colours of kernels: steps round the circle that keep neighbours apart.
_HUES, _FIRST_HUE = 47, 210
# Words that are coloured, by the language of a pane, and the beginnings of comments; lines are linked by what they were
# printed from, not by words.
_WORDS = {
    "function": r"#[^\n]*|\b(?:def|return|for|in|if|else|elif|while|with|lambda|import|from|as|and|or|not|class)\b",
    "graph": r"\b(?:input|captured|view|map|over|gather|scatter|iterate|contiguous|where|else|return)\b",
    "schedule": r"\b(?:view|map|over|reducing|gather|scatter|contiguous|where|else)\b",
    "nests": r"\b(?:for|parallel|simd|sequential|repeat|while|if|else|call|let|digits|kernel|thread|local|reg|slot)\b",
    "c": r"/\*.*?\*/|\b(?:for|if|else|const|return|int64_t|int|float|double|void|char|struct|static|restrict)\b"
    r"|\b__(?:kernel|global|local)\b|^#\w+",
}
_COMMENTS = ("#include", "#define", "/*", "# ", "#")
_COLUMNS = {"operations": "operations", "bytes_read": "bytes read", "bytes_written": "bytes written"}
_WIDEST = 60
_SHARE = "operations, of which a special one counts twelve times, reads and writes, at these sizes"


class Parts(NamedTuple):
    """The content of a page: the stages of a program, its kernels in the `language` of a backend as `units`, and the
    `calls` of them. `inputs` are the names of the arguments, `given` the sizes at hand, `cost` is the cost of the
    program."""

    title: str
    schedule: Schedule
    algorithm: Built
    program: Program
    language: str
    units: Sequence[Sequence[CodeLine]]
    calls: Sequence[CodeLine]
    inputs: Sequence[str]
    cost: Cost[Count]
    given: Sequence[int]


def panes(parts: Parts, links: Links) -> tuple[Pane, ...]:
    """The function, the graph, the schedule, the loop nests and the C, with the links between their lines."""
    pairs = enumerate(zip(parts.program.kernels, parts.units, strict=True))
    kernels = [kernel_lines(number, kernel, unit, links) for number, (kernel, unit) in pairs]
    return (
        function_pane(links),
        graph_pane(links),
        schedule_pane(parts.schedule, links),
        nests_pane(links, kernels),
        c_pane(links, kernels, parts.calls, parts.language),
    )


def page(parts: Parts) -> str:
    """One self-contained HTML page, as text that can be encoded: surrogates in names and lines are escaped."""
    links = Links(parts.schedule, parts.algorithm, parts.program)
    function, graph, schedule, nests, c = (_pane(pane, links) for pane in panes(parts, links))
    text = Template(_file("page.html")).substitute(
        title=escape(parts.title),
        style=_file("page.css"),
        script=_file("page.js"),
        summary=_summary(parts),
        sizes=_sizes(parts, names_of_inputs(links, parts.inputs)),
        costs=_costs(parts, links),
        first=function + graph,
        second=schedule,
        third=nests,
        fourth=c,
    )
    return text.encode(errors="backslashreplace").decode()


def framed(text: str) -> str:
    """The page as a frame in another one, such as a notebook, from which its script is isolated."""
    style = "width:100%;height:56em;border:1px solid #8884;border-radius:6px"
    return f'<iframe sandbox="allow-scripts" srcdoc="{escape(text)}" style="{style}"></iframe>'


class _Loader(Protocol):
    def get_data(self, path: str) -> bytes: ...


def _file(name: str) -> str:
    """A file beside this one, which may be in an archive."""
    loader = cast(_Loader, __spec__.loader)  # importlib.resources takes long to import
    return loader.get_data(os.path.join(os.path.dirname(__file__), name)).decode()


# --- the head


def _summary(parts: Parts) -> str:
    at_hand = parts.cost.at()
    kernels, distinct = len(parts.program.calls), len(parts.program.kernels)
    same = f" ({distinct} distinct)" if distinct != kernels else ""
    facts = [
        (len(parts.schedule.graph.nodes()), "node{s}"),
        (kernels, "kernel{s}" + same),
        (at_hand.operations, "operation{s}"),
        (at_hand.bytes_read, "byte{s} read"),
        (at_hand.bytes_written, "byte{s} written"),
        (_scratch(parts), "byte{s} of scratch"),
    ]
    texts = ((f"{number:,}", what.format(s="" if number == 1 else "s")) for number, what in facts)
    return "".join(f"<span><b>{number}</b> {what}</span>" for number, what in texts)


def _scratch(parts: Parts) -> int:
    """The scratch memory of a call at the sizes at hand."""
    sizes = dict(zip(parts.program.sizes, parts.given, strict=True))
    return footprint(parts.program, len(parts.inputs), sizes, threads=1).scratch


def _sizes(parts: Parts, inputs: str) -> str:
    """The meaning of the names of sizes and arguments in each pane, and the sizes at hand."""
    symbols = [f"{size} = " for size in parts.program.sizes]
    symbols += [""] * (len(parts.cost.names) - len(symbols))  # numbers of steps are no sizes of the program
    named = zip(symbols, parts.cost.names.items(), parts.cost.given, strict=True)
    texts = [f"{symbol}{short} = {name} ({value} here)" for symbol, (short, name), value in named]
    return "".join(f"<span>{escape(text)}</span>" for text in (*texts, inputs) if text)


def _costs(parts: Parts, links: Links) -> str:
    """A row for each kernel, and for all of its calls that have equal costs and the same line."""
    cost, now = parts.cost, parts.cost.at()
    most = max([1, *(kernel.steps for kernel in now.kernels)])
    alike: dict[tuple[object, ...], list[int]] = {}
    for k, kernel in enumerate(cost.kernels):
        alike.setdefault((links.kernel_of_call(k + links.before), attrs.astuple(kernel)), []).append(k)
    rows = []
    for numbers in alike.values():
        kernel, at_hand = cost.kernels[numbers[0]], now.kernels[numbers[0]]
        calls = [k + links.before for k in numbers]
        line = f"{os.path.basename(kernel.site[0])}:{kernel.site[1]}" if kernel.site else ""
        name = f"{links.kernel_of_call(calls[0])} {kernel.name}" + (f" × {len(calls)}" if len(calls) > 1 else "")
        bar = f'<td class="share"><i style="width:{round(100 * at_hand.steps / most)}%"></i></td>'
        cells = "".join(_cell(getattr(kernel, q), getattr(at_hand, q)) for q in _COLUMNS)
        row = f"<td>{escape(name)}</td><td>{escape(line)}</td>{bar}{cells}"
        rows.append(f'<tr id="cost{calls[0]}"{_of_calls(calls, links)}>{row}</tr>')
    titles = "".join(f"<th>{title}" for title in _COLUMNS.values())
    whole = "".join(_cell(getattr(cost, q), getattr(now, q)) for q in _COLUMNS)
    bound = "" if cost.exact else "<p>Some of these are upper bounds.</p>"
    head = f'<thead><tr><th>kernel<th>line<th title="{_SHARE}">share{titles}</tr></thead>'
    foot = f"<tfoot><tr><td>in all</td><td></td><td></td>{whole}</tr></tfoot>"
    return f"<table>{head}<tbody>{''.join(rows)}</tbody>{foot}</table>{bound}"


def _cell(quantity: Count | int, now: int) -> str:
    text = quantity.text(_WIDEST) if isinstance(quantity, Count) else str(quantity)
    number = "" if text == str(now) else f"<small>{now:,}</small>"
    return f"<td>{escape(text)}{number}</td>"


# --- the panes


def _pane(pane: Pane, links: Links) -> str:
    mark = _marker(pane.kind)
    inside = "".join(_section(section, mark, links) for section in pane.sections)
    title = f"<summary>{escape(pane.title)}</summary>"
    return f'<details class="pane" id="{pane.kind}" open>{title}<div class="code">{inside}</div></details>'


def _section(section: Section, mark: Callable[[str], str], links: Links) -> str:
    lines = "".join(_line_html(line, mark, links) for line in section.lines)
    calls = _of_calls(section.calls, links)
    if not section.title:
        return f"<section{calls}>{lines}</section>"
    note = f"<small>{escape(section.note)}</small>" if section.note else ""
    opened = " open" if section.is_open else ""
    return f"<details{calls}{opened}><summary>{escape(section.title)}{note}</summary>{lines}</details>"


def _line_html(line: Line, mark: Callable[[str], str], links: Links) -> str:
    attributes = f' id="{line.name}"' if line.name else ""
    attributes += f' data-k="{" ".join(line.keys)}"' if line.keys else ""
    attributes += f' data-p="{" ".join(line.picks)}"' if line.picks and line.picks != line.keys else ""
    return f"<div{attributes}{_of_calls(line.calls, links)}>{mark(line.text)}</div>"


def _of_calls(calls: Sequence[int], links: Links) -> str:
    """A line of these calls is linked with all lines of them, and has the colour of the first one's kernel."""
    if not calls:
        return ""
    hue = (_FIRST_HUE + links.kernel_of_call(calls[0]) * _HUES) % 360
    return f' data-c="{" ".join(map(str, calls))}" style="--h:{hue}"'


def _marker(kind: str) -> Callable[[str], str]:
    """A function that escapes a line, and highlights words."""
    words = re.compile(f"(%\\d+)|({_WORDS[kind]})")

    def mark(text: str) -> str:
        pieces, at = [], 0
        for match in words.finditer(text):
            word = match[0]
            tag = "u" if match[1] else "i" if word.startswith(_COMMENTS) else "b"
            pieces += [escape(text[at : match.start()]), f"<{tag}>{escape(word)}</{tag}>"]
            at = match.end()
        return "".join([*pieces, escape(text[at:])]) or "&nbsp;"

    return mark
