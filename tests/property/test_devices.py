"""Random programs agree on all devices: whole numbers bit by bit, floats as closely as with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import examples
from test_programs import SIZES, agree, fill, programs

import harp


@pytest.mark.filterwarnings("ignore:.*no C compiler")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool", "complex64"])
def test_programs_agree_with_numpy(device, dtype):
    @examples(6)
    @given(
        program=programs(np.dtype(dtype).kind), sizes=st.lists(SIZES, min_size=3, max_size=4), seed=st.integers(0, 99)
    )
    def check(program, sizes, seed):
        rng = np.random.default_rng(seed)
        compiled = harp.jit(lambda x, y: program.run([x, y], 0))
        for start in range(2):
            shape = tuple((sizes + sizes)[start : start + program.rank])
            inputs = [fill(rng, shape, dtype, not program.exact) for _ in range(2)]
            with np.errstate(all="ignore"):
                expected = program.run(inputs, 1)
            exact = program.exact and inputs[0].dtype.kind != "c"
            if exact or all(np.isfinite(e).all() for e in expected if e.dtype.kind in "fc"):
                for found, wanted in zip(compiled(*inputs), expected, strict=True):
                    agree(found, wanted, exact)

    check()
