"""Whether a device works: a small program is built and run on it. The cache remembers that, for each driver.

A device that fails keeps its number, but nobody is given it unasked. The trial is made in another process, which a
driver may end.
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

# Whoever tries devices otherwise from now on counts this up.
_WAY = 2
_SUFFIX = ".json"
_LONGEST = 300
_SECONDS = 60.0
_SCRIPT = os.path.abspath(trial_process.__file__)
_known: dict[str, str] = {}  # what is wrong, or an empty text, by the identity of the device


def problem(device: OpenCLDevice) -> str | None:
    """What is wrong with a device; None if it works. One that is not known is tried."""
    found = _found(device)
    return examine(device) if found is None else found or None


def known_problem(device: OpenCLDevice) -> str | None:
    """What an earlier trial found wrong, if there was one."""
    return _found(device) or None


def advice(device: OpenCLDevice) -> str:
    """What to do about one that fails."""
    own = device.device
    return f"update or remove driver {own.driver_version.strip()!r} of platform {own.platform.name.strip()!r}"


def facts(device: OpenCLDevice) -> str:
    """What there is to know of one."""
    own = device.device
    doubles = "float64" if device.has_doubles else "no float64"
    return (
        f"driver {own.driver_version.strip()}, {own.global_mem_size / (1 << 30):.1f} GiB, {doubles}, "
        f"{own.max_compute_units} compute units, work-groups of up to {own.max_work_group_size}"
    )


def examine(device: OpenCLDevice) -> str | None:
    """What is wrong with a device, by a trial now. It is remembered, unless what is wrong is an incomplete pyopencl."""
    try:
        found = _brief(_trial(device))
    except ImportError as error:
        return f"pyopencl cannot be used: {error}"
    _known[device.identity] = found
    cache.put(_key(device), _SUFFIX, json.dumps([_key(device), found]).encode())
    return found or None


def _key(device: OpenCLDevice) -> str:
    content = f"{_WAY}\0{device.identity}"
    return f"trial-{hashlib.sha256(content.encode(errors='surrogateescape')).hexdigest()}"


def _found(device: OpenCLDevice) -> str | None:
    """What this process or an earlier one found: a problem, or an empty text; None where there was no trial."""
    if device.identity in _known:
        return _known[device.identity]
    content = cache.get(_key(device), _SUFFIX)
    try:
        own, found = ("", None) if content is None else json.loads(content)
    except (ValueError, TypeError, RecursionError) as error:
        log.debug("the trial of %r cannot be read: %s", device, error)
        return None
    if own != _key(device) or not isinstance(found, str):
        return None
    _known[device.identity] = found
    return found


def _trial(device: OpenCLDevice) -> str:
    """What is wrong, or an empty text."""
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
    except OSError as error:  # there is no file of Python's, or it may not be started
        log.debug("%s is tried in this process: %s", device, error)
        return trial_process.problem(device.device)
    if done.returncode == trial_process.CANNOT_SAY:
        return trial_process.problem(device.device)
    if done.returncode == 0:
        return done.stdout.strip()
    return "\n".join([f"its driver ends the process that runs a program, {_end(done.returncode)}", done.stderr])


def _end(status: int) -> str:
    """How a process ended."""
    if status >= 0:
        return f"with status {status}"
    try:
        return f"by {signal.Signals(-status).name}"
    except ValueError:
        return f"by signal {-status}"


def _brief(text: str) -> str:
    """A line of what a driver says: the first, in which pyopencl repeats itself, and the first that names an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return ""
    first: list[str] = []
    for part in lines[0].removesuffix(" -").split(" - "):
        first += [] if any(earlier.endswith(part) for earlier in first) else [part]
    told = [line for line in lines[1:] if "error" in line.lower()][:1]
    return textwrap.shorten("; ".join([" - ".join(first), *told]), _LONGEST, placeholder=" ...")
