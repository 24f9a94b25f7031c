"""What the environment says."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from harp import config


@pytest.mark.parametrize(
    ("text", "level"),
    [("", 0), (" 2 ", 2), ("3", 3), ("99", 3), ("²", 0), ("٣", 0), ("-1", 0), ("x", 0), ("9" * 5000, 0)],
)
def test_levels(monkeypatch, caplog, text, level):
    monkeypatch.setenv("HARP_VERIFY", text)
    monkeypatch.delenv("HARP_DEBUG", raising=False)
    assert config.Settings().verify == level
    right = text.strip() in ("", "2", "3", "99")
    assert caplog.messages == ([] if right else [f"HARP_VERIFY={text!r} is not a number from 0 to 3: taken as 0"])


def test_nothing_is_logged_where_nobody_listens():
    """Nobody has imported `logging`: it stays so, but for a warning, which Python prints."""
    code = (
        "import sys; from harp.config import log; {}; log.info('unheard'); "
        "print('logging' in sys.modules); log.warning('%d heard', 1)"
    )
    for first, imported in (
        ("pass", False),
        ("import logging; logging.basicConfig(format='%(name)s:%(message)s')", True),
    ):
        done = subprocess.run([sys.executable, "-c", code.format(first)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(imported)
        assert done.stderr.strip() == ("harp:1 heard" if imported else "1 heard")


def test_the_log_names_who_wrote(caplog):
    caplog.set_level(logging.DEBUG, "harp")
    for write in (config.log.debug, config.log.info, config.log.warning):
        write("%s", "text")
    assert [(r.name, r.filename, r.message) for r in caplog.records] == [("harp", "test_config.py", "text")] * 3
