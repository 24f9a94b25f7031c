"""No function of the standard is forgotten: each is there, with the standard's signature, or listed with the reason."""

from __future__ import annotations

import inspect
import pathlib

import array_api_strict
import pytest
import status

import harp.numpy as hnp

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
array_api_strict.set_array_api_strict_flags(api_version=status.VERSION)

_STRICTS_OWN = {
    *("ArrayAPIStrictFlags", "Device", "__version__", "get_array_api_strict_flags"),
    *("reset_array_api_strict_flags", "set_array_api_strict_flags", "fft", "linalg"),
    *("broadcast_shapes", "isin"),  # of later versions
}


def test_the_list_is_the_standards():
    listed = {n for n in status.names() if "." not in n}
    assert listed == set(array_api_strict.__all__) - _STRICTS_OWN
    for space in ("fft", "linalg"):
        inside = {n.removeprefix(f"{space}.") for n in status.names() if n.startswith(f"{space}.")}
        assert inside == set(getattr(array_api_strict, space).__all__)


def test_what_is_missing_is_listed_with_its_reason():
    missing = {name for name in status.names() if not status.has(name)}
    assert missing - status.MISSING.keys() == set(), "missing without a reason"
    assert status.MISSING.keys() - missing == set(), "there now: take them out of the list in status.py"
    assert status.NOTES.keys() <= set(status.names())


def test_the_page_is_up_to_date():
    text = (ROOT / "docs" / "array-api.md").read_text("utf-8")
    assert text == status.page(), "run: python tests/standard/status.py > docs/array-api.md"


FUNCTIONS = [
    n for n in status.names() if status.has(n) and callable(status.find(n)) and n not in status.NAMES["Data types"]
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_calls_of_the_standard_bind(name):
    """Every way of passing arguments that the standard's signature allows is one that harp's allows."""
    wanted: object = array_api_strict
    for part in name.split("."):
        wanted = getattr(wanted, part)
    ours = inspect.signature(status.find(name))
    positional, keywords, both = [], {}, {}
    for parameter in inspect.signature(wanted).parameters.values():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            both[parameter.name] = 1
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords[parameter.name] = 1
        elif parameter.kind is parameter.VAR_POSITIONAL:
            positional += ["a", "b"]
    ours.bind(*positional, **both, **keywords)
    ours.bind(*positional, *both, **keywords)


def test_constants():
    for name in status.NAMES["Constants"].split():
        ours, wanted = getattr(hnp, name), getattr(array_api_strict, name)
        assert ours is wanted or ours == wanted or (ours != ours and wanted != wanted)


def test_inspection():
    info, wanted = hnp.__array_namespace_info__(), array_api_strict.__array_namespace_info__()
    assert hnp.__array_api_version__ == status.VERSION
    assert info.capabilities().keys() == wanted.capabilities().keys()
    assert info.devices() == [info.default_device()] == ["cpu"]
    kinds = [
        None,
        "bool",
        "signed integer",
        "unsigned integer",
        "integral",
        "real floating",
        "complex floating",
        "numeric",
    ]
    for kind in [*kinds, ("bool", "integral")]:
        ours, theirs = info.dtypes(kind=kind), wanted.dtypes(kind=kind)
        assert ours.keys() == {n for n in theirs if status.has(n) or n == "bool"}
        assert all(dtype.name == name for name, dtype in ours.items())
    for kind, dtype in info.default_dtypes(device="cpu").items():
        assert dtype.name == wanted.default_dtypes()[kind]._np_dtype.name
    with pytest.raises(TypeError, match="no kind of dtypes"):
        info.dtypes(kind="number")
