"""Names that harp does not have: whether NumPy or JAX has them, and which is near."""

import pytest

import harp
import harp.numpy as hnp


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (hnp, "concatenat", "no attribute 'concatenat'; the nearest name there is 'concatenate'"),
        (hnp, "nditer", r"^harp\.numpy\.nditer is not there yet"),
        (hnp, "qqqqqq", "has no attribute 'qqqqqq'$"),
        (hnp, "_concatenate", "has no attribute '_concatenate'$"),  # tools ask each module for many such names
        (
            hnp.linalg,
            "outr",
            r"module 'harp\.numpy\.linalg' has no attribute 'outr'; the nearest name there is 'outer'",
        ),
        (hnp, "random", r"^harp\.numpy\.random is not there: write harp\.random, with keys"),
        (
            harp,
            "value_and_gradient",
            "has no attribute 'value_and_gradient'; the nearest name there is 'value_and_grad'",
        ),
        (harp, "jacobian", r"^harp\.jacobian is not there: write jacfwd or jacrev"),
        (harp, "block_until_ready", r"^harp\.block_until_ready is not there: write x\.block_until_ready\(\)"),
        (harp, "linear_transpose", r"^harp\.linear_transpose is not there: it is harp\.jax\.linear_transpose"),
        (harp, "experimental", r"^harp\.experimental is not there: it is harp\.jax\.experimental"),
        (harp, "tree_map", r"^harp\.tree_map is not there: write harp\.tree\.map"),
        (harp, "fft", r"^harp\.fft is not there: write harp\.numpy\.fft$"),
        (harp, "sin", r"^harp\.sin is not there: write harp\.numpy\.sin$"),
        (harp, "tensor", r"write harp\.numpy\.array"),
        (harp.nn, "Linear", r"a layer is a function of parameters that you keep; docs/from-pytorch\.md"),
        (harp.nn, "functional", r"harp\.nn and harp\.numpy"),
        (harp.random, "seed", r"^harp\.random\.seed is not there: write key"),
        (harp.random, "rand", r"^harp\.random\.rand is not there: write uniform\(key, shape\)"),
        (harp, "no_grad", r"harp\.stop_gradient stops them"),
        (hnp, "savetxt", r"^harp\.numpy\.savetxt is not there: use NumPy's"),
        (harp.random, "norml", r"module 'harp\.random' has no attribute 'norml'; the nearest name there is 'normal'"),
        (harp.lax, "fori", r"module 'harp\.lax' has no attribute 'fori'; the nearest name there is 'fori_loop'"),
    ],
)
def test_the_message(module, name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(module, name)
    assert not hasattr(module, name)


def test_python_adds_no_second_suggestion():
    with pytest.raises(AttributeError) as caught:
        hnp.concatenat
    assert caught.value.obj is None and caught.value.name == "concatenat"
