"""A name for a graph's content, the same in every process."""

from __future__ import annotations

import hashlib

from harp.trace.graph.graph import Graph, to_text


def digest(graph: Graph) -> bytes:
    """The same bytes for graphs in canonical form that are equal; see `harp.trace.sizes.signature.canonical`."""
    return hashlib.sha256(to_text(graph).encode()).digest()
