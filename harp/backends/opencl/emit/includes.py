"""What a launch includes: headers, and functions of the library, each once in a source."""

from __future__ import annotations

from collections.abc import Iterable

from harp.backends.c_family.library_routines import KERNELS, PROCESS
from harp.backends.c_family.scalar import GENERATED


def includes(uses: Iterable[str]) -> list[str]:
    """The headers, and for each function of the library the template with its macros, once."""
    lines: list[str] = []
    for name in sorted({*uses} - {GENERATED, *PROCESS}):
        routine = KERNELS.get(name)
        if routine is None:
            lines.append(f'#include "{name}"')
            continue
        macros = dict(routine.macros)
        guard = "_".join(
            [
                "HAS",
                routine.header.partition("/")[0].upper(),
                *map(str, (macros["HARP_DTYPE"], macros.get("HARP_LANES", ""))),
            ]
        )
        lines += [f"#ifndef {guard}", f"#define {guard}"]
        lines += [f"#define {macro} {value}" for macro, value in routine.macros]
        lines += [f'#include "{routine.header}"']
        lines += [f"#undef {macro}" for macro, _ in routine.macros]
        lines += ["#endif"]
    return lines
