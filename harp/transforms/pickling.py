"""How functions that transforms make are pickled: by name where the name leads back to them, else by value.

By value they are what made them: the transform, the function that it was given, and the options. A function that
`pickle` does not find by its name, such as a lambda, is taken by `cloudpickle`, if that is installed. So it is with
functions of `__main__`, which is another module in the processes that Dask and joblib start.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import update_wrapper
from importlib import import_module
from types import MethodType, ModuleType
from typing import Any, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from harp.errors import ArgumentError
from harp.trace.source_locations import where
from harp.trace.tracebacks import shorten
from harp.trace.tracer import function_name

Function = Callable[..., Any]


class _Packing(threading.local):
    """Whether a function is being pickled by value: it may lead to itself, as the method of an object that keeps it."""

    is_begun = False


_packing = _Packing()


def _cloudpickle() -> ModuleType | None:
    try:
        return import_module("cloudpickle")
    except ImportError:
        return None


def name_of(function: object) -> str | None:
    """The name by which other processes find it; None if its module does not have it under that name, or is one that
    they do not have."""
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", None)
    value: object = sys.modules.get(module or "")
    for part in name.split("."):
        value = getattr(value, part, None)
    if value is not function:
        return None
    is_elsewhere = module == "__main__" and _cloudpickle() is not None
    return None if is_elsewhere else name


def portable(function: Function) -> object:
    """The function, or something that is pickled in its place. Raises ArgumentError.

    Inside of the pickle of another one it is the function, which that pickle has, or finds that it cannot have."""
    if _packing.is_begun:
        return function
    _packing.is_begun = True
    try:
        return _portable(function)
    finally:
        _packing.is_begun = False


def _portable(function: Function) -> object:
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        cloudpickle = _cloudpickle()
        if cloudpickle is None:
            raise ArgumentError(
                f"{function_name(function)!r} cannot be pickled, for its module does not have it under that name; "
                f"define it at the top level of a module, or install cloudpickle{where()}"
            ) from error
        return _Packed(cloudpickle.dumps(function))
    return function


def portable_parts(value: object) -> object:
    """The value; functions, and those in a tuple, are as `portable` makes them."""
    if isinstance(value, tuple):
        return tuple(portable(part) if callable(part) else part for part in value)
    return portable(value) if callable(value) else value


# What was pickled by value, or has arrived so, by a token and the other way round. The last arrivals stay alive between
# two uses, for the sake of their traces.
_travelled: WeakValueDictionary[bytes, Any] = WeakValueDictionary()
_tokens: WeakKeyDictionary[object, bytes] = WeakKeyDictionary()
_arrivals: deque[object] = deque(maxlen=64)


def token_of(value: object) -> bytes:
    """By which other processes know that they have an object already."""
    token = _tokens.setdefault(value, os.urandom(16))
    _travelled[token] = value
    return token


def arrived(token: bytes, make: Function, *arguments: object) -> object:
    """The object with this token, made unless this process has it."""
    made = _travelled.get(token)
    if made is None:
        made = make(*arguments)
        _tokens[made], _travelled[token] = token, made
        _arrivals.append(made)
    return made


class _Packed:
    """A function in the bytes of `cloudpickle`; unpickled it is the function."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def __reduce__(self) -> tuple[Function, tuple[bytes]]:
        return pickle.loads, (self._content,)


class Travelling:
    """A function that is its own copy. In the body of a class it takes the name that it gets there, for methods are
    pickled by this name."""

    __name__: str

    def __set_name__(self, owner: type, name: str) -> None:
        if name != getattr(self, "__name__", None):
            self.__name__, self.__module__ = name, owner.__module__
            self.__qualname__ = f"{owner.__qualname__}.{name}"

    def _names(self) -> dict[str, object]:
        """What is pickled beside what makes the function."""
        return {key: value for key, value in vars(self).items() if key in ("__name__", "__qualname__", "__module__")}

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


class Derived(Travelling):
    """A function that a transform has made of another one: `call` computes it, `make(function, *options)` makes it."""

    def __init__(self, call: Function, make: Function, function: Function, options: Sequence[object]) -> None:
        update_wrapper(self, function, updated=())
        self._call, self._make, self._function, self._options = call, make, function, tuple(options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the transform computes of these arguments."""
        try:
            return self._call(*args, **kwargs)
        except Exception as error:
            shorten(error, self._function)
            raise

    def __get__(self, instance: object, owner: type | None = None) -> Function:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str | tuple[Function, tuple[object, ...], dict[str, object]]:
        return name_of(self) or (_made, (portable(self._make), portable(self._function), *self._options), self._names())

    def __repr__(self) -> str:
        return f"<{getattr(self._make, '__name__', 'transform')} of {function_name(self._function)}>"


def _made(make: Function, function: Function, *options: object) -> object:
    return make(function, *options)


def derived(make: Function, function: Function, *options: object) -> Callable[[Function], Function]:
    """A decorator for what computes `make(function, *options)`."""
    return lambda call: Derived(call, make, function, options)


def restored(kind: type, attributes: dict[str, object]) -> object:
    """An object of this class with these attributes."""
    made: Any = object.__new__(kind)
    made.__dict__.update(attributes)
    return made
