"""Optimisers: chains of transformations, a row each.

`learning_rate` is a number, an array, or a schedule: a function of the number of the step. The arguments are optax's.
"""

from __future__ import annotations

from typing import Any

from harp.optim.quasi_newton import scale_by_lbfgs, scale_by_wolfe_linesearch
from harp.optim.scaling import scale_by_adam, scale_by_belief, scale_by_lion, scale_by_rms, scale_by_rss, trace
from harp.optim.transformations import (
    GradientTransformation,
    add_decayed_weights,
    chain,
    identity,
    scale_by_learning_rate,
)


def _momentum(decay: Any, nesterov: bool, dtype: Any = None) -> GradientTransformation:
    return identity() if decay is None else trace(decay, nesterov, dtype)


def sgd(
    learning_rate: Any, momentum: Any = None, nesterov: bool = False, accumulator_dtype: Any = None
) -> GradientTransformation:
    """Gradient descent; with `momentum`, of the running sums of `trace`.

    >>> optimiser = sgd(0.5)
    >>> optimiser.update({"w": 4.0}, optimiser.init({"w": 0.0}))[0]
    {'w': Array(-2.)}
    """
    return chain(_momentum(momentum, nesterov, accumulator_dtype), scale_by_learning_rate(learning_rate))


def adam(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """`scale_by_adam` times the learning rate; with `nesterov`, NAdam.

    >>> optimiser = adam(0.5)
    >>> optimiser.update({"w": 4.0}, optimiser.init({"w": 0.0}))[0]
    {'w': Array(-0.5)}
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov), scale_by_learning_rate(learning_rate)
    )


def adamw(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    weight_decay: Any = 1e-4,
    mask: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """`adam`, with `add_decayed_weights` before the learning rate: the decay is not scaled by gradients.

    I. Loshchilov, F. Hutter, Decoupled weight decay regularization, 2019.

    >>> optimiser = adamw(0.5, weight_decay=0.25)
    >>> optimiser.update({"w": 4.0}, optimiser.init({"w": 4.0}), {"w": 4.0})[0]
    {'w': Array(-1.)}
    """
    return chain(
        scale_by_adam(b1, b2, eps, eps_root, mu_dtype, nesterov=nesterov),
        add_decayed_weights(weight_decay, mask),
        scale_by_learning_rate(learning_rate),
    )


def adagrad(learning_rate: Any, initial_accumulator_value: Any = 0.1, eps: Any = 1e-7) -> GradientTransformation:
    """`scale_by_rss` times the learning rate.

    >>> optimiser = adagrad(0.5, 0.0, 0.0)
    >>> optimiser.update({"w": 4.0}, optimiser.init({"w": 0.0}))[0]
    {'w': Array(-0.5)}
    """
    return chain(scale_by_rss(initial_accumulator_value, eps), scale_by_learning_rate(learning_rate))


def rmsprop(
    learning_rate: Any,
    decay: Any = 0.9,
    eps: Any = 1e-8,
    initial_scale: Any = 0.0,
    eps_in_sqrt: bool = True,
    *,
    momentum: Any = None,
    nesterov: bool = False,
) -> GradientTransformation:
    """`scale_by_rms` times the learning rate, then with `momentum` the running sums of `trace`.

    >>> optimiser = rmsprop(0.5, 0.75, 0.0)
    >>> optimiser.update({"w": 4.0}, optimiser.init({"w": 0.0}))[0]
    {'w': Array(-1.)}
    """
    return chain(
        scale_by_rms(decay, eps, initial_scale, eps_in_sqrt),
        scale_by_learning_rate(learning_rate),
        _momentum(momentum, nesterov),
    )


def lion(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.99,
    mu_dtype: Any = None,
    weight_decay: Any = 1e-3,
    mask: Any = None,
) -> GradientTransformation:
    """`scale_by_lion`, with `add_decayed_weights` before the learning rate.

    >>> optimiser = lion(0.5, weight_decay=0.25)
    >>> optimiser.update({"w": 4.0}, optimiser.init({"w": 4.0}), {"w": 4.0})[0]
    {'w': Array(-1.)}
    """
    return chain(
        scale_by_lion(b1, b2, mu_dtype), add_decayed_weights(weight_decay, mask), scale_by_learning_rate(learning_rate)
    )


def adabelief(
    learning_rate: Any,
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-16,
    eps_root: Any = 1e-16,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """`scale_by_belief` times the learning rate.

    >>> optimiser = adabelief(0.5, b1=0.5)
    >>> optimiser.update({"w": 4.0}, optimiser.init({"w": 0.0}))[0]
    {'w': Array(-1.)}
    """
    return chain(scale_by_belief(b1, b2, eps, eps_root, nesterov=nesterov), scale_by_learning_rate(learning_rate))


def lbfgs(
    learning_rate: Any = None,
    memory_size: int = 10,
    scale_init_precond: bool = True,
    linesearch: GradientTransformation | None = scale_by_wolfe_linesearch(),  # noqa: B008
) -> GradientTransformation:
    """`scale_by_lbfgs` downhill, with a line search. Its `update` needs `value`, `grad` and `value_fn`.

    >>> import harp, harp.numpy as hnp
    >>> function = lambda x: hnp.sum((x - 3.0) ** 2)
    >>> optimiser, x = lbfgs(), hnp.zeros(2)
    >>> state = optimiser.init(x)
    >>> for _ in range(3):
    ...     value, gradient = harp.optim.value_and_grad_from_state(function)(x, state=state)
    ...     updates, state = optimiser.update(gradient, state, x, value=value, grad=gradient, value_fn=function)
    ...     x = harp.optim.apply_updates(x, updates)
    >>> x.round(6)
    Array([3., 3.])
    """
    return chain(
        scale_by_lbfgs(memory_size, scale_init_precond),
        scale_by_learning_rate(1.0 if learning_rate is None else learning_rate),
        identity() if linesearch is None else linesearch,
    )
