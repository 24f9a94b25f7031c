"""Functions that transforms make travel to other processes: by name, or by value with their traces kept there."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import textwrap

import cloudpickle
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors
from harp.transforms import pickling

SCALE = 3.0


def total(x):
    return hnp.sum(x * x) * SCALE


def row(x):
    return hnp.sin(x) * 2


@harp.jit
def named(x):
    return x + 1


renamed = harp.jit(row)
FACTOR = np.arange(3.0)
X = np.array([1.0, 2.0, 3.0])
SAVED = harp.checkpoint_policies.save_only_these_names("x")
MADE = {
    "jit": (lambda: harp.jit(total), lambda f: f(X), 42.0),
    "jit of grad": (lambda: harp.jit(harp.grad(total)), lambda f: f(X), 6 * X),
    "grad": (lambda: harp.grad(total), lambda f: f(X), 6 * X),
    "grad of jit": (lambda: harp.grad(harp.jit(total)), lambda f: f(X), 6 * X),
    "value_and_grad": (lambda: harp.value_and_grad(total, (0,)), lambda f: f(X)[1][0], 6 * X),
    "vmap": (lambda: harp.vmap(row, in_axes=1, out_axes=1), lambda f: f(X[None])[0], 2 * np.sin(X)),
    "hessian": (lambda: harp.hessian(total), lambda f: f(X), 6 * np.eye(3)),
    "jacfwd": (lambda: harp.jacfwd(row), lambda f: f(X), np.diag(2 * np.cos(X))),
    "checkpoint": (lambda: harp.checkpoint(total), lambda f: harp.grad(f)(X), 6 * X),
    "renamed": (lambda: renamed, lambda f: f(X), 2 * np.sin(X)),
    "lambda": (lambda: harp.jit(lambda x: x * FACTOR), lambda f: f(X), X * FACTOR),
    "closure": (lambda: _adds(2.0), lambda f: f(X), X + 2),
    "static": (lambda: harp.jit(lambda x, n: x * n, static_argnums=1), lambda f: f(X, 3), 3 * X),
    "custom": (lambda: _custom(), lambda f: harp.grad(f)(2.0), 7.0),
    "custom_vjp": (lambda: _custom_vjp(), lambda f: harp.grad(f)(2.0), 7.0),
    "policy": (lambda: harp.checkpoint(total, policy=SAVED), lambda f: harp.grad(f)(X), 6 * X),
}


def _adds(more):
    return harp.jit(lambda x: x + more)


def _custom():
    f = harp.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, 7.0 * tangents[0]))
    return f


def _custom_vjp():
    f = harp.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, None), lambda kept, ct: (7.0 * ct,))
    return f


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
@pytest.mark.parametrize("name", MADE)
def test_functions_travel(name, dumps):
    make, use, expected = MADE[name]
    function = make()
    again = pickle.loads(dumps(function))
    np.testing.assert_allclose(use(again), expected, rtol=1e-12)
    np.testing.assert_allclose(use(function), expected, rtol=1e-12)


def test_names_lead_back():
    assert pickle.loads(pickle.dumps(named)) is named
    assert len(pickle.dumps(named)) < 100


def test_a_function_that_comes_again_keeps_its_traces():
    function = harp.jit(lambda x: x - 1)
    content = pickle.dumps(function)
    assert pickle.loads(content) is function
    del function
    first = pickle.loads(content)
    first(X)
    again = pickle.loads(content)
    assert again is first and again.compilations == 1


def test_options_travel():
    function = pickle.loads(cloudpickle.dumps(harp.jit(lambda x: x, threads=2, signature=(harp.f64["n"],))))
    with pytest.raises(errors.SignatureError):
        function(np.ones((2, 2)))
    assert function._threads == 2


def test_derived_functions_are_methods_and_copies_are_themselves():
    class Model:
        def loss(self, x):
            return x * x

        slope = harp.grad(loss, 1)

    assert float(Model().slope(3.0)) == 6.0
    gradient = harp.grad(total)
    for function in (gradient, harp.jit(total), _custom(), _custom_vjp()):
        assert copy.copy(function) is function and copy.deepcopy([function])[0] is function
    assert repr(gradient) == "<grad of total>" and gradient.__wrapped__ is total


def test_without_cloudpickle(monkeypatch):
    monkeypatch.setattr(pickling, "_cloudpickle", lambda: None)
    assert pickle.loads(pickle.dumps(harp.jit(total)))(X) == 42.0
    with pytest.raises(errors.ArgumentError, match="install cloudpickle"):
        pickle.dumps(harp.jit(lambda x: x))


def test_a_function_that_leads_to_itself():
    holder = {}
    holder["f"] = harp.jit(lambda x: x + len(holder))
    assert float(pickle.loads(pickle.dumps(holder["f"]))(1.0)) == 2.0


class Model:
    """One that keeps functions made of its methods, and has functions made of others in its body."""

    def __init__(self, weights):
        self.weights = weights
        self.made = [transform(self.apply) for transform in (harp.jit, harp.grad) for _ in range(6)]

    def apply(self, x):
        return hnp.sum(x * self.weights)

    slope = harp.grad(apply, 1)
    both = harp.jit(harp.value_and_grad(apply, 1), static_argnums=0)
    twice = harp.vmap(lambda self, x: 2 * x, in_axes=(None, 0))


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps], ids=["pickle", "cloudpickle"])
def test_objects_with_functions_of_their_methods(dumps):
    model = pickle.loads(dumps(Model(2 * X)))
    assert float(model.made[0](X)) == 28.0
    np.testing.assert_allclose(model.made[-1](X), 2 * X)
    assert float(pickle.loads(dumps(model.made[0]))(X)) == 28.0


def test_methods_made_of_others_are_pickled_by_their_own_name():
    model = Model(2 * X)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model.slope))(X), 2 * X)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model.both))(X)[1], 2 * X)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model.twice))(X), 2 * X)
    assert pickle.loads(pickle.dumps(Model.slope)) is Model.slope and Model.slope.__name__ == "slope"


@pytest.mark.parametrize("transform", [harp.jit, harp.grad], ids=["jit", "grad"])
def test_names_of_classes_travel_by_value(transform):
    class Local:
        loss = staticmethod(total)
        slope = transform(total)

    again = pickle.loads(cloudpickle.dumps(Local.slope))
    assert again.__name__ == "slope" and again.__qualname__ == Local.slope.__qualname__


def test_spawned_processes():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for function in (harp.jit(total), harp.grad(total)):
            expected = function(X)
            np.testing.assert_allclose(pool.apply(function, (X,)), expected)


def test_processes_of_joblib():
    joblib = pytest.importorskip("joblib")
    shift = 2.0
    functions = harp.grad(total), harp.jit(lambda x: x + shift)
    found = joblib.Parallel(n_jobs=1 + (multiprocessing.cpu_count() > 1))(joblib.delayed(f)(X) for f in functions)
    np.testing.assert_allclose(found[0], 6 * X)
    np.testing.assert_allclose(found[1], X + 2)


def test_functions_of_the_main_module(tmp_path):
    """joblib's processes have another one."""
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent("""
        import harp
        from concurrent.futures import ProcessPoolExecutor
        import cloudpickle, subprocess, sys

        @harp.jit
        def twice(x):
            return more(x) + x

        @harp.jit
        def more(x):
            return x * 1.0

        content = cloudpickle.dumps(twice)
        other = "import pickle, sys; print(float(pickle.loads(sys.stdin.buffer.read())(2.0)))"
        print(subprocess.run([sys.executable, "-c", other], input=content, stdout=subprocess.PIPE).stdout.decode())
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "4.0"


def test_the_size_of_an_array_counts_its_elements():
    assert 8_000_000 < sys.getsizeof(hnp.ones(1_000_000)) < 8_001_000
