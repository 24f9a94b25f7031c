# Written by tests/types/stubs.py.
from harp.optim.optimisers import (
    adabelief as adabelief,
    adagrad as adagrad,
    adam as adam,
    adamw as adamw,
    lbfgs as lbfgs,
    lion as lion,
    rmsprop as rmsprop,
    sgd as sgd,
)
from harp.optim.quasi_newton import (
    scale_by_lbfgs as scale_by_lbfgs,
    scale_by_wolfe_linesearch as scale_by_wolfe_linesearch,
    value_and_grad_from_state as value_and_grad_from_state,
)
from harp.optim.scaling import (
    scale_by_adam as scale_by_adam,
    scale_by_belief as scale_by_belief,
    scale_by_lion as scale_by_lion,
    scale_by_rms as scale_by_rms,
    scale_by_rss as scale_by_rss,
    trace as trace,
)
from harp.optim.schedules import (
    constant_schedule as constant_schedule,
    cosine_decay_schedule as cosine_decay_schedule,
    exponential_decay as exponential_decay,
    join_schedules as join_schedules,
    linear_schedule as linear_schedule,
    piecewise_constant_schedule as piecewise_constant_schedule,
    polynomial_schedule as polynomial_schedule,
    warmup_cosine_decay_schedule as warmup_cosine_decay_schedule,
)
from harp.optim.transformations import (
    GradientTransformation as GradientTransformation,
    add_decayed_weights as add_decayed_weights,
    apply_updates as apply_updates,
    chain as chain,
    clip as clip,
    clip_by_global_norm as clip_by_global_norm,
    global_norm as global_norm,
    identity as identity,
    masked as masked,
    scale as scale,
    scale_by_learning_rate as scale_by_learning_rate,
    scale_by_schedule as scale_by_schedule,
    stateless as stateless,
)
