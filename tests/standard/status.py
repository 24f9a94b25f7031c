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
    "from_dlpack": "shares memory, which nobody may write to any more",
    "linalg.cholesky": "NaN where a matrix is not positive definite",
    "linalg.inv": "of a singular matrix infinities or NaN in programs, else an error",
    "linalg.solve": "for a singular matrix infinities or NaN in programs, else an error",
    "nonzero": "in a traced function with `size=`",
    "repeat": "in a traced function `repeats` must be known",
    "reshape": "also one size -1",
    "unique_all": "in a traced function with `size=`",
    "unique_counts": "in a traced function with `size=`",
    "unique_inverse": "in a traced function with `size=`",
    "unique_values": "in a traced function with `size=`",
    "unstack": "in a traced function the number of parts is fixed, by a guard",
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
support the standard and do not write into arrays.

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

Arrays do not change: `x += y` gives the name to a new array, and `x[0] = y` raises an error. All arrays are on the
device `"cpu"`. Signatures accept all that the standard's do, and often more, as NumPy does: `axis` by position, for
example. Where the shape of a result depends on data (`nonzero`, `unique_values`, boolean masks), functions need arrays
with numbers, outside of traced functions, or `size=`; see [Sorting, searching, sets](sorting.md).

Python numbers keep the dtype of the arrays that they meet. Mixed kinds, which the standard leaves open, promote as in
NumPy, but an integer array and a Python float keep the width: int32 gives float32.

## Other libraries

| from | to harp | from harp |
|---|---|---|
| NumPy | `hnp.asarray(x)`, a copy | `np.asarray(x)`, without a copy, read-only |
| DLPack (torch, JAX, ...) | `hnp.from_dlpack(x)`, without a copy | `torch.from_dlpack(x)`, see below |
| buffers (`memoryview`, `array.array`) | `hnp.asarray(x)`, a copy | `memoryview(np.asarray(x))` |
| pickle, copy | `pickle.loads` | `pickle.dumps`; `copy.copy(x)` and `copy.deepcopy(x)` are `x` |

DLPack shares memory with libraries that support version 1.0 of the protocol, which can mark memory as read-only; others
get a copy.

```python
import numpy as np

shared = np.asarray(x)
print(shared.flags.writeable, hnp.from_dlpack(np.arange(3.0)).device)
```

```text
False cpu
```

## Gradients of norms

`linalg.vector_norm` and `linalg.matrix_norm` follow JAX at special points: the derivative of the Euclidean norm at zero
is NaN, as that of the square root; for the orders inf and -inf elements that share the extremum share the derivative.

## Status

This list is generated from the namespace: `python tests/standard/status.py > docs/array-api.md`.
"""


BEYOND = """## Beyond the standard

What NumPy has as well, and some names of SciPy and JAX, in `harp.numpy`:

{names}.

In `harp.numpy.special`, which is `harp.scipy.special`, under SciPy's names:

{special}.

They follow NumPy, with these differences, which come from arrays that do not change and from programs for all sizes:

- `put_along_axis`, `fill_diagonal`, `put` and `place` return the new array. `cov` of a matrix is a matrix, of
  one row too.
- Lists in the place of an array are refused, as everywhere in harp (`interp`, `convolve`, `polyval`, `digitize`,
  `weights=`, `nansum`, the rows of `vstack`, ...): wrap them in `asarray`. Lists of arrays, of conditions, of edges of
  bins, and of positions in `ix_`, `split` and `pad` are taken.
- `bincount` inside a traced function takes `length=`. `nanargmax` and `nanargmin` of NaN alone are -1.
- `pad` has all modes of NumPy but functions. The widths of "reflect", "symmetric" and "wrap" are at most what the axis
  has; "empty" is zeros; `stat_length` is at least 1.
- `gradient` has `edge_order=1` only; `histogram` takes a number of bins or their edges, but no rule by name. What
  `histogram` asks of the range and of edges (finite, increasing) is checked where numbers are known: outside of traced
  functions. `histogram`, `median` and quantiles of no elements raise an error.
- `angle` has no `deg`, `put_along_axis` no `axis=None`; `average` takes weights of the shape of `x` or along one axis,
  not over several; `ravel_multi_index` has one `mode` for all axes; `logspace` and `geomspace` go between numbers;
  `fill_diagonal` takes matrices, with one value or one for each row, and has no `wrap`.
- `ix_` and `unravel_index` refuse floats. `vander` of float32 stays float32.
- `einsum` takes for `optimize` True, False, "greedy" or "optimal", but no path; True is the
  default. It chooses the order in which operands are multiplied, so the last bits of floats may differ from those of
  the written order; one program has one order, whatever the sizes. `einsum_path` is NumPy's, for known sizes.
- `partition` and `argpartition` sort. `roots` are complex; in traced functions the first coefficient must not be 0.
  `polydiv` keeps the zeros in front of the remainder, and `poly` of complex roots is complex.
- `delete` at positions that are data, and `compress` by a mask that is, say how many results there are, by
  `assume_unique_indices=True` and `size=`; so does `mask_indices`. `trim_zeros` is for known vectors.
- `apply_along_axis` and `frompyfunc` trace their function once, as `vectorize`; `fromfunction` calls it once.
- `unique` takes an axis outside of traced functions only. `nextafter` and `spacing` refuse halves.
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
