"""The machine as data: all that lowering may know of it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Target:
    """Vector width in bytes, whether a fused multiply-add is one instruction, cores, and bytes of the L1 cache and of a
    cache line, as the compiler reports them. With a `grid`, loops are launched for the work-items of a device. On a
    `wide` device these are lanes of vectors, and neighbours should read memory side by side; `group` is the most
    work-items of a group, and `sub_group` the size of sub-groups, whose work-items read each other's variables, that
    kernels can ask for, or 0. Else each work-item has a core with vectors of its own."""

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
        """The elements of a vector; one if they are larger than a vector."""
        return max(self.vector_bytes // itemsize, 1)

    @property
    def tile_rows(self) -> int:
        """Rows of a register tile of two vectors each: 16 of the 32 registers of AVX-512, 12 of 16 of AVX2."""
        return {64: 8, 32: 6}.get(self.vector_bytes, 4)
