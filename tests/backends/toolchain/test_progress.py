"""The lines for those who wait."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time

import pytest

from harp.backends.toolchain import progress


def watchers() -> int:
    """Other threads of harp come and go when they like."""
    return sum(thread.name == "harp-progress" for thread in threading.enumerate())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)


def wait_for(condition) -> bool:
    end = time.monotonic() + 100
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
    for _ in range(50):
        with progress.announced("compiling"):
            pass
        assert watchers() == 0


def test_what_is_quick_says_nothing(monkeypatch, caplog):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 1.0)
    with caplog.at_level(logging.INFO, "harp"), progress.announced("compiling"):
        pass
    time.sleep(1.2)
    assert terminal.getvalue() == "" and caplog.messages == []


def test_a_closed_terminal_is_no_error(impatient, monkeypatch, caplog):
    terminal = Terminal()
    terminal.close()
    monkeypatch.setattr(sys, "stderr", terminal)
    with caplog.at_level(logging.INFO, "harp"), progress.announced("compiling"):
        assert wait_for(lambda: caplog.messages)


def test_what_goes_on_one_after_the_other_is_one_wait(impatient, monkeypatch, caplog):
    """Each part of it has a line if it takes a while; what is over before anybody waits has none."""
    monkeypatch.setattr(progress, "PATIENCE", 1.0)
    monkeypatch.setattr(progress, "_SOON", 0.5)
    with caplog.at_level(logging.INFO, "harp"), progress.waiting():
        with progress.announced("quick"):
            pass
        with progress.announced("outer"), progress.announced("inner"):
            assert wait_for(lambda: len(caplog.messages) == 2)
        for _ in range(20):
            with progress.announced("short"):
                pass
        with progress.announced(lambda: "last"):
            assert wait_for(lambda: len(caplog.messages) == 3)
    assert caplog.messages == ["outer", "inner", "last"]


def test_an_error_ends_the_wait(impatient):
    with pytest.raises(ZeroDivisionError), progress.announced("compiling"):
        1 / 0
    assert watchers() == 0
    with progress.announced("compiling"):
        assert watchers() == 1


def test_threads_wait_for_themselves(impatient, caplog):
    def other():
        with progress.announced("other"):
            wait_for(lambda: "other" in caplog.messages)

    thread = threading.Thread(target=other)
    with caplog.at_level(logging.INFO, "harp"), progress.waiting():
        thread.start()
        thread.join()
        assert caplog.messages == ["other"]


def test_a_line_is_said_once(impatient, caplog):
    with (
        caplog.at_level(logging.INFO, "harp"),
        progress.announced("first\nadvice"),
        progress.announced("second\nadvice"),
    ):
        assert wait_for(lambda: "second" in caplog.messages)
    assert caplog.messages == ["first", "advice", "second"]


def test_what_is_not_long_as_a_rule_is_said_if_it_is(impatient, caplog):
    with caplog.at_level(logging.INFO, "harp"), progress.announced("tracing", is_long=False):
        assert watchers() == 0
        progress.will_take_long()
        assert wait_for(lambda: caplog.messages == ["tracing"])
    progress.will_take_long()  # of nothing
    assert watchers() == 0


def test_no_thread_to_be_had_is_no_error(impatient, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with progress.announced("compiling"):
        pass
