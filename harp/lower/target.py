"""The hardware as data: all that lowering may know about the machine."""

from __future__ import annotations

import attrs


@attrs.frozen
class Target:
    """Vector width in bytes, whether a fused multiply-add is one instruction, cores, and cache sizes in bytes."""

    vector_bytes: int = 16
    fma: bool = False
    cores: int = 1
    l1: int = 32 << 10
    l2: int = 512 << 10
