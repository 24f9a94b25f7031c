"""The arguments of a call, unpacked: which parameters are static, the keys of their values, and the arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from harp.errors import ArgumentError, StaticArgumentError
from harp.trace.interning import identity
from harp.trace.resident import DeviceMemory
from harp.trace.scalar.dtypes import NDArray, plain
from harp.trace.source_locations import kind_of, plural, where
from harp.trace.tracer import function_name
from harp.trace.trees import Tree, TreeSpec

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Static(NamedTuple):
    """The static values of a call by position or name, and their key."""

    key: Hashable
    values: dict[int | str, object]


NO_STATIC = Static((), {})


class Call(NamedTuple):
    """A call, unpacked: static values, leaves as buffers, and the key under which its entries are found."""

    static: Static
    given: list[tuple[str, int]]  # the traced arguments by name, and how many leaves each one has
    treedef: TreeSpec
    structure: Hashable  # the treedef, or the number of arguments where each one is a leaf
    leaves: Sequence[object]
    held: list[DeviceMemory | None]  # for each leaf, its memory on the device
    arrays: list[tuple[NDArray, bool]]
    names: list[str]
    donated: tuple[int, ...]  # numbers of leaves

    @property
    def sizes(self) -> list[int]:
        """The sizes of all axes of the traced arguments."""
        return [size for array, _ in self.arrays for size in array.shape]

    @property
    def buffers(self) -> list[Any]:
        """The arguments as the program takes them: memory on its device, or NumPy arrays."""
        return [held or plain(array) for held, (array, _) in zip(self.held, self.arrays, strict=True)]

    def hollow(self) -> Call:
        """The call without the memory of its arguments: who keeps this one does not own them."""
        shapes = [(np.broadcast_to(np.zeros((), a.dtype), a.shape), weak) for a, weak in self.arrays]
        return self._replace(leaves=(), held=[], arrays=shapes)


class StaticParameters(NamedTuple):
    """The static parameters of a function; one that has a position and a name is in both sets."""

    numbers: frozenset[int]
    names: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.numbers or self.names)

    def split(
        self, function: Callable[..., object], args: tuple[Tree, ...], kwargs: dict[str, Tree]
    ) -> tuple[Static, tuple[Tree, ...], dict[str, Tree]]:
        """The static arguments of a call, the other positional ones, and the other named ones."""
        values: dict[int | str, object] = {k: value for k, value in enumerate(args) if k in self.numbers}
        dynamic = tuple([value for k, value in enumerate(args) if k not in values]) if values else args
        if kwargs:
            values |= {name: kwargs[name] for name in sorted(kwargs) if name in self.names}
            kwargs = {name: value for name, value in kwargs.items() if name not in self.names}
        key = tuple([(name, _checked_key(name, value, function)) for name, value in values.items()])
        return Static(key, values), dynamic, kwargs


def static_parameters(function: Callable[..., object], numbers: object, names: object) -> StaticParameters:
    """The parameters that `static_argnums` and `static_argnames` name. Raises ArgumentError."""
    return _chosen("static", function, numbers, names)


def donated_parameters(
    function: Callable[..., object], numbers: object, names: object, static: StaticParameters
) -> StaticParameters:
    """The parameters that `donate_argnums` and `donate_argnames` name, none of them static. Raises ArgumentError."""
    if isinstance(numbers, tuple) and isinstance(names, tuple) and not (numbers or names):
        return StaticParameters(frozenset(), frozenset())
    donated = _chosen("donate", function, numbers, names)
    for both in (*sorted(donated.names & static.names), *sorted(donated.numbers & static.numbers)):
        raise ArgumentError(
            f"argument {both!r} of {function_name(function)!r} is static and cannot be donated, for it has no memory; "
            f"name it in one of static_argnums and donate_argnums only{where()}"
        )
    return donated


def _chosen(option: str, function: Callable[..., object], numbers: object, names: object) -> StaticParameters:
    """The parameters that `<option>_argnums` and `<option>_argnames` name. Raises ArgumentError."""
    wanted_numbers = _listed(f"{option}_argnums", numbers, (int, np.integer), "a number, or a tuple of numbers")
    wanted_names = _listed(f"{option}_argnames", names, (str,), "a name, or a tuple of names")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function written in C may have no signature
        return StaticParameters(frozenset(map(int, wanted_numbers)), frozenset(map(str, wanted_names)))
    kinds = {p.kind for p in parameters}
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    label = function_name(function)
    found_numbers: set[int] = set()
    for k in map(int, wanted_numbers):
        counted = k + len(positional) if k < 0 and inspect.Parameter.VAR_POSITIONAL not in kinds else k
        if counted < 0 or (counted >= len(positional) and inspect.Parameter.VAR_POSITIONAL not in kinds):
            raise ArgumentError(
                f"{option}_argnums has {k}, but {label!r} has {plural(len(positional), 'positional parameters')}"
                f"{' and *args, whose end is not known' if k < 0 and counted == k else ''}{where()}"
            )
        found_numbers.add(counted)
    found_names = set(map(str, wanted_names))
    unknown = found_names - {p.name for p in parameters}
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        known = ", ".join(p.name for p in parameters)
        raise ArgumentError(
            f"{option}_argnames has {min(unknown)!r}, but the parameters of {label!r} are ({known}){where()}"
        )
    found_numbers |= {k for k, p in enumerate(positional) if p.name in found_names}
    found_names |= {p.name for k, p in enumerate(positional) if k in found_numbers and p.kind is not _POSITIONAL[0]}
    return StaticParameters(frozenset(found_numbers), frozenset(found_names))


def _listed(option: str, value: object, kinds: tuple[type, ...], what: str) -> Sequence[Any]:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    listed = (value,) if isinstance(value, kinds) or not isinstance(value, Iterable) else tuple(value)
    wrong = [v for v in listed if not isinstance(v, kinds) or isinstance(v, bool)]
    if wrong:
        raise ArgumentError(f"{option} must be {what}, not {wrong[0]!r} of type {type(wrong[0]).__name__}{where()}")
    return listed


def _checked_key(name: int | str, value: object, function: Callable[..., object]) -> Hashable:
    try:
        return identity(value)
    except (TypeError, ValueError):
        raise StaticArgumentError(
            f"static argument {name!r} of {function_name(function)!r} is {kind_of(value)}, which cannot be "
            f"hashed and compared; pass a tuple or another hashable value, or make it a traced argument{where()}"
        ) from None
