"""The pages name what there is: files, errors, links."""

import inspect
import pathlib
import re

import pytest

from harp import errors

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def anchors(page):
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_every_error_has_its_section():
    names = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    page = (ROOT / "docs" / "errors.md").read_text("utf-8")
    bases = {"HarpError", "GradientError"}  # nothing raises these themselves
    assert bases < names
    assert {n for n in names - bases if f"\n## {n}\n" not in page} == set()


def test_every_file_of_every_layer_is_described():
    page = (ROOT / "docs" / "how-it-works.md").read_text("utf-8")
    layers = ("trace", "numpy", "transforms", "foreign", "lax", "lower", "backends")
    files = [p for layer in layers for p in (ROOT / "harp" / layer).rglob("*.py") if p.name != "__init__.py"]
    names = {p.relative_to(ROOT / "harp" / layer).as_posix() for layer in layers for p in files if layer in p.parts}
    library = ROOT / "harp" / "backends" / "c" / "library"
    names |= {p.relative_to(library).as_posix() for p in library.rglob("*.[ch]")}
    assert {n for n in names if f"`{n}`" not in page} == set()
