"""Powers with an exponent that is known when the program is compiled: special values and errors as those of others."""

from __future__ import annotations

import numpy as np
import pytest
from accuracy import errors, samples

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain
from harp.trace.scalar.dtypes import DType, f32, f64

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

EXPONENTS = (-15.0, -8.0, -7.0, -3.0, -2.0, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 4.0, 5.0, 6.0, 7.0, 9.0, 12.0, 15.0, 16.0)
BOUND = {f32: 0.75, f64: 1.5}  # that of pow in docs/elementwise.md


@harp.jit
def powers(x):
    return [hnp.power(x, exponent) for exponent in EXPONENTS]


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
def test_error_and_special_values(dtype: DType) -> None:
    wide = np.float64 if dtype is f32 else np.longdouble
    if np.finfo(wide).nmant < np.finfo(dtype.numpy).nmant + 8:
        pytest.skip("long double has no more digits than double")
    rng = np.random.default_rng(5)
    x = np.concatenate([samples(dtype), np.exp2(rng.uniform(-300, 300, 20_000)).astype(dtype.numpy)])
    with np.errstate(all="ignore"):
        for exponent, got in zip(EXPONENTS, powers(x), strict=True):
            got, exact = np.asarray(got), np.power(x.astype(wide), wide(exponent))
            if exponent % 1 == 0.5:  # a root of -inf and of -0.0, not the power of C
                exact = np.where(np.isinf(x), np.inf if exponent > 0 else 0, np.where(x == 0, np.abs(exact), exact))
            np.testing.assert_array_equal(np.isnan(got), np.isnan(exact), err_msg=str(exponent))
            numbers = ~np.isnan(exact)
            np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(exact[numbers]), err_msg=str(exponent))
            worst = errors(got[numbers], exact[numbers])
            assert worst.max() <= BOUND[dtype], (exponent, float(x[numbers][worst.argmax()]).hex(), worst.max())


def test_gradients() -> None:
    x = np.array([-2.0, -0.5, 0.25, 3.0])
    for exponent in (-7, -2, 4, 7):
        got = harp.grad(lambda a, exponent=exponent: hnp.sum(a**exponent))(x)
        np.testing.assert_allclose(got, exponent * x ** (exponent - 1.0), rtol=1e-14)
