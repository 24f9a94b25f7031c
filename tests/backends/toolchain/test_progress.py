"""The line for those who wait for a compiler."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time

import pytest

from harp.backends.toolchain import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)


def wait_for(condition) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_what_takes_long_says_so_once_on_a_terminal(impatient, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.announced("compiling"):
        assert wait_for(terminal.getvalue)
        time.sleep(0.05)
    assert terminal.getvalue() == "harp: compiling\n"


def test_where_there_is_no_terminal_only_the_log_has_it(impatient, monkeypatch, caplog):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with caplog.at_level(logging.INFO, "harp"), progress.announced("compiling"):
        assert wait_for(lambda: caplog.messages)
    assert caplog.messages == ["compiling"]
    assert pipe.getvalue() == ""


def test_no_thread_is_left_behind():
    before = threading.active_count()
    for _ in range(50):
        with progress.announced("compiling"):
            pass
        assert threading.active_count() == before


def test_what_is_quick_says_nothing(monkeypatch, caplog):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.2)
    with caplog.at_level(logging.INFO, "harp"), progress.announced("compiling"):
        pass
    time.sleep(0.3)
    assert terminal.getvalue() == "" and caplog.messages == []


def test_a_closed_terminal_is_no_error(impatient, monkeypatch, caplog):
    terminal = Terminal()
    terminal.close()
    monkeypatch.setattr(sys, "stderr", terminal)
    with caplog.at_level(logging.INFO, "harp"), progress.announced("compiling"):
        assert wait_for(lambda: caplog.messages)
