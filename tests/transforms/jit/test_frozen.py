"""Clocks and random numbers of Python and NumPy in traced functions."""

import datetime
import random
import time
from time import perf_counter

import numpy as np

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)
X = np.ones(3)


def helper():
    return np.random.rand()


def noisy(x):
    def inner(y):
        return y * datetime.datetime.now().second

    return inner(x) * random.random() + time.time() * perf_counter() + RNG.normal() * helper()


def names(function, *args):
    return [text.rpartition(": ")[2] for text in harp.jit(function).lower(*args).frozen]


def test_clocks_and_random_numbers_are_listed_with_their_lines():
    stages = harp.jit(noisy).lower(X)
    calls = {"random.random", "time.time", "perf_counter", "RNG.normal", "datetime.datetime.now", "np.random.rand"}
    assert {text.rpartition(": ")[2] for text in stages.frozen} == calls
    line = noisy.__code__.co_firstlineno + 4
    assert f"{__file__}:{line}: time.time" in stages.frozen
    assert "is asked once, while the function is traced" in " ".join(str(stages).split())


def test_in_derivatives_and_closures():
    draw = random.Random(0).random
    assert names(harp.grad(lambda x: hnp.sum(x * draw())), X) == ["draw"]


def test_what_is_asked_in_each_call_is_not_listed():
    def clean(x):
        later()
        return hnp.sin(x) * np.sqrt(2) + harp.random.normal(harp.random.key(0), x.shape)

    def later():
        time.sleep(0)

    assert names(clean, X) == names(lambda x: x * 2, X) == []
    assert names(hnp.sin, X) == []
