"""The arrays of a program as text: where each one is, and why it begins as a copy or is changed in place."""

from __future__ import annotations

import os

from harp.lower.loopir.loops import Buffer
from harp.lower.loopir.program import Program
from harp.lower.loopir.text import declaration
from harp.lower.schedule.build import Built


def arrays(built: Built, program: Program) -> str:
    """A line for each result and each array between kernels; an argument that is only read has none."""
    kept = {buffer.name for slot in program.scratch for buffer in slot.buffers}
    listed = [*built.outputs, *(buffer for buffer in built.scratch if buffer.name in kept)]
    rows = [(declaration(buffer), _line(built, buffer), _storage(built, buffer)) for buffer in listed]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _line(built: Built, buffer: Buffer) -> str:
    site = built.origins.of_store(buffer)
    return f"{os.path.basename(site[0])}:{site[1]}" if site else "-"


def _storage(built: Built, buffer: Buffer) -> str:
    return "; ".join(storage.value for storage in built.origins.storage_of(buffer)) or "is computed as a whole"
