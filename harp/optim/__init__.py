"""Optimisers: pairs of pure functions on trees of parameters, with optax's interface, names and formulas.

>>> import harp, harp.numpy as hnp
>>> from harp import optim
>>> loss = lambda params: hnp.sum((params["w"] - 3.0) ** 2)
>>> optimiser = optim.chain(optim.clip_by_global_norm(10.0), optim.sgd(0.25))
>>> params = {"w": hnp.zeros(2)}
>>> state = optimiser.init(params)
>>> updates, state = optimiser.update(harp.grad(loss)(params), state, params)
>>> optim.apply_updates(params, updates)
{'w': Array([1.5, 1.5])}

See docs/optimisers.md.
"""

from __future__ import annotations

from harp.lazy import Names, namespace

_NAMES = Names(
    {
        "harp.optim.quasi_newton": "scale_by_lbfgs scale_by_wolfe_linesearch value_and_grad_from_state",
        "harp.optim.optimisers": "adabelief adagrad adam adamw lbfgs lion rmsprop sgd",
        "harp.optim.scaling": "scale_by_adam scale_by_belief scale_by_lion scale_by_rms scale_by_rss trace",
        "harp.optim.schedules": "constant_schedule cosine_decay_schedule exponential_decay join_schedules "
        "linear_schedule piecewise_constant_schedule polynomial_schedule warmup_cosine_decay_schedule",
        "harp.optim.transformations": "GradientTransformation add_decayed_weights apply_updates chain clip "
        "clip_by_global_norm global_norm identity masked scale scale_by_learning_rate scale_by_schedule stateless",
    }
)
__getattr__, __dir__, __all__ = namespace(globals(), _NAMES)
