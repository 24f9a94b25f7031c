"""Where harp differs from NumPy on purpose: calls that are not compared, each with the reason.

Most are avoided by the rows. These are left for where a branch, or a size, makes of a row what it is not meant to be. A
difference is recognised by the error that harp raises, so all else that may be wrong with such a call is still found.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Difference(NamedTuple):
    """What harp's message looks like; what NumPy does instead."""

    message: str
    reason: str


ONLY_HARP_RAISES = (
    Difference(r"^size .* is negative", "NumPy takes negative sizes as 0 in tri and repeat, as -1 in reshape"),
    Difference(r"has no value", "docs/array-api.md: median of no elements raises; NumPy gives NaN and a warning"),
    Difference(r"^pad of axis .* needs more elements", "docs/array-api.md: no width exceeds what the axis has"),
    Difference(r"^einsum '.*': sizes of label", "NumPy's einsum broadcasts an axis of size 1 along a diagonal, too"),
    Difference(
        r"^axis .* is out of range for an array with 0 axes", "NumPy's argmin takes a number as an array of one"
    ),
    Difference(r"^tril and triu need at least two axes", "NumPy makes a matrix of a vector"),
    Difference(
        r"^index -?\d+ is out of range for axis \d of size .* = 0\b", "NumPy's take of nothing asks for no index"
    ),
    Difference(r"^values of \w+ do not fit an array of", "docs/indexing.md: no floats are written into integers"),
    Difference(r"^an array without axes has no order", "NumPy sorts a number as an array of one"),
    Difference(r"^meshgrid takes vectors", "the array API standard; NumPy flattens what has more axes"),
    Difference(r"^list is not an array or a number", "harp takes no lists for arrays; gradient of a matrix gives one"),
    Difference(r"which has no derivative", "harp has no gradients with respect to integers"),
    Difference(r"^values with \d axes do not fit \d axes", "NumPy drops leading axes of size 1 in an assignment"),
)
ANOTHER_TYPE = (
    Difference(r"^an array of \w+ is not supported as an index", "docs/errors.md: ArgumentError for wrong arguments"),
    Difference(r"^the step of a slice is 0", "docs/errors.md: ArgumentError for wrong arguments"),
    Difference(
        r"^matmul needs arrays with axes", "ValueError of numpy.matmul, too; NumPy's numbers have no operator @"
    ),
)


def is_known(error: Exception, table: tuple[Difference, ...]) -> bool:
    return any(re.search(difference.message, str(error)) for difference in table)
