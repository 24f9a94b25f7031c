"""Where barriers stand in the code of groups of work-items, and which memory they have."""

from __future__ import annotations

import pytest

pytest.importorskip("pyopencl")

from harp.backends.opencl.emit.render import launch
from harp.errors import VerificationError
from harp.lower.device.groups import items
from harp.lower.loopir.loops import Alloc, Buffer, If, Kernel, Load, LoopKind, Space, Store
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
    text = _text(launch(Kernel("k", body, (out,), (size,)), body, 0, ()))
    first, second = text.split("if (s0", 1)[1].split("} else {", 1)
    for one in (first, second):
        assert one.index("barrier(") < one.index("for (")


def _text(launched):
    return "\n".join(line.text for line in launched.lines)


def _kept_row(*extents, own=False):
    """For each iteration of a grid, a row that a group keeps: e[t] = t; out[..., t] = e[t]."""
    fresh = FreshLoops(Kernel("k", sequence(())))
    places = [fresh.loop(extent, LoopKind.GRID) for extent in extents]
    (first, t), (last, u) = items(fresh, of(SIZE)), items(fresh, of(SIZE))
    out = Buffer("out", f64, (*map(as_index, extents), of(SIZE)), Space.OUTPUT)
    e = Buffer("e", f64, (of(SIZE),), Space.WORKSPACE)
    store = Store(out, (*(i for _, i in places), u), Load(e, (u,)))
    inner = Alloc(Buffer("own", f64, (of(SIZE),), Space.THREAD), store) if own else store
    body = Alloc(e, sequence((nest(first, Store(e, (t,), const(1, f64))), nest(last, inner))))
    whole = nest((head for heads, _ in places for head in heads), body)
    return launch(Kernel("k", whole, (out,), (SIZE,)), whole, 0, ())


SIZE = Symbol(0, 0, "s0")


def test_groups_with_a_workspace_take_turns():
    """Before a row is stored to, all are done with the one before it."""
    code = _kept_row(5, 7)
    assert code.in_turns and code.items and code.room == (of(SIZE) * 8,)
    assert "mine = harp_room + get_group_id(0) * (harp_slot(8*s0));" in _text(code)
    before, inside = _text(code).split("for (int64_t turn = get_group_id(0); turn < 5*7; turn += get_num_groups(0)) {")
    assert "barrier" not in before and "= flat % (7);" in inside
    parts = ["barrier(", "workspace0[i2] = ", "barrier(", "out0["]
    places = [0]
    for part in parts:
        places.append(inside.index(part, places[-1] + 1))
    assert "global_id" not in _text(code)


def test_groups_without_loops_of_a_grid_have_one_turn():
    assert "turn < 1;" in _text(_kept_row())


def test_a_launch_has_memory_of_one_kind():
    with pytest.raises(VerificationError, match="not both"):
        _kept_row(5, own=True)
