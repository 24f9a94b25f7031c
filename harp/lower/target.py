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

    # Sizes of blocks, in elements, rows or columns, none of which changes a bit of a result. Each was the best, or as
    # good as the best, on AMD (Zen 3 to 5; AVX2 and AVX-512; 0.5 and 1 MB of L2) and Intel (Sapphire Rapids; 2 MB).
    panel_depth: int = 256  # rows of a packed panel of a product: two vectors wide, it stays in the L1 cache
    panel_height: int = 512  # rows that one panel serves: they make light of packing it, and are enough for threads
    strip: int = 512  # columns that one row of accumulators serves while it streams through memory
    wide_strip: int = 2048  # the same where there are enough columns for all threads: a part of the L1 cache
    block_rows: int = 64  # rows of two products in a row: two arrays of some thousand columns fit the L2 cache
    tile_bytes: int = 1 << 17  # of the arrays between kernels that run block by block: a quarter of the least L2 cache
    part: int = 4096  # elements of a vector loop that a thread takes at a time: a few microseconds of work
    scatter_strip: int = 128  # columns that a thread takes of updates at places that are data

    # On devices, for work-items and cores that share rows.
    sorted_together: int = 2048  # elements of the shortest row that work-items sort together: merging costs
    sorted_by_cores: int = 1 << 16  # the same for cores
    least_sorted: int = 32  # the same for work-items where there are not so many rows:
    many_rows: int = 4096
    searched: int = 16  # values that a work-item searches for

    def lanes(self, itemsize: int) -> int:
        """The elements of a vector; one if they are larger than a vector."""
        return max(self.vector_bytes // itemsize, 1)

    @property
    def tile_rows(self) -> int:
        """Rows of a register tile of two vectors each: 16 of the 32 registers of AVX-512, 12 of 16 of AVX2."""
        return {64: 8, 32: 6}.get(self.vector_bytes, 4)
