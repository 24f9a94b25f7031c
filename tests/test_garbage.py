"""The collector of cycles waits while programs are made, and is as it was afterwards."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

import harp
from harp.garbage import collected_later


@pytest.fixture(autouse=True)
def collector():
    enabled = gc.isenabled()
    yield
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
def test_it_waits_while_a_function_is_traced(enabled):
    (gc.enable if enabled else gc.disable)()
    seen = []

    def f(x):
        seen.append(gc.isenabled())
        return x + 1

    harp.jit(f)(np.ones(2))
    assert seen == [False] and gc.isenabled() is enabled


def test_an_error_does_not_stop_it_for_good():
    gc.enable()

    def f(x):
        raise KeyError("here")

    with pytest.raises(KeyError):
        harp.jit(f)(np.ones(2))
    assert gc.isenabled()


def test_an_interrupt_on_the_way_in_does_not_stop_it_for_good(monkeypatch):
    gc.enable()
    disable = gc.disable

    def interrupted():
        disable()
        raise KeyboardInterrupt

    monkeypatch.setattr(gc, "disable", interrupted)
    with pytest.raises(KeyboardInterrupt), collected_later():
        pass
    monkeypatch.undo()
    assert gc.isenabled()
    with collected_later():
        pass
    assert gc.isenabled()


def test_the_last_of_several_threads_lets_it_go_on():
    gc.enable()
    inside, out = threading.Barrier(4), []

    def work():
        with collected_later():
            inside.wait()
            out.append(gc.isenabled())
        inside.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert out == [False] * 4 and gc.isenabled()


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def child_says(question):
    """Whether a forked child answers yes."""
    child = os.fork()
    if child == 0:
        os._exit(0 if question() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@needs_fork
def test_a_child_that_is_forked_inside_collects_when_it_is_through():
    gc.enable()
    inside = collected_later()
    inside.__enter__()

    def question():
        before = gc.isenabled()
        inside.__exit__(None, None, None)
        return not before and gc.isenabled()

    assert child_says(question)
    inside.__exit__(None, None, None)
    assert gc.isenabled()


@needs_fork
def test_a_child_does_not_wait_for_threads_that_it_does_not_have():
    gc.enable()
    started, go = threading.Event(), threading.Event()

    def work():
        with collected_later():
            started.set()
            go.wait()

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    assert not gc.isenabled() and child_says(gc.isenabled)
    go.set()
    thread.join()
    assert gc.isenabled()
