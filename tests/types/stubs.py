"""Writes the `__init__.pyi` of harp's namespaces out of their tables of names: `python tests/types/stubs.py`."""

from __future__ import annotations

import importlib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
NAMESPACES = (
    "harp",
    "harp.lax",
    "harp.nn",
    "harp.numpy",
    "harp.numpy.linalg",
    "harp.optim",
    "harp.scipy",
    "harp.scipy.interpolate",
    "harp.scipy.special",
    "harp.scipy.stats",
)
LINE = 120


def imports(module: str, names: list[str]) -> str:
    """`from module import a as a`, which says that a name is meant for others, as ruff formats it."""
    line = f"from {module} import {', '.join(names)}"
    return line if len(line) <= LINE else f"from {module} import (\n    {f',{chr(10)}    '.join(names)},\n)"


def stub(namespace: str) -> str:
    """What type checkers read in place of the module: where each of its names is defined."""
    module = importlib.import_module(namespace)
    kept: dict[str, list[str]] = {}
    aliases = ["__version__: str"] if hasattr(module, "__version__") else []
    for name, (home, old) in module._NAMES.homes.items():
        given = name if old == name else f"_{name}"
        kept.setdefault(home.rstrip("."), []).append(f"{old} as {given}")
        aliases += [] if old == name else [f"{name} = {given}"]
    lines = [imports(home, sorted(names)) for home, names in sorted(kept.items())]
    return "\n".join(["# Written by tests/types/stubs.py.", *lines, *([""] if aliases else []), *aliases, ""])


def file(namespace: str) -> pathlib.Path:
    """Where the stub of a namespace is."""
    return ROOT.joinpath(*namespace.split("."), "__init__.pyi")


if __name__ == "__main__":
    for namespace in NAMESPACES:
        file(namespace).write_text(stub(namespace), "utf-8")
