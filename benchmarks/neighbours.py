"""Calls of other libraries on arrays of harp, of JAX and of NumPy: how many run, and what stops the others.

python -m benchmarks.neighbours [--only NAME...]

Each call gets arrays of one library and must give NumPy's numbers. SciPy and scikit-learn compute with the array's own
functions (`SCIPY_ARRAY_API=1`, `array_api_dispatch`). A library that is not installed is left out.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported

import numpy as np

import harp

SECONDS = 20  # that a call may take: an iteration may not end
PEERS = {"harp": "harp.numpy", "jax": "jax.numpy", "numpy": "numpy"}
Make = Callable[[Any], Any]
Rows = dict[str, Callable[[Any, Any, Any, Make], Any]]  # of x, y (6 by 3, positive), kinds (6 labels), and asarray


def _column(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return (x[:, 0],)


def _columns(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return x[:, 0], y[:, 0]


def _matrix(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return (x,)


def _matrices(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return x, y


def _squares(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return (make(np.arange(24.0) ** 2),)


def _waves(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return make(np.cos(np.arange(64.0))), make(np.sin(np.arange(64.0) ** 2))


def _wave(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return (make(np.cos(np.arange(64.0))),)


def _labels(x: Any, y: Any, kinds: Any, make: Make) -> tuple[Any, ...]:
    return kinds, kinds[::-1]


def _rows(module: Any, names: str, pick: Callable[..., tuple[Any, ...]], *more: Any, **options: Any) -> Rows:
    """A row for each function of a module, of the same arguments."""
    return {
        f"{module.__name__.partition('.')[2]}.{name}": partial(_call, getattr(module, name), pick, more, options)
        for name in names.split()
    }


def _call(function: Any, pick: Any, more: tuple[Any, ...], options: dict[str, Any], *arguments: Any) -> Any:
    return function(*pick(*arguments), *more, **options)


def _fitted(name: str, estimator: Any, target: int | None, use: str) -> Rows:
    """A row for an estimator, of the targets that it learns: 0 for numbers, 1 for classes."""

    def row(x: Any, y: Any, kinds: Any, make: Make) -> Any:
        given = x @ x.T if name == "KernelCenterer" else x
        learned = estimator.fit(given) if target is None else estimator.fit(given, (y[:, 0], kinds)[target])
        return getattr(learned, use)(given) if use != "means_" else learned.means_

    return {name: row}


def scikit_learn() -> Rows:
    import sklearn
    from sklearn import decomposition, linear_model, metrics, mixture, model_selection, naive_bayes, preprocessing
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.metrics import pairwise

    sklearn.set_config(array_api_dispatch=True)
    rows = _rows(metrics, "accuracy_score balanced_accuracy_score cohen_kappa_score confusion_matrix hamming_loss "
                 "multilabel_confusion_matrix precision_recall_fscore_support zero_one_loss", _labels)  # fmt: skip
    rows |= _rows(metrics, "f1_score jaccard_score precision_score recall_score", _labels, average="macro")
    rows |= _rows(metrics, "fbeta_score", _labels, average="macro", beta=2.0)
    rows |= _rows(metrics, "d2_absolute_error_score d2_tweedie_score explained_variance_score max_error "
                  "mean_absolute_error mean_absolute_percentage_error mean_gamma_deviance mean_pinball_loss "
                  "mean_poisson_deviance mean_squared_error mean_squared_log_error median_absolute_error r2_score "
                  "root_mean_squared_error root_mean_squared_log_error", _columns)  # fmt: skip
    rows |= _rows(pairwise, "additive_chi2_kernel chi2_kernel cosine_distances cosine_similarity euclidean_distances "
                  "laplacian_kernel linear_kernel manhattan_distances paired_cosine_distances "
                  "paired_euclidean_distances polynomial_kernel rbf_kernel sigmoid_kernel", _matrices)  # fmt: skip
    for name in ("KernelCenterer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "PolynomialFeatures",
                 "StandardScaler", "Binarizer"):  # fmt: skip
        rows |= _fitted(name, getattr(preprocessing, name)(), None, "transform")
    rows |= _fitted("PCA", decomposition.PCA(2, svd_solver="full"), None, "get_covariance")
    rows["PCA"] = lambda x, y, kinds, make: abs(decomposition.PCA(2, svd_solver="full").fit_transform(x))
    rows["PCA-eigh"] = lambda x, y, kinds, make: abs(
        decomposition.PCA(2, svd_solver="covariance_eigh").fit_transform(x)
    )
    rows |= _fitted("Ridge", linear_model.Ridge(solver="svd"), 0, "predict")
    rows |= _fitted("RidgeCV", linear_model.RidgeCV(), 0, "predict")
    rows |= _fitted("PoissonRegressor", linear_model.PoissonRegressor(), 0, "predict")
    rows |= _fitted("RidgeClassifier", linear_model.RidgeClassifier(solver="svd"), 1, "predict")
    rows |= _fitted("LogisticRegression", linear_model.LogisticRegression(), 1, "predict")
    rows |= _fitted("GaussianNB", naive_bayes.GaussianNB(), 1, "predict")
    rows |= _fitted("LinearDiscriminantAnalysis", LinearDiscriminantAnalysis(), 1, "predict")
    mixed = mixture.GaussianMixture(1, init_params="random_from_data", random_state=0)
    rows |= _fitted("GaussianMixture", mixed, None, "means_")
    return rows | {
        "LabelEncoder": lambda x, y, kinds, make: preprocessing.LabelEncoder().fit_transform(kinds),
        "LabelBinarizer": lambda x, y, kinds, make: preprocessing.LabelBinarizer().fit_transform(kinds),
        "train_test_split": lambda x, y, kinds, make: model_selection.train_test_split(x, random_state=0)[0],
        "cross_val_predict": lambda x, y, kinds, make: model_selection.cross_val_predict(
            linear_model.Ridge(solver="svd"), x, y[:, 0], cv=2
        ),
    }


def scipy() -> Rows:
    from scipy import cluster, constants, fft, integrate, interpolate, ndimage, signal, special, stats
    from scipy.spatial import distance, transform

    rows = _rows(stats, "circmean circstd circvar describe differential_entropy entropy expectile gmean gstd hmean iqr "
                 "jarque_bera kstat kstatvar kurtosis lmoment mode moment skew sem tmax tmean tmin tsem tstd tvar "
                 "variation zscore rankdata chisquare", _column)  # fmt: skip
    rows |= _rows(stats, "kurtosistest normaltest skewtest", _squares)
    rows |= _rows(stats, "bartlett brunnermunzel f_oneway fligner kruskal levene mannwhitneyu pearsonr spearmanr "
                  "ttest_ind ttest_rel zmap energy_distance ks_2samp linregress "
                  "wasserstein_distance", _columns)  # fmt: skip
    rows |= _rows(
        special, "entr erf erfc expit gammaln i0 i0e i1 i1e log_ndtr ndtr digamma exp1 expm1 log1p exp2", _column
    )
    rows |= _rows(special, "chdtr chdtrc gammainc gammaincc kl_div rel_entr stdtr xlogy betaln", _columns)
    rows |= _rows(special, "logsumexp softmax log_softmax", _matrix, axis=0)
    rows |= _rows(fft, "dct dst fft fftn hfft ihfft irfft rfft rfftn fftshift", _matrix)
    rows |= _rows(fft, "fht", _matrix, 0.1, 0.0)
    rows |= _rows(signal, "convolve correlate fftconvolve oaconvolve convolve2d correlate2d", _matrices)
    rows |= _rows(signal, "detrend hilbert periodogram welch envelope wiener", _wave)
    rows |= _rows(signal, "csd coherence", _waves)
    rows |= (
        _rows(signal, "resample", _wave, 8) | _rows(signal, "decimate", _wave, 2) | _rows(signal, "medfilt", _wave, 3)
    )
    rows |= _rows(signal, "savgol_filter", _wave, 5, 2) | _rows(ndimage, "sobel laplace", _matrix)
    rows |= _rows(ndimage, "gaussian_filter", _matrix, 1.0) | _rows(ndimage, "uniform_filter median_filter", _matrix, 3)
    rows |= _rows(ndimage, "shift", _matrix, 1) | _rows(ndimage, "zoom", _matrix, 2)
    rows |= _rows(distance, "cdist", _matrices) | _rows(distance, "pdist", _matrix)
    rows |= _rows(integrate, "simpson trapezoid cumulative_trapezoid", _matrix, axis=0)
    return rows | _calculus() | {
        "stats.trim_mean": lambda x, y, kinds, make: stats.trim_mean(x[:, 0], 0.2),
        "stats.directional_stats": lambda x, y, kinds, make: stats.directional_stats(x).mean_direction,
        "stats.combine_pvalues": lambda x, y, kinds, make: stats.combine_pvalues(x[:, 0] / 9),
        "stats.false_discovery_control": lambda x, y, kinds, make: stats.false_discovery_control(x[:, 0] / 9),
        "stats.ttest_1samp": lambda x, y, kinds, make: stats.ttest_1samp(x, 0.5),
        "stats.quantile": lambda x, y, kinds, make: stats.quantile(x[:, 0], 0.3),
        "special.betainc": lambda x, y, kinds, make: special.betainc(x, y, x / (1 + x)),
        "special.logit": lambda x, y, kinds, make: special.logit(x / 5),
        "special.ndtri": lambda x, y, kinds, make: special.ndtri(x / 5),
        "special.stdtrit": lambda x, y, kinds, make: special.stdtrit(x, y / 5),
        "special.polygamma": lambda x, y, kinds, make: special.polygamma(1, x),
        "special.zeta": lambda x, y, kinds, make: special.zeta(x + 1.5, y + 1),
        "signal.lfilter": lambda x, y, kinds, make: signal.lfilter(make([1.0, 0.5]), make([1.0, -0.2]), x[:, 0]),
        "signal.sosfilt": lambda x, y, kinds, make: signal.sosfilt(make([[1.0, 0.5, 0, 1, -0.2, 0]]), x[:, 0]),
        "Rotation": lambda x, y, kinds, make: transform.Rotation.from_rotvec(x).as_matrix(),
        "Rotation.apply": lambda x, y, kinds, make: transform.Rotation.from_rotvec(x).apply(y),
        "whiten": lambda x, y, kinds, make: cluster.vq.whiten(x),
        "vq": lambda x, y, kinds, make: cluster.vq.vq(x, y)[0],
        "convert_temperature": lambda x, y, kinds, make: constants.convert_temperature(x, "C", "K"),
        "lambda2nu": lambda x, y, kinds, make: constants.lambda2nu(x),
        "BSpline": lambda x, y, kinds, make: interpolate.make_interp_spline(make(np.arange(6.0)), x[:, 0])(
            make([1.5, 2.5])
        ),
        "PchipInterpolator": lambda x, y, kinds, make: interpolate.PchipInterpolator(
            make(np.arange(6.0)), x[:, 0]
        )(make([1.5, 2.5])),
        "RegularGridInterpolator": lambda x, y, kinds, make: interpolate.RegularGridInterpolator(
            (make(np.arange(6.0)), make(np.arange(3.0))), x
        )(make([[1.5, 0.5]])),
    }  # fmt: skip


def _calculus() -> Rows:
    from scipy import differentiate, integrate
    from scipy.optimize import elementwise

    return {
        "tanhsinh": lambda x, y, kinds, make: integrate.tanhsinh(lambda t: t**2, x[0, 0] * 0, x[0, 0]).integral,
        "nsum": lambda x, y, kinds, make: integrate.nsum(lambda t: 1 / t**2, make(1.0), make(np.inf)).sum,
        "cubature": lambda x, y, kinds, make: (
            integrate.cubature(lambda t: t[:, 0] ** 2, make([0.0]), make([1.0])).estimate
        ),
        "derivative": lambda x, y, kinds, make: differentiate.derivative(lambda t: t**3, x[:, 0]).df,
        "jacobian": lambda x, y, kinds, make: differentiate.jacobian(lambda t: t**3, x[:, 0]).df,
        "hessian": lambda x, y, kinds, make: differentiate.hessian(lambda t: (t**3).sum(axis=0), x[:, 0]).ddf,
        "find_root": lambda x, y, kinds, make: elementwise.find_root(lambda t: t**2 - 2.0, (make(0.0), make(2.0))).x,
        "find_minimum": lambda x, y, kinds, make: (
            elementwise.find_minimum(lambda t: (t - 1.0) ** 2, (make(-1.0), make(0.5), make(3.0))).f_x
        ),
        "bracket_root": lambda x, y, kinds, make: elementwise.bracket_root(lambda t: t - 5.0, make(0.0)).bracket,
    }


def array_api_extra() -> Rows:
    import array_api_extra as xpx

    return {
        "xpx.angle": lambda x, y, kinds, make: xpx.angle(x + 1j * y),
        "xpx.apply_where": lambda x, y, kinds, make: xpx.apply_where(
            x > 0.5, (x, y), lambda a, b: a / b, fill_value=0.0
        ),
        "xpx.argpartition": lambda x, y, kinds, make: xpx.argpartition(x[:, 0], 2)[2],
        "xpx.at.set": lambda x, y, kinds, make: xpx.at(x)[1, :].set(7.0),
        "xpx.at.add": lambda x, y, kinds, make: xpx.at(x)[1:3, 0].add(7.0),
        "xpx.at.multiply": lambda x, y, kinds, make: xpx.at(x, x > 0.5).multiply(7.0),
        "xpx.at.max": lambda x, y, kinds, make: xpx.at(x)[1, :].max(7.0),
        "xpx.atleast_nd": lambda x, y, kinds, make: xpx.atleast_nd(x, ndim=3),
        "xpx.broadcast_shapes": lambda x, y, kinds, make: xpx.broadcast_shapes(x.shape, y[:1].shape),
        "xpx.cov": lambda x, y, kinds, make: xpx.cov(x),
        "xpx.create_diagonal": lambda x, y, kinds, make: xpx.create_diagonal(x[0]),
        "xpx.default_dtype": lambda x, y, kinds, make: x.dtype == xpx.default_dtype(_namespace(x)),
        "xpx.expand_dims": lambda x, y, kinds, make: xpx.expand_dims(x, axis=(0, 2)),
        "xpx.isclose": lambda x, y, kinds, make: xpx.isclose(x, y),
        "xpx.isin": lambda x, y, kinds, make: xpx.isin(kinds, make([1, 2])),
        "xpx.kron": lambda x, y, kinds, make: xpx.kron(x, y),
        "xpx.nan_to_num": lambda x, y, kinds, make: xpx.nan_to_num(x / 0.0),
        "xpx.nunique": lambda x, y, kinds, make: xpx.nunique(kinds),
        "xpx.one_hot": lambda x, y, kinds, make: xpx.one_hot(kinds, 4),
        "xpx.pad": lambda x, y, kinds, make: xpx.pad(x, 2),
        "xpx.partition": lambda x, y, kinds, make: xpx.partition(x[:, 0], 2)[2],
        "xpx.setdiff1d": lambda x, y, kinds, make: xpx.setdiff1d(kinds, make([1])),
        "xpx.sinc": lambda x, y, kinds, make: xpx.sinc(x),
        "xpx.union1d": lambda x, y, kinds, make: xpx.union1d(kinds, make([7])),
    }


def _namespace(x: Any) -> Any:
    import array_api_compat

    return array_api_compat.array_namespace(x)


def tensors() -> Rows:
    import einops

    harp.extend.einops()
    return {
        "einops.rearrange": lambda x, y, kinds, make: einops.rearrange(x, "(a b) c -> b (a c)", a=2),
        "einops.reduce": lambda x, y, kinds, make: einops.reduce(x, "(a b) c -> b c", "mean", a=2),
        "einops.reduce-max": lambda x, y, kinds, make: einops.reduce(x, "a b -> b", "max"),
        "einops.repeat": lambda x, y, kinds, make: einops.repeat(x, "a b -> a b r", r=2),
        "einops.rearrange-list": lambda x, y, kinds, make: einops.rearrange([x, y], "l a b -> a (l b)"),
        "einops.einsum": lambda x, y, kinds, make: einops.einsum(x, y, "a b, c b -> a c"),
        "einops.pack": lambda x, y, kinds, make: einops.pack([x, y[0]], "* c")[0],
        "einops.unpack": lambda x, y, kinds, make: einops.unpack(x, [[2], [4]], "* c")[1],
        "einops.asnumpy": lambda x, y, kinds, make: einops.asnumpy(x),
        "einops.parse_shape": lambda x, y, kinds, make: einops.parse_shape(x, "a _")["a"],
    }


def tables() -> Rows:
    import pandas as pd
    import polars as pl
    import xarray as xr

    return {
        "pandas.Series": lambda x, y, kinds, make: pd.Series(x[:, 0]).rolling(2).mean(),
        "pandas.DataFrame": lambda x, y, kinds, make: pd.DataFrame(x, columns=list("abc")).describe(),
        "pandas-column": lambda x, y, kinds, make: make(pd.DataFrame(np.asarray(x))[0]) * 2,
        "polars.Series": lambda x, y, kinds, make: pl.Series(x[:, 0]).to_numpy(),
        "polars.DataFrame": lambda x, y, kinds, make: pl.DataFrame({"a": x[:, 0]}).to_numpy(),
        "polars-column": lambda x, y, kinds, make: make(pl.Series(np.asarray(x[:, 0]))) * 2,
        "xarray.mean": lambda x, y, kinds, make: xr.DataArray(x, dims=("a", "b")).mean("a").values,
        "xarray.dot": lambda x, y, kinds, make: xr.dot(
            xr.DataArray(x, dims=("a", "b")), xr.DataArray(y, dims=("a", "b"))
        ),
        "xarray.rolling": lambda x, y, kinds, make: xr.DataArray(x, dims=("a", "b")).rolling(a=2).mean(),
        "xarray.interp": lambda x, y, kinds, make: xr.DataArray(
            x, dims=("a", "b"), coords={"a": np.arange(6.0)}
        ).interp(a=1.5),
        "xarray.where": lambda x, y, kinds, make: xr.where(xr.DataArray(x) > 0.5, 1.0, 0.0),
        "xarray.concat": lambda x, y, kinds, make: xr.concat([xr.DataArray(x), xr.DataArray(y)], dim="dim_0"),
        "xarray.broadcast": lambda x, y, kinds, make: (
            (xr.DataArray(x, dims=("a", "b")) + xr.DataArray(y[0], dims=("b",))).values
        ),
    }


def files() -> Rows:
    import h5py
    import zarr

    def kept(x: Any, make: Make) -> Any:
        with tempfile.TemporaryDirectory() as folder, h5py.File(f"{folder}/x.h5", "w") as file:
            file["x"] = x
            return make(file["x"]) * 2

    return {
        "h5py": lambda x, y, kinds, make: kept(x, make),
        "zarr": lambda x, y, kinds, make: make(zarr.array(np.asarray(x))) * 2,
        "zarr-store": lambda x, y, kinds, make: zarr.array(x)[:],
    }


def others() -> Rows:
    import torch
    from matplotlib.figure import Figure

    return {
        "torch.from_dlpack": lambda x, y, kinds, make: torch.from_dlpack(x).numpy(),
        "torch-to": lambda x, y, kinds, make: make(torch.from_numpy(np.array(x))) * 2,
        "torch.as_tensor": lambda x, y, kinds, make: torch.as_tensor(np.asarray(x).copy()).numpy(),
        "matplotlib": lambda x, y, kinds, make: Figure().subplots().plot(x[:, 0], y[:, 0])[0].get_ydata(),
        "numba": lambda x, y, kinds, make: importlib.import_module("numba").njit(lambda a: a.sum())(np.asarray(x)),
    }


def numpy_functions() -> Rows:
    names = "abs argsort cumsum diff exp mean ravel sort std sum transpose"
    rows = {f"numpy.{name}": partial(_call, getattr(np, name), _matrix, (), {}) for name in names.split()}
    return rows | {
        "numpy.linalg.norm": lambda x, y, kinds, make: np.linalg.norm(x),
        "numpy.concatenate": lambda x, y, kinds, make: np.concatenate([x, y]),
        "numpy.stack": lambda x, y, kinds, make: np.stack([x, y]),
        "numpy.where": lambda x, y, kinds, make: np.where(x > 0.5, x, y),
        "numpy.dot": lambda x, y, kinds, make: np.dot(x, y.T),
        "numpy.reshape": lambda x, y, kinds, make: np.reshape(x, (3, 6)),
    }


GROUPS: tuple[Callable[[], Rows], ...] = (
    scikit_learn, scipy, array_api_extra, tensors, tables, files, others, numpy_functions,
)  # fmt: skip


def leaves(result: Any) -> Iterator[Any]:
    """The arrays and numbers of a result."""
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from leaves(part)
    elif isinstance(result, dict):
        yield from leaves(list(result.values()))
    else:
        yield np.asarray(result)


def outcome(row: Any, peer: str, expected: Any) -> str | None:
    """What stops a call, or None if it runs and its numbers are NumPy's."""
    namespace = importlib.import_module(PEERS[peer])
    rng = np.random.default_rng(0)
    given = [np.abs(rng.normal(size=(6, 3))) + 0.1 for _ in range(2)] + [np.array([0, 1, 2, 0, 1, 2])]
    signal.alarm(SECONDS)
    try:
        result = row(*map(namespace.asarray, given), namespace.asarray)
        if expected is not None:
            for ours, theirs in zip(leaves(result), leaves(expected), strict=True):
                np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-8)
    except Exception as error:
        return f"{type(error).__name__}: {error}".strip().partition("\n")[0][:150]
    finally:
        signal.alarm(0)
    return None


def _give_up(number: int, frame: object) -> None:
    raise TimeoutError(f"it ran for {SECONDS} seconds")


def result_of_numpy(row: Any) -> Any:
    rng = np.random.default_rng(0)
    given = [np.abs(rng.normal(size=(6, 3))) + 0.1 for _ in range(2)] + [np.array([0, 1, 2, 0, 1, 2])]
    return row(*given, np.asarray)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neighbours", description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of groups or calls")
    parser.add_argument("--peers", nargs="*", default=["harp", "jax"])
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _give_up)
    if "jax" in options.peers:
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    for group in GROUPS:
        try:
            rows = group()
            harp.extend.array_api_compat()
        except ImportError as error:
            print(f"{group.__name__}: left out, {error}")
            continue
        passed, calls = dict.fromkeys(options.peers, 0), 0
        for name, row in rows.items():
            if options.only and not {name, group.__name__} & set(options.only):
                continue
            try:
                expected = result_of_numpy(row)
            except Exception as error:
                print(f"  {name:34} numpy: {type(error).__name__}: {str(error)[:90]}")
                continue
            calls += 1
            for peer in options.peers:
                problem = outcome(row, peer, expected)
                passed[peer] += problem is None
                if problem:
                    print(f"  {name:34} {peer}: {problem}")
        counts = ", ".join(f"{peer} {count}" for peer, count in passed.items())
        print(f"{group.__name__}: of {calls} calls {counts}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
