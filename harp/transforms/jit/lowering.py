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


def to_be_shown(
    graph: Graph, target: Target, donated: Sequence[int], check: bool, printed: Callable[[Program], T]
) -> tuple[Lowered, T]:
    """The lowered graph, and its program as text. As a rule it is compiled next, and is not lowered again for that."""
    lowered, text = _sound(graph, target, donated, check, lambda made: (made, printed(made.program)))
    if not check:
        _latest[:] = [_Latest(digest(graph), lowered.target, tuple(donated), lowered.program)]
    return lowered, text


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

    def kernel_of(program: Program) -> tuple[Executable, Program]:
        return backend.compile(program, graph, options, check, sizes), program

    shown = None if check else _shown(graph, target, donated)
    if shown is None:
        kernel, program = _sound(graph, target, donated, check, lambda made: kernel_of(made.program))
    else:
        kernel, program = kernel_of(shown)
    return kernel, program.donated, program.accesses


def _shown(graph: Graph, target: Target, donated: Sequence[int]) -> Program | None:
    """The program of a graph in canonical form, if it was the last one that was lowered to be shown."""
    for latest in _latest:
        if latest[:3] == (digest(graph), target, tuple(donated)):
            return latest.program
    return None


def _sound(graph: Graph, target: Target, donated: Sequence[int], check: bool, use: Callable[[Lowered], T]) -> T:
    """`use(lowered graph)`, which prints or compiles it. If a pass or `use` finds a broken invariant: a warning, and
    `use` of the loops as they were built, without rewrites.

    With HARP_VERIFY the error is raised: those who set it look for such bugs.
    """
    try:
        return use(lower(graph, target, donated, check))
    except AssertionError as error:
        if settings.verify or check:
            raise
        reason = (str(error).splitlines() or ["an assertion"])[0]
    except RecursionError:
        raise NestingError(
            "the loops and branches of the program nest too deeply to be compiled: let a loop run over the levels, or "
            f"raise sys.setrecursionlimit, which is {sys.getrecursionlimit():,} here{where()}"
        ) from None
    file, line = user_site() or (__file__, 1)
    text = (
        f"harp has a bug: making loops fast broke an invariant ({reason}). The program runs with plain loops, which is "
        "correct and slower. Please report it, with the function and the shapes and dtypes of its arguments"
    )
    warnings.warn_explicit(text, RuntimeWarning, file, line)
    return use(lower(graph, target, donated, fast=False))
