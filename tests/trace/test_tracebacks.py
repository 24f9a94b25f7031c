"""Tracebacks end with the user's line, and have no frame of harp above it, except for mistakes of harp."""

import traceback

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors
from harp.trace import tracebacks


def loss(w, x):
    return hnp.sum((x @ w) ** 2)


def mistaken(x):
    return hnp.sum(x * undefined)  # noqa: F821


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setenv("HARP_TRACEBACK", "")


def frames_of(call):
    """The names of the functions in the traceback of an error, and the error."""
    try:
        call()
    except Exception as error:
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)], error
    raise AssertionError("no error")


CALLS = {
    "jit": lambda f, *x: harp.jit(f)(*x),
    "grad": lambda f, *x: harp.grad(f)(*x),
    "jit of grad": lambda f, *x: harp.jit(harp.grad(f))(*x),
    "vmap of grad": lambda f, *x: harp.vmap(harp.grad(f), in_axes=None, axis_size=2)(*x),
    "hessian": lambda f, *x: harp.hessian(f)(*x),
}


@pytest.mark.parametrize("name", CALLS)
def test_errors_of_harp_and_of_the_user(name):
    names, error = frames_of(lambda: CALLS[name](loss, np.ones(3), np.ones((4, 2))))
    assert isinstance(error, errors.ShapeError)
    assert names == ["frames_of", "<lambda>", "<lambda>", "loss"]
    names, error = frames_of(lambda: CALLS[name](mistaken, np.ones(3)))
    assert isinstance(error, NameError)
    assert names[-1] == "mistaken" and len(names) == 4


def test_errors_in_callbacks():
    def called(x):
        raise ZeroDivisionError

    function = harp.jit(lambda x: harp.pure_callback(called, harp.f64[3], x))
    for _ in range(2):  # the second call is the short one
        assert frames_of(lambda: function(np.ones(3)))[0] == ["frames_of", "<lambda>", "called"]


def test_all_frames_on_demand(monkeypatch):
    monkeypatch.setenv("HARP_TRACEBACK", "full")
    names, _ = frames_of(lambda: harp.jit(loss)(np.ones(3), np.ones((4, 2))))
    assert "trace_function" in names and names[-1] == "unify"


def test_mistakes_of_harp_show_all(monkeypatch):
    def broken(*arguments):
        raise KeyError("a mistake")

    monkeypatch.setattr("harp.transforms.jit.jit.trace_function", broken)
    monkeypatch.setattr(tracebacks, "is_of_harp", lambda frame: frame.f_code.co_name != "frames_of")
    names, _ = frames_of(lambda: harp.jit(loss)(np.ones(3), np.ones((4, 2))))
    assert "_traced" in names and names[-1] == "broken"


def test_what_was_being_handled_is_shown_too():
    try:
        try:
            raise OSError("first")
        except OSError:
            harp.jit(mistaken)(np.ones(3))
    except NameError as error:
        assert isinstance(error.__context__, OSError) and not error.__suppress_context__
