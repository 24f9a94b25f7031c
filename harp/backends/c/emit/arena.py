"""Scratch memory of a program: one arena, laid out from the sizes at the call."""

from __future__ import annotations

from collections.abc import Mapping

from harp.backends.c_family.index import IndexPrinter
from harp.backends.c_family.values import Lines
from harp.lower.loopir.program import Program, Slot
from harp.trace.index.polynomial import Atom, Fold, Index

# The arena of a program that needs no more than this lives on the stack.
STACK_BYTES = 1 << 14
# What declares the functions that take and give memory, and what defines them.
HEADER, DEFINITION = "memory.h", "memory_default.h"


def slot_size(slot: Slot, index: IndexPrinter) -> str:
    """The bytes of a slot: the largest of its buffers, rounded up."""
    text = ""
    for size in dict.fromkeys(slot.sizes):
        text = f"harp_larger({text}, {index.text(size)})" if text else index.text(size)
    return f"harp_slot({text})"


def magnitude(p: Index, names: Mapping[Atom, str]) -> str:
    """A bound on the absolute value of `p` and of every partial result, as arithmetic in doubles: it cannot wrap."""
    return Fold(_total, _term, "({} + {})".format, "({})".format, names.__getitem__)(p)


def _total(terms: list[str]) -> str:
    return " + ".join(terms) or "0.0"


def _term(coefficient: int, factors: list[str]) -> str:
    return "*".join(factors if abs(coefficient) == 1 and factors else [f"{abs(coefficient)}.0", *factors])


def scratch_lines(program: Program, names: Mapping[Atom, str]) -> Lines:
    """The body of `harp_scratch`: bytes of the arena, or -1 where they would overflow."""
    lines = Lines()
    if not program.scratch:
        lines.add("return 0;")
        return lines
    bounds: dict[Atom, str] = {s: f"(double){names[s]}" for s in program.sizes}
    lines.add("/* The same sums in doubles, which do not wrap, and without cancellation. */")
    lines.add("double most = 0.0;")
    for size in dict.fromkeys(size for slot in program.scratch for size in slot.sizes):
        lines.add(f"most += {magnitude(size, bounds)};")
    lines.add("if (!(most < 0x1p62)) return -1;")
    index = IndexPrinter(names.__getitem__)
    lines.add("int64_t bytes = 0;")
    for slot in program.scratch:
        lines.add(f"bytes += {slot_size(slot, index)};")
    lines.add("return bytes;")
    return lines
