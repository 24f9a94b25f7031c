"""What is said of a keyword that a function of harp does not have, and of an attribute that is called."""

import subprocess
import sys
import types

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.errors import UnsupportedDTypeError
from harp.trace.keywords import explain
from harp.trace.tracebacks import shorten_uncaught

X = hnp.asarray(np.ones((2, 3)))


def note(call):
    """The note on the error of a call, as it is shown where nobody catches the error."""
    with pytest.raises(TypeError) as caught:
        call()
    explain(caught.value)
    return getattr(caught.value, "__notes__", None)


WRONG = {
    "harp.numpy.sum has no axes; write axis": lambda: hnp.sum(X, axes=0),
    "harp.numpy.sort has no reverse; write descending": lambda: hnp.sort(X, reverse=True),
    "harp.numpy.mean has no keepdim; write keepdims": lambda: hnp.mean(X, keepdim=True),
    "harp.numpy.concatenate has no dim; write axis": lambda: hnp.concatenate([X], dim=0),
    "harp.numpy.linalg.norm has no order; write ord": lambda: hnp.linalg.norm(X, order=2),
    "harp.numpy.around has no decimal; write decimals": lambda: hnp.around(X, decimal=2),
    "harp.random.normal has no size; write shape": lambda: harp.random.normal(harp.random.key(0), size=3),
    "harp.lax.sort has no axis; its arguments are operand, dimension, is_stable, num_keys": lambda: lax.sort(X, axis=1),
    "harp.optim.adam has no lr; write learning_rate": lambda: harp.optim.adam(lr=1e-3),
    "harp.jit has no static_args; write static_argnums": lambda: harp.jit(abs, static_args=0),
    "harp.CompileOptions has no optimise; write optimize": lambda: harp.CompileOptions(optimise=1),
    "harp.numpy.sin has no out; arrays do not change, so use the result": lambda: hnp.sin(X, out=X),
    "X.shape is an attribute; write X.shape": lambda: X.shape(),
    "X.shape is an attribute; write X.shape[0]": lambda: X.shape(0),
    "X.T is an attribute; write X.T": lambda: X.T(),
    "X.ndim is an attribute; write X.ndim": lambda: X.ndim(),
}


@pytest.mark.parametrize("expected", WRONG)
def test_notes(expected):
    assert note(WRONG[expected]) == [expected]


def test_the_name_that_is_written_is_meant():
    """Also where other names of the function, and functions of that name in other modules, were used before."""
    from harp import jax

    for function in (hnp.round, hnp.around, lax.sort, hnp.sort, jax.jit, harp.jit):
        assert function
    assert note(lambda: hnp.round(X, decimal=2)) == ["harp.numpy.round has no decimal; write decimals"]
    assert note(lambda: hnp.around(X, decimal=2)) == ["harp.numpy.around has no decimal; write decimals"]
    assert note(lambda: hnp.sort(X, reverse=True)) == ["harp.numpy.sort has no reverse; write descending"]
    assert note(lambda: lax.sort(X, reverse=True))[0].startswith("harp.lax.sort has no reverse; ")


def test_transforms_add_the_note_once():
    for transform in (harp.jit, harp.grad, lambda f: harp.jit(harp.grad(f))):
        with pytest.raises(TypeError, match="unexpected keyword") as caught:
            transform(lambda x: hnp.sum(x, axes=0))(np.ones(3))
        assert caught.value.__notes__ == ["harp.numpy.sum has no axes; write axis"]
    with pytest.raises(TypeError, match="not callable") as caught:
        harp.jit(lambda x: hnp.sum(x.T()))(X)
    assert caught.value.__notes__ == ["x.T is an attribute; write x.T"]
    with pytest.raises(TypeError) as caught:
        harp.jit(lambda x: x.mean(axes=0))(X)
    assert caught.value.__notes__[0].endswith("mean has no axes; write axis")


def test_functions_of_the_user_are_left_alone():
    def sum(x):
        return x

    assert note(lambda: sum(X, axes=0)) is None
    assert note(lambda: sorted([1], axes=0)) is None
    assert note(lambda: X.sum()()) is None


@pytest.mark.parametrize("how", ["script", "command"])
def test_errors_that_nobody_catches_are_explained(how, tmp_path):
    code = "import harp.numpy as hnp\nhnp.sum(hnp.ones(3), axes=0)\n"
    (tmp_path / "script.py").write_text(code)
    given = [str(tmp_path / "script.py")] if how == "script" else ["-c", code]
    shown = subprocess.run([sys.executable, *given], capture_output=True, text=True).stderr
    assert shown.endswith("harp.numpy.sum has no axes; write axis\n")


class Shell:
    """IPython: a handler of errors, and what it shows."""

    custom_exceptions = ()

    def __init__(self):
        self.shown = []

    def set_custom_exc(self, kinds, handler):
        self.custom_exceptions, self.handler = kinds, handler

    def showtraceback(self, given, tb_offset):
        self.shown.append(given[1])


def test_ipython_explains_errors(monkeypatch):
    shell, module = Shell(), types.ModuleType("IPython")
    module.get_ipython = lambda: shell
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # what is set below goes away
    shorten_uncaught()
    assert TypeError in shell.custom_exceptions
    with pytest.raises(TypeError) as caught:
        hnp.sum(X, axes=0)
    shell.handler(shell, TypeError, caught.value, caught.tb)
    assert shell.shown == [caught.value] and caught.value.__notes__ == ["harp.numpy.sum has no axes; write axis"]


@pytest.mark.parametrize("draw", [harp.random.normal, harp.random.uniform])
def test_a_shape_is_one_argument(draw):
    with pytest.raises(UnsupportedDTypeError, match=r"a shape is one argument, shape=\(2, 3\)"):
        draw(harp.random.key(0), 3, 4)
