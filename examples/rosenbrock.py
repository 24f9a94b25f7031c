"""Minimise the Rosenbrock function with SciPy at several dimensions: the gradient is exact, and compiled once."""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import minimize

import harp
import harp.numpy as hnp


def rosenbrock(x):
    """sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2; the minimum is 0 at (1, ..., 1)."""
    return hnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


value_and_gradient = harp.jit(harp.value_and_grad(rosenbrock))


def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
    """What SciPy asks for: the value as a number, the gradient as a NumPy array."""
    value, gradient = value_and_gradient(x)
    return float(value), np.asarray(gradient)


def main(dimensions: tuple[int, ...] = (2, 5, 20, 100)) -> int:
    """Minimise at each dimension and print a table; returns 0 if all converged."""
    print(f"{'dimension':>9}  {'iterations':>10}  {'value':>10}  {'distance':>10}")
    converged = True
    for n in dimensions:
        result = minimize(objective, np.zeros(n), jac=True, method="BFGS", options={"maxiter": 5000, "gtol": 1e-6})
        distance = float(np.linalg.norm(result.x - 1.0))
        converged &= distance < 1e-4
        print(f"{n:>9}  {result.nit:>10}  {result.fun:>10.2e}  {distance:>10.2e}")
    print(f"programs compiled: {value_and_gradient.compilations}")
    return 0 if converged else 1


if __name__ == "__main__":
    sys.exit(main())
