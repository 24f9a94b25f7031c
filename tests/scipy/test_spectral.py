"""Spectra of signals, and windows by name, beside SciPy's, and their derivatives."""

import numpy as np
import pytest
import scipy.signal as truth

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError, ShapeError
from harp.scipy import signal
from harp.scipy.windows import _WINDOWS
from harp.test_util import check_grads

RNG = np.random.default_rng(0)
PARAMETERS = {
    "gaussian": (2.0,), "general_cosine": ((0.5, 0.3, 0.2),), "general_gaussian": (1.5, 2.0), "general_hamming": (0.6,),
    "kaiser": (3.0,),
}  # fmt: skip
NAMED = [(name, *PARAMETERS[name]) if name in PARAMETERS else name for name in _WINDOWS]


def centred(a):
    return a - a.mean(-1, keepdims=True)


WELCH = {
    "as it is": {},
    "short": {"nperseg": 8},
    "all": {"nperseg": 7, "noverlap": 2, "nfft": 10, "fs": 2.5, "scaling": "spectrum", "detrend": "linear"},
    "medians": {"nperseg": 8, "average": "median", "window": ("kaiser", 3.0)},
    "both sides": {"nperseg": 9, "return_onesided": False, "detrend": False},
    "functions": {"nperseg": 8, "detrend": centred, "window": np.arange(1.0, 9.0)},
}
STFT = {
    "as it is": {"nperseg": 8},
    "even": {"nperseg": 8, "boundary": "even"},
    "odd": {"nperseg": 7, "boundary": "odd", "noverlap": 3},
    "constant": {"nperseg": 8, "boundary": "constant", "padded": False},
    "none": {"nperseg": 8, "boundary": None, "scaling": "psd", "fs": 3.0, "return_onesided": False},
}


def close(found, expected):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_windows(n):
    for window in [*NAMED, 2.5, ("tukey", 0.3), ("tukey", 0.0), ("tukey", 2.0), ("exponential", None, 3.0)]:
        for periodic in (True, False):
            expected = truth.get_window(window, n, periodic)
            np.testing.assert_allclose(signal.get_window(window, n, periodic), expected, atol=1e-14)
    one_sided = signal.get_window(("exponential", 0, 2.0), n, False)
    np.testing.assert_allclose(one_sided, truth.windows.exponential(n, 0, 2.0, False), atol=1e-14)


@pytest.mark.filterwarnings("ignore")  # of SciPy, that it takes shorter segments, and both sides of complex signals
@pytest.mark.parametrize("name", WELCH)
def test_densities(name):
    options = WELCH[name]
    for n in (1, 2, 7, 40, 300):
        if n >= 8 or not {"noverlap", "window"} & options.keys():
            x, y = RNG.normal(size=(2, n)), RNG.normal(size=(2, n + 3))
            close(signal.welch(x, **options), truth.welch(x, **options))
            close(signal.csd(x, y, **options), truth.csd(x, y, **options))
            close(signal.welch(x + 2j * x[::-1], **options), truth.welch(x + 2j * x[::-1], **options))
            if name != "functions":
                close(signal.welch(x.T, axis=0, **options), truth.welch(x.T, axis=0, **options))


@pytest.mark.filterwarnings("ignore")  # of SciPy, that both sides are needed
@pytest.mark.parametrize("name", STFT)
def test_transforms_and_back(name):
    options = STFT[name]
    x = RNG.normal(size=(2, 41))
    given = x + 1j * x[::-1] if name == "none" else x
    found, expected = signal.stft(given, **options), truth.stft(given, **options)
    close(found, expected)
    kept = {key: options[key] for key in ("nperseg", "noverlap", "scaling", "fs") if key in options}
    kept.update(boundary=options.get("boundary", "zeros") is not None, input_onesided=name != "none")
    times, back = signal.istft(found[2], **kept)
    np.testing.assert_allclose(back, truth.istft(expected[2], **kept)[1], atol=1e-12)
    assert times.shape == back.shape[-1:]
    turned = signal.istft(np.moveaxis(expected[2], -1, 0), time_axis=0, freq_axis=-1, **kept)[1]
    np.testing.assert_allclose(turned, np.transpose(back), atol=1e-12)


def test_lines():
    x = RNG.normal(size=(2, 7))
    for type, bp in (("linear", 0), ("linear", [2, 3]), ("linear", 7), ("constant", 0), ("l", (5,)), ("c", 0)):
        np.testing.assert_allclose(signal.detrend(x, type=type, bp=bp), truth.detrend(x, type=type, bp=bp), atol=1e-14)
    np.testing.assert_allclose(signal.detrend(x, 0), truth.detrend(x, 0), atol=1e-14)
    assert signal.detrend(x.astype("float32")).dtype == "float32"
    program = harp.jit(lambda x: (signal.detrend(x), signal.detrend(x, bp=x.shape[0] // 2)))
    for n in (2, 5, 8):
        x = RNG.normal(size=n)
        close(program(x), (truth.detrend(x), truth.detrend(x, bp=n // 2)))
    assert program.compilations == 1
    check_grads(lambda x: signal.detrend(x, bp=[3]), (x,), 1)


def test_one_program_for_all_lengths():
    def both(x, y):
        transform = signal.stft(x, nperseg=4)[2]
        return signal.csd(x, y, nperseg=4)[1], transform, signal.istft(transform)[1][: x.shape[0]]

    def loss(x, y):
        density, transform, back = both(x, y)
        return hnp.sum(hnp.abs(density)) + hnp.sum(hnp.abs(transform) ** 3) + hnp.sum(hnp.sin(back))

    program = harp.jit(lambda x, y: (both(x, y), harp.grad(loss)(x, y)))
    for n in (4, 7, 12):
        x, y = RNG.normal(size=(2, n))
        (density, transform, back), slope = program(x, y)
        np.testing.assert_allclose(density, truth.csd(x, y, nperseg=4)[1], atol=1e-13)
        np.testing.assert_allclose(transform, truth.stft(x, nperseg=4)[2], atol=1e-13)
        np.testing.assert_allclose(back, x, atol=1e-13)
        toward = RNG.normal(size=n)
        ends = [float(loss(x + h * toward, y)) for h in (1e-6, -1e-6)]
        np.testing.assert_allclose(slope @ toward, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-6)
    assert program.compilations == 1
    rows = RNG.normal(size=(3, 9))
    batched = harp.vmap(lambda x: signal.welch(x, nperseg=4)[1])(rows)
    np.testing.assert_allclose(batched, truth.welch(rows, nperseg=4)[1], atol=1e-14)
    assert [a.dtype for a in signal.stft(rows.astype("float32"), nperseg=4)] == ["float32", "float32", "complex64"]
    assert [a.shape for a in signal.welch(np.zeros((2, 0)))] == [(2, 0), (2, 0)]


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda x: signal.welch(x, nperseg=0), ArgumentError, "nperseg of welch is 1 or more"),
    (lambda x: signal.welch(x, nperseg=4, noverlap=4), ArgumentError, "noverlap of welch is less than nperseg, 4"),
    (lambda x: signal.welch(x, nperseg=4, nfft=3), ArgumentError, "nfft of welch is at least nperseg, 4, not 3"),
    (lambda x: signal.welch(x, scaling="other"), ArgumentError, "scaling of welch"),
    (lambda x: signal.welch(x, detrend=True), ArgumentError, "detrend is"),
    (lambda x: signal.welch(x, average="other"), ArgumentError, "average is"),
    (lambda x: signal.welch(x, window="other"), ArgumentError, "window is one of boxcar"),
    (lambda x: signal.welch(x, window=("kaiser",)), ArgumentError, "'kaiser' has other parameters"),
    (lambda x: signal.welch(x, window=np.ones(11)), ShapeError, "at most the 10 of the signal"),
    (lambda x: signal.welch(x, window=1j * x), DTypeError, "real numbers"),
    (lambda x: signal.csd(x, x[None]), ShapeError, "along one of as many axes"),
    (lambda x: signal.stft(x, boundary="other"), ArgumentError, "boundary of stft"),
    (lambda x: signal.stft(x, scaling="density"), ArgumentError, "scaling of stft"),
    (lambda x: signal.istft(x), ShapeError, "axes of frequencies and of times"),
    (lambda x: signal.istft(x[None], time_axis=0, freq_axis=0), ArgumentError, "are two axes"),
    (lambda x: signal.istft(x[None], scaling="density"), ArgumentError, "scaling of istft"),
    (lambda x: signal.detrend(x, type="other"), ArgumentError, "type of detrend"),
    (lambda x: signal.detrend(x, bp=[11]), ArgumentError, "bp of detrend"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_what_does_not_fit(call, error, message):
    with pytest.raises(error, match=message):
        call(np.arange(10.0))
