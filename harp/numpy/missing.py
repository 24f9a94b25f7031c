"""What is said about a name that harp.numpy does not have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import numpy as np


def no_such_name(module: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name of a namespace of harp: whether NumPy has it, and the nearest name that is there."""
    of_numpy: object = np
    for part in module.split(".")[2:]:  # linalg
        of_numpy = getattr(of_numpy, part)
    nearest = difflib.get_close_matches(name, [k for k in known if not k.startswith("_")], n=1)
    hint = f"; the nearest name there is {nearest[0]!r}" if nearest else ""
    if name in dir(of_numpy):
        text = f"{module}.{name} is not there yet{hint}; docs/from-numpy.md lists what is"
    else:
        text = f"module {module!r} has no attribute {name!r}{hint}"
    return AttributeError(text, name=name)
