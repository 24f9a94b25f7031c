"""Write the pages of the site: `python docs/site/pages.py build/pages`, which Sphinx turns into HTML.

The pages of docs/ are written to be read where the code is: they link to `../examples/gru.py` and to each other by
file, and the README links to `docs/`. Here these links become those of the site, names of harp in inline code lead to
the reference, and what is not in docs/ becomes a page, too. Links that lead nowhere fail `make site`.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import reference  # noqa: E402 (of the package in this checkout)

FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
NAVIGATION = {
    "Start": [
        *("getting-started", "from-numpy", "from-jax", "from-pytorch", "recipes", "notebooks", "when-not"),
    ],
    "Guide": [
        *("transforms", "control-flow", "random", "indexing", "sorting", "sizes-and-guards", "dtypes", "float32"),
        *("elementwise", "special", "convolutions", "networks", "optimisers", "saving", "scale-out", "gradients"),
        *("array-api", "custom", "export"),
    ],
    "When something is wrong": ["errors", "debugging", "seeing", "reliability"],
    "Speed": ["first-call", "timing", "cost", "profiling", "performance", "backends"],
    "Reference": [f"reference/{Path(file).stem}" for file in dict.fromkeys(reference.NAMESPACES.values())],
    "Inside": ["contributing", "how-it-works", "changelog", "license"],
}


def pages() -> dict[str, str]:
    """All pages, by the name of their file."""
    found = {path.name: _here(path.read_text("utf-8")) for path in sorted((ROOT / "docs").glob("*.md"))}
    examples = sorted((ROOT / "examples").glob("*.py"))
    for path in examples:
        found[f"examples/{path.stem}.md"] = f"# {path.name}\n\n```python\n{path.read_text('utf-8')}```\n"
    found["changelog.md"] = _here((ROOT / "CHANGELOG.md").read_text("utf-8"))
    found["license.md"] = f"# License\n\n{(ROOT / 'LICENSE').read_text('utf-8')}"
    found |= {f"reference/{name}": text for name, text in reference.pages().items()}
    readme = _here((ROOT / "README.md").read_text("utf-8"))
    found["index.md"] = readme + "".join(
        _toctree(title, names)
        for title, names in (NAVIGATION | {"Examples": [f"examples/{path.stem}" for path in examples]}).items()
    )
    return found


def _here(text: str) -> str:
    """Links of a code host as links of the site, and links to the reference."""
    for theirs, ours in (
        (r"\]\((?:\.\./)?examples/(\w+)\.py\)", r"](examples/\1.md)"),
        (r"\]\(docs/", "]("),
        (r"\]\(\.\./README\.md", "](index.md"),
        (r"\]\((?:\.\./)?CHANGELOG\.md\)", "](changelog.md)"),
        (r"\]\(LICENSE\)", "](license.md)"),
    ):
        text = re.sub(theirs, ours, text)
    parts = FENCE.split(text)  # what is between fences stays as it is
    return "".join(part if k % 2 else _linked(part) for k, part in enumerate(parts))


def _linked(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line if line.startswith("#") else reference.linked(line) for line in lines)


def _toctree(title: str, names: list[str]) -> str:
    return f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n" + "\n".join(names) + "\n```\n"


def write(folder: Path) -> None:
    """Write all pages to an empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for picture in (ROOT / "docs").glob("*.png"):
        shutil.copy(picture, folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
