"""Where barriers stand in the code of groups of work-items."""

from __future__ import annotations

import pytest

pytest.importorskip("pyopencl")

from harp.backends.opencl.emit.render import launch
from harp.lower.device.groups import items
from harp.lower.loopir.loops import Alloc, Buffer, If, Kernel, Load, Space, Store
from harp.lower.loopir.nests import FreshLoops, nest, sequence
from harp.trace.index.polynomial import ZERO, Symbol, as_index, of
from harp.trace.scalar.dtypes import f64
from harp.trace.scalar.expr import const


def test_each_branch_has_its_barriers():
    """Both store to what work-items may still read that are behind."""
    size = Symbol(0, 0, "s0")
    out = Buffer("out", f64, (as_index(9),), Space.OUTPUT)
    parts, acc = Buffer("parts", f64, (as_index(9),), Space.GROUP), Buffer("acc", f64, (), Space.REG)
    fresh = FreshLoops(Kernel("k", sequence(())))

    def filled(value):
        head, t = items(fresh, 9)
        return nest(head, Store(parts, (t,), const(value, f64)))

    branch = If((of(size) - 3,), filled(1), filled(2))
    shown = Store(out, (ZERO,), Load(parts, (ZERO,)))
    body = Alloc(parts, Alloc(acc, sequence((filled(0), Store(acc, (), Load(parts, (ZERO,))), branch, shown))))
    text = launch(Kernel("k", body, (out,), (size,)), body, 0).text
    first, second = text.split("if (s0", 1)[1].split("} else {", 1)
    for one in (first, second):
        assert one.index("barrier(") < one.index("for (")
