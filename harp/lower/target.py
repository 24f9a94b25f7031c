"""The machine as data: all that lowering may know of it, and what follows from that."""

from __future__ import annotations

import attrs


@attrs.frozen
class Target:
    """Vector width in bytes, whether a fused multiply-add is one instruction, cores, and bytes of the L1 cache
    and of one of its lines. The compiler is asked for them once for a machine. With a `grid`, loops are launched for
    the work-items of a device; it is `wide` where these are the lanes of vectors, and memory is read best by neighbours
    at the same time, and then a `group` has so many at most, and kernels can ask for sub-groups of `sub_group`, or of
    nothing (0): work-items that read each other's variables. Else a work-item has a core with vectors of its own."""

    vector_bytes: int = 16
    fma: bool = False
    cores: int = 1
    l1: int = 32 << 10
    line: int = 64
    grid: bool = False
    wide: bool = False
    group: int = 0
    sub_group: int = 0

    def lanes(self, itemsize: int) -> int:
        """Elements of a vector; one, if they are larger than that."""
        return max(self.vector_bytes // itemsize, 1)

    @property
    def tile_rows(self) -> int:
        """Rows of a register tile of two vectors each: 16 of the 32 registers of AVX-512, 12 of 16 of AVX2."""
        return {64: 8, 32: 6}.get(self.vector_bytes, 4)
