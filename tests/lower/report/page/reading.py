"""A page as what is on it: lines by pane, with their keys, as a browser reads them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import NamedTuple


class PageLine(NamedTuple):
    """A line of a pane, or a row of the table of costs, whose pane has no name."""

    pane: str
    name: str
    text: str
    keys: tuple[str, ...]
    picks: tuple[str, ...]
    calls: tuple[str, ...]
    marks: tuple[str, ...]  # what the script says of it


class _Reader(HTMLParser):
    VOID = frozenset({"meta"})

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.names: list[str] = []
        self.lines: list[PageLine] = []
        self.title = ""
        self._open: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.tags.add(tag)
        self.attributes |= given.keys()
        self.names += [given["id"]] if "id" in given else []
        if tag in self.VOID:
            return
        self._open.append((tag, given))
        if (tag == "div" and self._is_in("code")) or tag == "tr":
            pane = next((a["id"] for _, a in self._open if "pane" in a.get("class", "").split()), "")
            listed = [tuple(given.get(name, "").split()) for name in ("data-k", "data-p", "data-c", "class")]
            keys, picks, calls, marks = listed
            self.lines.append(PageLine(pane, given.get("id", ""), "", keys, picks or keys, calls, marks))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        tags = [tag for tag, _ in self._open]
        if "h1" in tags:
            self.title += data
        if (self._is_in("code") and "div" in tags[tags.index("main") + 4 :]) or "tr" in tags:
            self.lines[-1] = self.lines[-1]._replace(text=self.lines[-1].text + data)

    def _is_in(self, name: str) -> bool:
        return any(name in a.get("class", "").split() for _, a in self._open[:-1])


class Read(NamedTuple):
    """A page."""

    title: str
    lines: list[PageLine]
    names: list[str]
    tags: set[str]
    attributes: set[str]

    def pane(self, name: str) -> list[PageLine]:
        """The lines of a pane."""
        return [line for line in self.lines if line.pane == name]

    def named(self, name: str) -> PageLine:
        """The line that a link leads to."""
        (line,) = (line for line in self.lines if line.name == name)
        return line

    def picked(self, line: PageLine) -> list[PageLine]:
        """What is shown to those who pick the line."""
        return [other for other in self.lines if not set(line.picks).isdisjoint(other.keys)]


def read(page: str) -> Read:
    """What is on a page."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return Read(reader.title, reader.lines, reader.names, reader.tags, reader.attributes)
