"""Messages for users who wait for a program: what is being done, and how to shorten it.

A loop of Python is unrolled into the graph, step by step, and all that comes after takes time for each step.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from harp.config import log
from harp.errors import PromotionWarning
from harp.progress import announced, tick
from harp.trace.graph.graph import Graph
from harp.trace.sizes.levels import Level, on_growth
from harp.trace.source_locations import Site

# Nodes of a large graph, and of a line that was run many times: more than one formula has.
_LARGE, _REPEATED = 1000, 200
# Too many traces for arguments of equal dtypes and ranks: more than there are patterns of branches and of axes of size
# 1.
_MANY = 8


class _Here(threading.local):
    latest: list[Level] | None = None  # the level that last grew large in the announced trace


_here = _Here()


def _grown(level: Level) -> None:
    if _here.latest is not None:
        _here.latest[:] = [level]
        tick()


on_growth.append(_grown)


@contextmanager
def announced_trace(name: str) -> Iterator[None]:
    """While the function of this name is traced, a user who waits long is told which line makes the trace large."""
    latest: list[Level] = []

    def text() -> str:
        sites = [site for level in latest for site in level.sites.values()]
        return f"tracing {name!r}, which has {len(sites):,} operations by now{_advice(len(sites), sites)}"

    outer, _here.latest = _here.latest, latest
    try:
        with announced(text):
            yield
    finally:
        _here.latest = outer


def making(name: str, graph: Graph) -> Callable[[], str]:
    """The message that a program is made, with advice if its graph is large."""

    def text() -> str:
        nodes = graph.nodes()
        sites = [graph.sites[node] for node in nodes if node in graph.sites]
        return f"making the program of {name!r}, which has {len(nodes):,} operations{_advice(len(nodes), sites)}"

    return text


def _advice(count: int, sites: Iterable[Site]) -> str:
    """Advice about a line that was run many times, as one more line of a message."""
    (file, line), times = max(Counter(sites).items(), key=lambda item: item[1], default=(("", 0), 0))
    if count < _LARGE or times < _REPEATED:
        return ""
    share = "most" if 2 * times > count else "many"
    return (
        f"\n{share} of these operations come from {file}:{line}; if a Python loop runs that line, write the loop as "
        "harp.fori_loop or harp.scan, of which one step is compiled"
    )


def warn_of_pins(name: str, count: int, pins: Sequence[str]) -> None:
    """Warn once that a function is compiled again for each size, with the line that asks for a number."""
    if count == _MANY and pins:
        log.warning(
            "%r is compiled for the %dth time, since it asks for the number of a size, on which the program then "
            "relies: %s\nwrite x.shape[0] for len(x), and a loop over range(n) as harp.fori_loop or harp.scan; all of "
            "it is in print(f.signatures[-1])",
            *(name, count, pins[0]),
        )


def warn_of_promotion(name: str, text: str, site: Site) -> None:
    """Warn of the first float32 array of a trace that becomes float64."""
    warnings.warn_explicit(f"{name!r}: {text}", PromotionWarning, *site)
