"""What a reshape learns of sizes: the strongest simple facts, one program for all sizes that share them."""

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.numpy.reshaping import _groups
from harp.trace.graph.node import View, walk
from harp.trace.index.polynomial import as_index

# A function, shapes that one program serves, and guards of that program.
LEARNT = {
    "a number": (lambda x: x.reshape(x.shape[0], 4, 16), [(3, 64), (1, 64), (0, 64)], ["x_1 - 64 == 0"]),
    "the rest": (lambda x: x.reshape(x.shape[0], 4, -1), [(3, 64), (1, 8), (5, 0)], ["x_1 - 4*(x_1//4) == 0"]),
    "halves": (
        lambda x: x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2),
        [(4, 6), (2, 2), (0, 4), (6, 0)],
        ["x_0 - 2*(x_0//2) == 0", "x_1 - 2*(x_1//2) == 0"],
    ),
    "halves and the rest": (
        lambda x: x.reshape(x.shape[0] // 2, 2, -1, 2),
        [(4, 6), (2, 2), (6, 0)],
        ["x_0 - 2*(x_0//2) == 0", "x_1 - 2*(x_1//2) == 0"],
    ),
    "heads": (
        lambda x: x.reshape(x.shape[0], 12, x.shape[1] // 12),
        [(3, 24), (0, 12), (2, 0)],
        ["x_1 - 12*(x_1//12) == 0"],
    ),
    "turned": (lambda x: x.reshape(x.shape[1], x.shape[0]), [(3, 4), (1, 1), (0, 2), (2, 0)], []),
    "of a vector": (lambda x: x.reshape(4, -1)[:, :1], [(4,), (12,), (8,)], ["x_0 - 4*(x_0//4) == 0"]),
}


@pytest.mark.parametrize("name", LEARNT)
def test_guards_and_programs(name):
    function, shapes, guards = LEARNT[name]
    compiled = harp.jit(lambda x: function(x) * 1.0)
    for shape in shapes:
        x = np.arange(float(np.prod(shape))).reshape(shape)
        npt.assert_array_equal(compiled(x), function(x))
    known = {str(guard).split("  (")[0] for guard in compiled.signatures[0].guards}
    assert compiled.compilations == 1 and known >= set(guards)
    assert not any(guard.endswith("== 0") for guard in known - set(guards))


def test_other_sizes_have_a_program_of_their_own():
    split = harp.jit(lambda x: x.reshape(x.shape[0], 4, 16) * 1.0)
    for shape in ((3, 64), (0, 5)):
        assert split(np.ones(shape)).shape == (shape[0], 4, 16)
    with pytest.raises(harp.errors.ShapeError, match="number of elements"):
        split(np.ones((3, 65)))
    assert split.compilations == 2


def test_splitting_rows_and_columns_is_affine():
    """So the view has an inverse: a gradient of max-pooling costs what pooling does."""

    def pooled(x):
        return hnp.sum(hnp.max(x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2), axis=(1, 3)) ** 2)

    graph = harp.jit(harp.grad(pooled)).lower(np.ones((4, 6))).graph
    assert max(len(node.shape) for node in walk(graph.outputs)) == 4
    assert not any("//s" in repr(node.index) for node in walk(graph.outputs) if isinstance(node, View))
    x = np.random.default_rng(0).normal(size=(4, 6))
    blocks = x.reshape(2, 2, 3, 2)
    wanted = np.where(blocks == blocks.max(axis=(1, 3), keepdims=True), 2 * blocks, 0).reshape(4, 6)
    npt.assert_allclose(harp.jit(harp.grad(pooled))(x), wanted)


@given(st.lists(st.integers(1, 6), max_size=4), st.lists(st.integers(1, 6), max_size=4))
def test_groups_have_as_many_elements(old, new):
    groups = _groups(tuple(map(as_index, old)), tuple(map(as_index, new)))
    for side, whole in ((0, old), (1, new)):
        sizes = [p.constant for group in groups for p in group[side]]
        assert sizes == whole[: len(sizes)]
    for group in groups:
        assert np.prod([p.constant for p in group.old]) == np.prod([p.constant for p in group.new])
