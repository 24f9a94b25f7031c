"""`python -m harp port FILE...`: which names of JAX files use, and which of them harp lacks.

    from jax import numpy as jnp; y = jnp.linalg.det(x)    ->    jax.numpy.linalg.det, which `harp.jax` has

Folders stand for the Python files in them. Files are read, not run, so that names which are built at run time are not
seen.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace


def main(paths: Iterable[str]) -> int:
    """Print the names, with how many files use each; returns 1 if harp lacks some, 2 if a file cannot be read."""
    used: Counter[str] = Counter()
    files, failed = 0, 0
    for path in _files(paths):
        try:
            names = set(names_used(path.read_text(encoding="utf-8")))
        except (OSError, SyntaxError, ValueError) as error:
            print(f"{path}: {error}")
            failed += 1
            continue
        files += bool(names)
        used.update(names)
    missing = {name: count for name, count in used.most_common() if not is_there(name)}
    for name, count in missing.items():
        print(f"{count:5} {'file' if count == 1 else 'files'}  {name}")
    print(f"{len(used) - len(missing)} of {len(used)} names of JAX in {files} files are in harp.jax")
    return 2 if failed else int(bool(missing))


def _files(paths: Iterable[str]) -> Iterator[Path]:
    for path in map(Path, paths):
        yield from sorted(path.rglob("*.py")) if path.is_dir() else [path]


def names_used(source: str) -> Iterator[str]:
    """The full names of what a module takes out of JAX. Raises SyntaxError for what is no Python."""
    tree = ast.parse(source)
    known: dict[str, str] = {}  # what JAX's modules and their parts are called here
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_of_jax(alias.name):
                    known[alias.asname or "jax"] = alias.name if alias.asname else "jax"
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_of_jax(node.module or ""):
            for alias in node.names:
                known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                yield f"{node.module}.{alias.name}"
    inside = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inside:
            name = _full_name(node, known)
            if name is not None:
                yield name


def _is_of_jax(module: str) -> bool:
    return module.partition(".")[0] == "jax"


def _full_name(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """Of jnp.linalg.det, jax.numpy.linalg.det."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    start = known.get(node.id) if isinstance(node, ast.Name) else None
    return None if start is None else ".".join([start, *reversed(parts)])


def is_there(name: str) -> bool:
    """Whether `harp.jax` has a name of JAX, such as jax.numpy.sum; of the methods of what it names nothing is said."""
    found: object = import_module("harp.jax")
    for part in name.split(".")[1:]:
        if not isinstance(found, (ModuleType, SimpleNamespace)):
            return True
        if getattr(found, "__path__", None) == []:  # its modules are imported by their names
            with suppress(ModuleNotFoundError):
                import_module(f"{found.__name__}.{part}")
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True
