"""Classes of fields, beside those of `dataclasses`, which have the same names and do the same."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import weakref
from typing import Generic, TypeVar

import pytest

from harp.fields import evolve, field, frozen, put

T = TypeVar("T")


class Base:
    __slots__ = ()

    def __repr__(self) -> str:
        return "its own"


@frozen(eq=True)
class Pair:
    """Two."""

    first: object
    second: object = 2

    def total(self) -> object:
        return self.first + self.second


@dataclasses.dataclass(frozen=True, slots=True)
class Oracle:
    first: object
    second: object = 2


@frozen
class Node(Base):
    length: int
    double: int = field(init=False)

    def __post_init__(self) -> None:
        put(self, "double", 2 * self.length)


@frozen
class Box(Generic[T]):
    content: T
    _hidden: int = 0


ARGUMENTS = {
    "all": (("a", "b"), {}),
    "default": ((1,), {}),
    "names": ((), {"second": (1, 2), "first": None}),
    "too few": ((), {}),
    "too many": ((1, 2, 3), {}),
    "unknown": ((1,), {"third": 3}),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_constructor(name):
    args, kwargs = ARGUMENTS[name]
    try:
        expected = Oracle(*args, **kwargs)
    except TypeError as error:
        with pytest.raises(TypeError) as ours:
            Pair(*args, **kwargs)
        assert str(ours.value) == str(error).replace("Oracle", "Pair")
        return
    made = Pair(*args, **kwargs)
    assert (made.first, made.second) == (expected.first, expected.second)
    assert repr(made) == repr(expected).replace("Oracle", "Pair") and hash(made) == hash(expected)


def test_equality_by_value_or_identity():
    assert Pair(1) == Pair(1, 2) != Pair(1, 3) and Pair(1) != Oracle(1) and len({Pair(1), Pair(1, 2)}) == 1
    assert Node(1) != Node(1) and len({Node(1), Node(1)}) == 2


@pytest.mark.parametrize("made", [Pair(1), Node(3), Box([1])], ids=lambda made: type(made).__name__)
def test_fields_do_not_change(made):
    for name in (*made.__match_args__, "new"):
        with pytest.raises(AttributeError, match=rf"{type(made).__name__}\.{name} does not change"):
            setattr(made, name, 1)
        with pytest.raises(AttributeError):
            delattr(made, name)
    assert not hasattr(made, "__dict__") and weakref.ref(made)() is made


def test_what_the_class_defines_stays():
    assert repr(Node(3)) == "its own" and Node(3).double == 6 and Node.__match_args__ == ("length",)
    assert Pair.__doc__ == "Two." and Pair.__module__ == __name__ and Pair(1).total() == 3
    with pytest.raises(TypeError):
        Node(3, 6)


def test_evolve():
    assert evolve(Pair(1), second=5) == Pair(1, 5) and evolve(Node(3), length=4).double == 8
    assert evolve(Box(1, 2), content="x")._hidden == 2 and Box[int](1).content == 1
    with pytest.raises(TypeError):
        evolve(Pair(1), third=3)


def test_copies():
    for again in (copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))):
        assert again(Pair([1], {2: 3})) == Pair([1], {2: 3}) and again(Node(3)).double == 6


def test_patterns():
    match Pair(1, 4):
        case Pair(1, second):
            assert second == 4
        case _:
            raise AssertionError
