"""The compiler: from a graph in canonical form to a kernel.

It is half of harp, and a process that finds all its programs in the cache never imports it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from harp import backends
from harp.backends.options import CompileOptions
from harp.backends.protocol import Executable
from harp.config import settings
from harp.errors import NestingError
from harp.lower.loopir.program import Program
from harp.lower.pipeline import Lowered, lower
from harp.lower.target import Target
from harp.trace.eval.inside import Access
from harp.trace.graph.graph import Graph, digest
from harp.trace.source_locations import user_site, where

T = TypeVar("T")


class _Latest(NamedTuple):
    """The graph that was last lowered to be shown; as a rule it is compiled next."""

    content: bytes
    target: Target
    donated: tuple[int, ...]
    program: Program  # not the graph, which holds arrays


_latest: list[_Latest] = []


def to_be_shown(graph: Graph, target: Target, donated: Sequence[int], check: bool) -> Lowered:
    """The lowered graph. As a rule its program is compiled next, and is not lowered again for that."""
    lowered = _sound(lambda fast: lower(graph, target, donated, check, fast), check)
    if not check:
        _latest[:] = [_Latest(digest(graph), lowered.target, tuple(donated), lowered.program)]
    return lowered


def compiled(
    graph: Graph,
    name: str,
    options: CompileOptions,
    donated: Sequence[int] = (),
    check: bool = False,
    sizes: Sequence[int] | None = None,
) -> tuple[Executable, tuple[tuple[int, int], ...], tuple[Access, ...]]:
    """The executable that the backend `name` makes of a graph in canonical form, the pairs of a donated input and the
    output that lives in it, and the accesses that the program reports.

    `sizes` are those of the call that waits for it.
    """
    backend = backends.get(name)
    target = backend.target()
    if target is None:
        return backend.compile(None, graph, options, check), (), ()

    shown = None if check else _shown(graph, target, donated)

    def made(fast: bool) -> tuple[Executable, Program]:
        known = shown if fast else None
        program = lower(graph, target, donated, check, fast).program if known is None else known
        return backend.compile(program, graph, options, check, sizes), program

    kernel, program = _sound(made, check)
    return kernel, program.donated, program.accesses


def _shown(graph: Graph, target: Target, donated: Sequence[int]) -> Program | None:
    """The program of a graph in canonical form, if it was the last one that was lowered to be shown."""
    for latest in _latest:
        if latest[:3] == (digest(graph), target, tuple(donated)):
            return latest.program
    return None


def _sound(make: Callable[[bool], T], check: bool) -> T:
    """`make(True)`, which lowers a graph and makes something of it. If that finds a broken invariant: a warning, and
    `make(False)`, of the loops as they were built, without rewrites.

    With HARP_VERIFY the error is raised: those who set it look for such bugs.
    """
    try:
        return make(True)
    except AssertionError as error:
        if settings.verify or check:
            raise
        reason = (str(error).splitlines() or ["an assertion"])[0]
    except RecursionError:
        raise _too_deep() from None
    file, line = user_site() or (__file__, 1)
    text = (
        f"harp has a bug: making loops fast broke an invariant ({reason}). The program runs with plain loops, which is "
        "correct and slower. Please report it, with the function and the shapes and dtypes of its arguments"
    )
    warnings.warn_explicit(text, RuntimeWarning, file, line)
    return make(False)


def printed(print_it: Callable[[Program], T], program: Program) -> T:
    """A program as text. Raises NestingError."""
    try:
        return print_it(program)
    except RecursionError:
        raise _too_deep() from None


def _too_deep() -> NestingError:
    return NestingError(
        "the loops and branches of the program nest too deeply to be compiled: let a loop run over the levels, or "
        f"raise sys.setrecursionlimit, which is {sys.getrecursionlimit():,} here{where()}"
    )
