"""Names that harp.numpy does not have: whether NumPy has them, and which is near."""

import pytest

import harp.numpy as hnp


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (hnp, "concatenat", "no attribute 'concatenat'; the nearest name there is 'concatenate'"),
        (hnp, "polyfit", r"^harp\.numpy\.polyfit is not there yet"),
        (hnp, "qqqqqq", "has no attribute 'qqqqqq'$"),
        (
            hnp.linalg,
            "outr",
            r"module 'harp\.numpy\.linalg' has no attribute 'outr'; the nearest name there is 'outer'",
        ),
        (hnp.linalg, "eig", r"^harp\.numpy\.linalg\.eig is not there yet"),
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
