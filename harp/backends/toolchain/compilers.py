"""C compilers as data, and what the cache remembers of them, so that later processes need not start one to find out."""

from __future__ import annotations

import enum
import hashlib
import importlib.util
import json
import os
import sys
from typing import NamedTuple, cast

from harp.backends.toolchain import cache, machine
from harp.config import log

_KIND, _SUFFIX = "toolchain", ".json"


class Family(enum.Enum):
    """Compilers that take different flags."""

    GCC = "gcc"
    CLANG = "clang"
    ZIG = "zig"


class Toolchain(NamedTuple):
    """A compiler that works: its command, family and version, and the instruction set as explicit flags."""

    command: tuple[str, ...]
    family: Family
    version: str
    isa: tuple[str, ...]
    vector_bytes: int
    fma: bool

    @property
    def l1(self) -> int:
        """The size of the L1 cache in bytes."""
        return self._cache("l1-cache-size", 32) << 10

    @property
    def line(self) -> int:
        """The size of a cache line in bytes."""
        return self._cache("l1-cache-line-size", 64)

    def _cache(self, name: str, usual: int) -> int:
        """A property of the cache as the compiler reports it, which some compilers do not."""
        start = f"--param={name}="
        values = [flag.removeprefix(start) for flag in self.isa if flag.startswith(start)]
        return int(values[0]) if values and values[0].isdecimal() and int(values[0]) > 0 else usual


class Known(NamedTuple):
    """A compiler, its target system, and the CPU features that its programs may need."""

    toolchain: Toolchain
    system: str
    features: tuple[str, ...]

    @property
    def lacks(self) -> list[str]:
        """The reasons why its programs do not run here; empty if they do."""
        if self.system != machine.system():
            return [self.system]
        return machine.missing(self.features) if self.features else ["what the system does not say of its processor"]


def found(word: str) -> str | None:
    """The path of a program, as by `shutil.which`, whose module takes 6 ms to import."""
    paths = [word] if os.path.dirname(word) else [os.path.join(folder, word) for folder in os.get_exec_path()]
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def key_of(command: tuple[str, ...]) -> str:
    """A key that changes with the compiler's files, also behind a launcher such as ccache, and with the CPU."""
    facts = [*command, machine.system(), machine.facts()]
    for word in command:
        module = importlib.util.find_spec(word) if word == "ziglang" else None
        path = module.origin if module else found(word)
        if path is not None:
            status = os.stat(path)
            facts += [str(status.st_mtime_ns), str(status.st_size)]
    return f"{_KIND}-" + hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()


def remember(toolchain: Toolchain) -> None:
    """Remember a compiler for later processes, here and on other machines."""
    fields = [*toolchain._replace(family=toolchain.family.value), machine.system(), machine.features()]  # type: ignore[arg-type]
    cache.put(key_of(toolchain.command), _SUFFIX, json.dumps(fields).encode())


def forget(command: tuple[str, ...]) -> None:
    """Forget a compiler that turned out to be different."""
    cache.forget(key_of(command), _SUFFIX)


def recall(command: tuple[str, ...]) -> Toolchain | None:
    """The properties of this compiler that an earlier process found."""
    try:
        known = _entry(key_of(command))
    except OSError as error:
        log.debug("%s cannot be looked at: %s", command, error)
        return None
    return known.toolchain if known is not None and known.toolchain.command == command else None


def usable_elsewhere() -> list[Toolchain]:
    """The compilers of other machines, or once of this one, whose programs run here; the last used first."""
    all_known = [known for key in cache.keys(_KIND) if (known := _entry(key)) is not None]
    return [known.toolchain for known in all_known if not known.lacks]


def _entry(key: str) -> Known | None:
    content = cache.get(key, _SUFFIX)
    return None if content is None else parsed(content)


def parsed(content: bytes) -> Known | None:
    """The compiler that an entry describes; None for any other content."""
    try:
        return _checked(json.loads(content))
    except (ValueError, RecursionError) as error:
        log.debug("what was known of a compiler cannot be read: %s", error)
        return None


def _checked(fields: object) -> Known:
    """Raises ValueError for anything but what `remember` writes."""
    kinds = [list, str, str, list, int, bool, str, list]
    if not isinstance(fields, list) or [type(field) for field in cast(list[object], fields)] != kinds:
        raise ValueError("it is not about a compiler")
    command, family, version, isa, vector_bytes, fma, system, features = fields
    if not command or not all(type(word) is str for word in (*command, *isa, *features)):
        raise ValueError("it has no words")
    known = Toolchain(tuple(command), Family(family), version, tuple(isa), vector_bytes, fma)
    if vector_bytes not in (16, 32, 64) or "\0" in "".join((*command, *isa, *features, version, sys.platform)):
        raise ValueError("it has no such vectors, or words that are none")
    return Known(known, system, tuple(features))
