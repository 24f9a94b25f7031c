"""What the processor of this machine can do, as the system says."""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterable
from pathlib import Path

_FACTS = ("model name", "flags", "Features", "CPU part")
# Of the names that Linux has for abilities of x86, those of instructions that compilers choose on their own. Others,
# such as those about the kernel, differ between machines that run the same programs.
_INSTRUCTIONS = re.compile(
    r"abm|adx|aes|bmi\d|cmov|cx16|cx8|f16c|fma4?|fxsr|gfni|lahf_lm|lm|mmx|mov\w*|pclmulqdq|pni|popcnt|sha_ni|sha\d+|"
    r"sm\d|ss?sse3|tbm|vaes|vpclmulqdq|xop|3dnowprefetch|(amx|avx|sse|apx)\w*"
)


def system() -> str:
    """What libraries are for: the system and the kind of processor."""
    return f"{sys.platform} {platform.machine()}"


def facts() -> str:
    """The processor and its abilities, for what is remembered of this machine alone."""
    lines = _cpuinfo()
    return "\n".join(line for line in lines if line.startswith(_FACTS)) if lines else platform.processor()


def features() -> tuple[str, ...]:
    """The abilities that a compiled program may need, in order; none where the system does not say."""
    for line in _cpuinfo():
        name, _, values = line.partition(":")
        if name.strip() == "flags":
            return tuple(sorted(word for word in {*values.split()} if _INSTRUCTIONS.fullmatch(word)))
        if name.strip() == "Features":
            return tuple(sorted({*values.split()}))
    return ()


def missing(wanted: Iterable[str]) -> list[str]:
    """Which of these abilities this processor lacks."""
    return sorted({*wanted} - {*features()})


def _cpuinfo() -> list[str]:
    """What Linux says of the first processor."""
    try:
        return Path("/proc/cpuinfo").read_text(errors="replace").split("\n\n")[0].splitlines()
    except OSError:
        return []
