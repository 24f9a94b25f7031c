"""What the environment says."""

from __future__ import annotations

import sys
import types

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


def test_logging_that_another_thread_imports_is_not_used(monkeypatch, caplog):
    """The module is there then, without its functions; nobody listens yet."""
    with caplog.at_level("DEBUG", "harp"):
        with monkeypatch.context() as half:
            half.setitem(sys.modules, "logging", types.ModuleType("logging"))
            config.log.debug("nobody hears this")
            config.log.info("nor this")
        config.log.info("but %s", "this")
    assert caplog.messages == ["but this"]
