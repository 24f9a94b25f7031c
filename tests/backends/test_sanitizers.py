"""Generated code and the pool of threads under gcc's address, undefined-behaviour and thread sanitizers, and with every
warning of gcc and clang an error."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from sanitizers import GCC, LIBRARIES, environment

MISTAKES = {mistake: sanitizer for sanitizer in LIBRARIES for mistake in sanitizer.split(",")}
SCRIPT = Path(__file__).with_name("sanitized.py")


def run(what: str, directory: Path, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The script in a process with this in its environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV_", "COVERAGE"))}
    # What the passes make is verified elsewhere; here it is the C that is looked at.
    environment = {**kept, "HARP_CACHE_DIR": str(directory), "HARP_VERIFY": "0", **given}
    command = [sys.executable, str(SCRIPT), what]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)


def sanitized(sanitizer: str, what: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """The script with the sanitizer's library."""
    given = environment(sanitizer)
    if given is None:
        pytest.skip("needs gcc and its sanitizers")
    return run(what, directory, given)


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_found(mistake, tmp_path):
    done = sanitized(MISTAKES[mistake], mistake, tmp_path)
    assert done.returncode and ("Sanitizer" in done.stderr or "runtime error" in done.stderr), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", LIBRARIES)
def test_programs_of_many_kinds(sanitizer, tmp_path):
    done = sanitized(sanitizer, "sound", tmp_path)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr[-4000:]


@pytest.mark.slow
def test_checked_programs_of_many_kinds(tmp_path):
    done = sanitized("address,undefined", "checked", tmp_path)
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr[-4000:]


@pytest.mark.slow
def test_checked_programs_touch_nothing_outside(tmp_path):
    """And the sanitizer sees the same mistake in a program that is not checked."""
    done = sanitized("address,undefined", "outside", tmp_path)
    read, stored = "x is read at [i0 + 1]", "is stored to at"
    assert done.stdout.count("a bug in harp") == 2 and read in done.stdout and stored in done.stdout, done.stdout
    assert done.stdout.endswith("unchecked\n") and done.returncode and "AddressSanitizer" in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("what", ["sound", "checked"])
@pytest.mark.parametrize("compiler", [GCC, f"{sys.executable} -m ziglang cc"], ids=["gcc", "clang"])
def test_no_compiler_warns(compiler, what, tmp_path):
    if not compiler or ("ziglang" in compiler and importlib.util.find_spec("ziglang") is None):
        pytest.skip("is not installed")
    done = run(what, tmp_path, {"HARP_CC": f"{compiler} -Wall -Wextra -Werror"})
    assert done.returncode == 0, done.stderr[-4000:]
