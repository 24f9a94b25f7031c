"""The lines for those who wait."""

from __future__ import annotations

import io
import logging
import sys
import threading
import time
import types
import weakref

import pytest

from harp import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.01)


def wait_for(condition) -> bool:
    """As what takes long does."""
    end = time.monotonic() + 100
    while not condition() and time.monotonic() < end:
        progress.tick()
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


def test_what_is_quick_says_nothing(monkeypatch, caplog):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with caplog.at_level(logging.INFO, "harp"):
        with progress.announced("compiling"):
            progress.tick()
        progress.tick()
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


def test_an_error_ends_the_wait(impatient, caplog):
    with caplog.at_level(logging.INFO, "harp"):
        with pytest.raises(ZeroDivisionError), progress.announced("compiling"):
            1 / 0
        time.sleep(0.02)
        progress.tick()
        assert caplog.messages == []


def test_a_wait_whose_end_was_interrupted_is_over(impatient, caplog):
    with caplog.at_level(logging.INFO, "harp"):
        interrupted = progress._Wait()
        interrupted.doing.append(progress._Doing("interrupted"))
        progress._here.wait = weakref.ref(interrupted)
        del interrupted
        time.sleep(0.02)
        progress.tick()
    assert caplog.messages == []


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


class Notebook:
    """IPython in a kernel: what its output shows."""

    kernel = "of Jupyter"

    def __init__(self, monkeypatch):
        self.outputs = []
        module, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        module.get_ipython, display.display = (lambda: self), self.display
        monkeypatch.setitem(sys.modules, "IPython", module)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, data, raw, display_id):
        assert display_id, "else it could not be replaced"
        self.outputs.append([data["text/plain"]])
        return self

    def update(self, data, raw):
        self.outputs[-1].append(data["text/plain"])


def test_a_notebook_has_one_line_that_is_replaced(impatient, monkeypatch, caplog):
    notebook = Notebook(monkeypatch)
    monkeypatch.setattr(progress, "_SOON", 0.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with caplog.at_level(logging.INFO, "harp"), progress.waiting():
        for text in ("making", "compiling"):
            with progress.announced(text):
                assert wait_for(lambda text=text: text in caplog.messages)
    (lines,) = notebook.outputs
    assert lines[:2] == ["harp: making", "harp: compiling"]
    assert lines[2].startswith("harp: done after ") and len(lines) == 3
    assert sys.stderr.getvalue() == ""


def test_threads_do_not_write_to_a_notebook(impatient, monkeypatch, caplog):
    notebook = Notebook(monkeypatch)

    def work():
        with progress.announced("compiling"):
            assert wait_for(lambda: caplog.messages)

    with caplog.at_level(logging.INFO, "harp"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert caplog.messages == ["compiling"] and notebook.outputs == []


def test_a_notebook_shows_nothing_of_what_is_quick(monkeypatch):
    notebook = Notebook(monkeypatch)
    with progress.announced("compiling"):
        progress.tick()
    assert notebook.outputs == []
