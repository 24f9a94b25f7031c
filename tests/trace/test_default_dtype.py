"""The dtype of floats that programs make themselves, outside of jit and in programs."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors, nn
from harp.trace.default_dtype import default_dtype
from harp.trace.scalar.dtypes import Kind, default_of, f64

KEY = harp.random.key(0)
MADE = {
    "zeros": lambda: hnp.zeros(3),
    "ones": lambda: hnp.ones((2, 2)),
    "full": lambda: hnp.full(3, 1.5),
    "eye": lambda: hnp.eye(2),
    "tri": lambda: hnp.tri(2),
    "linspace": lambda: hnp.linspace(0, 1, 4),
    "geomspace": lambda: hnp.geomspace(1, 8, 4),
    "geomspace of floats": lambda: hnp.geomspace(1.0, 8.0, 4),
    "logspace": lambda: hnp.logspace(0, 2, 3),
    "window": lambda: hnp.hanning(5),
    "Kaiser": lambda: hnp.kaiser(5, 2.0),
    "window by name": lambda: harp.scipy.signal.get_window("hann", 4),
    "arange": lambda: hnp.arange(0.0, 3.0),
    "list": lambda: hnp.array([[1.0, 2.0], [3, 4]]),
    "number": lambda: hnp.asarray(1.5),
    "float": lambda: hnp.ones(3, "float16").astype(float),
    "frequencies": lambda: hnp.fft.fftfreq(4),
    "normal": lambda: harp.random.normal(KEY, (3,)),
    "uniform": lambda: harp.random.uniform(KEY, (3,)),
    "gamma": lambda: harp.random.gamma(KEY, 2.0, (3,)),
    "initialiser": lambda: nn.initializers.glorot_normal()(KEY, (3, 3)),
    "one hot": lambda: nn.one_hot(hnp.array([1]), 3),
}


def test_what_makes_arrays():
    def all_of_them():
        return {name: make() for name, make in MADE.items()}

    compiled = harp.jit(all_of_them)
    expected = all_of_them()
    for made in (expected, compiled()):
        assert {name: a.dtype.name for name, a in made.items()} == dict.fromkeys(MADE, "float64")
    with default_dtype("float32"):
        for made in (all_of_them(), compiled()):
            assert {name: a.dtype.name for name, a in made.items()} == dict.fromkeys(MADE, "float32")
        for name in set(MADE) - {"normal", "uniform", "gamma", "initialiser"}:  # other numbers are drawn for float32
            np.testing.assert_allclose(made[name], expected[name], rtol=1e-6)
        assert hnp.array([1j]).dtype == np.complex64
    assert compiled()["zeros"].dtype == np.float64


def test_arrays_keep_their_dtype_and_meet_as_in_numpy():
    x = np.ones(3, np.float32)
    with default_dtype("float32"):
        f = harp.jit(lambda x, y: (x + hnp.ones(3) * 2.5, y + hnp.zeros(3), x * hnp.arange(3), hnp.asarray(y)))
        assert [a.dtype.name for a in f(x, x.astype(float))] == ["float32", "float64", "float64", "float64"]
        assert hnp.arange(3).dtype == np.int64


def test_it_is_a_setting_too_and_errors_leave_it():
    setting = default_dtype("float32")
    assert hnp.zeros(1).dtype == np.float32
    setting.__exit__(None, None, None)
    with pytest.raises(ZeroDivisionError), default_dtype("float32"):
        1 / 0
    assert default_of(Kind.FLOAT) is f64
    with pytest.raises(errors.DTypeError, match="float32 or float64"):
        default_dtype("float16")
    assert hnp.zeros(1).dtype == np.float64
