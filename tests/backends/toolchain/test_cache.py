"""The disk cache: what it trusts, where it goes, and what happens when it cannot be used."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from harp.backends import doctor
from harp.backends.toolchain import cache, leftovers, trust
from harp.backends.toolchain.trust import in_memory

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture(autouse=True)
def directory(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def stored() -> Path:
    path = cache.put("key", ".so", b"content")
    assert path is not None and cache.get("key", ".so") == b"content"
    return path


def test_round_trip(directory):
    assert cache.get("key", ".so") is None
    assert not directory.exists() and cache._private == []  # looking makes nothing
    path = stored()
    assert path == directory / "key.so" and {*directory.iterdir()} == {path, directory / "written"}
    assert path.stat().st_mode & 0o777 == 0o700 == directory.stat().st_mode & 0o777
    assert cache.get("key", ".json") is None


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o700)


def full_directory(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)
    (path / "file").write_text("in the way")


def of_another_key(path: Path) -> None:
    other = cache.put("other", ".so", b"what another program does")
    path.write_bytes(other.read_bytes())


def swap(path: Path) -> None:
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


DAMAGE = {
    "damaged": lambda path: path.write_bytes(b"X" + path.read_bytes()[1:]),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "short": lambda path: path.write_bytes(b"x"),
    "empty": lambda path: path.write_bytes(b""),
    "world-writable": lambda path: path.chmod(0o702),
    "group-writable": lambda path: path.chmod(0o720),
    "symbolic link": swap,
    "a directory": lambda path: (path.unlink(), path.mkdir(0o700)),
    "a directory with files": full_directory,
    "a pipe": pipe,
    "that of another key": of_another_key,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_bad_entries_are_refused_and_replaced(directory, name):
    DAMAGE[name](stored())
    assert cache.get("key", ".so") is None
    assert stored().parent == directory


@root
def test_entries_of_others_are_refused_and_replaced(directory):
    os.chown(stored(), 12345, -1)
    assert cache.get("key", ".so") is None
    assert stored().stat().st_uid == 0


def link_to_shared(path: Path) -> None:
    swap(path)
    path.resolve().chmod(0o777)


def link_of_another(path: Path) -> None:
    swap(path)
    os.lchown(path, 12345, -1)


def link_to_another(path: Path) -> None:
    swap(path)
    os.chown(path.resolve(), 12345, -1)


def link_to_itself(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path)


BAD_DIRECTORIES = {
    "world-writable": DAMAGE["world-writable"],
    "foreign": lambda path: os.chown(path, 12345, -1),
    "link to a directory that others can write to": link_to_shared,
    "link of another user": link_of_another,
    "link to a directory of another user": link_to_another,
    "link to itself": link_to_itself,
}
GIVEN_AWAY = ("foreign", "link of another user", "link to a directory of another user")


@pytest.mark.parametrize("name", [pytest.param(n, marks=root) if n in GIVEN_AWAY else n for n in BAD_DIRECTORIES])
def test_bad_directories_are_refused(directory, name):
    stored()
    BAD_DIRECTORIES[name](directory)
    assert cache.prepare(directory) is not None
    assert cache.get("key", ".so") is None
    assert stored().parent == cache._private[0]


def test_directories_behind_links_of_the_user(directory):
    stored()
    swap(directory)
    directory.with_name("elsewhere").rename(directory.with_name("target"))
    (directory.with_name("elsewhere")).symlink_to("target")  # relative to where the link is
    assert cache.prepare(directory) is None and cache.get("key", ".so") == b"content"
    assert stored().parent == directory and cache._private == []
    cache.forget("key", ".so")
    assert cache.get("key", ".so") is None and [p.name for p in directory.iterdir()] == ["written"]


def test_directory_relative_to_one_that_was_deleted(monkeypatch, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    monkeypatch.setenv("HARP_CACHE_DIR", "cache")
    gone.rmdir()
    assert stored().parent == cache._private[0]


def test_places(monkeypatch, tmp_path):
    def first() -> Path:
        return next(cache.places())

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARP_CACHE_DIR", ".")
    assert first() == tmp_path  # absolute: the loader searches elsewhere for a name without a slash
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HARP_CACHE_DIR", "~/x")
    assert first() == tmp_path / "home/x"
    monkeypatch.delenv("HARP_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert first() == tmp_path / "xdg/harp"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert first() == tmp_path / "home/.cache/harp"
    monkeypatch.setenv("HOME", "~nobody")
    assert list(cache.places()) == cache._private


@pytest.mark.parametrize("home", ["/proc/nonexistent", "/dev/null"])
def test_home_that_cannot_be_used(monkeypatch, home):
    monkeypatch.delenv("HARP_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home)
    assert stored().parent == cache._private[0]


def test_cache_path_that_is_a_file(directory):
    directory.write_text("a file")
    assert cache.get("key", ".so") is None
    assert stored().parent == cache._private[0]
    assert directory.read_text() == "a file"


def test_directory_without_permission(monkeypatch, directory):
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != directory and access(path, mode))
    assert cache.prepare(directory) == "cannot be written to"
    assert stored().parent == cache._private[0]


def full(monkeypatch, *directories: Path) -> None:
    replace = os.replace

    def fail(source, target, src_dir_fd, dst_dir_fd):
        if not directories or any(os.path.samestat(os.fstat(dst_dir_fd), os.stat(d)) for d in directories):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "replace", fail)


def test_full_disk(monkeypatch, directory):
    full(monkeypatch, directory)
    assert stored().parent == cache._private[0]
    assert list(directory.iterdir()) == []


def test_every_disk_full(monkeypatch, directory):
    full(monkeypatch)
    assert cache.put("key", ".so", b"content") is None
    assert list(directory.iterdir()) == []

    def fail(path, **_):
        raise PermissionError

    monkeypatch.setattr(os, "unlink", fail)
    assert cache.put("key", ".so", b"content") is None


def test_no_temporary_directory(monkeypatch, directory):
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    assert list(cache.places()) == [directory]


def test_private_directory_is_removed_by_its_process_alone(tmp_path, monkeypatch):
    private = cache._private_directory()
    assert private.stat().st_mode & 0o777 == 0o700
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", (os.getpid() + 1).__int__)
        leftovers.remove_private(private)
    assert private.is_dir()
    leftovers.remove_private(private)
    assert not private.exists()
    assert cache._private_directory() != private


def test_entry_that_cannot_be_read(monkeypatch):
    stored()

    def fail(handle, mode, **_):
        raise PermissionError

    monkeypatch.setattr(os, "fdopen", fail)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    assert cache.get("key", ".so") is None
    assert not before or len(os.listdir("/proc/self/fd")) == before


def writable_parent(directory: Path) -> None:
    directory.parent.chmod(0o777)


def foreign_parent(directory: Path) -> None:
    os.chown(directory.parent, 12345, -1)


@pytest.mark.parametrize("spoil", [writable_parent, pytest.param(foreign_parent, marks=root)])
def test_directories_inside_of_those_of_others(monkeypatch, tmp_path, spoil):
    """Who can rename the directory could put another one in its place between a check and the use."""
    inner = tmp_path / "a" / "b" / "cache"
    monkeypatch.setenv("HARP_CACHE_DIR", str(inner))
    stored()
    spoil(inner.parent)
    trust._good_parents.clear()
    reason = cache.prepare(inner)
    assert reason is not None and str(inner.parent.parent) in reason
    assert cache.get("key", ".so") is None and stored().parent == cache._private[0]


def test_a_chosen_directory_that_is_not_used_is_reported_once(monkeypatch, tmp_path, caplog):
    chosen = tmp_path / "a" / "cache"
    monkeypatch.setenv("HARP_CACHE_DIR", str(chosen))
    chosen.mkdir(parents=True, mode=0o700)
    chosen.parent.chmod(0o777)
    trust._good_parents.clear()
    with caplog.at_level("WARNING", logger="harp"):
        for _ in range(2):
            assert stored().parent == cache._private[0]
    (record,) = caplog.records
    assert f"HARP_CACHE_DIR: {chosen} is inside {chosen.parent}, which can be written to by others" in record.message


def private_group(monkeypatch, directory: Path, members: tuple[str, ...] = (), others: tuple[int, ...] = ()) -> None:
    """Let the group of a directory, which can write to it, be that of this user, with other members."""
    found, user = directory.stat(), os.geteuid()
    mine = SimpleNamespace(pw_name="ada", pw_uid=user, pw_gid=found.st_gid)
    entries = [mine, *(SimpleNamespace(pw_name="eve", pw_uid=other, pw_gid=found.st_gid) for other in others)]
    monkeypatch.setattr(trust.grp, "getgrgid", lambda group: SimpleNamespace(gr_name="ada", gr_mem=[*members]))
    monkeypatch.setattr(trust.pwd, "getpwuid", lambda number: mine)
    monkeypatch.setattr(trust.pwd, "getpwall", lambda: entries)
    trust._is_private.cache_clear()
    trust._good_parents.clear()
    directory.chmod(0o775)


@pytest.fixture
def home(monkeypatch, tmp_path):
    """No cache was chosen, and this is the usual one."""
    monkeypatch.delenv("HARP_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".cache").mkdir()
    yield tmp_path
    trust._is_private.cache_clear()


def test_the_group_of_the_user_alone_is_nobody_else(monkeypatch, home, caplog):
    """Many systems make one for each user, and let it write to what the user makes."""
    private_group(monkeypatch, home / ".cache", ("ada",))
    assert stored().parent == home / ".cache" / "harp" and not caplog.messages
    (home / ".cache" / "harp").chmod(0o770)
    assert cache.get("key", ".so") == b"content"


@pytest.mark.parametrize("why", ["a member", "the group of another user", "an access list", "everybody"])
def test_a_shared_directory_is_named_once(monkeypatch, home, caplog, why):
    shared = home / ".cache"
    private_group(monkeypatch, shared, ("ada", "eve") if why == "a member" else (), (12345,) if "user" in why else ())
    if why == "an access list":
        monkeypatch.setattr(os, "listxattr", lambda path: ["system.posix_acl_access"], raising=False)
    if why == "everybody":
        shared.chmod(0o777)
    for _ in range(2):
        assert stored().parent == cache._private[0]
    (message,) = caplog.messages
    assert (
        f"{shared / 'harp'} is inside {shared}, which can be written to by others: run `chmod go-w {shared}`" in message
    )
    assert any(f"chmod go-w {shared}" in line for line in doctor._cache())


def test_directories_are_made_so_that_they_can_be_used(monkeypatch, tmp_path):
    """Also where a group may write to what its members make."""
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "a" / "b" / "cache"))
    before = os.umask(0o002)
    try:
        assert stored().parent == tmp_path / "a" / "b" / "cache"
    finally:
        os.umask(before)


def test_a_sticky_directory_above_is_good(monkeypatch, tmp_path):
    (tmp_path / "like-tmp").mkdir()
    (tmp_path / "like-tmp").chmod(0o1777)
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / "like-tmp" / "cache"))
    assert stored().parent == tmp_path / "like-tmp" / "cache"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the loader takes paths only")
def test_what_was_checked_is_what_is_loaded(directory):
    path = stored()
    with cache.get_library("key") as opened:
        path.rename(path.with_name("old"))
        path.write_bytes(b"of somebody else")
        names = [opened.name_for_loader() for _ in range(20)]
        assert len({*names}) == 20, "the loader takes two libraries of one name for one"
        assert all(Path(name).read_bytes().startswith(b"content") for name in names)


def test_memory():
    found = [in_memory(b"a"), in_memory(b"b")]
    if found[0] is not None:
        assert [stored.read() for stored in found] == [b"a", b"b"]
        for stored in found:
            assert stored.in_memory() is None, "it is there already"
            with stored:
                pass


def test_no_memory(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    assert in_memory(b"a") is None
