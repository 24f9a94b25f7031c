"""Tracebacks end with the user's line, and have no frame of harp above it, except for mistakes of harp."""

import os
import subprocess
import sys
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


OF_USER = {
    "a loop": "lax.while_loop(lambda c: c < 3, lambda c: c / undefined, 1.0)",
    "a map of trees": "tree.map(lambda a: 1 / 0, [1, 2])",
    "an equation": "experimental.ode.odeint(lambda y, t: {}['a'], 1.0, numpy.arange(2.0))",
}


@pytest.mark.parametrize("name", OF_USER)
def test_errors_of_the_user_that_nobody_catches(name, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"from harp.jax import experimental, lax, numpy, tree\nimport harp.jax.experimental.ode\n{OF_USER[name]}\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode and done.stderr.count("  File") == done.stderr.count("script.py") == 2


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


def test_a_wrong_number_of_arguments_is_a_mistake_of_the_user():
    wrong = {
        "jit": lambda: harp.jit(loss)(np.ones(3)),
        "too many": lambda: harp.jit(loss)(1.0, 2.0, 3.0),
        "keyword": lambda: harp.jit(loss)(1.0, 2.0, y=3.0),
        "grad": lambda: harp.grad(loss)(np.ones(3)),
        "jit of grad": lambda: harp.jit(harp.grad(loss))(np.ones(3)),
        "vmap": lambda: harp.vmap(loss)(np.ones(3)),
    }
    for call in wrong.values():
        names, error = frames_of(call)
        assert type(error) is TypeError and "loss() " in str(error)
        assert names == ["frames_of", "<lambda>"]


def factorial(n):
    return hnp.where(n <= 1, 1, n * factorial(n - 1))


def fibonacci(n):
    return harp.cond(n < 2, lambda: n, lambda: fibonacci(n - 1) + fibonacci(n - 2))


@pytest.mark.parametrize("function", [factorial, fibonacci])
def test_recursion_on_a_traced_number_says_what_to_write(function):
    with pytest.raises(errors.NestingError, match="calls itself without an end") as caught:
        harp.jit(function)(5)
    assert "harp.while_loop" in str(caught.value)
    line = function.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}: " in str(caught.value)


def test_recursion_of_others_stays_what_it_is():
    def deep(n):
        return 0 if n == 0 else 1 + deep(n - 1)

    assert harp.jit(lambda x: x + deep(100))(1.0) == 101.0

    def ends(x):
        raise RecursionError("of a parser")

    with pytest.raises(RecursionError, match="of a parser") as caught:
        harp.jit(ends)(1.0)
    assert not isinstance(caught.value, errors.HarpError)


UNCAUGHT = {
    "function": ("hnp.reshape(hnp.ones(3), (2, 2))", "3 is not 4\n  at "),
    "method": ("hnp.ones(3).mean(axes=1)", "x.mean has no axes; write axis"),
    "name": ("harp.sin", "harp.sin is not there: write harp.numpy.sin"),
    "method that is missing": ("hnp.ones(3).unsqueeze(0)", "expand_dims"),
    "change": ("hnp.ones(3).at[0] += 1", "write x = x.at[index].add(value)"),
}


@pytest.mark.parametrize("name", UNCAUGHT)
def test_uncaught_errors_outside_of_transforms(name, tmp_path):
    line, message = UNCAUGHT[name]
    script = tmp_path / "script.py"
    script.write_text(f"import harp\nimport harp.numpy as hnp\n\n\ndef user():\n    {line}\n\n\nuser()\n")
    for how, is_short in (("", True), ("full", False)):
        given = os.environ | {"HARP_TRACEBACK": how}
        shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=given).stderr
        frames = [row for row in shown.splitlines() if row.startswith("  File ")]
        assert message in shown
        assert frames[-1].endswith("in user") == is_short, shown
