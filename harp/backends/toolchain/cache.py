"""The disk cache: one file per entry, written whole and renamed into place; no index, no pickle.

An entry ends with the SHA-256 of its name and content. (The system's loader ignores bytes behind the end of a library,
so the digest can stand there.) So an entry that is damaged, truncated, or under the name of another is noticed before
it is loaded. Only directories and files that no other user can replace or write to are used (`trust.py`). If a
directory cannot be used, the next one is tried: `$HARP_CACHE_DIR`, `$XDG_CACHE_HOME/harp`, `~/.cache/harp`, a private
temporary directory. If none can, a library stays in memory.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from harp.backends.toolchain import bound, trust
from harp.backends.toolchain.trust import Stored
from harp.config import log
from harp.lazy import Names
from harp.locks import forkable_lock

_DIGEST = 32
LIBRARY = ".so"
# They take as long to import as all else that a program from the cache needs.
_MODULES = Names({"shutil": "rmtree", "harp.backends.toolchain.leftovers": "private remove_private"})
_lock = forkable_lock(sys.modules[__name__])
_private: list[Path] = []
_warned_of: set[Path] = set()


def places() -> Iterator[Path]:
    """The directories of entries, in order of preference. The private one is last, and made when it is reached."""
    yield from _shared_places()
    private = _private_directory()
    if private is not None:
        yield private


def _shared_places() -> Iterator[Path]:
    """The directories that other processes use, too."""
    chosen, base = os.environ.get("HARP_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME", "")
    if chosen:
        try:
            yield Path(os.path.abspath(os.path.expanduser(chosen)))
        except OSError as error:  # the path is relative to a directory that was deleted
            log.debug("HARP_CACHE_DIR=%s: %s", chosen, error)
    elif os.path.isabs(base):
        yield Path(base) / "harp"
    else:
        home = os.path.expanduser("~")
        if os.path.isabs(home):
            yield Path(home) / ".cache" / "harp"


def _private_directory() -> Path | None:
    with _lock:
        if not _private or not _private[0].is_dir():
            try:
                fresh = _MODULES["private"]()
            except OSError as error:
                log.debug("no temporary directory: %s", error)
                return None
            _private[:] = [fresh]
        return _private[0]


@atexit.register
def _remove_private() -> None:
    for directory in _private:
        _MODULES["remove_private"](directory)


def prepare(directory: Path) -> str | None:
    """Make a cache directory; returns the reason why it cannot be used, or None."""
    try:
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        for path in (*missing[:0:-1], directory):  # all of them for the user alone, whatever the umask
            path.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return error.strerror or str(error)
    reason = trust.directory_refusal(directory)
    return reason if reason or os.access(directory, os.W_OK | os.X_OK) else "cannot be written to"


def ready() -> Path | None:
    """The directory, made if it was missing, in which other processes find what is put into the cache now; or None."""
    return next((place for place in _shared_places() if prepare(place) is None), None)


def directory() -> Path | None:
    """The directory in use that other processes use, too; None if there is none."""
    return next((place for place in _shared_places() if trust.directory_refusal(place) is None), None)


def get(key: str, suffix: str) -> bytes | None:
    """The content of the undamaged entry with this key, or None."""
    entry = _find(key, suffix)
    if entry is None:
        return None
    os.close(entry[0])
    return entry[2]


def has(key: str, suffix: str) -> bool:
    """Whether there is an entry with this key, which may be damaged."""
    return any((place / f"{key}{suffix}").is_file() for place in (*_shared_places(), *_private))


def get_library(key: str) -> Stored | None:
    """The undamaged library with this key, open, or None."""
    entry = _find(key, LIBRARY)
    return None if entry is None else Stored(entry[0], entry[1])


def keys(kind: str) -> list[str]:
    """The keys of all records of a kind, the most recently used first. Some may be damaged."""
    records: list[bound.Entry] = []
    for place in (*_shared_places(), *_private):
        try:
            opened = trust.open_directory(place)
        except (OSError, trust.Refused):
            continue
        try:
            records += [e for e in bound.entries(opened) if e.name.startswith(f"{kind}-") and e.name.endswith(".json")]
        except OSError as error:
            log.debug("cache directory %s: %s", place, error)
        finally:
            os.close(opened)
    return [entry.name.removesuffix(".json") for entry in sorted(records, reverse=True)]


def count_hit() -> None:
    """Count a program that was found in the cache."""
    for place in _shared_places():
        try:
            opened = trust.open_directory(place)
        except (OSError, trust.Refused):
            continue
        try:
            bound.count_hit(opened)
        finally:
            os.close(opened)
        return


def _find(key: str, suffix: str) -> tuple[int, Path, bytes] | None:
    """An undamaged entry: its open file, its path, and its content."""
    name = f"{key}{suffix}"
    for place in (*_shared_places(), *_private):
        try:
            opened = trust.open_directory(place)
        except (OSError, trust.Refused):
            continue
        try:
            handle = trust.open_file(opened, name)
        except FileNotFoundError:
            continue
        except (OSError, trust.Refused) as error:
            log.debug("cache entry %s %s: passed over", place / name, error)
            continue
        finally:
            os.close(opened)
        content = _undamaged(handle, name)
        if content is not None:
            bound.touch(handle)
            return handle, place / name, content
        os.close(handle)
        log.debug("cache entry %s is damaged: passed over", place / name)
    return None


def _undamaged(handle: int, name: str) -> bytes | None:
    """The content of an entry of this name, or None if it is damaged."""
    try:
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read()
    except OSError as error:
        log.debug("cache entry %s: %s", name, error)
        return None
    content = data[:-_DIGEST]
    return content if len(data) > _DIGEST and digest(name, content) == data[-_DIGEST:] else None


def digest(name: str, content: bytes) -> bytes:
    """The digest of an entry, which covers its name."""
    hashed = hashlib.sha256(os.fsencode(name) + b"\0")
    hashed.update(content)
    return hashed.digest()


def forget(key: str, suffix: str) -> None:
    """Remove an entry."""
    for place in (*_shared_places(), *_private):
        try:
            opened = trust.open_directory(place)
        except (OSError, trust.Refused):
            continue
        try:
            os.unlink(f"{key}{suffix}", dir_fd=opened)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.debug("could not remove %s from %s: %s", key, place, error)
        finally:
            os.close(opened)


def put(key: str, suffix: str, content: bytes) -> Path | None:
    """Store an entry in the first directory that takes it; None if none does."""
    for place in places():
        reason = prepare(place)
        if reason is None:
            try:
                return _store(place, f"{key}{suffix}", content)
            except trust.Refused as refused:
                reason = str(refused)
            except OSError as error:
                reason = error.strerror or str(error)
        _refused(place, reason)
    return None


def _refused(place: Path, reason: str) -> None:
    """Report why a directory is not used, once as a warning."""
    if place not in (*_private, *_warned_of):
        _warned_of.add(place)
        text = "%s: %s %s; so programs are compiled again in each process; see `python -m harp doctor`"
        log.warning(text, "HARP_CACHE_DIR" if os.environ.get("HARP_CACHE_DIR") else "the cache", place, reason)
    else:
        log.debug("cache directory %s: %s; trying the next", place, reason)


def _store(place: Path, name: str, content: bytes) -> Path:
    opened = trust.open_directory(place)
    try:
        _write(opened, name, content)
        bound.grown(opened, len(content) + _DIGEST)
    finally:
        os.close(opened)
    return place / name


def _write(opened: int, name: str, content: bytes) -> None:
    """Write a complete entry to a temporary file, and rename it."""
    temporary = bound.temporary_name(name)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, 0o700, dir_fd=opened), "wb") as file:
            os.fchmod(file.fileno(), 0o700)  # whatever the umask
            file.write(content)
            file.write(digest(name, content))
        _rename(opened, temporary, name)
    except BaseException:
        try:
            os.unlink(temporary, dir_fd=opened)
        except OSError as error:
            log.debug("could not remove %s: %s", temporary, error)
        raise


def _rename(opened: int, temporary: str, name: str) -> None:
    try:
        os.replace(temporary, name, src_dir_fd=opened, dst_dir_fd=opened)
    except IsADirectoryError:  # not an entry: it would stay in the way
        aside = bound.temporary_name(name)
        os.rename(name, aside, src_dir_fd=opened, dst_dir_fd=opened)
        os.replace(temporary, name, src_dir_fd=opened, dst_dir_fd=opened)
        _MODULES["rmtree"](aside, ignore_errors=True, dir_fd=opened)
