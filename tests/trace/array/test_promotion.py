"""Where a trace leaves float32."""

import warnings

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import PromotionWarning

X = np.ones((3, 4), np.float32)
W = np.ones((4, 4))


def noisy(x):
    noise = harp.random.normal(harp.random.key(0), x.shape)
    return x + noise


PROMOTED = {
    "number of NumPy": (lambda x: x * 2.0 / np.sqrt(3), "by `np.sqrt(3)`, a number of NumPy, float64; write float("),
    "left": (lambda x: np.float64(2) * x, "by `np.float64(2)`, a number of NumPy"),
    "integers": (lambda x: x * hnp.arange(4), "by `hnp.arange(4)`, an array of int64; write hnp.arange(4).astype"),
    "captured": (lambda x: x @ W, "by `W`, an array of float64 from outside of the function"),
    "made": (noisy, "by `noise`, an array of float64 made at "),
    "in a list": (lambda x: hnp.concatenate([x, W]), "float64 from outside of the function"),
    "choice": (lambda x: hnp.where(x > 0, x, hnp.zeros(4)), "by an array of float64 made at "),
    "gradient": (lambda x: harp.grad(lambda y: hnp.sum(y * np.float64(2)))(x), "in `y * np.float64(2)`, by"),
    "complex": (lambda x: (x * 1j) * W[0], "complex64 becomes complex128 in `(x * 1j) * W[0]`, by `W[0]`"),
}


@pytest.mark.parametrize("case", PROMOTED)
def test_the_report_names_line_and_operand(case):
    function, expected = PROMOTED[case]
    stages = harp.jit(function).lower(X)
    assert expected in stages.promotion
    assert stages.promotion.startswith(__file__)
    assert stages.promotion.split(":")[0] in str(stages)


def test_an_argument_of_float64_is_named():
    assert "by `w`, an argument of float64" in harp.jit(lambda x, w: x @ w).lower(X, W).promotion


STAYS = {
    "numbers of Python": lambda x: x * 2.0 + 1,
    "sizes": lambda x: hnp.sum(x) / x.shape[0],
    "comparisons": lambda x: (x > np.float64(1)) & (x == W[0]),
    "explicit": lambda x: x.astype("float64") * 2.0 + hnp.sum(x, dtype="float64"),
    "float64 alone": lambda x: hnp.linspace(0, 1, 3) * hnp.zeros(3),
    "result_type": lambda x: hnp.zeros(3, hnp.result_type(x, np.float64)),
}


@pytest.mark.parametrize("case", STAYS)
def test_what_makes_no_float64_is_not_reported(case):
    assert harp.jit(STAYS[case]).lower(X).promotion == ""


def test_it_warns_once_for_each_trace_at_the_line_of_the_user():
    @harp.jit(warn_promotion=True)
    def scaled(x):
        y = x * 2.0
        y = y * np.float64(2)  # the first
        return y + np.ones(4)

    first = scaled._function.__code__.co_firstlineno + 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scaled(X)
        scaled(X[:2])
        assert [(w.category, w.filename, w.lineno) for w in caught] == [(PromotionWarning, __file__, first)]
        scaled(X[0])
        assert len(caught) == 2
        harp.jit(lambda x: x * np.float64(2))(X)
        assert len(caught) == 2
