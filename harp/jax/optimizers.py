"""Optimizers of trees of parameters, as `jax.example_libraries.optimizers` has them.

Each is three functions: `init(params)` is the first state, `update(i, gradients, state)` the one after step `i`, and
`get_params(state)` its parameters. Step sizes are numbers, or functions of the number of the step.

>>> import harp, harp.numpy as hnp
>>> from harp.jax.example_libraries import optimizers
>>> init, update, get_params = optimizers.sgd(0.5)
>>> state = init({"w": hnp.asarray(3.0)})
>>> get_params(update(0, {"w": hnp.asarray(2.0)}, state))
{'w': Array(2.)}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce, wraps
from typing import Any, NamedTuple

import attrs

import harp.tree as tree
from harp.errors import ArgumentError, TreeError
from harp.numpy.creation import asarray, zeros, zeros_like
from harp.numpy.elementwise import abs, floor, maximum, minimum, sqrt, square, where
from harp.numpy.linalg.products import vdot
from harp.numpy.reductions import max as max_
from harp.numpy.reductions import sum as sum_
from harp.numpy.stacking import atleast_1d
from harp.trace.source_locations import where as place
from harp.trace.trees import Tree

Schedule = Callable[[Any], Any]


class Optimizer(NamedTuple):
    """The functions of an optimizer."""

    init_fn: Callable[[Tree], OptimizerState]
    update_fn: Callable[[object, Tree, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Tree]


@attrs.frozen
class OptimizerState:
    """For each parameter the arrays of its state, and the structures of the parameters and of each state."""

    packed_state: tuple[tuple[Tree, ...], ...]
    tree_def: tree.PyTreeDef
    subtree_defs: tuple[tree.PyTreeDef, ...]

    def __attrs_post_init__(self) -> None:
        _register()


@cache
def _register() -> None:
    """When the first one is made, and not while modules are imported."""
    tree.register(OptimizerState, static=("tree_def", "subtree_defs"))


class JoinPoint:
    """The state of one parameter, where this stands in the tree of parameters."""

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def _packed(states: Sequence[Any], tree_def: Any) -> OptimizerState:
    flat = [tree.flatten(state) for state in states]
    return OptimizerState(tuple(tuple(leaves) for leaves, _ in flat), tree_def, tuple(spec for _, spec in flat))


def _states(state: OptimizerState) -> list[Any]:
    return [tree.unflatten(spec, leaves) for spec, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


def optimizer(maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Make an optimizer of single arrays, which returns its three functions, one of trees; a decorator.

    Raises TreeError for gradients, or a new state, of another structure.
    """

    @wraps(maker)
    def made(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = maker(*args, **kwargs)

        def init_tree(params: Any) -> OptimizerState:
            leaves, tree_def = tree.flatten(params)
            return _packed([init(asarray(leaf)) for leaf in leaves], tree_def)

        def update_tree(i: Any, gradients: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree_def = tree.flatten(gradients)
            if tree_def != state.tree_def:
                raise TreeError(f"gradients have the structure {tree_def}, parameters {state.tree_def}{place()}")
            given = zip(leaves, _states(state), strict=True)
            after = _packed([update(i, gradient, each) for gradient, each in given], tree_def)
            if after.subtree_defs != state.subtree_defs:
                raise TreeError(f"the structure {state.subtree_defs} of a state became {after.subtree_defs}{place()}")
            return after

        def params_of(state: OptimizerState) -> Any:
            return tree.unflatten(state.tree_def, [get_params(each) for each in _states(state)])

        return Optimizer(init_tree, update_tree, params_of)

    return made


def _with(count: int, step: Callable[..., tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """The optimizer whose state is a parameter and so many arrays like it, at first zeros; `step` takes the number of
    the step, the gradient, and these."""
    init = lambda x: (x, *(zeros_like(x) for _ in range(count)))  # noqa: E731
    return init, lambda i, g, state: step(i, g, *state), lambda state: state[0]


@optimizer
def sgd(step_size: Any) -> Any:
    """Gradient descent."""
    size = make_schedule(step_size)
    return _with(0, lambda i, g, x: (x - size(i) * g,))


@optimizer
def momentum(step_size: Any, mass: Any) -> Any:
    """Gradient descent with momentum: `mass` is what remains of the velocity."""
    size = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with(1, step)


@optimizer
def nesterov(step_size: Any, mass: Any) -> Any:
    """Gradient descent with Nesterov's momentum."""
    size = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with(1, step)


def _inverse_root(squares: Any) -> Any:
    """1 / sqrt, and 0 where there is none."""
    return where(squares > 0, 1.0 / sqrt(where(squares > 0, squares, 1.0)), 0.0)


@optimizer
def adagrad(step_size: Any, momentum: Any = 0.9) -> Any:
    """AdaGrad with momentum. J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods (2011)."""
    size = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, squares: Any, m: Any) -> tuple[Any, ...]:
        squares = squares + square(g)
        m = (1.0 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - size(i) * m, squares, m

    return _with(2, step)


@optimizer
def rmsprop(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8) -> Any:
    """RMSProp: steps are divided by the root of a running mean of squares of gradients."""
    size = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, squares: Any) -> tuple[Any, ...]:
        squares = squares * gamma + square(g) * (1.0 - gamma)
        return x - size(i) * g / sqrt(squares + eps), squares

    return _with(1, step)


@optimizer
def rmsprop_momentum(step_size: Any, gamma: Any = 0.9, eps: Any = 1e-8, momentum: Any = 0.9) -> Any:
    """RMSProp with momentum."""
    size = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, squares: Any, m: Any) -> tuple[Any, ...]:
        squares = squares * gamma + square(g) * (1.0 - gamma)
        m = momentum * m + size(i) * g / sqrt(squares + eps)
        return x - m, squares, m

    return _with(2, step)


@optimizer
def adam(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """Adam. D. Kingma, J. Ba, Adam: a method for stochastic optimization (2015)."""
    size = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, m: Any, v: Any) -> tuple[Any, ...]:
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * square(g) + b2 * v
        mean, spread = (a / (1 - asarray(b, dtype=a.dtype) ** (i + 1)) for a, b in ((m, b1), (v, b2)))
        return x - size(i) * mean / (sqrt(spread) + eps), m, v

    return _with(2, step)


@optimizer
def adamax(step_size: Any, b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8) -> Any:
    """AdaMax, Adam with the largest magnitude in place of squares, from the same article."""
    size = make_schedule(step_size)

    def step(i: Any, g: Any, x: Any, m: Any, largest: Any) -> tuple[Any, ...]:
        m = (1 - b1) * g + b1 * m
        largest = maximum(b2 * largest, abs(g))
        return x - size(i) / (1 - asarray(b1, dtype=m.dtype) ** (i + 1)) * m / (largest + eps), m, largest

    return _with(2, step)


@optimizer
def sm3(step_size: Any, momentum: Any = 0.9) -> Any:
    """SM3, which keeps a vector for each axis. R. Anil et al., Memory-efficient adaptive optimization (2019)."""
    size = make_schedule(step_size)

    def init(x: Any) -> Any:
        row: Any = atleast_1d(x)
        return x, zeros_like(row), [zeros(n, dtype=row.dtype) for n in row.shape]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, vectors = state
        row: Any = atleast_1d(g)
        spread = [v.reshape([-1 if k == axis else 1 for k in range(row.ndim)]) for axis, v in enumerate(vectors)]
        squares = reduce(minimum, spread) + square(row)
        m = (1.0 - momentum) * (row * _inverse_root(squares)) + momentum * m
        others = [tuple(k for k in range(row.ndim) if k != axis) for axis in range(row.ndim)]
        return x - size(i) * m.reshape(x.shape), m, [max_(squares, axes) for axes in others]

    return init, update, lambda state: state[0]


def constant(step_size: Any) -> Schedule:
    """The same step size always."""
    return lambda i: step_size


def exponential_decay(step_size: Any, decay_steps: Any, decay_rate: Any) -> Schedule:
    """Times `decay_rate` each `decay_steps` steps."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(step_size: Any, decay_steps: Any, decay_rate: Any, staircase: bool = False) -> Schedule:
    """Divided by `1 + decay_rate * i / decay_steps`, with `staircase` rounded down to whole `decay_steps`."""
    if staircase:
        return lambda i: step_size / (1 + decay_rate * floor(asarray(i) / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(step_size: Any, decay_steps: Any, final_step_size: Any, power: Any = 1.0) -> Schedule:
    """From `step_size` to `final_step_size` within `decay_steps`, by a power of the share that is left."""

    def schedule(i: Any) -> Any:
        left = (1 - minimum(i, decay_steps) / decay_steps) ** power
        return left * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Any, values: Any) -> Schedule:
    """The value for the range between boundaries, one more than these. Raises ArgumentError for other numbers."""
    ends, sizes = asarray(boundaries), asarray(values)
    if ends.ndim != 1 or sizes.ndim != 1 or ends.shape[0] != sizes.shape[0] - 1:
        raise ArgumentError(f"piecewise_constant takes one more value than boundaries{place()}")
    return lambda i: sizes[sum_(i > ends)]


def make_schedule(scalar_or_schedule: Any) -> Schedule:
    """The function, or one that always gives the number. Raises ArgumentError for an array with axes."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule  # type: ignore[no-any-return]
    if asarray(scalar_or_schedule).ndim:
        raise ArgumentError(f"a step size is a number, or a function of the number of the step{place()}")
    return constant(scalar_or_schedule)


def l2_norm(tree_of_arrays: Any) -> Any:
    """The root of the sum of squares of all elements of a tree."""
    return sqrt(sum(vdot(x, x) for x in tree.leaves(tree_of_arrays)))


def clip_grads(grad_tree: Any, max_norm: Any) -> Any:
    """The tree, scaled to the norm `max_norm` if its own is larger."""
    norm = l2_norm(grad_tree)
    return tree.map(lambda g: where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The tree of parameters with a `JoinPoint` of its state for each."""
    return tree.unflatten(opt_state.tree_def, [JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state that `unpack_optimizer_state` has taken apart."""
    points, tree_def = tree.flatten(marked_pytree)
    return _packed([point.subtree for point in points], tree_def)
