"""What a kernel's source can use: names that mean nothing else in C or OpenCL C, and text that ends with its function.

The names of macros are found by the compiler, which knows them.
"""

from __future__ import annotations

import keyword
import re
import textwrap
from collections.abc import Iterable

from harp.errors import KernelError
from harp.trace.source_locations import printable, where

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_WORDS = """
    auto bool break case char complex const constant continue default do double else enum extern float for generic
    global goto half if imaginary inline int int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t kernel
    local long main pipe private register restrict return short signed sizeof size_t static struct switch typedef
    uchar uint ulong uniform union unsigned ushort vec_step void volatile while
"""
_TAKEN = frozenset(_WORDS.split())
_LINE_BREAK = re.compile(r"\r\n?")
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ud800-\udfff]")
_JOINED = re.compile(r"(?:\\|\?\?/)[ \t\f\v]*$", re.MULTILINE)
# Comments, strings and characters.
_NO_CODE = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.DOTALL)
_OPEN_COMMENT = re.compile(r"/\*")
# A directive, whose sign can be written in three ways. Those of conditions and the like end with the function.
_HASH = r"^[ \t\f\v]*(?:#|%:|\?\?=)[ \t\f\v]*"
_INCLUDE = re.compile(_HASH + "include", re.MULTILINE)
_DIRECTIVE = re.compile(_HASH + r"(?!(?:if|ifdef|ifndef|elif|else|endif|pragma|error|warning)\b)\w", re.MULTILINE)
_CONDITION = re.compile(_HASH + "(?:if|elif|else)", re.MULTILINE)
# Braces can be written in three ways.
_BRACE = re.compile(r"[{}]|<%|%>|\?\?<|\?\?>")
_PROBLEMS = (
    (_NO_TEXT, "has a character that no file of text has; remove it"),
    (_JOINED, "ends with a backslash, which makes the next line a part of this one; remove it"),
    (_OPEN_COMMENT, "opens a comment that is not closed; close it with */"),
    (_INCLUDE, "cannot include a file in the body of a function; functions such as sqrt and exp are there without"),
    (_DIRECTIVE, "changes what follows the source, too; write `const int width = 3;` in place of a macro"),
)


def check_names(kernel: str, names: Iterable[str]) -> None:
    """Raise KernelError for a name that stands twice, or cannot stand in a source."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise KernelError(f"{kernel} has two things that are called {name!r}{where()}")
        seen.add(name)
        if not _IDENTIFIER.fullmatch(name) or name in _TAKEN or keyword.iskeyword(name) or name.startswith("harp_"):
            raise KernelError(
                f"{name!r} of {kernel} cannot be a name in C and in Python: names are letters, digits and underscores, "
                f"no words of these languages, and do not begin with harp_{where()}"
            )


def checked_text(kernel: str, text: str) -> str:
    """A source without common indentation. Raises KernelError for what reaches beyond its function."""
    text = textwrap.dedent(_LINE_BREAK.sub("\n", text)).rstrip()
    code = _NO_CODE.sub(lambda found: "\n" * found[0].count("\n") or " ", text)
    for pattern, problem in _PROBLEMS:
        found = pattern.search(text if pattern in (_NO_TEXT, _JOINED) else code)
        if found is not None:
            number = found.string.count("\n", 0, found.start()) + 1
            line = text.split("\n")[number - 1].strip()
            raise KernelError(f"line {number} of the source of {kernel} {problem}:\n  {printable(line)}{where()}")
    _require_matching_braces(kernel, text, code)
    return text


def _require_matching_braces(kernel: str, text: str, code: str) -> None:
    """Raise KernelError for a brace that ends the function round the source, or is not closed before its end. Where
    conditions of the preprocessor choose between lines, the compiler counts."""
    if _CONDITION.search(code):
        return
    opened: list[int] = []
    for found in _BRACE.finditer(code):
        number = code.count("\n", 0, found.start())
        if found[0] in ("{", "<%", "??<"):
            opened.append(number)
        elif opened:
            opened.pop()
        else:
            opened = [number]
            break
    else:
        if not opened:
            return
    line = printable(text.split("\n")[opened[0]].strip())
    raise KernelError(
        f"line {opened[0] + 1} of the source of {kernel} has a brace without its partner; the source is the body of a "
        f"function, which has its own braces:\n  {line}{where()}"
    )
