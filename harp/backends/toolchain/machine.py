"""The CPU of this machine, as the system describes it."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_FACTS = ("model name", "flags", "Features", "CPU part")
# Linux's names of x86 features whose instructions compilers choose on their own. Other names, such as those about the
# kernel, differ between machines that run the same programs.
_INSTRUCTIONS = re.compile(
    r"abm|adx|aes|bmi\d|cmov|cx16|cx8|f16c|fma4?|fxsr|gfni|lahf_lm|lm|mmx|mov\w*|pclmulqdq|pni|popcnt|sha_ni|sha\d+|"
    r"sm\d|ss?sse3|tbm|vaes|vpclmulqdq|xop|3dnowprefetch|(amx|avx|sse|apx)\w*"
)


def system() -> str:
    """The target of libraries: the system and the kind of CPU."""
    return f"{sys.platform} {platform.machine()}"


def facts() -> str:
    """The CPU and its features, for what is remembered about this machine only."""
    lines = _cpuinfo()
    return "\n".join(line for line in lines if line.startswith(_FACTS)) if lines else platform.processor()


def features() -> tuple[str, ...]:
    """The CPU features that a compiled program may need, sorted; none if the system does not list them."""
    for line in _cpuinfo():
        name, _, values = line.partition(":")
        if name.strip() == "flags":
            return tuple(sorted(word for word in {*values.split()} if _INSTRUCTIONS.fullmatch(word)))
        if name.strip() == "Features":
            return tuple(sorted({*values.split()}))
    return ()


def missing(wanted: Iterable[str]) -> list[str]:
    """The features that this CPU lacks."""
    return sorted({*wanted} - {*features()})


def _cpuinfo() -> list[str]:
    """Linux's description of the first CPU."""
    try:
        return Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n")[0].splitlines()
    except OSError:
        return []
