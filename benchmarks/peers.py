"""The libraries that are compared: how each is imported, gets its arguments, compiles, is called and waited for."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import NamedTuple

from benchmarks.harness import Call, tree_map

Function = Callable[..., object]


class Peer(NamedTuple):
    """One library, or one way of using it."""

    name: str
    package: str  # what must be installed
    namespace: str  # the array namespace; empty where only functions written for this peer can run
    convert: Callable[[object], object]  # from a NumPy array to its own
    compile: Callable[[Function, int], Function]
    wait: Callable[[object], object] | None = None  # for results that are computed in the background
    prepare: Callable[[int], None] | None = None  # with the number of threads, before its first workload

    def xp(self) -> ModuleType:
        """Its array namespace."""
        return importlib.import_module(self.namespace)

    def library(self) -> ModuleType:
        """The package, where transforms such as `grad` are."""
        return importlib.import_module(self.package)

    def arguments(self, arguments: tuple[object, ...]) -> tuple[object, ...]:
        """NumPy arguments as its own arrays; Python numbers stay what they are."""
        converted = tree_map(lambda leaf: self.convert(leaf) if hasattr(leaf, "dtype") else leaf, arguments)
        assert isinstance(converted, tuple)
        return converted

    def call(self, function: Function, arguments: tuple[object, ...]) -> Call:
        """What is timed: from arguments on its side to a result that is there."""
        if self.wait is None:
            return partial(function, *arguments)
        wait = self.wait
        return lambda: wait(function(*arguments))


def _same(value: object) -> object:
    return value


def _uncompiled(function: Function, threads: int) -> Function:
    return function


def _harp_jit(function: Function, threads: int) -> Function:
    return importlib.import_module("harp").jit(function)


def _jax_prepare(threads: int) -> None:
    importlib.import_module("jax").config.update("jax_enable_x64", True)


def _jax_put(array: object) -> object:
    return importlib.import_module("jax").device_put(array)


def _jax_jit(function: Function, threads: int) -> Function:
    return importlib.import_module("jax").jit(function)


def _jax_wait(result: object) -> object:
    return importlib.import_module("jax").block_until_ready(result)


def _torch_prepare(threads: int) -> None:
    importlib.import_module("torch").set_num_threads(threads)


def _torch_tensor(array: object) -> object:
    return importlib.import_module("torch").from_numpy(array)


def _torch_compile(function: Function, threads: int) -> Function:
    torch = importlib.import_module("torch")
    torch._dynamo.reset()  # each workload as if it were the only one: no limit on recompilations is reached
    return torch.compile(function)


def _numba_jit(function: Function, threads: int) -> Function:
    return importlib.import_module("numba").njit(parallel=threads > 1, fastmath=True)(function)


def _numexpr_prepare(threads: int) -> None:
    importlib.import_module("numexpr").set_num_threads(threads)


PEERS = {
    peer.name: peer
    for peer in (
        Peer("harp", "harp", "harp.numpy", _same, _harp_jit),
        Peer("numpy", "numpy", "numpy", _same, _uncompiled),
        Peer("jax", "jax", "jax.numpy", _jax_put, _jax_jit, _jax_wait, _jax_prepare),
        Peer("torch", "torch", "torch", _torch_tensor, _uncompiled, None, _torch_prepare),
        Peer("torch.compile", "torch", "torch", _torch_tensor, _torch_compile, None, _torch_prepare),
        Peer("numba", "numba", "", _same, _numba_jit),
        Peer("numexpr", "numexpr", "", _same, _uncompiled, None, _numexpr_prepare),
    )
}


def installed() -> tuple[str, ...]:
    """The peers that can be measured here, without harp."""
    return tuple(name for name, peer in PEERS.items() if name != "harp" and importlib.util.find_spec(peer.package))


def versions(names: tuple[str, ...]) -> dict[str, str]:
    """The version of each package."""
    return {PEERS[name].package: importlib.metadata.version(PEERS[name].package) for name in names}
