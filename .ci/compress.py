"""Compresses the files of a wheel again, as well as deflate can: the same files, some 3 % fewer bytes to download.

python .ci/compress.py dist/*.whl
"""

from __future__ import annotations

import pathlib
import sys
import zipfile

import zopfli.zlib


class Compressor:
    """As `zipfile` asks for one: all of a file is compressed when it ends."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        self.parts.append(data)
        return b""

    def flush(self) -> bytes:
        return zopfli.zlib.compress(b"".join(self.parts), numiterations=5)[2:-4]  # without the frame of zlib


def compress(path: pathlib.Path) -> None:
    """Write the wheel again in its place."""
    with zipfile.ZipFile(path) as old:
        files = [(info, old.read(info)) for info in old.infolist()]
    smaller = path.with_suffix(".smaller")
    with zipfile.ZipFile(smaller, "w", zipfile.ZIP_DEFLATED) as new:
        for info, content in files:
            with new.open(info, "w") as entry:
                entry._compressor = Compressor()
                entry.write(content)
    with zipfile.ZipFile(smaller) as new:
        assert all(new.read(info) == content for info, content in files)
    smaller.replace(path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        compress(pathlib.Path(name))
