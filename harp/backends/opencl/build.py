"""From OpenCL C to kernels of a device: built by its driver, or taken from the cache as a binary of the driver.

The driver's compiler finds no files, so the texts of included files are inserted. Files of this backend's library
replace those of the C library with the same names; the others are shared.

The key covers the device, the version of its driver, the source and the options. A driver that would compile again to
return a binary has a cache of its own, which is used instead.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from functools import cache, lru_cache
from typing import Any

import pyopencl as cl

from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.toolchain import cache as programs
from harp.backends.toolchain import library
from harp.config import counters, log
from harp.errors import DeviceError

_SUFFIX = ".cl"
# Warnings about harp's own text are of no use to users. A source with a user's kernel says which warnings are errors,
# and `-w` would hide these.
_SILENT = "-w"
# Correctly rounded division and square roots, where the device supports the option.
_ROUNDED = "-cl-fp32-correctly-rounded-divide-sqrt"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^">]+)[">].*$', re.MULTILINE)
_GUARD = re.compile(r"#ifndef (HARP_\w+_H)\n#define \1\n")
_BEGINS, _ENDS = (re.compile(rf"^[ \t]*#[ \t]*{word}", re.MULTILINE) for word in ("if", "endif"))
# A position in a message of NVIDIA's compiler, which counts lines of the whole text, and the `#line` that others heed.
_POSITION = re.compile(r"^<kernel>:(\d+)", re.MULTILINE)
_LINE = re.compile(r'#line (\d+) "(.+)"')


def whole(text: str) -> str:
    """The text with all included files inserted; files with an include guard only once."""
    return _expanded(text, set())


def _expanded(text: str, seen: set[str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        name = match[2]
        if match[1] == "<" or name in seen:  # headers of C: what is used of them is declared in common.h
            return ""
        content, before = _file(name), text[: match.start()]
        inside = len(_BEGINS.findall(before)) - len(_ENDS.findall(before)) > bool(_GUARD.search(text))
        known = {*seen} if inside else seen  # under a condition it may be left out, and is not there for others
        if _GUARD.search(content):
            known.add(name)
        return _expanded(content, known).strip()

    return _INCLUDE.sub(replacement, text)


@cache
def _file(name: str) -> str:
    try:
        return library.text(name, "opencl")
    except OSError:
        return library.text(name)


def options(device: OpenCLDevice, is_users: bool = False) -> str:
    """The options of the compiler; `is_users` says that the source has text of the user."""
    rounded = device.device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    chosen = {_SILENT: not is_users, _ROUNDED: rounded, "-DHARP_NO_DOUBLES": not device.has_doubles}
    return " ".join(option for option, holds in chosen.items() if holds)


@lru_cache(maxsize=1 << 10)
def program(device: OpenCLDevice, source: str, doubles: bool, is_users: bool = False) -> cl.Program:
    """The built program; `doubles` says whether it computes with float64, `is_users` whether it has text of the user.

    Raises DeviceError, with what the driver says, if that is not possible.
    """
    if doubles and not device.has_doubles:
        raise DeviceError(
            f"{device!r} has no floats of 64 bits, and the program computes with float64; cast its arguments to "
            "float32, or run it on another device"
        )
    flags = options(device, is_users)
    key = hashlib.sha256("\0".join((device.identity, flags, source)).encode()).hexdigest()
    cached = programs.get(key, _SUFFIX) if device.gives_programs_out else None
    if cached is not None:
        try:
            built: cl.Program = cl.Program(device.context, [device.device], [cached]).build(flags)
        except cl.Error as error:
            log.debug("the driver refuses a program of the cache: %s", error)
        else:
            counters.add("cache_hits")
            return built
    counters.add("cache_misses")
    counters.add("compiler_runs")
    built = anew(device, source, flags)
    if not device.gives_programs_out:
        return built
    binaries: Any = built.get_info(cl.program_info.BINARIES)
    programs.put(key, _SUFFIX, binaries[0])
    return built


def anew(device: OpenCLDevice, source: str, flags: str) -> cl.Program:
    """The program, built by the driver now. Raises DeviceError."""
    try:
        with warnings.catch_warnings():  # pyopencl's, where a driver prints anything
            warnings.simplefilter("ignore")
            built: cl.Program = cl.Program(device.context, source).build(flags)
            return built
    except (cl.Error, KeyError) as error:
        # Where a driver refuses options, pyopencl (2026.1) reads an environment variable that is not set.
        said: BaseException | None = error
        while said is not None and not isinstance(said, cl.Error):
            said = said.__context__
        raise DeviceError(f"the driver of {device!r} refuses a kernel: {_with_files(str(said), source)}") from None


def _with_files(message: str, source: str) -> str:
    """A compiler's message with the files and lines that `#line` names, even if the compiler ignores `#line`."""
    lines = source.split("\n")

    def position(match: re.Match[str]) -> str:
        number = int(match[1])
        for before in range(min(number, len(lines)) - 1, 0, -1):
            if named := _LINE.fullmatch(lines[before - 1]):
                return f"{named[2]}:{int(named[1]) + number - before - 1}"
        return match[0]

    return _POSITION.sub(position, message)
