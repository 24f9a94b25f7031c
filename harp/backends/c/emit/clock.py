"""When the calls of a timed program began and ended, noted in an array of the caller."""

from __future__ import annotations

from harp.backends.c_family.values import Lines

_HEADER = "clock.h"
_NAME = "times"
# The array, by its name and its declaration.
PARAMETER = (_NAME, f"void *restrict {_NAME}")


def note(lines: Lines, place: int) -> None:
    """Put the time into this place of the array."""
    lines.add(f"((int64_t *){_NAME})[{place}] = harp_now();")
    lines.uses.add(_HEADER)
