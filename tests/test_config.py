"""What the environment says."""

from __future__ import annotations

import os
import re
import sys
import types
from pathlib import Path

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
    right = text.strip() in ("", "2", "3")
    said = f"HARP_VERIFY={text!r} is not a number from 0 to 3: taken as {level}"
    assert caplog.messages == ([] if right else [said])


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("HARP_WIDE", "2", "HARP_WIDE='2' is not a number from 0 to 1: taken as 1"),
        ("HARP_QUICK", "no", "HARP_QUICK='no' is not a number from 0 to 1: taken as 1"),
        ("HARP_CHECK", "true", "HARP_CHECK='true' is not a number from 0 to 1: taken as 0"),
        ("HARP_TRACEBACK", "ful", "HARP_TRACEBACK='ful' is not \"full\": ignored"),
        ("HARP_THREAD", "2", "harp has no setting HARP_THREAD; the nearest is HARP_THREADS"),
        ("HARP_CC_TIMEOUTS", "2", "harp has no setting HARP_CC_TIMEOUTS; the nearest is HARP_CC_TIMEOUT"),
    ],
)
def test_settings_that_are_not_understood_are_warned_of(monkeypatch, caplog, name, text, said):
    for variable in [variable for variable in os.environ if variable.startswith("HARP_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HARP_FAIR_GROUNDS", "of another program")
    monkeypatch.setenv(name, text)
    config.Settings()
    config._warn_of_unknown()
    assert caplog.messages == [said]


def test_every_variable_of_the_readme_is_known():
    readme = (Path(__file__).resolve().parents[1] / "README.md").read_text("utf-8")
    assert set(re.findall(r"`(HARP_[A-Z_]+)`", readme)) == set(config._NAMES)


def test_there_is_no_update():
    with pytest.raises(AttributeError, match=r"set_threads, .*harp\.jax\.config\.update takes JAX's names"):
        config.update
    with pytest.raises(AttributeError, match=r"module 'harp\.config' has no attribute 'updates'"):
        config.updates


def test_logging_that_another_thread_imports_is_not_used(monkeypatch, caplog):
    """The module is there then, without its functions; nobody listens yet."""
    with caplog.at_level("DEBUG", "harp"):
        with monkeypatch.context() as half:
            half.setitem(sys.modules, "logging", types.ModuleType("logging"))
            config.log.debug("nobody hears this")
            config.log.info("nor this")
        config.log.info("but %s", "this")
    assert caplog.messages == ["but this"]
