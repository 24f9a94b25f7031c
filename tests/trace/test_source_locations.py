"""What error messages share: numbers with their nouns, and the user's line."""

import sys

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import AxisError, ConcretizationError, ShapeError
from harp.trace.source_locations import kind_of, plural, short


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "axes", "0 axes"),
        (1, "axes", "1 axis"),
        (2, "axes", "2 axes"),
        (1, "indices", "1 index"),
        (1, "entries", "1 entry"),
        (1, "leaves", "1 leaf"),
        (1, "arguments", "1 argument"),
    ],
)
def test_nouns_follow_their_numbers(count, noun, text):
    assert plural(count, noun) == text


def test_large_numbers_are_not_written_out():
    assert short(12) == "12"
    assert short(-(2**300)) == "-2**300 or so"


def test_a_message_ends_with_the_expression_that_ran():
    x = hnp.zeros((2, 3))
    with pytest.raises(AxisError) as caught:
        hnp.sum(x[:1] * 2, axis=5) + 1
    assert str(caught.value).endswith(f"{__file__}:{_line()}: hnp.sum(x[:1] * 2, axis=5)")
    with pytest.raises(ShapeError) as caught:
        harp.jit(lambda x: x + hnp.ones((2, 4)) * "a much longer expression than a line of a message".count("a"))(x)
    assert str(caught.value).endswith(': x + hnp.ones((2, 4)) * "a much longer expression than a  ...')
    with pytest.raises(ConcretizationError, match=r"^`x > 0` asks") as caught:
        harp.jit(lambda x: x if x > 0 else -x)(1.0)
    assert str(caught.value).endswith(f"{__file__}:{_line()}")  # quoted already


def test_without_source_there_is_the_line_alone():
    names: dict = {"hnp": hnp}
    exec(compile("def f(x):\n    return hnp.sum(x, axis=5)", "elsewhere.py", "exec"), names)
    with pytest.raises(AxisError, match=r"\n  at elsewhere.py:2$"):
        names["f"](hnp.zeros(2))


def test_types_have_their_articles():
    assert list(map(kind_of, (1, "a", None, np.zeros(1), object()))) == [
        "an int",
        "a str",
        "None",
        "an ndarray",
        "an object",
    ]


def _line() -> int:
    """The line before the one that asks."""
    return sys._getframe(1).f_lineno - 1
