"""Losses against SciPy, also at extreme logits; gradients by differences; alignments of labels counted one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.testing as npt
import pytest
from scipy import special

import harp
import harp.numpy as hnp
from harp import nn
from harp.errors import DTypeError, ShapeError

RNG = np.random.default_rng(0)
LOGITS, LABELS = RNG.normal(size=(5, 4)) * 3, np.array([2, 0, 3, 1, 1])
EXTREME = np.array([-1e4, -745.0, -40.0, -1e-3, 0.0, 30.0, 800.0, 1e4])


def nll(logits, labels):
    return -np.take_along_axis(special.log_softmax(logits, -1), labels[..., None], -1)[..., 0]


def test_cross_entropy_of_classes():
    f = nn.softmax_cross_entropy_with_integer_labels
    npt.assert_allclose(f(LOGITS, LABELS), nll(LOGITS, LABELS), rtol=1e-12)
    npt.assert_allclose(f(LOGITS.T, LABELS, axis=0), nll(LOGITS, LABELS), rtol=1e-12)
    smooth = 0.9 * nll(LOGITS, LABELS) - 0.1 * special.log_softmax(LOGITS, -1).mean(-1)
    npt.assert_allclose(f(LOGITS, LABELS, label_smoothing=0.1), smooth, rtol=1e-12)
    counts, ignored = LABELS != 1, np.where(LABELS == 1, -100, LABELS)
    npt.assert_allclose(f(LOGITS, ignored, where=counts), np.where(counts, nll(LOGITS, LABELS), 0), rtol=1e-12)
    slope = harp.jit(harp.grad(lambda x: hnp.sum(f(x, ignored, where=counts))))(LOGITS)
    expected = counts[:, None] * (special.softmax(LOGITS, -1) - np.eye(4)[LABELS])
    npt.assert_allclose(slope, expected, rtol=1e-10, atol=1e-14)
    classes = np.arange(4) < 3
    found = f(LOGITS[:2], LABELS[:2], where=classes[None], label_smoothing=0.5)
    logs = special.log_softmax(LOGITS[:2, :3], -1)
    npt.assert_allclose(found, 0.5 * nll(LOGITS[:2, :3], LABELS[:2]) - 0.5 * logs.mean(-1), rtol=1e-12)
    assert np.isnan(f(LOGITS, np.array([4, -1, 0, 0, 0]))).tolist() == [True, True, False, False, False]


def test_cross_entropy_keeps_digits():
    compiled = harp.jit(nn.softmax_cross_entropy_with_integer_labels)
    logits = np.array([[1e4, 0.0], [1e300, -1e300], [50.0, 0.0], [0.0, -np.inf]])
    for label, expected in (
        (1, [1e4, np.inf, 50 + math.log1p(math.exp(-50)), np.inf]),
        (0, [0.0, 0.0, math.exp(-50), 0]),
    ):
        labels = np.full(4, label)
        found = nn.softmax_cross_entropy_with_integer_labels(logits, labels)
        npt.assert_allclose(found[:3], np.asarray(expected[:3]).clip(max=2e300), rtol=1e-12, atol=1e-16)
        npt.assert_array_equal(found[3], expected[3])
        npt.assert_array_equal(compiled(logits, labels), found)
    large = nn.softmax_cross_entropy_with_integer_labels(np.array([[1e8, 1e8 - 1]], np.float64), np.array([1]))
    npt.assert_allclose(large, [1 + math.log1p(math.exp(-1))], rtol=1e-12)


def test_cross_entropy_of_distributions():
    p = special.softmax(RNG.normal(size=(5, 4)), -1)
    npt.assert_allclose(nn.softmax_cross_entropy(LOGITS, p), -(p * special.log_softmax(LOGITS, -1)).sum(-1), rtol=1e-12)
    without = np.array([[0.0, -np.inf, 1.0]])
    found, slope = harp.value_and_grad(lambda x: nn.softmax_cross_entropy(x, np.array([[0.5, 0, 0.5]])).sum())(without)
    npt.assert_allclose(found, -special.log_softmax(without[0, ::2]).mean(), rtol=1e-12)
    assert np.isfinite(slope).all()


@pytest.mark.parametrize("label", [0.0, 0.25, 1.0])
def test_binary_cross_entropy(label):
    expected = -(label * special.log_expit(EXTREME) + (1 - label) * special.log_expit(-EXTREME))
    npt.assert_allclose(nn.sigmoid_binary_cross_entropy(EXTREME, label), expected, rtol=1e-12)
    slopes = harp.vmap(harp.grad(lambda x: nn.sigmoid_binary_cross_entropy(x, label)))(EXTREME)
    expected = (1 - label) * special.expit(EXTREME) - label * special.expit(-EXTREME)
    npt.assert_allclose(slopes, expected, rtol=1e-9, atol=1e-300)
    p = np.array([0.0, 1e-300, 0.5, 1.0]) if label == 0 else np.array([1e-300, 0.3, 1.0 - 1e-16])
    expected = -(special.xlogy(label, p) + special.xlog1py(1 - label, -p))
    npt.assert_allclose(nn.binary_cross_entropy(p, label), expected, rtol=1e-12)


def test_distances():
    x, y = RNG.normal(size=(2, 50)) * 3
    npt.assert_allclose(nn.squared_error(x, y), (x - y) ** 2, rtol=1e-12)
    npt.assert_allclose(nn.absolute_error(x, y), abs(x - y), rtol=1e-12)
    npt.assert_allclose(nn.huber_loss(x, y, 1.5), special.huber(1.5, x - y), rtol=1e-12)
    slopes = harp.vmap(harp.grad(nn.huber_loss))(np.array([-3.0, -0.5, 0.0, 0.5, 3.0]))
    npt.assert_allclose(slopes, [-1, -0.5, 0, 0.5, 1])
    a, b = RNG.normal(size=(2, 6, 5))
    cosine = (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)
    npt.assert_allclose(nn.cosine_similarity(a, b), cosine, rtol=1e-12)
    npt.assert_allclose(nn.cosine_similarity(a.astype("f") * 1e30, b), cosine, rtol=1e-5)
    npt.assert_allclose(nn.cosine_distance(a.T, b.T, axis=0), 1 - cosine, rtol=1e-12)
    assert float(nn.cosine_similarity(np.zeros(3), np.ones(3), 1e-8)) == 0


def test_kl_divergence():
    p, q = special.softmax(RNG.normal(size=(2, 6, 5)), -1)
    npt.assert_allclose(nn.kl_divergence(np.log(q), p), special.rel_entr(p, q).sum(-1), rtol=1e-11)
    with np.errstate(divide="ignore"):
        nothing = np.log([0.0, 1.0])
    assert float(nn.kl_divergence(nothing, np.array([0.0, 1.0]))) == 0


def test_dtypes():
    for dtype in ("float16", "bfloat16", "float32"):
        x = hnp.asarray(LOGITS).astype(dtype)
        for found in (
            nn.softmax_cross_entropy_with_integer_labels(x, LABELS),
            nn.sigmoid_binary_cross_entropy(x, 1.0),
            nn.huber_loss(x),
            nn.ctc_loss(x[None], np.zeros((1, 5)), LABELS[None, :2], np.zeros((1, 2))),
        ):
            assert str(found.dtype) == dtype


def by_alignments(logits, labels, blank):
    """The probability of labels: the sum over all alignments."""
    logs = special.log_softmax(logits, -1)
    total = 0.0
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        named = [c for c, _ in itertools.groupby(path) if c != blank]
        total += math.exp(logs[np.arange(len(path)), path].sum()) if named == list(labels) else 0
    return -math.log(total)


@pytest.mark.parametrize("blank", [0, 2])
def test_ctc(blank):
    one, two, _ = (c for c in range(4) if c != blank)
    sequences = [(4, (one, two)), (4, (one, one)), (3, (two,)), (4, ()), (2, (two, one)), (1, (one,))]
    logits = RNG.normal(size=(len(sequences), 4, 4)) * 2
    labels, gaps, ends = np.full((6, 2), 3), np.ones((6, 2)), np.ones((6, 4))
    for k, (steps, named) in enumerate(sequences):
        labels[k, : len(named)] = named
        gaps[k, : len(named)] = ends[k, :steps] = 0
    expected = [by_alignments(logits[k, :n], named, blank) for k, (n, named) in enumerate(sequences)]
    npt.assert_allclose(nn.ctc_loss(logits, ends, labels, gaps, blank), expected, rtol=1e-9)
    total = lambda x: nn.ctc_loss(x, ends, labels, gaps, blank).sum()
    ahead = RNG.normal(size=logits.shape)
    slope = np.sum(harp.grad(total)(logits) * ahead)
    by_steps = (float(total(logits + 1e-5 * ahead)) - float(total(logits - 1e-5 * ahead))) / 2e-5
    npt.assert_allclose(slope, by_steps, rtol=1e-6)


@pytest.mark.slow
def test_ctc_of_all_sizes_by_one_program():
    f = harp.jit(harp.value_and_grad(lambda x, labels: nn.ctc_loss(x, 0 * x[..., 0], labels, 0 * labels)[0]))
    for steps, count in ((3, 2), (1, 1), (2, 0)):
        x, labels = RNG.normal(size=(1, steps, 3)), np.arange(1, count + 1)[None]
        found, slope = f(x, labels)
        npt.assert_allclose(found, by_alignments(x[0], labels[0], 0), rtol=1e-9)
        npt.assert_allclose(np.asarray(slope).sum(-1), 0, atol=1e-12)
    assert float(f(x[:, :0], labels)[0]) == 0
    assert float(f(x[:, :1], np.array([[1, 2]]))[0]) > 9e4
    assert f.compilations == 1


def test_errors():
    with pytest.raises(DTypeError, match="labels of classes are integers"):
        nn.softmax_cross_entropy_with_integer_labels(LOGITS, LABELS * 1.0)
    with pytest.raises(DTypeError, match="squared_error takes real numbers"):
        nn.squared_error(1j)
    with pytest.raises(ShapeError, match="ctc_loss takes logits of 3 axes"):
        nn.ctc_loss(LOGITS, LABELS, LABELS, LABELS)
