"""The names of the array API standard 2024.12, which of them harp has, and the page that says so.

python tests/standard/status.py > docs/array-api.md
"""

from __future__ import annotations

import textwrap
import types

import harp.numpy

VERSION = "2024.12"

# What the standard lists, by its chapters.
NAMES: dict[str, str] = {
    "Constants": "e inf nan newaxis pi",
    "Data types": "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128",
    "Data type functions": "astype can_cast finfo iinfo isdtype result_type",
    "Creation functions": "arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones"
    " ones_like tril triu zeros zeros_like",
    "Elementwise functions": "abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift"
    " bitwise_invert bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1"
    " floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p log2 log10"
    " logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply negative nextafter not_equal"
    " positive pow real reciprocal remainder round sign signbit sin sinh square sqrt subtract tan tanh trunc",
    "Indexing functions": "take take_along_axis",
    "Linear algebra functions": "matmul matrix_transpose tensordot vecdot",
    "Manipulation functions": "broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat"
    " reshape roll squeeze stack tile unstack",
    "Searching functions": "argmax argmin count_nonzero nonzero searchsorted where",
    "Set functions": "unique_all unique_counts unique_inverse unique_values",
    "Sorting functions": "argsort sort",
    "Statistical functions": "cumulative_prod cumulative_sum max mean min prod std sum var",
    "Utility functions": "all any diff",
    "Inspection": "__array_api_version__ __array_namespace_info__",
    "Extension: linalg": "linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh"
    " linalg.inv linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose"
    " linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot"
    " linalg.trace linalg.vecdot linalg.vector_norm",
    "Extension: fft": "fft.fft fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifftn fft.ifftshift fft.ihfft"
    " fft.irfft fft.irfftn fft.rfft fft.rfftfreq fft.rfftn",
}

# What is not there, and why. A name leaves this list when harp gets it: the tests ask for both.
MISSING: dict[str, str] = {}

# Where a function does less than the standard asks for, or more.
NOTES: dict[str, str] = {
    "asarray": "copies NumPy's arrays; `copy=False` for arrays of harp only",
    "empty": "zeros",
    "empty_like": "zeros",
    "from_dlpack": "shares memory, which nobody may write to afterwards",
    "linalg.cholesky": "NaN if a matrix is not positive definite",
    "linalg.inv": "a singular matrix gives infinities or NaN in compiled programs, else an error",
    "linalg.solve": "a singular matrix gives infinities or NaN in compiled programs, else an error",
    "nonzero": "in a traced function with `size=`",
    "repeat": "in a traced function `repeats` must not be traced",
    "reshape": "also one size -1",
    "unique_all": "in a traced function with `size=`",
    "unique_counts": "in a traced function with `size=`",
    "unique_inverse": "in a traced function with `size=`",
    "unique_values": "in a traced function with `size=`",
    "unstack": "in a traced function a guard fixes the number of parts",
}


def find(name: str) -> object:
    """The function of harp by the standard's name. Raises AttributeError."""
    value: object = harp.numpy
    for part in name.split("."):
        value = getattr(value, part)
    return value


def has(name: str) -> bool:
    """Whether harp has it."""
    try:
        find(name)
    except AttributeError:
        return False
    return True


def names() -> list[str]:
    """All names of the standard."""
    return [name for listed in NAMES.values() for name in listed.split()]


HEAD = f"""# Array API standard

`harp.numpy` follows the [array API standard](https://data-apis.org/array-api/{VERSION}/), version {VERSION}: code that
is written for it runs on harp's arrays, inside `jit` and outside. So do functions of SciPy and scikit-learn that
support the standard, see [Other libraries](#other-libraries).

```python
import harp
import harp.numpy as hnp


def standardize(x):
    xp = x.__array_namespace__()
    return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)


x = hnp.asarray([[1.0, 2.0], [3.0, 6.0]])
print(standardize(x))
print(harp.jit(standardize)(x))
```

```text
[[-1. -1.]
 [ 1.  1.]]
[[-1. -1.]
 [ 1.  1.]]
```

Arrays are immutable: `x += y` binds the name to a new array, and `x[0] = y` raises an error. All arrays are on
the device `"cpu"`. Functions accept all arguments of the standard, and often more, as in NumPy: `axis` by position, for
example. Functions whose result has a shape that depends on data (`nonzero`, `unique_values`, boolean masks) work
outside of traced functions, or with `size=`; see [Sorting, searching, sets](sorting.md).

Python numbers take the dtype of the array that they are combined with. Mixed kinds, which the standard leaves open,
promote as in NumPy, but an integer array and a Python float keep the width: int32 gives float32.

## Other libraries

| from | to harp | from harp |
|---|---|---|
| NumPy | `hnp.asarray(x)`, a copy | `np.asarray(x)`, without a copy, read-only |
| DLPack (torch, JAX, ...) | `hnp.from_dlpack(x)`, without a copy | `torch.from_dlpack(x)`, see below |
| buffers (`memoryview`, `array.array`) | `hnp.asarray(x)`, a copy | `memoryview(np.asarray(x))` |
| Arrow (polars, pyarrow, DuckDB) | `hnp.asarray(column)`, a copy | `pl.Series(x)`, by nanoarrow; bools are copied |
| tables and files (pandas, xarray, h5py, zarr) | as an argument, a copy | `pd.Series(x)`, `file["x"] = x` |
| pickle, copy | `pickle.loads` | `pickle.dumps`; `copy.copy(x)` and `copy.deepcopy(x)` are `x` |

DLPack shares memory with libraries that support version 1.0 of the protocol, which can mark memory as read-only; others
get a copy, and so does torch, which takes the mark and writes nevertheless. (`torch.as_tensor(x)` and
`torch.from_numpy` of NumPy's view of an array share its memory, and warn: do not write to it.)

```python
import numpy as np

shared = np.asarray(x)
print(shared.flags.writeable, hnp.from_dlpack(np.arange(3.0)).device)
```

```text
False cpu
```

SciPy (with `SCIPY_ARRAY_API=1`), scikit-learn (with `array_api_dispatch`) and array-api-extra compute with the
functions of the array's own namespace. They ask array-api-compat whether an array can be written to, and that takes
arrays of a library that it does not know for writeable. `harp.extend.array_api_compat()` tells it: call it after
these libraries are imported. einops finds harp's arrays after `harp.extend.einops()`.

```python
import array_api_extra as xpx

harp.extend.array_api_compat()
print(xpx.at(hnp.zeros(3))[1].set(5.0))
```

```text
[0. 5. 0.]
```

Upstream it would be a line in `_is_writeable_cls` of array-api-compat, and in `at` of array-api-extra the branch of
`is_jax_array(x)` for all arrays that have `x.at`.

`python -m benchmarks.neighbours` counts the calls of other libraries that run on harp's arrays, and on JAX's, with
NumPy's numbers:

| calls of | number | harp | JAX |
|---|---|---|---|
| scikit-learn: metrics, kernels, estimators | 62 | 33 | 33 |
| SciPy: statistics, special functions, Fourier transforms, signals, images, integrals | 150 | 138 | 135 |
| array-api-extra | 24 | 24 | 24 |
| einops | 10 | 10 | 10 |
| pandas, polars, xarray | 13 | 13 | 10 |
| h5py, zarr | 3 | 3 | 3 |
| torch, matplotlib, numba | 5 | 5 | 5 |
| NumPy's functions | 17 | 17 | 17 |

(scikit-learn 1.9, SciPy 1.17, array-api-extra 0.11, einops 0.8, pandas 3.1, polars 2.1, xarray 2026.9, JAX 0.10.)

What stops the others is nearly always an assignment to elements, `x[mask] = 0`, which neither harp's nor JAX's arrays
allow.

## Gradients of norms

`linalg.vector_norm` and `linalg.matrix_norm` follow JAX at special points: the derivative of the Euclidean norm at zero
is NaN, as that of the square root; for the orders inf and -inf all elements at the extremum share the derivative.

## Status

This list is generated from the namespace: `python tests/standard/status.py > docs/array-api.md`.
"""


BEYOND = """## Beyond the standard

`harp.numpy` also has these names of NumPy, and some of SciPy and JAX:

{names}.

`harp.numpy.special`, which is `harp.scipy.special`, has these names of SciPy:

{special}.

They follow NumPy, with these differences, because arrays are immutable and a program serves all sizes:

- `put_along_axis`, `fill_diagonal`, `put` and `place` return the new array. `cov` of a matrix is a matrix, even of
  one row.
- Lists in place of an array are refused, as everywhere in harp (`interp`, `convolve`, `polyval`, `digitize`,
  `weights=`, `nansum`, the rows of `vstack`, ...): wrap them in `asarray`. Lists of arrays, of conditions, of bin
  edges, and of positions in `ix_`, `split` and `pad` are accepted.
- `bincount` inside a traced function takes `length=`. `nanargmax` and `nanargmin` of NaN alone are -1.
- `pad` has all modes of NumPy except functions. The widths of "reflect", "symmetric" and "wrap" are limited by the
  size of the axis; "empty" gives zeros; `stat_length` is at least 1.
- `gradient` has `edge_order=1` only; `histogram` takes a number of bins or their edges, but no rule by name. Outside of
  traced functions `histogram` checks that the range and the edges are finite and increasing. `histogram`, `median` and
  quantiles of no elements raise an error.
- `angle` has no `deg`, `put_along_axis` no `axis=None`; `average` takes weights of the shape of `x` or along one axis,
  not over several; `ravel_multi_index` has one `mode` for all axes; `logspace` and `geomspace` take numbers as bounds;
  `fill_diagonal` takes matrices, with one value or one for each row, and has no `wrap`.
- `ix_` and `unravel_index` refuse floats. `vander`, `cov`, `corrcoef`, `polyint`, `polyder` and
  `bincount` of float32 stay float32, where NumPy's are float64. Functions of floats make float32 of int8 and bool, and
  `int8 / int8` is float32; NumPy's are float16 and float64. `bool ** 2` is int64.
- `optimize` of `einsum` is True (the default), False, "greedy" or "optimal", but no path. It chooses the order in
  which operands are multiplied, so the last bits of floats may differ from those of the written order; a program has
  one order for all sizes. `einsum_path` is NumPy's, for sizes that are numbers.
- `partition` and `argpartition` sort. `roots` are complex; in traced functions the first coefficient must not be 0.
  `polydiv` keeps the zeros in front of the remainder, and `poly` of complex roots is complex.
- In traced functions `delete` at computed positions needs `assume_unique_indices=True`, and `compress` by a computed
  mask and `mask_indices` need `size=`; `trim_zeros` works outside of them only.
- `apply_along_axis` and `frompyfunc` trace their function once, as `vectorize`; `fromfunction` calls it once.
- `unique` takes an axis outside of traced functions only. `nextafter` and `spacing` refuse float16, bfloat16, float8.
- `heaviside` of integers stays an integer; `unwrap` of integers is float64.

"""


def beyond() -> str:
    """The chapter of what is not in the standard."""
    special = harp.numpy.special
    known = {*names(), "annotations", "fft", "linalg", "special"}
    public = [n for n in dir(harp.numpy) if not n.startswith("_") and n not in known]
    more = [n for n in public if not isinstance(getattr(harp.numpy, n), types.ModuleType)]
    listed = (", ".join(f"`{n}`" for n in found) for found in (more, special.__all__))
    return BEYOND.format(**{k: _wrapped(text) for k, text in zip(("names", "special"), listed, strict=True)})


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False)


def page() -> str:
    """docs/array-api.md"""
    lines = [HEAD]
    for chapter, listed in NAMES.items():
        lines += [f"### {chapter}", "", "| name | status |", "|---|---|"]
        for name in listed.split():
            note = NOTES.get(name)
            there = f"yes; {note}" if note else "yes"
            lines.append(f"| `{name}` | {there if has(name) else f'no: {MISSING.get(name)}'} |")
        lines.append("")
    return "\n".join([*lines, beyond().rstrip() + "\n"])


if __name__ == "__main__":
    print(page(), end="")
