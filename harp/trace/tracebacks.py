"""Tracebacks without the frames of harp: what the user wrote, the line that failed last."""

from __future__ import annotations

import os
from types import TracebackType

from harp.errors import HarpError
from harp.trace.source_locations import is_of_harp


def shorten(error: Exception) -> None:
    """Take the frames of harp out of the traceback, unless HARP_TRACEBACK is "full", or the error is a mistake of harp:
    then all of them matter."""
    if os.environ.get("HARP_TRACEBACK") == "full":
        return
    frames: list[TracebackType] = []
    step = error.__traceback__
    while step is not None:
        frames.append(step)
        step = step.tb_next
    if not frames or (is_of_harp(frames[-1].tb_frame) and not isinstance(error, HarpError)):
        return
    kept: TracebackType | None = None
    for step in reversed(frames):
        if not is_of_harp(step.tb_frame):
            kept = TracebackType(kept, step.tb_frame, step.tb_lasti, step.tb_lineno)
    error.__traceback__ = kept
