"""Losses, one for each element or example, under the names of optax: means and weights are the caller's.

Logarithms of probabilities are made of logits, so that they are right where a probability is 0 or 1 in floating
point; floats of 16 bits are computed in float32.
"""

from __future__ import annotations

import math
from typing import Any

from harp.errors import DTypeError, ShapeError
from harp.nn.activations import log_sigmoid
from harp.numpy.activation import log_softmax
from harp.numpy.creation import arange, full, zeros_like
from harp.numpy.elementwise import logical_and, logical_not, maximum, minimum, square
from harp.numpy.elementwise import where as select
from harp.numpy.indexing import take_along_axis
from harp.numpy.joining import concatenate, stack
from harp.numpy.linalg.norms import vector_norm
from harp.numpy.manipulation import expand_dims, moveaxis, reshape
from harp.numpy.mathematical import logaddexp
from harp.numpy.reductions import mean as mean_of
from harp.numpy.reductions import sum as sum_of
from harp.scipy.special.entropy import xlog1py, xlogy
from harp.trace.array.arithmetic import absolute, equal, less
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array, normalize_axis
from harp.trace.scalar.dtypes import DType, computing, inexact
from harp.trace.source_locations import where as place
from harp.transforms.control.scan import scan


def softmax_cross_entropy(logits: object, labels: object, axis: Any = -1, where: object = None) -> Array:
    """-sum(labels*log_softmax(logits)) over an axis; with `where`, over those classes for which it is true.

    `labels` are probabilities, of which those that are 0 count nothing, even where a logit is -inf.

    >>> import harp.numpy as hnp
    >>> softmax_cross_entropy(hnp.asarray([1000.0, 0.0]), hnp.asarray([0.0, 1.0]))
    Array(1000.)
    """
    x, dtype = _floats("softmax_cross_entropy", logits)
    weights = as_array(labels).astype(x.kind)
    return 0 - sum_of(_product(weights, log_softmax(x, axis, where)), axis).astype(dtype)


def softmax_cross_entropy_with_integer_labels(
    logits: object, labels: object, axis: int = -1, where: object = None, *, label_smoothing: object = 0.0
) -> Array:
    """-log_softmax(logits) at the classes that integers say, along an axis.

    `where` says which labels count, others give 0 whatever they are; or, of as many axes as `logits`, which classes do.
    With `label_smoothing` that part of each label is spread over all classes evenly (C. Szegedy and others, 2016). A
    label that counts, and names no class, gives NaN. Raises DTypeError for labels that are no integers.

    >>> import harp.numpy as hnp
    >>> logits = hnp.asarray([[1000.0, 0.0], [0.0, 0.0]])
    >>> softmax_cross_entropy_with_integer_labels(logits, hnp.asarray([1, -1]), where=hnp.asarray([True, False]))
    Array([1000.,    0.])
    """
    x, dtype = _floats("softmax_cross_entropy_with_integer_labels", logits)
    named = as_array(labels)
    if not named.kind.is_integer:
        raise DTypeError(f"labels of classes are integers, not {named.dtype}; see softmax_cross_entropy{place()}")
    axis = normalize_axis(axis, x.ndim)
    counts = None if where is None else as_array(where)
    classes, rows = (counts, None) if counts is not None and counts.ndim == x.ndim else (None, counts)
    x = moveaxis(x, axis, -1)
    classes = None if classes is None else moveaxis(classes, axis, -1)
    chosen = equal(expand_dims(named, -1), arange(x.shape[-1]))
    logs = log_softmax(x, -1, classes)
    loss = 0 - sum_of(select(chosen, logs, 0), -1)
    if not isinstance(label_smoothing, (int, float)) or label_smoothing:
        loss = loss - as_array(label_smoothing).astype(x.kind) * (loss + mean_of(logs, -1, where=classes))
    inside = logical_and(less(-1, named), less(named, x.shape[-1]))
    loss = select(inside, loss, math.nan)
    return (loss if rows is None else select(rows, loss, 0)).astype(dtype)


def sigmoid_binary_cross_entropy(logits: object, labels: object) -> Array:
    """Elementwise -labels*log(p) - (1 - labels)*log(1 - p), with p = sigmoid(logits), without p.

    >>> import harp.numpy as hnp
    >>> sigmoid_binary_cross_entropy(hnp.asarray([1000.0, -50.0]), hnp.asarray([0.0, 0.0]))
    Array([1.00000000e+03, 1.92874985e-22])
    """
    x, dtype = _floats("sigmoid_binary_cross_entropy", logits)
    y = as_array(labels).astype(x.kind)
    return 0 - (_product(y, log_sigmoid(x)) + _product(1 - y, log_sigmoid(-x))).astype(dtype)


def binary_cross_entropy(probabilities: object, labels: object) -> Array:
    """Elementwise -labels*log(p) - (1 - labels)*log(1 - p), where 0*log(0) is 0.

    Where p is computed from a logit, `sigmoid_binary_cross_entropy` of that has more digits.

    >>> import harp.numpy as hnp
    >>> binary_cross_entropy(hnp.asarray([0.5, 1.0]), hnp.asarray([1.0, 1.0]))
    Array([0.69314718, 0.        ])
    """
    p, dtype = _floats("binary_cross_entropy", probabilities)
    y = as_array(labels).astype(p.kind)
    return 0 - (xlogy(y, p) + xlog1py(1 - y, -p)).astype(dtype)


def squared_error(predictions: object, targets: object = 0.0) -> Array:
    """Elementwise (predictions - targets)**2.

    >>> squared_error(3.0, 1.0)
    Array(4.)
    """
    distance, dtype = _distance("squared_error", predictions, targets)
    return square(distance).astype(dtype)


def absolute_error(predictions: object, targets: object = 0.0) -> Array:
    """Elementwise |predictions - targets|.

    >>> absolute_error(1.0, 3.0)
    Array(2.)
    """
    distance, dtype = _distance("absolute_error", predictions, targets)
    return absolute(distance).astype(dtype)


def huber_loss(predictions: object, targets: object = 0.0, delta: object = 1.0) -> Array:
    """Elementwise d**2/2 of a distance d up to `delta`, and delta*(d - delta/2) beyond. P. Huber, 1964.

    >>> import harp.numpy as hnp
    >>> huber_loss(hnp.asarray([0.5, 3.0]))
    Array([0.125, 2.5  ])
    """
    distance, dtype = _distance("huber_loss", predictions, targets)
    size = absolute(distance)
    near = minimum(size, as_array(delta).astype(size.kind))
    return (near * (size - 0.5 * near)).astype(dtype)


def kl_divergence(log_predictions: object, targets: object, axis: Any = -1, where: object = None) -> Array:
    """sum(targets*(log(targets) - log_predictions)) over an axis, where 0*log(0) is 0. S. Kullback, R. Leibler, 1951.

    >>> import harp.numpy as hnp
    >>> kl_divergence(hnp.log(hnp.asarray([0.5, 0.5])), hnp.asarray([1.0, 0.0]))
    Array(0.69314718)
    """
    logs, dtype = _floats("kl_divergence", log_predictions)
    p = as_array(targets).astype(logs.kind)
    return sum_of(xlogy(p, p) - _product(p, logs), axis, where=where).astype(dtype)


def cosine_similarity(predictions: object, targets: object, epsilon: object = 0.0, axis: int = -1) -> Array:
    """The cosine of the angle between vectors along an axis: their product by their lengths, at least `epsilon` each.

    >>> import harp.numpy as hnp
    >>> cosine_similarity(hnp.asarray([1.0, 1.0]), hnp.asarray([2.0, 0.0]))
    Array(0.70710678)
    """
    a, dtype = _floats("cosine_similarity", predictions)
    b, other = _floats("cosine_similarity", targets)
    unit = [x / maximum(vector_norm(x, axis=axis, keepdims=True), epsilon) for x in (a, b)]
    total = sum_of(unit[0] * unit[1], axis)
    return total.astype(dtype) if dtype is other else total


def cosine_distance(predictions: object, targets: object, epsilon: object = 0.0, axis: int = -1) -> Array:
    """1 less `cosine_similarity`.

    >>> import harp.numpy as hnp
    >>> cosine_distance(hnp.asarray([1.0, 0.0]), hnp.asarray([0.0, 3.0]))
    Array(1.)
    """
    return 1 - cosine_similarity(predictions, targets, epsilon, axis)


def ctc_loss(
    logits: object,
    logit_paddings: object,
    labels: object,
    label_paddings: object,
    blank_id: Any = 0,
    log_epsilon: float = -1e5,
) -> Array:
    """For each sequence, minus the logarithm of the probability of its labels, however they are aligned.

    `logits` are (batch, steps, classes), `labels` integers (batch, labels); paddings are 1 for what is no part of a
    sequence, at its end, and 0 else. An alignment names a class for each step; those between blanks that repeat count
    once. `log_epsilon` stands for the logarithm of 0, so labels that no alignment has cost about as much. A. Graves and
    others, Connectionist temporal classification, 2006; computed by a loop over steps, in logarithms.

    Raises ShapeError for other numbers of axes, DTypeError for labels that are no integers.

    >>> import harp.numpy as hnp
    >>> ctc_loss(hnp.zeros((1, 2, 3)), hnp.zeros((1, 2)), hnp.asarray([[1]]), hnp.zeros((1, 1)))
    Array([1.09861229])
    """
    x, dtype = _floats("ctc_loss", logits)
    named, padded, unused = as_array(labels), as_array(label_paddings), as_array(logit_paddings)
    if (x.ndim, named.ndim, padded.ndim, unused.ndim) != (3, 2, 2, 2):
        raise ShapeError(f"ctc_loss takes logits of 3 axes; paddings and labels of 2{place()}")
    if not named.kind.is_integer:
        raise DTypeError(f"labels of ctc_loss are integers, not {named.dtype}{place()}")
    blanks = zeros_like(named) + blank_id
    # Blanks round all labels: blank, label, blank, label, ..., blank.
    states = reshape(stack((blanks, named), -1), (named.shape[0], 2 * named.shape[1]))
    states = concatenate((states, zeros_like(states, shape=(named.shape[0], 1)) + blank_id), 1)
    logs = moveaxis(take_along_axis(log_softmax(x, -1), expand_dims(states, 1), -1), 1, 0)
    number = arange(states.shape[1])
    earlier = _shifted(states, 2, -1)
    skips = logical_and(logical_not(equal(states, earlier)), logical_and(equal(number % 2, 1), less(2, number)))
    first = zeros_like(states, dtype=x.kind) + select(equal(number, 0), 0, log_epsilon)

    def step(alpha: Array, given: Any) -> tuple[Array, None]:
        log, ends = given
        before = select(skips, _shifted(alpha, 2, log_epsilon), log_epsilon)
        moved = logaddexp(logaddexp(alpha, _shifted(alpha, 1, log_epsilon)), before) + log
        return select(ends, alpha, moved), None

    ended = expand_dims(less(0, moveaxis(unused, 1, 0)), -1)
    alpha, _ = scan(step, first, (logs, ended))
    count = sum_of(equal(padded, 0), 1, keepdims=True)
    last = take_along_axis(alpha, 2 * count, 1)
    other = select(equal(count, 0), log_epsilon, take_along_axis(alpha, maximum(2 * count - 1, 0), 1))
    return -reshape(logaddexp(last, other), (named.shape[0],)).astype(dtype)


def _shifted(x: Array, by: int, fill: float) -> Array:
    """The states before, of which the first ones have none."""
    whole = concatenate((full((x.shape[0], by), fill, x.kind), x), 1)
    return whole[:, : x.shape[1]]


def _floats(name: str, x: object) -> tuple[Array, DType]:
    """The array in the dtype to compute in, and the dtype of the result."""
    array = as_array(x)
    if array.kind.is_complex:
        raise DTypeError(f"{name} takes real numbers, not {array.dtype}{place()}")
    dtype = inexact(array.kind)
    return array.astype(computing(dtype)), dtype


def _product(weight: Array, log: Array) -> Array:
    """weight*log, and 0 where the weight is."""
    none = equal(weight, 0)
    return select(none, 0, weight * select(none, 0, log))


def _distance(name: str, predictions: object, targets: object) -> tuple[Array, DType]:
    distance = as_array(predictions) - as_array(targets)
    return _floats(name, distance)
