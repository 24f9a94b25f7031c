"""The page in Chromium: it trains with the exported functions, and ends with Python's bits."""

from __future__ import annotations

import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=60000")  # fmt: skip
# A stroke down the middle, and the button that says which digit it is.
DRAWN = """
const wait = setInterval(() => {
  const canvas = document.getElementById("drawing"), box = canvas.getBoundingClientRect();
  if (!canvas.onpointerdown) return;
  clearInterval(wait);
  for (let y = 30; y < 170; y += 10)
    canvas.dispatchEvent(new PointerEvent("pointermove",
      { buttons: 1, clientX: box.left + 100, clientY: box.top + y }));
  document.title = document.getElementById("guess").textContent;
  for (let k = 0; k < 20; ++k) document.querySelectorAll("#labels button")[7].click();
}, 20);
"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None or not importlib.util.find_spec("ziglang"), reason="needs Chromium and zig")
def test_it_trains_as_in_python_and_learns_what_is_drawn(tmp_path, monkeypatch, load):
    monkeypatch.syspath_prepend(EXAMPLES)  # it imports the example whose functions it shows
    browser_digits = load("browser_digits")
    path = tmp_path / "digits.html"
    text = browser_digits.page(epochs=3)
    path.write_text(text.replace("</script>", f"{DRAWN}</script>"), "utf-8")
    command = [BROWSER, *QUIET, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"file://{path}"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    weights, accuracy = browser_digits.train(3)
    state = re.search(r"trained: ([0-9.]+) % of 297 unseen digits, checksum of the weights (\d+)", shown)
    assert state, shown[-3000:]
    assert state[1] == f"{100 * accuracy:.1f}" and int(state[2]) == browser_digits.checksum(weights)
    assert re.search(r"<title>It looks like a \d\.</title>", shown)
    assert "It looks like a 7." in shown.partition("<body>")[2]
