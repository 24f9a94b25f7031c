"""The page "From NumPy to harp" names all that NumPy has and harp has not, and nothing else."""

import inspect
import pathlib
import re
import types

import numpy as np
import pytest

import harp
import harp.numpy as hnp

PAGE = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "from-numpy.md").read_text("utf-8")
SPACES = {"": (np, hnp), "linalg.": (np.linalg, hnp.linalg), "fft.": (np.fft, hnp.fft)}


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def column(text: str, number: int) -> list[str]:
    """What stands in backticks in a column of a table."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[number])]


def functions() -> dict[str, bool]:
    """NumPy's public functions, and whether harp has them."""
    found = {}
    for prefix, (theirs, ours) in SPACES.items():
        for name in (n for n in theirs.__all__ if not n.startswith("_")):
            value = getattr(theirs, name)
            is_data = isinstance(value, types.ModuleType) or (
                inspect.isclass(value) and issubclass(value, (np.generic, np.dtype, Exception))
            )
            if callable(value) and not is_data:
                found[prefix + name] = hasattr(ours, name)
    return found


def test_all_that_is_missing_is_listed():
    listed = column(section("Not there yet"), 1)
    assert len(listed) == len({*listed}) > 50
    missing = {name for name, there in functions().items() if not there}
    assert missing - {*listed} == set()


def test_what_is_listed_is_missing():
    there = functions()
    assert [name for name in column(section("Not there yet"), 1) if there.get(name)] == []


def test_what_to_use_instead_is_there():
    for name in column(section("Not there yet"), 2):
        root, path = (harp, name.split(".")[1:]) if name.startswith("harp.") else (hnp, name.split("."))
        for part in path:
            root = getattr(root, part)


def test_the_methods():
    text = section("Methods")
    there, absent = column(text, 1), re.findall(r"`(\w+)`", text.split("are missing:")[1].split(". The error")[0])
    of_numpy = {name for name in dir(np.ndarray) if not name.startswith("_")}
    assert of_numpy - {*there, *absent} <= {"to_device", "device"}
    x = hnp.ones((2, 2))
    assert [name for name in there if not hasattr(x, name)] == []
    assert [name for name in absent if hasattr(x, name)] == []


@pytest.mark.parametrize("title", ["Dtypes, grids, and what an array is"])
def test_other_names_are_there(title):
    words = re.findall(r"`(\w+)`", section(title))
    assert len(words) > 10 and [word for word in words if not hasattr(hnp, word)] == []


def test_updates_are_named():
    text = section("Methods").split("as in JAX:")[1]
    assert [
        name for name in re.findall(r"`(\w+)`", text.split("\n\n")[0]) if not hasattr(hnp.ones(2).at[0], name)
    ] == []
