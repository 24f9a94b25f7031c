"""All rows, in the order of the table."""

from __future__ import annotations

from benchmarks.loops.derivatives import DERIVATIVES
from benchmarks.loops.grids import GRIDS
from benchmarks.loops.matrices import MATRICES
from benchmarks.loops.scans import SCANS
from benchmarks.workload import Comparison

LOOPS: dict[str, Comparison] = {row.name: row for row in (*SCANS, *GRIDS, *MATRICES, *DERIVATIVES)}
