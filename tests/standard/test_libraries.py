"""Libraries that are written for the standard run on harp's arrays: array-api-compat, scikit-learn, SciPy."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import array_api_compat
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.trace.array.array import Array


def test_compat():
    x = hnp.ones((2, 3), "float32")
    assert array_api_compat.is_array_api_obj(x) and not array_api_compat.is_numpy_array(x)
    assert array_api_compat.array_namespace(x, x, 1.0) is hnp
    assert array_api_compat.device(x) == "cpu" and array_api_compat.to_device(x, "cpu") is x
    assert array_api_compat.size(x) == 6 and not array_api_compat.is_lazy_array(x)
    with pytest.raises(TypeError):
        array_api_compat.array_namespace(x, np.ones(2))


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
import harp.numpy as hnp
import sklearn
sklearn.set_config(array_api_dispatch=True)
from sklearn import metrics
from sklearn.metrics import pairwise
from sklearn.preprocessing import KernelCenterer, LabelEncoder
from scipy import stats, special, integrate

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
}
for name, call in calls.items():
    warnings.simplefilter("ignore")
    ours, theirs = call(hnp.asarray(x), hnp.asarray(y)), call(x, y)
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-10, err_msg=name)
    print(json.dumps([name, type(ours).__module__]))
"""


def test_scikit_learn_and_scipy():
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    where = dict(map(json.loads, run.stdout.splitlines()))
    assert len(where) == 18
    arrays = {"KernelCenterer", "LabelEncoder", "euclidean_distances", "rbf_kernel", "gmean", "kurtosis", "entropy"}
    arrays |= {"sem", "softmax", "trapezoid", "ttest_1samp"}
    assert {where[name] for name in arrays} == {Array.__module__}
