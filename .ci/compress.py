"""Makes a wheel smaller: the files of the C library become one, which `toolchain/library.py` reads, for they are small
and alike; C and Python have no comments, C is not indented and Python by single spaces, names that are not public have
no docstrings and no type hints, and all files are compressed as well as deflate can. A fifth fewer bytes to download.

python .ci/compress.py dist/*.whl
"""

from __future__ import annotations

import ast
import base64
import hashlib
import inspect
import io
import pathlib
import re
import sys
import tokenize
import zipfile
from collections.abc import Iterator
from functools import cache
from itertools import chain

import zopfli.zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "docs" / "site"))
from reference import NAMESPACES, WITHOUT_PAGES, module_of, names_of


class Compressor:
    """As `zipfile` asks for one: all of a file is compressed when it ends."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def compress(self, data: bytes) -> bytes:
        self.parts.append(data)
        return b""

    def flush(self) -> bytes:
        return zopfli.zlib.compress(b"".join(self.parts), numiterations=5)[2:-4]  # without the frame of zlib


# A file of the library, and where all of them go.
LIBRARY = re.compile(r"harp/backends/(\w+/library/.+\.[ch])")
BUNDLE = "harp/backends/library.txt"
INDENTED = re.compile(r"^ +", re.MULTILINE)
# A string or a character of C, which stays, or a comment.
COMMENT = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|/\*.*?\*/|//[^\n]*', re.DOTALL)


def c_without_comments(text: bytes) -> bytes:
    """C without comments and indents, whose lines keep their numbers."""
    bare = COMMENT.sub(lambda found: found[1] or "\n" * found[0].count("\n"), text.decode())
    return INDENTED.sub("", bare).encode()


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PRIVATE = re.compile(r"_[^_]")
COMPILER = re.compile(r"harp/(lower|backends)/")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def shown() -> frozenset[str | None]:
    """The docstrings of all public names, of the attributes of public classes, and of their modules."""
    objects: list[object] = [None]
    for module in map(module_of, {*NAMESPACES, *WITHOUT_PAGES}):
        public = [getattr(module, name) for name in names_of(module)]
        attributes = (vars(base).values() for c in public if isinstance(c, type) for base in c.__mro__)
        objects += [module, *public, *map(type, public), *chain.from_iterable(attributes)]
    return frozenset(map(inspect.getdoc, objects))


def python_without_comments(name: str, text: bytes) -> bytes:
    """Python without comments, docstrings and type hints of what no user is shown, indented by single spaces. Its lines
    keep their numbers."""
    source = text.decode()
    lines = source.splitlines()
    within = set[int]()  # the lines that begin inside of a string
    for token in tokenize.tokenize(io.BytesIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
        elif token.type != tokenize.ENDMARKER:
            within |= {*range(token.start[0] + 1, token.end[0] + 1)}
    tree = ast.parse(source)
    # From the end of the file on, so that the places before stay as they are.
    for row, start, end in sorted(_hints(name, tree, lines), reverse=True):
        line = lines[row].encode()
        lines[row] = (line[:start] + line[end:]).decode()
    for doc in _unseen(tree):
        assert doc.end_lineno is not None
        first, *others = range(doc.lineno - 1, doc.end_lineno)
        lines[first] = lines[first][: doc.col_offset] + '""'
        for row in others:
            lines[row] = ""
        doc.value = ast.Constant("")
    lines = [
        line if row in within else " " * ((len(line) - len(line.lstrip())) // 4) + line.lstrip()
        for row, line in enumerate(lines, 1)
    ]
    short = "".join(f"{line}\n" for line in lines)
    assert ast.dump(ast.parse(short)) == ast.dump(tree)
    return short.encode()


def _unseen(tree: ast.Module) -> Iterator[ast.Expr]:
    """The docstrings of a file that no user is shown."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)) is not None and text not in shown():
            yield node.body[0]


def _hints(name: str, tree: ast.Module, lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """The type hints of functions that no checker of a user's code reads, for they are private, inside of functions, or
    parts of the compiler: lines, and bytes from and to. The tree loses them, too."""
    inner = {
        node
        for function in ast.walk(tree)
        if isinstance(function, FUNCTIONS)
        for node in ast.walk(function)
        if node is not function and isinstance(node, FUNCTIONS)
    }
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS) and (
            node in inner
            or PRIVATE.match(node.name)
            or (COMPILER.match(name) and ast.get_docstring(node) not in shown())
        ):
            given = node.args
            for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
                if each is not None and each.annotation is not None and each.lineno == each.end_lineno:
                    assert each.end_col_offset is not None
                    yield each.lineno - 1, each.col_offset + len(each.arg), each.end_col_offset
                    each.annotation = None
            hint = node.returns
            if hint is not None and hint.lineno == hint.end_lineno:
                arrow = lines[hint.lineno - 1].encode().rfind(b" ->", 0, hint.col_offset)
                if arrow >= 0:
                    assert hint.end_col_offset is not None
                    yield hint.lineno - 1, arrow, hint.end_col_offset
                    node.returns = None


def smaller(files: dict[str, bytes]) -> dict[str, bytes]:
    """The files of a wheel without comments, and those of the C library in one: each behind a form feed and a line with
    its name."""
    library = {
        found[1]: c_without_comments(files.pop(name)) for name in sorted(files) if (found := LIBRARY.fullmatch(name))
    }
    assert library and not any(b"\f" in content for content in library.values())
    # Those of the same kind side by side: their texts are alike.
    names = sorted(library, key=lambda name: name.rpartition("/")[2])
    files[BUNDLE] = b"".join(b"\f%s\n%s" % (name.encode(), library[name]) for name in names)
    for name in files:
        if name.endswith(".py"):
            files[name] = python_without_comments(name, files[name])
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    files[record] = "".join(f"{_recorded(name, files[name])}\n" for name in files if name != record).encode()
    files[record] += f"{record},,\n".encode()
    return files


def _recorded(name: str, content: bytes) -> str:
    """The line of a file in the wheel's list."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def compress(path: pathlib.Path) -> None:
    """Write the wheel again in its place."""
    with zipfile.ZipFile(path) as old:
        infos = {info.filename: info for info in old.infolist()}
        files = smaller({name: old.read(name) for name in infos})
    written = path.with_suffix(".smaller")
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, next(iter(infos.values())).date_time)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            with new.open(info, "w") as entry:
                entry._compressor = Compressor()
                entry.write(content)
    with zipfile.ZipFile(written) as new:
        assert all(new.read(name) == content for name, content in files.items())
    written.replace(path)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        compress(pathlib.Path(name))
