"""How a program is compiled."""

from __future__ import annotations

from typing import NamedTuple


class CompileOptions(NamedTuple):
    """Optimisation level (0 to 3), debug information, and further flags for the compiler. Part of the cache key."""

    optimize: int = 2
    debug: bool = False
    extra_flags: tuple[str, ...] = ()

    def flags(self) -> tuple[str, ...]:
        """The compiler's flags for these options."""
        return (f"-O{self.optimize}", *(("-g",) if self.debug else ()), *self.extra_flags)
