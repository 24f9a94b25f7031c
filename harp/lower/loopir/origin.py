"""The source line and the node of each load and store of a kernel: a table beside the loop nests, filled by `build`."""

from __future__ import annotations

from collections.abc import Mapping

from harp.lower.loopir.loops import Buffer, Load, indirect_loads
from harp.trace.graph.node import Node
from harp.trace.source_locations import Site


class Origins:
    """Lines of loads and stores by buffer; loads that a pass has rewritten are found by their buffer, too."""

    def __init__(self, sites: Mapping[Node, Site]) -> None:
        self._sites = sites
        self._reads: dict[Load | Buffer, Site] = {}
        self._stores: dict[Buffer, Site] = {}
        self._nodes: dict[Buffer | str, dict[Node, None]] = {}

    def note_load(self, load: Load, *nodes: Node) -> None:
        """Note that a load is made for the first of these nodes that has a line."""
        site = self._first(nodes)
        if site is not None:
            self._reads.setdefault(load, site)
            for inner in (load, *indirect_loads((*load.index, *load.conditions))):
                self._reads.setdefault(inner.buffer, site)

    def note_store(self, buffer: Buffer, node: Node) -> None:
        """Note that the elements of the node are stored to the buffer."""
        self._nodes.setdefault(buffer.name, {})[node] = None
        site = self._first((node,))
        if site is not None:
            self._stores.setdefault(buffer, site)

    def note_variable(self, buffer: Buffer, node: Node) -> None:
        """Note that the variable of a kernel holds elements of the node."""
        self._nodes.setdefault(buffer, {})[node] = None

    def note_line(self, place: Load | Buffer, site: Site | None) -> None:
        """Note the line of a load, or of stores to a buffer, which the step of a loop knew."""
        if site is None:
            return
        if isinstance(place, Load):
            self._reads.setdefault(place, site)
        else:
            self._stores.setdefault(place, site)

    def note_moved(self, old: Buffer, new: Buffer) -> None:
        """Note that the elements of one buffer are in the other from now on."""
        self._nodes[new.name] = self._nodes.pop(old.name, {}) | self._nodes.get(new.name, {})
        for sites in (self._reads, self._stores):
            site = sites.get(old)
            if site is not None:
                sites.setdefault(new, site)

    def _first(self, nodes: tuple[Node, ...]) -> Site | None:
        return next((self._sites[node] for node in nodes if node in self._sites), None)

    def of_load(self, load: Load) -> Site | None:
        """The line of a load, or of another load of the same buffer."""
        return self._reads.get(load) or self._reads.get(load.buffer)

    def of_store(self, buffer: Buffer) -> Site | None:
        """The line of stores to a buffer."""
        return self._stores.get(buffer)

    def nodes_in(self, buffer: Buffer) -> tuple[Node, ...]:
        """The nodes whose elements are in a buffer of the program, or in a variable of a kernel.

        Arrays of a program are known by name: a kernel's private part of one is smaller, but has its name.
        """
        return tuple(self._nodes.get(buffer) or self._nodes.get(buffer.name) or ())
