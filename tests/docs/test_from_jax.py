"""The page "From JAX to harp" names all of `harp.lax`; what it names is there, or is not, where it says so."""

import importlib
import inspect
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


MISSING = column(section("Not there yet"), 1)
MODULES = [
    *("lax", "nn", "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "ops", "random", "tree", "tree_util"),
    *("scipy", "scipy.cluster.vq", "scipy.fft", "scipy.integrate", "scipy.interpolate", "scipy.linalg"),
    *("scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse.linalg", "scipy.spatial.transform"),
    *("scipy.special", "scipy.stats"),
]


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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("module", MODULES)
def test_all_names_are_there_or_have_a_reason(jax, module):
    """All but modules of modules, and primitives of JAX."""
    theirs = importlib.import_module(f"jax.{module}")
    names = [n for n in dir(theirs) if not n.startswith("_") and not n.endswith("_p")]
    names = [n for n in names if not inspect.ismodule(getattr(theirs, n))]
    there = [n for n in names if resolves(f"harp.{module}.{n}", harp)]
    assert [n for n in names if n not in there and f"jax.{module}.{n}" not in MISSING] == []


def test_all_reasons_are_said():
    reasons = [line.split("|")[2].strip() for line in section("Not there yet").splitlines() if line.startswith("| `")]
    assert all(reasons) and len(set(reasons)) == len(reasons)
