"""`signature=`: the declared sizes of a function's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence

from harp.errors import ArgumentError, SignatureError
from harp.trace.index.polynomial import Index
from harp.trace.scalar.dtypes import ArraySignature
from harp.trace.sizes.scope import Scope
from harp.trace.source_locations import plural, where
from harp.trace.tracer import Argument, declare, function_name, parameter_names
from harp.trace.trees import Tree, flatten
from harp.transforms.jit.static import StaticParameters

Declared = tuple[Tree, ...]


def declared_signature(function: Callable[..., object], signature: object, static: StaticParameters) -> Declared:
    """One entry for each parameter. Raises ArgumentError for what is no signature."""
    listed = (signature,) if isinstance(signature, ArraySignature) else signature
    if not isinstance(listed, (tuple, list)):
        raise ArgumentError(
            f"signature is a tuple with an entry for each argument, such as (harp.f32['n', 3], None), "
            f"not a {type(signature).__name__}{where()}"
        )
    for k, entry in enumerate(listed):
        for leaf in flatten(entry, none_is_leaf=True)[0]:
            if not _is_signature(leaf):
                raise ArgumentError(
                    f"entry {k} of signature has {leaf!r} of type {type(leaf).__name__}; an entry is a signature such "
                    f"as harp.f32['n', 3], None, or a tree of these{where()}"
                )
    names = names_in_order(function, len(listed))
    if len(listed) > len(names):
        raise ArgumentError(
            f"signature has {plural(len(listed), 'entries')}, but {function_name(function)!r} has "
            f"{plural(len(names), 'parameters')}{where()}"
        )
    for k, (name, entry) in enumerate(zip(names, listed, strict=False)):
        if (k in static.numbers or name in static.names) and entry is not None:
            raise ArgumentError(
                f"entry {k} of signature must be None, for the argument {name} is static and has no sizes{where()}"
            )
    return tuple(listed)


def names_in_order(function: Callable[..., object], count: int) -> list[str]:
    """The names of positional parameters, `count` in all if there is *args, and then of keyword-only ones."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return parameter_names(function, count)
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    several = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return parameter_names(function, count - len(named) if several else 0) + named


def declare_all(
    function: Callable[..., object],
    declared: Declared,
    given: Sequence[tuple[str, int]],
    count: int,
    arguments: Sequence[Argument],
    scope: Scope,
) -> None:
    """Hold a call's arrays to the declaration. `given` has the traced arguments, each with the number of its arrays;
    `count` includes the static ones."""
    if count > len(declared):
        raise SignatureError(
            f"signature declares {plural(len(declared), 'arguments')}, but the call has "
            f"{plural(count, 'arguments')}{where()}"
        )
    entries = dict(zip(names_in_order(function, count), declared, strict=False))
    named: dict[str, Index] = {}
    rest = list(arguments)
    for name, leaves in given:
        of_entry, rest = rest[:leaves], rest[leaves:]
        entry = entries.pop(name, None)
        if entry is None:
            continue
        signatures = flatten(entry, none_is_leaf=True)[0]
        if len(signatures) != leaves:
            raise SignatureError(
                f"argument {name} is declared with {plural(len(signatures), 'signatures')}, but has "
                f"{plural(leaves, 'arrays')}{where()}"
            )
        for declaration, argument in zip(signatures, of_entry, strict=True):
            if isinstance(declaration, ArraySignature):
                declare(argument, declaration, scope, named)
    missing = [name for name, entry in entries.items() if entry is not None]
    if missing:
        raise SignatureError(f"argument {missing[0]} is declared {entries[missing[0]]}, but is not given{where()}")


def _is_signature(leaf: object) -> bool:
    return leaf is None or isinstance(leaf, ArraySignature)
