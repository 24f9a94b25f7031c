"""All cases, in the order of the table."""

from __future__ import annotations

from benchmarks.costs.case import Case
from benchmarks.costs.models import MODELS
from benchmarks.costs.moves import MOVES
from benchmarks.costs.numbers import NUMBERS

CASES: dict[str, Case] = {case.name: case for case in (*MODELS, *MOVES, *NUMBERS)}
