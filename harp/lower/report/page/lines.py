"""What the panes of the page are made of."""

from __future__ import annotations

from typing import NamedTuple


class Line(NamedTuple):
    """A line of a pane.

    `name` is where a link leads to. Who picks the line is shown all lines, in all panes, whose `keys` have one of its
    `picks`; what keys there are says `links.py`. `calls` are the calls of the program that it has a part in, where they
    are not those of its section.
    """

    name: str
    text: str
    keys: tuple[str, ...] = ()
    picks: tuple[str, ...] = ()
    calls: tuple[int, ...] = ()


class Section(NamedTuple):
    """Lines under a title, which belong to calls; a section of no title is always open."""

    title: str
    lines: tuple[Line, ...]
    calls: tuple[int, ...] = ()
    note: str = ""
    is_open: bool = True


class Pane(NamedTuple):
    """One stage. `kind` names it in the style of the page, and what it is written in."""

    kind: str
    title: str
    sections: tuple[Section, ...]

    @property
    def lines(self) -> list[Line]:
        """Of all sections in order."""
        return [line for section in self.sections for line in section.lines]
