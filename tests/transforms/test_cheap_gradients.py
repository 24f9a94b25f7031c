"""The cheap gradient principle: a gradient costs a small constant times its function, whatever the sizes.

Of every function in the table of checked gradients, the cost of the gradient of the sum of its results is compared with
that of the function itself. One step is an operation (a special one such as exp is twelve), a comparison, a read or a
write of an element; the elements of arguments and results count with the function, which may leave most of them alone
where its gradient has to be written in full.
"""

from __future__ import annotations

import importlib.util
import pathlib

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.trace.index import product

PATH = pathlib.Path(__file__).resolve().parents[1] / "numpy" / "test_gradients.py"
SPEC = importlib.util.spec_from_file_location("checked_gradients", PATH)
assert SPEC is not None and SPEC.loader is not None
TABLE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TABLE)

SIZE = 1000
FACTOR = 5

# What is too dear today: (degree of the function, degree of its gradient), or the factor where the degrees agree.
TOO_DEAR: dict[str, tuple[int, int] | float] = {}


def parts(result):
    return [result] if isinstance(result, harp.Array) else list(result)


def elements(nodes):
    return sum(product(node.shape) for node in nodes)


def cost(function, arguments):
    stages = harp.jit(function).lower(*arguments)
    return stages, stages.cost()


def compared(name):
    """(degree of the function, degree of its gradient, steps of the gradient over those of the function)."""
    function, *arguments = TABLE.CASES[name]
    which = tuple(range(len(arguments)))
    stages, own = cost(function, arguments)
    _, of_gradient = cost(harp.grad(lambda *x: sum(hnp.sum(p) for p in parts(function(*x))), argnums=which), arguments)
    return own, of_gradient, stages
