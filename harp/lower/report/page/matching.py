"""Which loop of the C is which loop of the loop nests.

Loops that follow each other have names in common, so a loop is known by the loops round it, its name, and how many
of that name come before it there. Where the C has more or fewer of them, because it prints a loop twice or not at all,
all that are called so are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Head(NamedTuple):
    """Where a loop begins: its name, how many loops are round it, and the number of the innermost one of them."""

    name: str
    depth: int
    inside: int = -1


def matched(*texts: Sequence[Head]) -> list[list[int]]:
    """A number for each head of each text, the same for those that are the same loop."""
    found: list[dict[int, int]] = [{-1: -1} for _ in texts]
    numbers: dict[tuple[int, str, int], int] = {}
    for depth in range(max((head.depth for text in texts for head in text), default=-1) + 1):
        places = [_places(text, depth, known) for text, known in zip(texts, found, strict=True)]
        for place in dict.fromkeys(key for own in places for key in own):
            several = len({len(own.get(place, ())) for own in places}) > 1
            for own, known in zip(places, found, strict=True):
                for at, head in enumerate(own.get(place, ())):
                    known[head] = numbers.setdefault((*place, 0 if several else at), len(numbers))
    return [[known[k] for k in range(len(text))] for text, known in zip(texts, found, strict=True)]


def _places(text: Sequence[Head], depth: int, known: dict[int, int]) -> dict[tuple[int, str], list[int]]:
    """The heads at a depth by the loop round them and their name."""
    found: dict[tuple[int, str], list[int]] = {}
    for k, head in enumerate(text):
        if head.depth == depth:
            found.setdefault((known[head.inside], head.name), []).append(k)
    return found


class Opened:
    """The loops that are open while one goes through the lines of a text, by their indentation."""

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self._open: list[tuple[int, int]] = []  # the indentation of a head, and its number

    def close(self, indentation: int) -> None:
        """A line that is indented so far stands in loops with less indentation only."""
        while self._open and self._open[-1][0] >= indentation:
            self._open.pop()

    def enter(self, indentation: int, name: str) -> None:
        """A loop begins; its head is a line of it."""
        inside = self._open[-1][1] if self._open else -1
        self._open.append((indentation, len(self.heads)))
        self.heads.append(Head(name, len(self._open) - 1, inside))

    @property
    def now(self) -> tuple[int, ...]:
        """The numbers of the loops that are open, from the outside in."""
        return tuple(number for _, number in self._open)


def loops_of(lines: Iterable[Sequence[int]], numbers: Sequence[int]) -> list[tuple[int, ...]]:
    """The loops of lines by the numbers that `matched` gave them."""
    return [tuple(numbers[head] for head in line) for line in lines]
