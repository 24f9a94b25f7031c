"""Arguments have the names and the positions that they have in NumPy and in jax.numpy, but for those in a table."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import numpy.testing as npt
import pytest

import harp.numpy as hnp
from harp.errors import ArgumentError, DTypeError, ShapeError

# Arguments that mean nothing for arrays that do not change, and for one order of elements: they are not there.
MEANINGLESS = {"out", "order", "casting", "subok", "like", "overwrite_input", "out_sharding", "copy", "inplace"}
REASONS = {
    "array": "the same function as `asarray`",
    "clip": "jax.numpy's names; NumPy's `a_min` and `a_max` are other spellings",
    "fromstring": "NumPy's function, by position only",
    "histogram": "NumPy's order of `density` and `weights`",
    "histogram2d": "NumPy's order of `density` and `weights`",
    "histogramdd": "NumPy's order of `density` and `weights`",
    "i0": "by position only, as SciPy's",
    "imag": "jax.numpy's name",
    "linalg.matrix_rank": "NumPy's names",
    "linalg.pinv": "NumPy's names",
    "permute_dims": "the array API standard's name",
    "polymul": "the same function as `convolve`",
    "promote_types": "NumPy's names, which its function takes by position only",
    "real": "jax.numpy's name",
    "take": "jax.numpy's promise of unique indices is one of updates only",
}

# Optional arguments of NumPy's functions that are not there.
MISSING = {
    "array": "`asarray`, which adds no axes",
    "einsum_path": "NumPy's function, of shapes",
    "fill_diagonal": "diagonals do not go on below a square",
    "geomspace": "its ends are numbers",
    "intersect1d": "a program has one size for the positions, too: `unique_all` of both has them",
    "linalg.svd": "`eigh` is for such matrices",
    "logspace": "its ends are numbers",
    "nanpercentile": "quantiles have no weights",
    "nanquantile": "quantiles have no weights",
    "percentile": "quantiles have no weights",
    "quantile": "quantiles have no weights",
    "setdiff1d": "the elements are sorted in any case",
    "setxor1d": "the elements are sorted in any case",
    "trim_zeros": "it trims vectors",
}


def positional(function: object) -> list[str] | None:
    """The names of arguments that can be given by position; None where they are not known, or have no names."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.POSITIONAL_ONLY for p in parameters):
        return None
    return [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in MEANINGLESS]


def other_names(library: ModuleType) -> dict[str, list[tuple[str, str]]]:
    """Pairs of an argument's name in harp and in the library, for the functions where they differ."""
    found = {}
    for space in ("", "linalg.", "fft."):
        here, there = (getattr(module, space[:-1], module) for module in (hnp, library))
        for name in here.__all__:
            ours, theirs = getattr(here, name), getattr(there, name, None)
            if theirs is None or inspect.isclass(ours) or inspect.isclass(theirs) or not callable(ours):
                continue
            names = positional(theirs)
            if names:
                pairs = zip(positional(ours) or ["by position only"], names, strict=False)
                found[space + name] = [pair for pair in pairs if pair[0] != pair[1]]
    return {name: pairs for name, pairs in found.items() if pairs}


@pytest.mark.parametrize("name", ["numpy", "jax.numpy"])
def test_names_and_positions(name):
    others = other_names(pytest.importorskip(name))
    assert set(others) <= set(REASONS), {k: v for k, v in others.items() if k not in REASONS}


def test_optional_arguments():
    """All that mean something are there, but for those in a table."""
    missing = set()
    for space in ("", "linalg.", "fft."):
        here, there = (getattr(module, space[:-1], module) for module in (hnp, np))
        for name in here.__all__:
            ours, theirs = getattr(here, name), getattr(there, name, None)
            if not inspect.isroutine(theirs) or inspect.isclass(ours):
                continue
            try:
                known, wanted = (inspect.signature(f).parameters for f in (ours, theirs))
            except ValueError:
                continue
            if not any(p.kind is p.VAR_KEYWORD for p in (*known.values(), *wanted.values())):
                optional = {
                    k for k, p in wanted.items() if p.default is not p.empty and p.kind is not p.POSITIONAL_ONLY
                }
                if optional - set(known) - MEANINGLESS:
                    missing.add(space + name)
    assert missing == set(MISSING)


def test_reasons_are_needed():
    jax = pytest.importorskip("jax.numpy")
    assert set(REASONS) == set(other_names(np)) | set(other_names(jax))


def test_calls_by_names_of_numpy():
    x = np.array([[3.0, 1.0], [np.nan, 2.0]])
    calls = (
        lambda xp, x: xp.nansum(a=x, axis=1),
        lambda xp, x: xp.nan_to_num(x, True, 5.0),
        lambda xp, x: xp.where(x > 1, x, 0.0),
        lambda xp, x: xp.flip(m=x, axis=0),
        lambda xp, x: xp.searchsorted(a=x[0, ::-1], v=2.0, side="right"),
        lambda xp, x: xp.isin(element=x, test_elements=x[0]),
        lambda xp, x: xp.pad(array=x, pad_width=1),
        lambda xp, x: xp.linalg.svd(a=x[:1], full_matrices=False)[1],
        lambda xp, x: xp.broadcast_to(array=x, shape=(3, 2, 2)),
        lambda xp, x: xp.setdiff1d(ar1=x[0], ar2=x[0, :1]),
    )
    for call in calls:
        npt.assert_allclose(call(hnp, hnp.asarray(x)), call(np, x))
    with pytest.raises(ArgumentError, match="nan=5"):
        hnp.nan_to_num(x, 5.0)


X = np.ones((4, 6))
WRONG = {
    "negative length": (lambda: hnp.repeat(X, 2, total_repeat_length=-1), ShapeError),
    "half a length": (lambda: hnp.repeat(X, 2, total_repeat_length=2.5), ShapeError),
    "numbers for each": (lambda: hnp.repeat(X, [1, 2], 0, total_repeat_length=3), ShapeError),
    "frequencies": (lambda: hnp.cov(X, fweights=np.ones(6)), DTypeError),
    "cov in integers": (lambda: hnp.cov(X, dtype=int), DTypeError),
    "two names": (lambda: hnp.var(X, ddof=1, correction=1), ArgumentError),
    "two names, nan": (lambda: hnp.nanstd(X, ddof=1, correction=0), ArgumentError),
    "a larger mean": (lambda: hnp.std(X[0], mean=X), ShapeError),
    "a larger mean, nan": (lambda: hnp.nanvar(X[0], mean=X), ShapeError),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name):
    call, error = WRONG[name]
    with pytest.raises(error):
        call()
