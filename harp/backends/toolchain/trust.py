"""Which directories and files are trusted, since the code in them is run.

A file is trusted if it is the user's and no one else can write to it. So is a directory, if also no one else can
replace it: each directory above it belongs to the user or to root, and others cannot write to it, or only to their own
files (the sticky bit), as ssh requires. A group of which the user is the only member, as many systems make for each
user, is not counted as others. A file that was checked stays open, and is read and loaded through the same descriptor,
whatever becomes of its name. Loading a truncated library would kill Python with SIGBUS, so files are checked for that,
too.
"""

from __future__ import annotations

import grp
import itertools
import os
import pwd
import stat
import struct
import sys
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from harp.config import log

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_SHARED = "can be written to by others"
_LINKS = 10
_DESCRIPTORS = "/proc/self/fd"
_good_parents: set[tuple[str, int]] = set()  # only the user and root can change them


class Refused(Exception):
    """The reason why something is not trusted, as the end of a sentence about it."""


def open_directory(path: Path) -> int:
    """A descriptor of a trusted directory. Raises Refused, and OSError if there is none."""
    _require_own_links(path)
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _require_mine(os.fstat(handle))
        if _is_shared(os.fstat(handle), handle):
            raise Refused(f"{_SHARED}: run `chmod go-w {path}`")
        real = _real(path, handle)
        if (real, os.geteuid()) not in _good_parents:
            _require_parents(Path(real))
            _good_parents.add((real, os.geteuid()))
    except BaseException:
        os.close(handle)
        raise
    return handle


def open_file(directory: int, name: str) -> int:
    """A descriptor of a trusted file in an open directory. Raises Refused, and OSError if there is none."""
    try:  # do not wait for a writer of a pipe
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        handle = os.open(name, flags, dir_fd=directory)
    except OSError as error:
        if _is_link(directory, name):
            raise Refused("is a symbolic link") from None
        raise error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise Refused("is no file")
        _require_mine(status)
        if status.st_mode & _OTHERS:
            raise Refused(_SHARED)
    except BaseException:
        os.close(handle)
        raise
    return handle


def directory_refusal(path: Path) -> str | None:
    """The reason why a directory is not trusted, or None. Links of the user are followed."""
    try:
        os.close(open_directory(path))
    except Refused as refused:
        return str(refused)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _is_link(directory: int, name: str) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _require_mine(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise Refused("belongs to another user")


def _is_shared(status: os.stat_result, directory: Path | int) -> bool:
    """Whether others than the user and root can write to a directory."""
    if status.st_mode & stat.S_IWOTH:
        return True
    if not status.st_mode & stat.S_IWGRP:
        return False
    return _has_acl(directory) or not _is_private(status.st_gid, os.geteuid())


def _has_acl(directory: Path | int) -> bool:
    """Whether an access control list says who can write: the group's bits are then an upper bound."""
    try:
        return not hasattr(os, "listxattr") or any("acl" in name for name in os.listxattr(directory))
    except OSError:  # the file system has no such lists
        return False


@cache
def _is_private(group: int, user: int) -> bool:
    """Whether a group is the user's own: it has the user's name and no other member."""
    try:
        found, mine = grp.getgrgid(group), pwd.getpwuid(user)
    except KeyError:
        return False
    named = {mine.pw_name}.issuperset(found.gr_mem) and found.gr_name == mine.pw_name
    return named and {entry.pw_uid for entry in pwd.getpwall() if entry.pw_gid == group} == {user}


def _require_own_links(path: Path) -> None:
    for _ in range(_LINKS):
        status = os.lstat(path)
        if not stat.S_ISLNK(status.st_mode):
            return
        if status.st_uid != os.geteuid():
            raise Refused("is a symbolic link of another user")
        path = path.parent / os.readlink(path)
    raise Refused("is a symbolic link to too many others")


def _real(path: Path, handle: int) -> str:
    """The path of an open directory, with links resolved."""
    try:
        found = os.readlink(f"{_DESCRIPTORS}/{handle}")
    except OSError:  # no /proc
        found = ""
    return found if os.path.isabs(found) else os.path.realpath(path)


def _require_parents(real: Path) -> None:
    for parent in real.parents:
        status = os.lstat(parent)
        if status.st_uid not in (0, os.geteuid()):
            raise Refused(f"is inside {parent}, which belongs to another user")
        if not status.st_mode & stat.S_ISVTX and _is_shared(status, parent):
            raise Refused(f"is inside {parent}, which {_SHARED}: run `chmod go-w {parent}`")


OBJECT, LIBRARY = 1, 3  # kinds of files of ELF
_KINDS = {OBJECT: "an object file", LIBRARY: "a shared library"}
_numbers = itertools.count(1)


class Stored:
    """An open file with a complete library, or memory with one; closed at the end of a `with`."""

    def __init__(self, handle: int, place: Path | None) -> None:
        self.handle = handle
        self.place = place  # None in memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        os.close(self.handle)

    def __str__(self) -> str:
        return "the library in memory" if self.place is None else str(self.place)

    def name_for_loader(self) -> str:
        """A path for the loader, which does not need the file once it is loaded.

        No path is returned twice, since the loader takes two libraries with one path for the same.
        """
        if self.place is not None and not (sys.platform.startswith("linux") and os.path.isdir(_DESCRIPTORS)):
            return str(self.place)
        same = "".join("/." if digit == "1" else "/" for digit in f"{next(_numbers):b}")  # all mean the same place
        return f"{_DESCRIPTORS}{same}/{self.handle}"

    def read(self) -> bytes:
        """The whole content."""
        os.lseek(self.handle, 0, os.SEEK_SET)
        with os.fdopen(self.handle, "rb", closefd=False) as file:
            return file.read()

    def in_memory(self) -> Stored | None:
        """A copy in memory, if nothing can be loaded from its directory; None if the system has no memory files."""
        return None if self.place is None else in_memory(self.read())


def in_memory(content: bytes) -> Stored | None:
    """A library in no directory, if the system has memory files."""
    try:
        handle = os.memfd_create("harp")
    except (AttributeError, OSError) as error:
        log.debug("no library in memory: %s", error)
        return None
    try:
        with os.fdopen(handle, "wb", closefd=False) as file:
            file.write(content)
    except OSError as error:
        os.close(handle)
        log.debug("no library in memory: %s", error)
        return None
    return Stored(handle, None)


def damage(file: Path | int, kind: int = LIBRARY) -> str | None:
    """The damage of a file of this kind, given by path or open; None if there is none.

    Returns None where libraries are not ELF files. Raises OSError if it cannot be read.
    """
    if not sys.platform.startswith("linux"):
        return None
    with open(file, "rb", closefd=not isinstance(file, int)) as opened:
        opened.seek(0)
        try:
            return _damage(opened, os.fstat(opened.fileno()).st_size, kind)
        except struct.error:  # shorter than its headers
            return "is cut short"


def _damage(file: BinaryIO, size: int, wanted: int) -> str | None:
    ident = file.read(16)
    if ident[:4] != b"\x7fELF" or len(ident) < 16:
        return "is not an ELF file"
    wide, order = ident[4] == 2, ">" if ident[5] == 2 else "<"
    layout = struct.Struct(order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"))
    kind, _, _, _, segments, sections, _, _, segment_size, count, section_size, section_count, _ = layout.unpack(
        file.read(layout.size)
    )
    if kind != wanted:
        return f"is not {_KINDS[wanted]}"
    ends = [sections + section_size * section_count, segments + segment_size * count]
    segment = struct.Struct(order + ("IIQQQQQQ" if wide else "IIIIIIII"))
    for number in range(count):
        file.seek(segments + number * segment_size)
        fields = segment.unpack(file.read(segment.size))
        ends.append(fields[2] + fields[5] if wide else fields[1] + fields[4])
    return None if max(ends) <= size else "is cut short"
