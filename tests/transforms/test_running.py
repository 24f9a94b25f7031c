"""Loops outside of a trace: in the interpreter while they cost little, by a program when they cost much."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.config import counters, settings
from harp.transforms import running

STEPS = 10_000


def halved(x, steps):
    """Each step halves the way to 1, and counts."""
    return harp.fori_loop(0, steps, lambda i, c: (0.5 * c[0] + 0.5, c[1] + i), (x, 0))


def programs_of(call):
    before = counters.snapshot()["programs"]
    return call(), counters.snapshot()["programs"] - before


@pytest.fixture(autouse=True)
def nothing_spent(processor, monkeypatch):
    monkeypatch.setattr(running, "_spent", {})


@pytest.fixture
def small_budget(monkeypatch):
    monkeypatch.setattr(running, "_BUDGET", 20 * 10_000)


def test_a_short_loop_makes_no_program():
    (x, count), programs = programs_of(lambda: halved(hnp.zeros(3), 20))
    assert programs == 0
    np.testing.assert_allclose(x, 1 - 0.5**20 * np.ones(3))
    assert int(count) == 190


def test_a_long_loop_is_computed_by_one_program_whatever_its_data():
    def both():
        return [halved(hnp.full(3, start), STEPS) for start in (0.0, 5.0, 9.0)]

    found, programs = programs_of(both)
    assert programs == 1
    for x, count in found:
        np.testing.assert_allclose(x, np.ones(3))
        assert int(count) == STEPS * (STEPS - 1) // 2


@pytest.mark.usefixtures("small_budget")
def test_short_loops_that_are_called_often_become_one_program():
    def often():
        for start in range(10):
            x, _ = halved(hnp.full(2, float(start)), 3)
            np.testing.assert_allclose(x, 1 + (start - 1) / 8)

    assert programs_of(often)[1] == 1


@pytest.mark.usefixtures("small_budget")
def test_loops_that_data_ends():
    def root(a):
        return harp.while_loop(lambda x: hnp.abs(x * x - a) > 1e-9, lambda x: x - 0.01 * (x * x - a), hnp.asarray(1.0))

    found, programs = programs_of(lambda: [float(root(hnp.asarray(a))) for a in (2.0, 3.0)])
    assert programs == 1
    np.testing.assert_allclose(found, np.sqrt([2, 3]), rtol=1e-8)


@pytest.mark.parametrize("transform", [harp.grad, harp.jacfwd, harp.vmap], ids=lambda transform: transform.__name__)
@pytest.mark.usefixtures("small_budget")
def test_transforms_of_loops(transform):
    def product(x):  # x**24
        return harp.scan(lambda c, _: (c * x, c), 1.0, length=24)[0]

    x = hnp.asarray([2.0, 3.0]) if transform is harp.vmap else hnp.asarray(2.0)
    found, programs = programs_of(lambda: np.asarray(transform(product)(x)))
    assert programs >= 1  # forward mode has one for the values, too
    np.testing.assert_allclose(found, [2.0**24, 3.0**24] if transform is harp.vmap else 24 * 2**23)


@pytest.mark.usefixtures("small_budget")
def test_a_loop_that_calls_python_stays_and_calls_once_for_each_step():
    seen = []

    def step(i, c):
        harp.debug.callback(lambda i: seen.append(int(i)), i)
        return c + 1

    found, programs = programs_of(lambda: harp.fori_loop(0, 30, step, 0))
    assert int(found) == 30
    assert seen == list(range(30))
    assert programs == 0


@pytest.mark.parametrize("mode", ["jit", "nans", "check"])
@pytest.mark.usefixtures("small_budget")
def test_modes_that_look_at_each_value_make_no_program(monkeypatch, mode):
    monkeypatch.setattr(settings, mode, mode != "jit")
    (x, _), programs = programs_of(lambda: halved(hnp.zeros(3), 100))
    assert programs == 0
    np.testing.assert_allclose(x, np.ones(3))


@pytest.mark.usefixtures("small_budget")
def test_without_a_compiler_the_interpreter_goes_on(monkeypatch):
    monkeypatch.setattr("harp.transforms.jit.programs.find_toolchain", lambda: None)
    (x, _), programs = programs_of(lambda: halved(hnp.zeros(3), 100))
    assert programs == 0
    np.testing.assert_allclose(x, np.ones(3))


def test_what_few_graphs_have_cost_is_kept(monkeypatch):
    monkeypatch.setattr(running, "_MOST", 2)
    for size in (1, 2, 3):
        halved(hnp.zeros(size), 2)
    assert len(running._spent) == 2
