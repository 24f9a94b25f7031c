"""Classes of fields that are set once, made fast: a process makes a hundred of them before its first program runs.

They are what `dataclass(frozen=True, slots=True)` makes, with its names. That generates and compiles each method of
each class, and so does attrs; here it is the constructor alone, and all classes share the other methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")
Namespace = dict[str, object]

put = object.__setattr__  # for `__post_init__`, which sets what the constructor does not


class _Unset:
    """The place of a field that the constructor does not take."""


_UNSET = _Unset()


def field(*, init: Literal[False]) -> Any:
    """A field that is no argument of the constructor: the class's `__post_init__` sets it."""
    return _UNSET


@overload
@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen(cls: type[T], /) -> type[T]: ...
@overload
@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def frozen(*, eq: bool) -> Callable[[type[T]], type[T]]: ...
def frozen(cls: type[T] | None = None, /, *, eq: bool = False) -> type[T] | Callable[[type[T]], type[T]]:
    """Give a class slots for what it annotates, a constructor that takes them in order, and a repr.

    Objects equal only themselves; with `eq`, those with equal fields. What the class defines itself stays. It has no
    fields from its bases and does not use `super()`, for it is made anew.

    >>> @frozen
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> evolve(Point(1), y=2)
    Point(x=1, y=2)
    """
    if cls is None:
        return lambda made: _frozen(made, eq)
    return _frozen(cls, eq)


def _frozen(cls: type[T], eq: bool) -> type[T]:
    body: Namespace = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    names = tuple(cls.__annotations__)
    defaults = {name: body.pop(name) for name in names if name in body}
    taken = tuple(name for name in names if defaults.get(name) is not _UNSET)
    methods = {**_METHODS, **(_BY_VALUE if eq else {})}
    body |= {name: method for name, method in methods.items() if getattr(cls, name) is getattr(object, name)}
    body["__init__"] = _constructor(cls, taken, defaults)
    body["__match_args__"] = taken
    body["__slots__"] = names if hasattr(cls.__base__, "__weakref__") else (*names, "__weakref__")
    made: type[T] = cast(Any, type(cls))(cls.__name__, cls.__bases__, body)
    return made


def _constructor(cls: type, names: tuple[str, ...], defaults: Namespace) -> Callable[..., None]:
    parameters = [f"{name}=defaults[{name!r}]" if name in defaults else name for name in names]
    lines = [f"put(self, {name!r}, {name})" for name in names]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    namespace: Namespace = {"put": put, "defaults": defaults}
    source = "\n    ".join([f"def __init__({', '.join(['self', *parameters])}):", *(lines or ["pass"])])
    exec(compile(source, "<harp.fields>", "exec"), namespace)  # names of fields only
    made = cast(Callable[..., None], namespace["__init__"])
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # in the TypeError of a wrong call
    return made


def names_of(cls: type) -> tuple[str, ...]:
    """The fields that the constructor takes."""
    return cast(Any, cls).__match_args__  # type: ignore[no-any-return]


def values_of(instance: object) -> tuple[Any, ...]:
    """What the constructor was given."""
    return tuple([getattr(instance, name) for name in names_of(type(instance))])


def evolve(instance: T, **changes: object) -> T:
    """One of the same class with other values in these fields."""
    fields = dict(zip(names_of(type(instance)), values_of(instance), strict=True))
    return type(instance)(**{**fields, **changes})


def _repr(self: object) -> str:
    parts = [f"{name}={value!r}" for name, value in zip(names_of(type(self)), values_of(self), strict=True)]
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _reduce(self: object) -> tuple[object, ...]:
    return type(self), values_of(self)


def _refuse(self: object, name: str, *value: object) -> NoReturn:
    raise AttributeError(f"{type(self).__name__}.{name} does not change")


def _equal(self: object, other: object) -> bool:
    return values_of(self) == values_of(other) if type(other) is type(self) else NotImplemented


def _hash(self: object) -> int:
    return hash(values_of(self))


_METHODS: Namespace = {
    "__repr__": _repr,
    "__reduce__": _reduce,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
}
_BY_VALUE: Namespace = {"__eq__": _equal, "__hash__": _hash}
