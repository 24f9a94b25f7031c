"""The page in Chromium: what its script marks when a line is picked, by a click or by the address."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from reading import read

import harp
import harp.numpy as hnp

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--virtual-time-budget=2000",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="there is no Chromium"),
]


def softmax(x, w):
    y = hnp.tanh(x @ w)
    e = hnp.exp(y - hnp.max(y, axis=1, keepdims=True))
    return e / hnp.sum(e, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    harp.jit(softmax).lower(np.ones((5, 4)), np.ones((4, 4))).html(path)
    return path


def shown(page: Path, tmp_path: Path, fragment: str = "", script: str = ""):
    """The page as it is after its script, and this one, have run."""
    copy = tmp_path / "copy.html"
    copy.write_text(page.read_text("utf-8").replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    command = [BROWSER, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"file://{copy}{fragment}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    return read(done.stdout)


def marked(found, mark: str) -> set[str]:
    return {line.name for line in found.lines if mark in line.marks}


@pytest.mark.parametrize("way", ["address", "click"])
@pytest.mark.parametrize("name", ["u0", "g5", "s3", "l0.4", "c0.40", "cost0"])
def test_a_picked_line_marks_what_belongs_to_it(page, tmp_path, name, way):
    plain = read(page.read_text("utf-8"))
    line = plain.named(name)
    if way == "address":
        found = shown(page, tmp_path, fragment=f"#{name}")
    else:
        found = shown(page, tmp_path, script=f"document.getElementById('{name}').click()")
    assert marked(found, "picked") == {name}
    assert marked(found, "on") == {other.name for other in plain.picked(line)}
    assert marked(found, "on") or name == "cost0"


def test_a_second_click_and_escape_let_go(page, tmp_path):
    for last in ("line.click()", "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}))"):
        script = f"const line = document.getElementById('g5'); line.click(); {last}"
        found = shown(page, tmp_path, script=script)
        assert not marked(found, "on") | marked(found, "picked") | marked(found, "near")


def test_what_is_under_the_mouse_is_marked_with_what_belongs_to_it(page, tmp_path):
    plain = read(page.read_text("utf-8"))
    over = "new MouseEvent('mouseover', {bubbles: true})"
    found = shown(page, tmp_path, script=f"document.getElementById('g5').dispatchEvent({over})")
    assert marked(found, "hover") == {other.name for other in plain.picked(plain.named("g5"))} != set()


def test_a_pick_scrolls_the_other_panes_to_it(page, tmp_path):
    last = next(line for line in reversed(read(page.read_text("utf-8")).pane("graph")) if line.keys)
    script = f"document.getElementById('{last.name}').click();" + (
        "document.querySelector('h1').textContent = [...document.querySelectorAll('.pane')].filter(pane => {"
        "  const line = pane.querySelector('.on').getBoundingClientRect(), frame = pane.getBoundingClientRect();"
        "  return frame.top <= line.top && line.bottom <= frame.bottom }).map(pane => pane.id).sort().join(' ')"
    )
    found = shown(page, tmp_path, script=script)
    assert set(found.title.split()) >= {"c", "function", "nests", "schedule"}
