"""Compiles the kernels of a program in one run of the compiler, for most of the time of many is that of its start."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from harp.backends.protocol import Source, Unit
from harp.backends.toolchain import build

_NAME = re.compile(r"#define harp_kernel (\w+)\n")


def _own(text: str) -> str:
    """A kernel under the name that others call it by; its parts are called after it."""
    found = _NAME.search(text)
    return text if found is None else text.replace(found[0], "").replace("harp_kernel", found[1])


def joined(source: Source) -> Source:
    """One unit for all kernels with the same flags."""
    groups: dict[tuple[str, ...], list[Unit]] = {}
    for unit in source.units:
        if unit.kernel:
            groups.setdefault(unit.flags, []).append(unit)
    kernels = (Unit("".join(_own(unit.text) for unit in group), flags) for flags, group in groups.items())
    return Source((*kernels, *(unit for unit in source.units if not unit.kernel)))


@contextlib.contextmanager
def in_one_run() -> Iterator[None]:
    make = build._make
    build._make = lambda source, *given: make(joined(source), *given)
    try:
        yield
    finally:
        build._make = make
