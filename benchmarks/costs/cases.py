"""All cases, in the order of the table."""

from __future__ import annotations

from benchmarks.costs.case import Case, Group
from benchmarks.costs.models import MODELS
from benchmarks.costs.moves import MOVES
from benchmarks.costs.numbers import NUMBERS
from benchmarks.costs.reports import REPORTS

CASES: dict[str, Case] = {case.name: case for case in (*MODELS, *MOVES, *NUMBERS, *REPORTS)}
COSTS = Group(
    "costs", "What small programs cost at sizes n, 2n and 4n beside the best of NumPy and JAX, on one thread.", CASES
)
