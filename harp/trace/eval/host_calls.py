"""Calls of functions of Python: by the interpreter, and by compiled programs.

A program knows its functions by number. Those of the calls that run now are kept for each thread, for a function that
is called may call programs itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from harp.errors import CallbackError, KernelError
from harp.trace.graph.kernel_source import KernelSource, Routine
from harp.trace.graph.matrix_functions import MatrixFunction, in_python
from harp.trace.graph.routines import HostFunction, PureFunction, StandIn
from harp.trace.scalar.dtypes import NUMBERS, DType, NDArray, promote_weak

Functions = Sequence[HostFunction | PureFunction]
Results = Sequence[tuple[tuple[int, ...], DType]]


# Compiles and runs a kernel with these sizes; None where that is not possible. `harp.transforms.jit` says how.
run_kernel: Callable[..., list[NDArray] | None] | None = None


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


def run_function(number: int, calls: tuple[int, ...], operands: Sequence[NDArray], results: Results) -> list[NDArray]:
    """What a program that runs has asked for: its function of this number is called for each element of an array of
    the shape `calls`. Returns all results, of which `results` says the shapes and dtypes of one call."""
    function = _state.functions[number]
    if isinstance(function, PureFunction):
        return call_pure(function, calls, operands, results)
    token, active, *given = operands
    call_each(function, active, given)
    return [np.asarray(token + 1)]


def call_each(function: HostFunction | int, active: NDArray, operands: Sequence[NDArray]) -> None:
    """Call a function for each element of `active` that is true, in row-major order, with copies of what the operands
    have there; those of a program are named by number. What it returns is ignored."""
    found = _state.functions[function] if isinstance(function, int) else function
    for place in np.ndindex(active.shape):
        if active[place]:
            _called(found, [operand[place] for operand in operands])


def call_pure(
    routine: Routine | int,
    calls: tuple[int, ...],
    operands: Sequence[NDArray],
    results: Results,
    sizes: Sequence[int] = (),
) -> list[NDArray]:
    """What a routine makes for each element of an array of the shape `calls`, as whole arrays.

    Raises what a function raises, CallbackError where it does not return what was declared, and KernelError for a
    kernel that cannot be compiled here."""
    if isinstance(routine, StandIn):
        return routine.compute(calls, operands, results)
    if isinstance(routine, KernelSource):
        found = run_kernel(routine, calls, operands, results, sizes) if run_kernel is not None else None
        if found is not None:
            return found
        if routine.reference is None:
            raise KernelError(
                f"kernel {routine.name!r} cannot run here: there is no C compiler, or it has no source for one; "
                "`python -m harp doctor` says more, and `reference` may be a function that computes it with NumPy"
            )
        routine = routine.reference
    if isinstance(routine, MatrixFunction):
        routine = in_python(routine)
    function = _state.functions[routine] if isinstance(routine, int) else routine
    assert isinstance(function, PureFunction)
    if function.vectorised and 0 not in calls:
        whole = [((*calls, *own), dtype) for own, dtype in results]
        first = (whole,) if function.takes_results else ()
        return _returned(function, _called(function, operands, *first), whole)
    made = [np.empty((*calls, *own), dtype.numpy) for own, dtype in results]
    for place in np.ndindex(calls):
        found = _returned(function, _called(function, [operand[place] for operand in operands]), results)
        for target, value in zip(made, found, strict=True):
            target[place] = value
    return made


def _called(function: HostFunction | PureFunction, operands: Sequence[NDArray], *first: object) -> Any:
    try:
        return function.call(*first, *map(np.array, operands))
    except BaseException as error:
        _state.raised = error
        raise


def _returned(function: PureFunction, found: Any, results: Results) -> list[NDArray]:
    """What a function has returned, as arrays of the declared shapes and dtypes. Numbers of Python fit each dtype of
    their kind."""
    made = []
    for number, (value, (shape, dtype)) in enumerate(zip(found, results, strict=True)):
        array = np.asarray(value, dtype.numpy if _fits(value, dtype) else None)
        if array.shape != shape or array.dtype != dtype.numpy:
            which = f"result {number} of {function.name}" if len(results) > 1 else f"the result of {function.name}"
            error = CallbackError(
                f"{which} was declared as {dtype}{list(shape)}, but is {array.dtype}{list(array.shape)}; "
                "declare what it returns, or convert it"
            )
            _state.raised = error
            raise error
        made.append(array)
    return made


def _fits(value: object, dtype: DType) -> bool:
    """Whether it is a number of Python that takes on the dtype."""
    kind, weak = NUMBERS.get(type(value), (dtype, False))
    return weak and promote_weak(dtype, kind.kind) is dtype


def is_raised_by_call(error: BaseException) -> bool:
    """Whether an error is that of a function that was called, and none of the interpreter."""
    return _state.raised is error
