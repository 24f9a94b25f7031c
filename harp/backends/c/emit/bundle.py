"""Files of the library as parts of one file of C.

A unit of the library is a file of its own because its functions, types and macros have short names, such as `load` and
`vector`, and are compiled once for each dtype. In one file with others, what a unit defines outside of functions gets
a prefix, and its macros end with it:

    #define HARP_T float
    #define HARP_LANES 8
    typedef HARP_T u2_real;
    ...
    #undef HARP_T
    #undef HARP_LANES

Headers that units share come first, each once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from harp.backends.c_family.library import LibraryRoutine
from harp.backends.toolchain.library import text

_INCLUDE = re.compile(r'^ *# *include "([^"]+)" *\n?', re.MULTILINE)
# Headers that are compiled anew for each unit, as its own file is.
_PARTS = {"linalg/vectors.h", "linalg/first_elements.h", "linalg/transpose_tile.h"}
_PARTS |= {"sort/keys.h", "sort/radix_sort.h", "sort/quicksort.h"}
# What stands for a header in a file without Python.
_INSTEAD = {"process.h": "standalone.h"}
# The library asks the compiler for a fused multiply-add; here the program says whether its numbers are computed so.
_FUSED = {
    "!defined(__FMA__) && !defined(__ARM_FEATURE_FMA)": "!defined(HARP_FMA)",
    "defined(__FMA__) || defined(__ARM_FEATURE_FMA)": "defined(HARP_FMA)",
}
_IGNORED = r'/\*.*?\*/|"(?:\\.|[^"\\])*"|^ *# *(?:include|pragma)[^\n]*|^ *# *\w+'
_TOKEN = re.compile(rf"(?P<ignored>{_IGNORED})|(?P<name>[A-Za-z_]\w*)|(?P<sign>[{{}}()])", re.DOTALL | re.MULTILINE)
_DIRECTIVE = re.compile(r"^ *#(?:[^\n]*\\\n)*[^\n]*\n", re.MULTILINE)
# Names of macros, and what begins a pasted name.
_MACRO = re.compile(r"^ *# *define (\w+)|\b([A-Za-z_]\w*)##", re.MULTILINE)
# The functions that a unit is for.
_EXPORTED = re.compile(r"\b(?:KERNEL|OF_\w+)\((\w+)\)")
# Names outside of functions that no unit defines.
_WORDS = {"const", "double", "enum", "inline", "int", "sizeof", "static", "struct", "typedef", "void"}
_WORDS |= {"KERNEL", "OF_BITS", "OF_DTYPE", "OF_HALF"}


@cache
def _content(name: str) -> str:
    content = text(_INSTEAD.get(name, name))
    for theirs, ours in _FUSED.items():
        content = content.replace(theirs, ours)
    return content


def headers(codes: Iterable[str]) -> str:
    """The shared headers that pieces of C include, each behind those that it includes. A template, which has no guard,
    stands wherever it is included."""
    found: dict[str, str] = {}

    def add(code: str, seen: tuple[str, ...] = ()) -> None:
        for name in _INCLUDE.findall(code):
            if name not in found and name not in seen:
                add(_content(name), (*seen, name))
                if _is_guarded(name):
                    found[name] = _INCLUDE.sub(lambda include: _template(include[1]), _content(name))

    for code in codes:
        add(code)
    return "".join(found.values())


@cache
def _is_guarded(name: str) -> bool:
    return name not in _PARTS and re.search(r"^#ifndef (\w+)\n#define \1$", _content(name), re.MULTILINE) is not None


def _template(name: str) -> str:
    return "" if _is_guarded(name) else _INCLUDE.sub(lambda include: _template(include[1]), _content(name))


def unit(routine: LibraryRoutine, number: int) -> str:
    """The text of a unit, without the shared headers."""
    lanes = dict(routine.macros).get("HARP_LANES")
    macros = dict(routine.macros) | ({"HARP_HALF": lanes // 2} if isinstance(lanes, int) else {})
    body = _renamed(_own(_content(routine.file), set()), f"u{number}_")
    defined = [*macros, *re.findall(r"^ *# *define (HARP_\w+)", body, re.MULTILINE)]
    lines = [f"#define {name} {value}" for name, value in macros.items()]
    undone = [f"#undef {name}" for name in dict.fromkeys(defined)]
    return "\n".join([f"/* {routine.name} */", *lines, body, *undone, ""])


def _own(code: str, seen: set[str]) -> str:
    """A file of a unit with its parts in place of their includes, each once."""

    def part(found: re.Match[str]) -> str:
        name = found[1]
        if name not in _PARTS or name in seen:
            return ""
        seen.add(name)
        return _own(_content(name), seen)

    return _INCLUDE.sub(part, code)


def _renamed(code: str, prefix: str) -> str:
    """The code with a prefix before all names that it defines outside of functions."""
    own = {name for pair in _MACRO.findall(code) for name in pair} | _outside_of_functions(_DIRECTIVE.sub("", code))
    kept = _WORDS | {*_EXPORTED.findall(code)}
    own = {name for name in own if name not in kept and not name.startswith(("HARP_", "harp_", "_"))}
    own = {name for name in own if not name.endswith("_t")}

    def new(found: re.Match[str]) -> str:
        return prefix + found[0] if found["name"] in own else found[0]

    return _TOKEN.sub(new, code)


def _outside_of_functions(code: str) -> set[str]:
    """The names outside of braces and parentheses, and those of enumerations there."""
    names: set[str] = set()
    depth = 0
    for found in _TOKEN.finditer(re.sub(r"\benum \{([^}]*)\}", r"enum \1", code)):
        if found["sign"]:
            depth += 1 if found[0] in "{(" else -1
        elif found["name"] and depth == 0:
            names.add(found[0])
    return names
