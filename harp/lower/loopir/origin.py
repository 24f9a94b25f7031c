"""The source line and the node of each load and store of a kernel, and why an array is changed in place or begins as a
copy: tables beside the loop nests, filled by `build` and by the passes that choose memory."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from harp.lower.loopir.loops import Buffer, Load, indirect_loads
from harp.trace.graph.node import Node
from harp.trace.source_locations import Site


class Storage(Enum):
    """Why an array begins as a copy, or needs none."""

    OF_ARGUMENT = "begins as a copy of an argument, which keeps its elements unless it is donated"
    OF_CAPTURED = "begins as a copy of a captured array, which keeps its elements"
    OF_RESULT = "begins as a copy of an array that is a result, too"
    OF_READ = "begins as a copy of an array that is read after the update"
    OF_LOOP = "begins as a copy of what the loop or branch starts from"
    OF_OUTSIDE = "begins in each step as a copy of an array from outside of the loop or branch"
    COPY = "is a copy of an argument or of another result: results share no memory with others"
    UPDATED = "is the array that the update changes: nothing reads its old elements later"
    UPDATED_PARTS = "is the array that the update changes, after the parts that are read later were copied"
    DONATED = "is the memory of a donated argument"
    IN_PLACE = "each step changes it in place: old elements are read before they are changed"
    PARTS = "each step changes it in place, after it has copied the parts that it reads later"
    TURNS = "two arrays take turns: a step reads old elements after it has changed some"
    HANDS_ON = "arrays take turns: another value that the loop carries takes the old elements over"
    HANDED_ON = "takes the elements of another value that the loop carries over"


_ORDER = {storage: number for number, storage in enumerate(Storage)}
# Those of the kernel that fills the array; it is dropped if another array takes the place of this one.
_OF_FILLING = {Storage.OF_ARGUMENT, Storage.OF_CAPTURED, Storage.OF_RESULT, Storage.OF_READ, Storage.OF_LOOP}


class Origins:
    """Lines of loads and stores by buffer; loads that a pass has rewritten are found by their buffer, too."""

    def __init__(self, sites: Mapping[Node, Site]) -> None:
        self._sites = sites
        self._reads: dict[Load | Buffer, Site] = {}
        self._stores: dict[Buffer, Site] = {}
        self._nodes: dict[Buffer | str, dict[Node, None]] = {}
        self._storage: dict[Buffer, dict[Storage, None]] = {}

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

    def note_storage(self, buffer: Buffer, *storage: Storage) -> None:
        """Note why an array of the program begins as a copy, or needs none."""
        self._storage.setdefault(buffer, {}).update(dict.fromkeys(storage))

    def note_moved(self, old: Buffer, new: Buffer) -> None:
        """Note that the elements of one buffer are in the other from now on."""
        self._nodes[new.name] = self._nodes.pop(old.name, {}) | self._nodes.get(new.name, {})
        kept = [storage for storage in self.storage_of(new) if storage not in _OF_FILLING]
        self._storage[new] = dict.fromkeys((*self.storage_of(old), *kept))
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

    def storage_of(self, buffer: Buffer) -> tuple[Storage, ...]:
        """Why the array begins as a copy, or needs none; nothing if it is computed as a whole."""
        return tuple(sorted(self._storage.get(buffer, ()), key=_ORDER.__getitem__))

    def nodes_in(self, buffer: Buffer) -> tuple[Node, ...]:
        """The nodes whose elements are in a buffer of the program, or in a variable of a kernel.

        Arrays of a program are known by name: a kernel's private part of one is smaller, but has its name.
        """
        return tuple(self._nodes.get(buffer) or self._nodes.get(buffer.name) or ())
