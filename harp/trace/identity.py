"""When two values are the same to a function that sees them: static arguments, and keys of dicts of arrays."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

_TOLD_APART_BY_EQUALITY = frozenset((int, str, bool, bytes, type(None)))


def identity(value: object) -> Hashable:
    """Equal for values that a function cannot tell apart: 1 is not 1.0 or True, 0.0 is not -0.0, NaN is NaN.

    Raises TypeError or ValueError for what cannot be hashed or compared.
    """
    kind = type(value)
    if kind in _TOLD_APART_BY_EQUALITY:
        return kind, value
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, float):
        return kind, float.hex(value)
    if isinstance(value, complex):
        return kind, value.real.hex(), value.imag.hex()
    if isinstance(value, tuple) and kind.__eq__ is tuple.__eq__:
        return kind, tuple(map(identity, value))
    if isinstance(value, frozenset) and kind.__eq__ is frozenset.__eq__:
        return kind, frozenset(map(identity, value))
    hash(value)
    if not bool(value == value):  # asks what a look-up would ask: an array of answers has no truth value
        raise ValueError("a value must equal itself")
    return kind, value
