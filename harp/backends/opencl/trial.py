"""Whether a device works: a small program is built and run on it. The cache remembers the result for each driver.

A device that fails keeps its number, but is used only if asked for. The trial runs in a process of its own, since some
drivers end the process.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import textwrap

from harp.backends.opencl import trial_process
from harp.backends.opencl.devices import OpenCLDevice, device, devices
from harp.backends.toolchain import cache
from harp.config import log

__all__ = ["advice", "device", "devices", "examine", "facts", "known_problem", "problem"]

# The version of the trial, a part of the cache key: to be raised when the trial changes.
_WAY = 2
_SUFFIX = ".json"
_LONGEST = 300
_SECONDS = 60.0
_SCRIPT = os.path.abspath(trial_process.__file__)
_known: dict[str, str] = {}  # the problem of each device, or an empty text, by its identity


def problem(device: OpenCLDevice) -> str | None:
    """The problem of a device; None if it works. A device that was not tried before is tried now."""
    known = _remembered(device)
    return examine(device) if known is None else known or None


def known_problem(device: OpenCLDevice) -> str | None:
    """The problem that an earlier trial found; None if there was no trial."""
    return _remembered(device) or None


def advice(device: OpenCLDevice) -> str:
    """What the user can do about a device that fails."""
    cl_dev = device.device
    return f"update or remove driver {cl_dev.driver_version.strip()!r} of platform {cl_dev.platform.name.strip()!r}"


def facts(device: OpenCLDevice) -> str:
    """A description of a device."""
    cl_dev = device.device
    doubles = "float64" if device.has_doubles else "no float64"
    return (
        f"driver {cl_dev.driver_version.strip()}, {cl_dev.global_mem_size / (1 << 30):.1f} GiB, {doubles}, "
        f"{cl_dev.max_compute_units} compute units, work-groups of up to {cl_dev.max_work_group_size}"
    )


def examine(device: OpenCLDevice) -> str | None:
    """The problem of a device, by a trial now. The result is remembered, unless pyopencl is incomplete."""
    try:
        problem_found = _brief(_trial(device))
    except ImportError as error:
        return f"pyopencl cannot be used: {error}"
    _known[device.identity] = problem_found
    cache.put(_key(device), _SUFFIX, json.dumps([_key(device), problem_found]).encode())
    return problem_found or None


def _key(device: OpenCLDevice) -> str:
    content = f"{_WAY}\0{device.identity}"
    return f"trial-{hashlib.sha256(content.encode(errors='surrogateescape')).hexdigest()}"


def _remembered(device: OpenCLDevice) -> str | None:
    """The remembered problem of a device, or an empty text; None if there was no trial."""
    if device.identity in _known:
        return _known[device.identity]
    content = cache.get(_key(device), _SUFFIX)
    try:
        key, text = ("", None) if content is None else json.loads(content)
    except (ValueError, TypeError, RecursionError) as error:
        log.debug("the trial of %r cannot be read: %s", device, error)
        return None
    if key != _key(device) or not isinstance(text, str):
        return None
    _known[device.identity] = text
    return text


def _trial(device: OpenCLDevice) -> str:
    """The problem that a trial finds, or an empty text."""
    number = trial_process.all_devices().index(device.device)
    command = (sys.executable, "-P", _SCRIPT, str(number))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"its driver has not run a small program in {_SECONDS:g} s"
    except OSError as error:  # Python's executable is missing, or may not be started
        log.debug("%s is tried in this process: %s", device, error)
        return trial_process.problem(device.device)
    if done.returncode == trial_process.CANNOT_SAY:
        return trial_process.problem(device.device)
    if done.returncode == 0:
        return done.stdout.strip()
    return "\n".join([f"its driver ends the process that runs a program, {_end(done.returncode)}", done.stderr])


def _end(status: int) -> str:
    """A description of how a process ended."""
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"


def _brief(text: str) -> str:
    """A short form of a driver's message: its first line, and the first one that names an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    first: list[str] = []
    for part in lines[0].removesuffix(" -").split(" - "):
        first += [] if any(earlier.endswith(part) for earlier in first) else [part]
    told = [line for line in lines[1:] if "error" in line.lower()][:1]
    return textwrap.shorten("; ".join([" - ".join(first), *told]), _LONGEST, placeholder=" ...")
