"""The page "From JAX to harp" names all of `harp.lax`; what it names is there, or is not, where it says so."""

import importlib
import pathlib
import re
import warnings

import pytest

import harp
from harp import lax

PAGE = (pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "from-jax.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]


def column(text: str, number: int) -> list[str]:
    """What stands in backticks in a column of a table."""
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows
    return [name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[number])]


def resolves(path: str, root: object) -> bool:
    """Whether there is such a name, also where it is that of a module which nobody has imported."""
    names = path.split(".")
    for k, name in enumerate(names[1:], 2):
        if not hasattr(root, name):
            try:
                importlib.import_module(".".join(names[:k]))
            except ImportError:
                return False
        root = getattr(root, name)
    return True


MISSING = re.findall(r"`(jax\.[\w.]+)`", "".join(re.findall(r"^(?:- |  ).*$", section("Not there yet"), re.MULTILINE)))


@pytest.fixture(scope="module")
def jax():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("jax")


def test_the_table_names_all_of_lax():
    names = column(section("jax.lax"), 1)
    assert sorted(names) == sorted(lax.__all__)


def test_what_has_another_place_is_there():
    names = column(section("Where things are"), 2)
    assert [name for name in names if not resolves(name, harp)] == []


def test_what_is_not_there_yet_is_not_there():
    assert len(MISSING) > 10
    assert [name for name in MISSING if resolves("harp" + name.removeprefix("jax"), harp)] == []


@pytest.mark.filterwarnings("ignore")
def test_jax_has_what_the_page_says(jax):
    names = [
        *MISSING,
        *column(section("Where things are"), 1),
        *(f"jax.lax.{n}" for n in column(section("jax.lax"), 1)),
    ]
    assert [name for name in names if not resolves(name, jax)] == []
