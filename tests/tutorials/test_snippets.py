"""Programs in the style of JAX's tutorials run with other imports; their results are JAX's."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import runpy

import numpy as np
import pytest

FOUND = runpy.run_path(str(pathlib.Path(__file__).with_name("snippets.py")))
SNIPPETS, CHANGES = FOUND["SNIPPETS"], FOUND["CHANGES"]
# The statements that import JAX, and what takes their place.
IMPORTS = (
    (r"^import jax$", "import harp.jax as jax"),
    (r"^import jax\.numpy as jnp$", "from harp.jax import numpy as jnp"),
    (r"^from jax import ", "from harp.jax import "),
    (r"^from jax\.", "from harp.jax."),
)


def with_imports_of_harp(text):
    for theirs, ours in IMPORTS:
        text = re.sub(theirs, ours, text, flags=re.MULTILINE)
    return text


def leaves(value):
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return [] if value is None else [np.asarray(value, np.float64)]


def result_of(text, name):
    namespace = {"__name__": "tutorial"}
    exec(compile(text, name, "exec", dont_inherit=True), namespace)
    return leaves(namespace["result"])


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_program_written_for_jax(name):
    ours = with_imports_of_harp(SNIPPETS[name])
    for theirs, instead in CHANGES.get(name, {}).items():
        assert theirs in ours
        ours = ours.replace(theirs, instead)
    found = result_of(ours, name)
    assert found
    if importlib.util.find_spec("jax") is None:
        return  # it runs; what it computes is compared where JAX is
    expected = result_of(SNIPPETS[name], name)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_the_page_counts_them():
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "from-jax.md").read_text("utf-8")
    counts = re.findall(r"^\| [^|]+ \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert sum(int(all_of) for all_of, _ in counts) == len(SNIPPETS) - len(CHANGES)
    assert sum(int(same) for _, same in counts) == len(SNIPPETS) - len(CHANGES)


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_changed_has_to_be(name):
    with pytest.raises((AttributeError, ImportError, AssertionError, IndexError)):
        result_of(with_imports_of_harp(SNIPPETS[name]), name)
