"""Modules of harp under JAX's names, for statements such as `from harp.jax.scipy.linalg import solve`.

They are the same modules, and imported once, whatever they are called.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_HERE = "harp.jax."
_NAMES = ["debug", "flatten_util", "lax", "nn", "numpy", "ops", "random", "scipy", "test_util", "tree", "tree_util"]
_OTHERS = {
    "example_libraries.optimizers": "harp.jax.optimizers",
    "experimental.checkify": "harp.jax.checkify",
    "experimental.ode": "harp.jax.ode",
    "image": "harp.nn.image",
}


class _SameModule(Loader):
    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """It ran before, and keeps its own name."""
        module.__spec__ = self._spec


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = fullname.removeprefix(_HERE)
        if name == fullname:
            return None
        real = _OTHERS.get(name) or (f"harp.{name}" if name.partition(".")[0] in _NAMES else None)
        if real is not None:
            with suppress(ModuleNotFoundError):
                return ModuleSpec(fullname, _SameModule(import_module(real)))
        parent, _, last = fullname.rpartition(".")
        text = import_module("harp.numpy.missing").instead(parent, last)
        if text is not None and sys._getframe(2).f_code.co_name == "_find_and_load_unlocked":
            # An import asks, not `importlib.util.find_spec`.
            # By its last name only: with the whole one, `from harp.jax import name` would go on without the text.
            raise ModuleNotFoundError(text, name=last)
        return None


def stand_in() -> None:
    """From now on modules of harp can be imported from `harp.jax`."""
    sys.meta_path.insert(0, _Finder())
