"""Every ```python block of the README and of docs/ runs, page by page, in order, in one namespace.

Where a ```text block follows directly, it is what the code prints; `...` there stands for anything.
"""

import contextlib
import doctest
import io
import pathlib
import re
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$"  # the code
    r"(?:\s*^```text\n(?P<output>.*?)^```$)?",  # what it prints
    re.MULTILINE | re.DOTALL,
)
CHECKER = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: pathlib.Path) -> list[tuple[int, str, str | None]]:
    """Line number, code and expected output of each block."""
    text = page.read_text("utf-8")
    found = BLOCK.finditer(text)
    return [(text.count("\n", 0, match.start("code")), match["code"], match["output"]) for match in found]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # whatever a page writes goes away
    namespace = types.ModuleType("page").__dict__
    for line, code, expected in blocks(page):
        printed = io.StringIO()
        program = compile("\n" * line + code, str(page), "exec")  # tracebacks name the line of the page
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
        if expected is not None and not CHECKER.check_output(expected, printed.getvalue(), FLAGS):
            pytest.fail(f"{page}:{line + 1} printed\n{printed.getvalue()}instead of\n{expected}")


def test_every_python_block_is_found():
    """A fence with attributes, indentation or tildes would be left out silently."""
    fence = re.compile(r"^[ \t]*(?:```|~~~)+[ \t]*(?:python|py)\b.*$", re.MULTILINE | re.IGNORECASE)
    for page in PAGES:
        assert len(fence.findall(page.read_text("utf-8"))) == len(blocks(page)), page
