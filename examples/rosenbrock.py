"""Minimise the Rosenbrock function in several dimensions with SciPy; harp compiles value and gradient once.

python examples/rosenbrock.py --dimensions 2 5 20 100
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np
from scipy.optimize import OptimizeResult, minimize

import harp
import harp.numpy as hnp

TOLERANCE = 1e-6  # of each coordinate of the minimum


def rosenbrock(x):
    """A curved valley; the minimum is 0, at x = (1, ..., 1)."""
    return hnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


value_and_gradient = harp.jit(harp.value_and_grad(rosenbrock))


def fun(x: np.ndarray) -> tuple[float, np.ndarray]:
    """What SciPy asks for with `jac=True`."""
    value, gradient = value_and_gradient(x)
    return float(value), np.asarray(gradient)


def solve(dimension: int) -> OptimizeResult:
    """The minimum in this dimension, from a start on the slope of the valley."""
    start = np.zeros(dimension)
    return minimize(fun, start, jac=True, method="BFGS", options={"gtol": 1e-8, "maxiter": 100 * dimension})


def main(argv: Sequence[str] | None = None) -> int:
    """Solve, print a table, and check. Returns the exit status."""
    parser = argparse.ArgumentParser(description="Minimise the Rosenbrock function with SciPy and harp.")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 5, 20, 100])
    options = parser.parse_args(argv)
    if min(options.dimensions) < 2:
        parser.error("--dimensions must be at least 2")

    print("dimension  iterations  calls  value     largest error of x")
    converged = True
    for dimension in options.dimensions:
        result = solve(dimension)
        error = np.abs(result.x - 1.0).max()
        converged &= bool(error < TOLERANCE)
        print(f"{dimension:9}  {result.nit:10}  {result.nfev:5}  {result.fun:8.1e}  {error:8.1e}")
    print(f"programs compiled: {value_and_gradient.compilations}")
    if not converged:
        print("a run did not converge to (1, ..., 1)", file=sys.stderr)
    return 0 if converged else 1


if __name__ == "__main__":
    sys.exit(main())
