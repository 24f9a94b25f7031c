"""All cases, in the order of the table."""

from __future__ import annotations

from itertools import chain

from benchmarks.blind.attention import ATTENTION
from benchmarks.blind.contractions import CONTRACTIONS
from benchmarks.blind.elementwise import ELEMENTWISE
from benchmarks.blind.joins import JOINS
from benchmarks.blind.reductions import REDUCTIONS
from benchmarks.blind.scans import SCANS
from benchmarks.blind.searches import SEARCHES
from benchmarks.blind.stencils import STENCILS
from benchmarks.blind.transposes import TRANSPOSES
from benchmarks.costs.case import Case, Group

KINDS = (ATTENTION, SCANS, JOINS, STENCILS, CONTRACTIONS, SEARCHES, REDUCTIONS, TRANSPOSES, ELEMENTWISE)
CASES: dict[str, Case] = {case.name: case for case in chain(*KINDS)}
BLIND = Group("blind", "Programs as users of NumPy write them, at sizes n, 2n and 4n beside NumPy and JAX.", CASES)
