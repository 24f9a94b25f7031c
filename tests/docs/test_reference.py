"""The reference has every public name, with a signature, what it does, and an example."""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import re
import sys
import types

import pytest

import harp

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "site"


def load(name: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reference = load("reference")
pages = load("pages")
PAGES = reference.pages()


def entries(page: str) -> dict[str, str]:
    """What stands under each name of a page, by the name."""
    directive = re.compile(r"^(`{3,})\{py:(?:function|class|data|exception)\} (\w+)", re.MULTILINE)
    found = {}
    for match in directive.finditer(page):
        text = page[match.end() :]
        found[match[2]] = text[: text.index(f"\n{match[1]}\n")]
    return found


def is_described_elsewhere(value: object) -> bool:
    """Modules are pages of their own; dtypes, numbers and errors have no examples."""
    return (
        isinstance(value, (types.ModuleType, harp.DType, int, float))
        or value is None
        or reference._is_numpys(value)
        or (inspect.isclass(value) and issubclass(value, Exception))
    )


@pytest.mark.parametrize("namespace", reference.NAMESPACES)
def test_every_public_name_is_there(namespace):
    module = reference.module_of(namespace)
    listed = getattr(module, "__all__", None) or reference.names_of(module)
    found = entries(PAGES[reference.NAMESPACES[namespace]])
    modules = {name for name in listed if isinstance(getattr(module, name), types.ModuleType)}
    assert {*listed} - modules == {*found} - {"Stages"}
    assert {f"{namespace}.{name}" for name in modules} <= {*reference.NAMESPACES, *reference.WITHOUT_PAGES}


@pytest.mark.parametrize("namespace", reference.NAMESPACES)
def test_each_has_a_signature_and_an_example(namespace):
    module, found = reference.module_of(namespace), entries(PAGES[reference.NAMESPACES[namespace]])
    policies = ("everything_saveable", "nothing_saveable", "dots_saveable")  # the module's own example is of these
    for name, text in found.items():
        value = getattr(module, name, reference.Stages)
        assert len(text.strip()) > 10, name
        if inspect.isfunction(value) and not reference._is_numpys(value):
            assert text.startswith("("), name
        if is_described_elsewhere(value) or name in policies or (name, namespace) == ("ndarray", "harp.numpy"):
            continue
        if name in ("RoundingMethod", "Precision", "Kernel"):  # for programs that are written for JAX
            continue
        assert ">>>" in text, f"{namespace}.{name} has no example"


def test_what_a_docstring_raises_is_linked():
    assert "{py:obj}`ShapeError <harp.errors.ShapeError>`" in entries(PAGES["numpy.md"])["max"]
    assert "{py:obj}`harp.set_threads <harp.set_threads>`" in entries(PAGES["harp.md"])["jit"]


def test_signatures_say_what_helps():
    expected = "where(condition, x=None, y=None, *, size=None, fill_value=None) -> Array | tuple[Array, ...]"
    assert reference.signature("where", harp.numpy.where) == expected
    assert reference.signature("hvp", harp.hvp).startswith("hvp(function: Function, primals: Sequence[Tree],")


def test_sections_are_complete():
    listed = [name for names in reference.sections("harp").values() for name in names]
    assert sorted(listed) == sorted([*harp.__all__, "Stages"])
    for namespace in ("harp.numpy", "harp.lax"):
        others = reference.sections(namespace).get(reference.OTHERS, [])
        values = [getattr(reference.module_of(namespace), name) for name in others]
        functions = [value for value in values if inspect.isfunction(value)]
        assert functions == [], "name the section of their module in docs/site/reference.py"


def test_the_site_has_every_page():
    named = {name for names in pages.NAVIGATION.values() for name in names}
    there = {name.removesuffix(".md") for name in pages.pages()} - {"index"}
    assert {name for name in there if not name.startswith("examples/")} == named


def test_links_are_those_of_the_site():
    found = pages.pages()
    assert "](examples/gru.md)" in found["getting-started.md"]
    assert "](getting-started.md)" in found["index.md"] and "](changelog.md)" in found["index.md"]
    assert re.search(r"\{py:obj\}`harp\.vmap(\(.*\))? <harp\.vmap>`", found["transforms.md"])
    code = found["getting-started.md"].split("```python")[1].split("```")[0]
    assert "{py:obj}" not in code
