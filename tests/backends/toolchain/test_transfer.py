"""Exports of the cache: what is damaged, crafted or too large is refused before anything is kept."""

from __future__ import annotations

import gzip
import io
import json
import random
import tarfile
import tracemalloc
import zlib
from pathlib import Path

import pytest

from harp.backends.toolchain import bound, cache, compilers, machine, transfer, trust
from harp.backends.toolchain.compilers import Family, Toolchain
from harp.errors import CacheError

pytestmark = pytest.mark.skipif(not machine.features(), reason="the system does not say what the processor can do")


@pytest.fixture(autouse=True)
def use(monkeypatch, tmp_path):
    monkeypatch.setattr(cache, "_private", [])

    def use(name: str) -> Path:
        monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path / name))
        return tmp_path / name

    return use


@pytest.fixture
def exported(use, tmp_path):
    """The export of a small cache, and the entries in it."""
    rng = random.Random(0)
    directory = use("first")
    compilers.remember(Toolchain(("cc",), Family.GCC, "cc 1.0", ("-msse",), 16, False))
    for number in range(4):
        key = f"{rng.getrandbits(256):064x}"
        cache.put(key, ".so", rng.randbytes(100) + bytes(rng.randrange(400)))
        cache.put(f"program-{key}", ".json", json.dumps([key, "x" * number]).encode())
    assert transfer.export(tmp_path / "file") == 9
    return tmp_path / "file", entries(directory)


def entries(directory: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes() for path in directory.glob("*.*") if not path.name.startswith((".", "sources-"))
    }


def test_no_flipped_bit_and_no_cut_gives_other_entries(use, exported, tmp_path):
    file, right = exported
    whole, rng, refused = file.read_bytes(), random.Random(1), 0
    damaged = [whole[:length] for length in [*range(0, len(whole), 37), *range(len(whole) - 25, len(whole))]]
    for _ in range(600):
        data = bytearray(whole)
        data[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        damaged.append(bytes(data))
    damaged += [whole + b"x", whole + whole, whole + gzip.compress(b"x"), whole[:-8] + bytes(8)]
    for number, data in enumerate(damaged):
        file.write_bytes(data)
        directory = use(f"other{number}")
        try:
            transfer.take(file)
        except CacheError:
            refused += 1
            assert not directory.exists() or not entries(directory)
        else:
            assert entries(directory) == right
    assert refused > len(damaged) - 30  # the header of gzip has a time and a name, which do not matter


def stream(*parts: bytes) -> bytes:
    """An export that begins as it should."""
    return gzip.compress(transfer._line([transfer._FORMAT, *transfer._versions()]) + b"".join(parts), 1)


def entry(name: str, data: bytes, size: int | None = None) -> bytes:
    """An entry, which is undamaged unless it has another size."""
    return transfer._line([name, len(data) if size is None else size, cache.digest(name, data).hex()]) + data


LIBRARY = f"{7:064x}.so"
CRAFTED = {
    "a size that is too large": (entry(LIBRARY, b"x", 10**12), "of 1000000000000 bytes is no entry"),
    "a negative size": (entry(LIBRARY, b"x", -1), "is no entry"),
    "a large record": (entry(f"program-{7:064x}.json", bytes(2 << 20)), "is no entry"),
    "an entry that ends early": (entry(LIBRARY, b"x", 100), "does not have its size and digest"),
    "a name that is none": (entry("../\x1b[2J.so", b"x"), r"\x1b[2J.so' of 1 bytes is no entry"),
    "another kind of field": (transfer._line([LIBRARY, True, ""]), "no name, size and digest"),
    "no line": (b"x" * 10_000, "cannot be read"),
    "a deep line": (b"[" * 10_000, "cannot be read"),
    "nothing": (b"", "lacks a compiler"),
}


def test_crafted_files_are_refused(use, tmp_path):
    directory, file = use("other"), tmp_path / "file"
    for text, message in CRAFTED.values():
        file.write_bytes(stream(text))
        with pytest.raises(CacheError) as caught:
            transfer.take(file)
        assert message in str(caught.value) and not directory.exists()
    packer = zlib.compressobj(wbits=-15)  # a block that no deflate stream has, behind a good header
    file.write_bytes(gzip.compress(b"")[:10] + packer.compress(b"x") + b"\xff" * 20)
    with pytest.raises(CacheError, match=r"cannot be read: .*; export it again"):
        transfer.take(file)


def test_exports_of_older_versions_are_refused(use, tmp_path):
    use("other")
    with tarfile.open(tmp_path / "file", "w:gz") as archive:
        member = tarfile.TarInfo("harp-cache.json")
        member.size = 2
        archive.addfile(member, io.BytesIO(b"[]"))
    with pytest.raises(CacheError, match=r"of an older harp, without digests .*; make one with"):
        transfer.take(tmp_path / "file")


def test_a_bomb_takes_no_memory(use, exported, tmp_path):
    zeros, (file, _) = bytes(1 << 26), exported
    bombs = [gzip.compress(zeros, 1), stream(zeros), stream(entry(LIBRARY, zeros))]
    directory = use("first")
    opened = trust.open_directory(directory)
    bound.set_limit(opened, 1 << 20)
    for bomb in bombs:
        file.write_bytes(bomb)
        tracemalloc.start()
        with pytest.raises(CacheError):
            transfer.take(file)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
        tracemalloc.stop()


def test_no_more_entries_are_taken_than_the_cache_holds(use, exported):
    """Small ones count as the blocks that they take of the disk."""
    file, right = exported
    file.write_bytes(stream(*(entry(f"{k:064x}.so", b"x") for k in range(300))))
    directory = use("first")
    opened = trust.open_directory(directory)
    bound.set_limit(opened, 1 << 20)
    with pytest.raises(
        CacheError, match=r"more than the 1048576 bytes that the cache holds; allow more with .*max-size"
    ):
        transfer.take(file)
    assert entries(directory) == right
