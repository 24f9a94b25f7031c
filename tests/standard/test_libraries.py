"""Libraries that are written for the standard run on harp's arrays: array-api-compat, scikit-learn, SciPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import array_api_compat
import array_api_extra as xpx
import einops
import nanoarrow
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import InterchangeError, MutationError
from harp.trace.array.array import Array


def test_compat():
    x = hnp.ones((2, 3), "float32")
    assert array_api_compat.is_array_api_obj(x) and not array_api_compat.is_numpy_array(x)
    assert array_api_compat.array_namespace(x, x, 1.0) is hnp
    assert array_api_compat.device(x) == "cpu" and array_api_compat.to_device(x, "cpu") is x
    assert array_api_compat.size(x) == 6 and not array_api_compat.is_lazy_array(x)
    with pytest.raises(TypeError):
        array_api_compat.array_namespace(x, np.ones(2))


def test_arrays_that_do_not_change():
    x, y = hnp.asarray([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    told = harp.extend.array_api_compat()
    assert {"array_api_compat.common._helpers", "array_api_extra._at"} <= set(told)
    assert harp.extend.array_api_compat() == told
    assert not array_api_compat.is_writeable_array(x) and array_api_compat.is_writeable_array(y)
    for index in ((slice(None), 0), 1, y > 2, Ellipsis):
        for how, value in (("set", 7.0), ("add", 2.0), ("multiply", 3.0), ("divide", 4.0), ("min", 2.5), ("max", 2.5)):
            ours = getattr(xpx.at(x)[hnp.asarray(index) if isinstance(index, np.ndarray) else index], how)(value)
            theirs = getattr(xpx.at(y)[index], how)(value, copy=True)
            np.testing.assert_array_equal(ours, theirs, err_msg=f"{index} {how}")
    with pytest.raises(MutationError, match="copy"):
        xpx.at(x)[0].set(1.0, copy=False)
    np.testing.assert_array_equal(harp.jit(lambda x: xpx.at(x)[0].add(1.0))(x), y + np.array([[1.0], [0.0]]))
    # SciPy's putting of elements in a statement would be lost in silence
    with pytest.raises(MutationError, match="put_along_axis"):
        hnp.put_along_axis(x, hnp.argsort(x), x, axis=1)


def test_dtypes_are_found_by_those_of_numpy():
    named = hnp.__array_namespace_info__().dtypes()
    assert {dtype: name for name, dtype in named.items()}[hnp.ones(3).dtype] == "float64"
    assert all(getattr(hnp, name) == dtype for name, dtype in named.items())


def test_einops():
    harp.extend.einops()
    harp.extend.einops()
    x = np.random.default_rng(0).normal(size=(4, 6, 3))
    calls = (
        lambda x: einops.rearrange(x, "(a b) c d -> b (a d) c", a=2),
        lambda x: einops.rearrange([x, x], "l a b c -> a (l b c)"),
        lambda x: einops.reduce(x, "(a b) c d -> b d", "mean", a=2),
        lambda x: einops.reduce(x, "a b c -> c", "max"),
        lambda x: einops.repeat(x, "a b c -> a r b c", r=3),
        lambda x: einops.einsum(x, x, "a b c, a d c -> b d"),
        lambda x: einops.pack([x, x[:, :, 0]], "a b *")[0],
    )
    for call in calls:
        np.testing.assert_allclose(call(hnp.asarray(x)), call(x), rtol=1e-12)
        np.testing.assert_allclose(harp.jit(call)(x), call(x), rtol=1e-12)
    assert isinstance(einops.rearrange(hnp.asarray(x), "a b c -> c b a"), Array)
    one = harp.jit(lambda x: einops.reduce(einops.rearrange(x, "(a k) b -> a (k b)", k=2), "a b -> a", "sum"))
    for rows in (2, 4, 10):
        np.testing.assert_allclose(one(np.ones((rows, 3))), np.full(rows // 2, 6.0))
    assert one.compilations == 1


def test_columns_of_tables():
    for dtype in ("bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64"):
        for length in (0, 1, 11):
            values = (np.arange(length) % 3).astype(dtype)
            column = nanoarrow.Array(hnp.asarray(values))
            assert column.to_pylist() == values.tolist()
    assert nanoarrow.Array(hnp.asarray(np.arange(6.0))[::2]).to_pylist() == [0, 2, 4]
    values = hnp.arange(5.0)
    assert nanoarrow.c_array(values).buffers[1] == np.asarray(values).ctypes.data
    for array in (hnp.ones((2, 2)), hnp.ones(3, "complex64"), hnp.asarray(1.0)):
        with pytest.raises(InterchangeError):
            array.__arrow_c_array__()


def test_code_for_the_standard_runs_in_jit_and_outside():
    def distances(x, y):
        xp = array_api_compat.array_namespace(x, y)
        apart = xp.expand_dims(x, axis=1) - xp.expand_dims(y, axis=0)
        return xp.linalg.vector_norm(apart, axis=-1) / xp.astype(xp.asarray(x.shape[0]), xp.float64)

    x, y = np.random.default_rng(0).normal(size=(2, 5, 3))
    expected = np.linalg.norm(x[:, None] - y[None], axis=-1) / 5
    np.testing.assert_allclose(distances(hnp.asarray(x), hnp.asarray(y)), expected, rtol=1e-12)
    np.testing.assert_allclose(harp.jit(distances)(x, y), expected, rtol=1e-12)


# SciPy reads the variable when it is imported, so the libraries run in a process of their own.
SCRIPT = """
import json, warnings
import numpy as np
import harp
import harp.numpy as hnp
import sklearn
sklearn.set_config(array_api_dispatch=True)
from sklearn import metrics
from sklearn.metrics import pairwise
from sklearn.preprocessing import KernelCenterer, LabelEncoder
from sklearn.linear_model import PoissonRegressor
from scipy import differentiate, stats, special, integrate

rng = np.random.default_rng(0)
x, y = np.abs(rng.normal(size=(6, 3))), np.abs(rng.normal(size=(6, 3)))


def kinds(a):
    return (a[:, 0] > 0.5) * 2 + (a[:, 1] > 1)


calls = {
    "mean_squared_error": metrics.mean_squared_error,
    "mean_absolute_error": metrics.mean_absolute_error,
    "mean_pinball_loss": metrics.mean_pinball_loss,
    "accuracy_score": lambda a, b: metrics.accuracy_score(kinds(a), kinds(b)),
    "calinski_harabasz_score": lambda a, b: metrics.calinski_harabasz_score(a, kinds(b)),
    "KernelCenterer": lambda a, b: KernelCenterer().fit_transform(a @ b.T),
    "LabelEncoder": lambda a, b: LabelEncoder().fit_transform(kinds(a)),
    "euclidean_distances": pairwise.euclidean_distances,
    "rbf_kernel": pairwise.rbf_kernel,
    "polynomial_kernel": pairwise.polynomial_kernel,
    "gmean": lambda a, b: stats.gmean(a),
    "kurtosis": lambda a, b: stats.kurtosis(a),
    "entropy": lambda a, b: stats.entropy(a),
    "ttest_1samp": lambda a, b: stats.ttest_1samp(a, 0.5).pvalue,
    "sem": lambda a, b: stats.sem(a),
    "directional_stats": lambda a, b: stats.directional_stats(a).mean_direction,
    "softmax": lambda a, b: special.softmax(a, axis=1),
    "trapezoid": lambda a, b: integrate.trapezoid(a, axis=0),
    "gstd": lambda a, b: stats.gstd(a[:, 0]),
    "lmoment": lambda a, b: stats.lmoment(a[:, 0]),
    "pearsonr": lambda a, b: stats.pearsonr(a[:, 0], b[:, 0]).statistic,
    "mannwhitneyu": lambda a, b: stats.mannwhitneyu(a[:, 0], b[:, 0]).pvalue,
    "logsumexp": lambda a, b: special.logsumexp(a, axis=1),
    "derivative": lambda a, b: differentiate.derivative(lambda t: t**3, a[:, 0]).df,
    "PoissonRegressor": lambda a, b: PoissonRegressor().fit(a, b[:, 0]).coef_,
}
harp.extend.array_api_compat()
for name, call in calls.items():
    warnings.simplefilter("ignore")
    ours, theirs = call(hnp.asarray(x), hnp.asarray(y)), call(x, y)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-7, err_msg=name)
    print(json.dumps([name, type(ours).__module__]))
"""


def test_scikit_learn_and_scipy():
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    where = dict(map(json.loads, run.stdout.splitlines()))
    assert len(where) == 25
    arrays = {"KernelCenterer", "LabelEncoder", "euclidean_distances", "rbf_kernel", "gmean", "kurtosis", "entropy"}
    arrays |= {"sem", "softmax", "trapezoid", "ttest_1samp", "gstd", "lmoment", "logsumexp", "derivative"}
    assert {where[name] for name in arrays} == {Array.__module__}
