"""What an optimiser is: two pure functions on trees, and how such pairs are put together.

    state = init(params)
    updates, state = update(gradients, state, params);    params = apply_updates(params, updates)

The interface is that of optax (DeepMind, 2020), whose own transformations are links of `chain`, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from harp.errors import ArgumentError
from harp.numpy.complexes import real
from harp.numpy.creation import asarray, result_type, zeros
from harp.numpy.elementwise import clip as clip_of
from harp.numpy.elementwise import minimum, where
from harp.numpy.joining import stack
from harp.numpy.linalg.norms import vector_norm
from harp.numpy.linalg.products import vdot
from harp.trace.array.array import Array
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.trace.trees import Tree
from harp.transforms.autodiff.custom import custom_jvp
from harp.tree import broadcast, leaves, map

Schedule = Callable[[Any], Any]
_MOST = 2**31 - 1  # steps are counted in int32


class GradientTransformation(NamedTuple):
    """A pair of pure functions: `init(params)` is the first state, `update(updates, state, params=None)` the changed
    updates and the next state. States are trees of arrays, so that they go into and out of compiled functions.

    >>> halves = GradientTransformation(lambda params: (), lambda g, state, params=None: (g / 2, state))
    >>> chain(halves, scale(-1.0)).update(4.0, chain(halves, scale(-1.0)).init(None))[0]
    Array(-2.)
    """

    init: Callable[[Tree], Tree]
    update: Callable[..., tuple[Tree, Tree]]


class EmptyState(NamedTuple):
    """The state of what remembers nothing."""


class MaskedNode(NamedTuple):
    """What stands in the trees inside of `masked` in place of what the mask leaves out."""


class MaskedState(NamedTuple):
    """The state of the transformation inside of `masked`."""

    inner_state: Tree


class ScaleByScheduleState(NamedTuple):
    """How many steps were taken."""

    count: Array  # type: ignore[assignment]


def stateless(change: Callable[[Any, Any], Any]) -> GradientTransformation:
    """The transformation that remembers nothing: `change(updates, params)` is the changed updates.

    >>> signs = stateless(lambda updates, params: harp.tree.map(harp.numpy.sign, updates))
    >>> import harp
    >>> signs.update({"w": harp.numpy.asarray(-3.0)}, signs.init(None))[0]
    {'w': Array(-1.)}
    """
    return GradientTransformation(
        lambda params: EmptyState(), lambda updates, state, params=None: (change(updates, params), state)
    )


def identity() -> GradientTransformation:
    """Updates stay as they are.

    >>> identity().update(1.0, identity().init(0.0))
    (1.0, EmptyState())
    """
    return stateless(lambda updates, params: updates)


def chain(*transformations: GradientTransformation) -> GradientTransformation:
    """One transformation after the other; the state is the tuple of theirs. Those of optax may be among them.

    Further arguments of `update`, by name, go to the links whose own `update` takes any name (`**extra_args`). Raises
    ArgumentError for a state of another number of links, and for what is no pair of functions.

    >>> import harp
    >>> descent = chain(clip(1.0), scale(-0.5))
    >>> descent.update({"w": harp.numpy.asarray(8.0)}, descent.init(None))[0]
    {'w': Array(-0.5)}
    """
    for k, link in enumerate(transformations):
        if not (isinstance(link, tuple) and len(link) == 2 and callable(link[0]) and callable(link[1])):
            raise ArgumentError(f"chain takes pairs of functions init and update; argument {k} is {link!r}{place()}")
    updating = [(update, _takes_any_name(update)) for _, update in transformations]

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        if not isinstance(state, tuple) or len(state) != len(updating):
            raise ArgumentError(
                f"a chain of {plural(len(updating), 'transformations')} needs the state that its own init makes, "
                f"not a {type(state).__name__}{place()}"
            )
        after = []
        for (each, takes), before in zip(updating, state, strict=True):
            updates, found = each(updates, before, params, **(extra_args if takes else {}))
            after.append(found)
        return updates, tuple(after)

    return GradientTransformation(lambda params: tuple(init(params) for init, _ in transformations), update)


def _takes_any_name(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def apply_updates(params: Any, updates: Any) -> Any:
    """Parameters plus updates, in the dtypes of the parameters. Raises TreeError for another tree.

    >>> apply_updates({"w": 1.0}, {"w": -0.25})
    {'w': Array(0.75)}
    """
    return map(lambda p, u: (asarray(p) + u).astype(asarray(p).dtype), params, updates)


def masked(inner: GradientTransformation, mask: Any) -> GradientTransformation:
    """The transformation of a part of the parameters; the updates of the others stay as they are.

    `mask` is a tree of bool, the start of that of the parameters, or a function of the parameters that returns it.

    >>> halves = masked(scale(0.5), {"w": True, "b": False})
    >>> params = {"w": 4.0, "b": 4.0}
    >>> halves.update(params, halves.init(params))[0]
    {'w': Array(2.), 'b': 4.0}
    """

    def chosen(tree: Any, params: Any) -> Any:
        found = mask(params) if callable(mask) else mask
        if not all(isinstance(each, bool | np.bool) for each in leaves(found)):
            raise ArgumentError(f"the mask of masked is a tree of True and False, not {found!r}{place()}")
        return broadcast(found, tree)

    def shown(chosen: Any, tree: Any) -> Any:
        return None if tree is None else map(lambda is_in, x: x if is_in else MaskedNode(), chosen, tree)

    def init(params: Any) -> MaskedState:
        return MaskedState(inner.init(shown(chosen(params, params), params)))

    def update(updates: Any, state: MaskedState, params: Any = None, **extra_args: Any) -> tuple[Any, MaskedState]:
        is_in = chosen(updates, updates if params is None else params)
        extra = extra_args if _takes_any_name(inner.update) else {}
        found, after = inner.update(shown(is_in, updates), state.inner_state, shown(is_in, params), **extra)
        return map(lambda is_in, new, old: new if is_in else old, is_in, found, updates), MaskedState(after)

    return GradientTransformation(init, update)


def scale(step_size: Any) -> GradientTransformation:
    """Updates times a number, in their dtypes.

    >>> scale(-0.5).update({"w": 4.0}, scale(-0.5).init(None))[0]
    {'w': Array(-2.)}
    """
    return stateless(lambda updates, params: map(lambda g: times(step_size, g), updates))


def times(number: Any, array: Any) -> Any:
    """The product in the dtype of the array, whatever that of the number is; of 16 bits, rounded once."""
    array = asarray(array)
    return (asarray(number).astype(_computing(array)) * array).astype(array.dtype)


def _computing(array: Array) -> Any:
    return result_type(array.dtype, "float32")


def scale_by_schedule(step_size_fn: Schedule) -> GradientTransformation:
    """Updates times a function of the number of the step, which counts from 0.

    >>> halving = scale_by_schedule(lambda count: 0.5**count)
    >>> _, state = halving.update(1.0, halving.init(None))
    >>> halving.update(1.0, state)[0]
    Array(0.5)
    """

    def update(updates: Any, state: ScaleByScheduleState, params: Any = None) -> tuple[Any, ScaleByScheduleState]:
        size = step_size_fn(state.count)
        return map(lambda g: times(size, g), updates), ScaleByScheduleState(following(state.count))

    return GradientTransformation(lambda params: ScaleByScheduleState(zeros((), "int32")), update)


def following(count: Array) -> Array:
    """The number of the next step; the last one that fits its dtype is its own successor."""
    return minimum(count, _MOST - 1) + 1


def scale_by_learning_rate(learning_rate: Any, *, flip_sign: bool = True) -> GradientTransformation:
    """Updates times the learning rate, a number or a schedule, and -1, so that they go downhill.

    >>> scale_by_learning_rate(0.5).update({"w": 4.0}, EmptyState())[0]
    {'w': Array(-2.)}
    """
    sign = -1 if flip_sign else 1
    if callable(learning_rate):
        return scale_by_schedule(lambda count: sign * learning_rate(count))
    return scale(sign * asarray(learning_rate))


def add_decayed_weights(weight_decay: Any = 0.0, mask: Any = None) -> GradientTransformation:
    """Updates plus the parameters times `weight_decay`, a number or a schedule; `mask` as that of `masked`.

    `update` raises ArgumentError without parameters.

    >>> decay = add_decayed_weights(0.5)
    >>> decay.update({"w": 1.0}, decay.init({"w": 4.0}), {"w": 4.0})[0]
    {'w': Array(3.)}
    """
    scaled = scale_by_learning_rate(weight_decay, flip_sign=False)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        decay, state = scaled.update(needed(params, "add_decayed_weights"), state)
        return map(lambda g, d: g + d.astype(asarray(g).dtype), updates, decay), state

    transformation = GradientTransformation(scaled.init, update)
    return transformation if mask is None else masked(transformation, mask)


def needed(params: Any, name: str) -> Any:
    """The parameters, without which there is an error."""
    if params is None:
        raise ArgumentError(f"{name} needs the parameters: call update(updates, state, params){place()}")
    return params


def clip(max_delta: Any) -> GradientTransformation:
    """Each element of updates between -max_delta and max_delta.

    >>> clip(1.0).update({"w": -3.0}, EmptyState())[0]
    {'w': Array(-1.)}
    """
    positive("max_delta of clip", max_delta)
    return stateless(lambda updates, params: map(lambda g: clip_of(g, -max_delta, max_delta), updates))


def clip_by_global_norm(max_norm: Any) -> GradientTransformation:
    """Updates divided by their `global_norm` and times max_norm, where that is smaller.

    R. Pascanu and others, On the difficulty of training recurrent neural networks, 2013.

    >>> clip_by_global_norm(1.0).update({"w": 3.0, "b": 4.0}, EmptyState())[0]
    {'w': Array(0.6), 'b': Array(0.8)}
    """
    positive("max_norm of clip_by_global_norm", max_norm)

    def clipped(updates: Any, params: Any) -> Any:
        norm = global_norm(updates)
        factor = max_norm / where(norm < max_norm, max_norm, norm)
        return map(lambda g: where(norm < max_norm, g, times(factor, g)), updates)

    return stateless(clipped)


def global_norm(updates: Any) -> Array:
    """The root of the sum of squares of all elements of a tree; squares that overflow do not matter. Its derivative at
    0 is 0.

    >>> global_norm({"w": 3.0, "b": [4.0]})
    Array(5.)
    """
    found = [asarray(leaf).astype(_computing(asarray(leaf))) for leaf in leaves(updates)]
    return _norm(*found) if found else zeros(())


@custom_jvp
def _norm(*arrays: Array) -> Array:
    return vector_norm(stack([vector_norm(array) for array in arrays]))


@_norm.defjvp
def _of_norm(arrays: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Any]:
    """At 0, and of arrays of zeros, the derivative is 0."""
    norm = _norm(*arrays)
    divisor = where(norm > 0, norm, 1)
    return norm, sum(real(vdot(array / divisor, tangent)) for array, tangent in zip(arrays, tangents, strict=True))


def positive(name: str, number: Any) -> None:
    """Raises ArgumentError for a number of Python that is not above 0."""
    if isinstance(number, (int, float)) and not number > 0:
        raise ArgumentError(f"{name} is above 0, not {number!r}{place()}")


def fraction(name: str, number: Any) -> None:
    """Raises ArgumentError for a number of Python that is below 0, or not below 1."""
    if isinstance(number, (int, float)) and not 0 <= number < 1:
        raise ArgumentError(f"{name} is at least 0 and below 1, not {number!r}{place()}")
