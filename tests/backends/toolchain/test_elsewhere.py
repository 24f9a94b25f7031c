"""Programs that another machine has compiled run where there is no compiler, if the processor can run them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harp.backends.toolchain import compilers, machine

CC = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
pytestmark = [
    pytest.mark.skipif(CC is None, reason="no C compiler"),
    pytest.mark.skipif(not machine.features(), reason="the system does not say what the processor can do"),
]
# Two programs: one with few arguments, one with many, which are read by the library that all programs share.
PROGRAM = """
import sys
import numpy as np, harp
x = np.arange(5.0)
f = harp.jit(lambda x: x * 2.0 + 1.0)
np.testing.assert_array_equal(f(x), x * 2 + 1)
g = harp.jit(lambda arrays: [a + 1.0 for a in arrays])
for k, y in enumerate(g([x + k for k in range(10)])):
    np.testing.assert_array_equal(y, x + k + 1)
print(harp.stats()["compiler_runs"], harp.stats()["cache_hits"], int("harp.lower.pipeline" in sys.modules))
"""
OTHER = PROGRAM.replace("2.0 + 1.0", "3.0 - 1.0").replace("x * 2 + 1", "x * 3 - 1")


def run(directory: Path, program: str = PROGRAM, place: Path | None = None, **environment: str) -> tuple[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("CC", "HARP_CC")}
    kept |= {"HARP_CACHE_DIR": str(directory), "HARP_VERIFY": "0"}
    command = [sys.executable, "-W", "always", "-c", program]
    done = subprocess.run(command, env=kept | environment, cwd=place, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


NOTHING = {"PATH": "/nonexistent"}
needs_no_zig = pytest.mark.skipif(
    subprocess.run([sys.executable, "-c", "import ziglang"], capture_output=True).returncode == 0, reason="zig is there"
)


@pytest.mark.slow
@needs_no_zig
def test_programs_that_are_there_need_no_compiler(tmp_path):
    assert run(tmp_path / "cache") == ("2 0 1", "")
    assert run(tmp_path / "cache", **NOTHING) == ("0 2 0", ""), "and nobody is warned"
    out, warning = run(tmp_path / "cache", OTHER, **NOTHING)
    assert out == "0 1 1" and "no C compiler was found" in warning
    doctor = "import sys; from harp.__main__ import main; print(main(['doctor']))"
    assert "programs in the cache that other machines have compiled" in run(tmp_path / "cache", doctor, **NOTHING)[0]
    out, warning = run(tmp_path / "cache", HARP_CC="none")
    assert out == "0 0 1" and "HARP_CC=none" in warning, "who asks for none gets none"


@pytest.mark.slow
@needs_no_zig
def test_harp_that_is_installed_somewhere_else(tmp_path):
    """As in a container: other files, of the same content."""
    import harp

    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(harp.__file__).parent, tmp_path / "elsewhere" / "harp", ignore=ignored)
    assert run(tmp_path / "cache")[0] == "2 0 1"
    assert run(tmp_path / "cache", place=tmp_path / "elsewhere", **NOTHING) == ("0 2 0", "")
    with open(tmp_path / "elsewhere" / "harp" / "lower" / "cost_model.py", "a") as file:
        file.write("# edited")
    out, warning = run(tmp_path / "cache", place=tmp_path / "elsewhere", **NOTHING)
    assert out == "0 0 1" and "no C compiler was found" in warning


@needs_no_zig
@pytest.mark.parametrize("change", ["processor", "system", "unknown"])
def test_programs_for_another_processor_are_not_run(tmp_path, monkeypatch, change):
    directory = tmp_path / "cache"
    assert run(directory)[0] == "2 0 1"
    monkeypatch.setenv("HARP_CACHE_DIR", str(directory))
    (path,) = directory.glob("toolchain-*.json")
    fields = json.loads(path.read_bytes()[:-32])
    fields[6] = "plan9 mips" if change == "system" else fields[6]
    fields[7] = {"processor": [*fields[7], "avx4096"], "system": fields[7], "unknown": []}[change]
    compilers.cache.put(path.stem, ".json", json.dumps(fields).encode())
    out, warning = run(directory, **NOTHING)
    assert out == "0 0 1" and "no C compiler was found" in warning


def test_what_the_processor_can_do(monkeypatch):
    x86 = "processor : 0\nmodel name : A\nflags\t\t: fpu sse2 avx512f fma hypervisor sha_ni\n\nprocessor : 1\n"
    arm = "processor\t: 0\nFeatures\t: fp asimd sve\nCPU part\t: 0xd40\n\n"
    for text, found in ((x86, ("avx512f", "fma", "sha_ni", "sse2")), (arm, ("asimd", "fp", "sve")), ("", ())):
        monkeypatch.setattr(Path, "read_text", lambda self, errors, text=text: text)
        assert machine.features() == found
    monkeypatch.setattr(Path, "read_text", lambda self, errors: x86)
    assert machine.missing(["avx512f", "sve", "amx"]) == ["amx", "sve"]
