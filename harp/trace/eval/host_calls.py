"""Calls of functions of Python: by the interpreter, and by compiled programs.

A program knows its functions by number. Those of the calls that run now are kept for each thread, for a function that
is called may call programs itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from harp.trace.graph.node import HostFunction
from harp.trace.scalar.dtypes import NDArray

Functions = Sequence[Callable[..., object]]


class _State(threading.local):
    functions: Functions = ()
    raised: BaseException | None = None  # by the last function that raised anything
    noted: BaseException | None = None  # the error that ends the compiled program that runs


_state = _State()


@contextmanager
def calling(functions: Functions) -> Iterator[None]:
    """Within it, these are the functions that a program of this thread calls."""
    before = _state.functions, _state.noted
    _state.functions, _state.noted = functions, None
    try:
        yield
    finally:
        _state.functions, _state.noted = before
        _state.raised = None


def note_error(error: BaseException) -> None:
    """The program that runs in this thread has to end with an error."""
    _state.noted = error


def take_error() -> BaseException | None:
    """The error with which the program ended, if there was one; it is forgotten here."""
    error, _state.noted = _state.noted, None
    return error


def call_each(function: HostFunction | int, active: NDArray, operands: Sequence[NDArray]) -> None:
    """Call a function for each element of `active` that is true, in row-major order, with copies of what the operands
    have there; those of a program are named by number. What it returns is ignored."""
    call = _state.functions[function] if isinstance(function, int) else function.call
    for place in np.ndindex(active.shape):
        if active[place]:
            given = [np.array(operand[place]) for operand in operands]
            try:
                call(*given)
            except BaseException as error:
                _state.raised = error
                raise


def is_raised_by_call(error: BaseException) -> bool:
    """Whether an error is that of a function that was called, and none of the interpreter."""
    return _state.raised is error
