"""Where the tests of foreign routines run: at once, compiled, by the interpreter, and on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

import harp
from harp.backends.toolchain.toolchain import find_toolchain
from harp.transforms.jit import programs

PLACES = ("at once", "C", "NumPy", "OpenCL")


@pytest.fixture(autouse=True)
def chosen(processor: None) -> None:
    """Tests say themselves what runs on a device."""


@pytest.fixture(params=PLACES[1:])
def jit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable]:
    """`harp.jit`, for one kind of program."""
    yield _jit(request.param, monkeypatch)


@pytest.fixture(params=PLACES)
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable]:
    """The function as it is, or a program of it."""
    yield (lambda f: f) if request.param == "at once" else _jit(request.param, monkeypatch)


def _jit(place: str, monkeypatch: pytest.MonkeyPatch) -> Callable:
    if place == "NumPy":
        monkeypatch.setattr(programs, "backend_name", lambda device=None: "numpy")
    elif place == "C" and find_toolchain() is None:
        pytest.skip("no compiler")
    elif place == "OpenCL":
        devices = [name for name in harp.devices() if name.startswith("opencl")]
        if not devices:
            pytest.skip("no OpenCL device")
        return partial(harp.jit, device=devices[0])
    return harp.jit
