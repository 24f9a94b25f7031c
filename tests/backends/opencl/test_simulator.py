"""Programs under Oclgrind, which finds races, accesses outside of arrays, and reads of what nobody has stored."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import harp

OCLGRIND = shutil.which("oclgrind")
SCRIPT = Path(__file__).with_name("simulated.py")

pytestmark = pytest.mark.skipif(OCLGRIND is None, reason="needs oclgrind")


def simulated(what: str, kind: str, directory: Path) -> str:
    """What the simulator says of it."""
    here = str(Path(harp.__file__).parents[1])  # and not another one that is installed
    environment = os.environ | {"HARP_CACHE_DIR": str(directory), "HARP_VERIFY": "0", "PYTHONPATH": here}
    command = [str(OCLGRIND), "--data-races", "--uninitialized", sys.executable, str(SCRIPT), what, kind]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1500)
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stderr[-4000:]
    return done.stderr


@pytest.mark.parametrize(
    ("mistake", "message"),
    [("race", "data race"), ("outside", "Invalid read"), ("unstored", "Uninitialized value written")],
)
def test_mistakes_are_found(mistake, message, tmp_path):
    assert message in simulated(mistake, "wide", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wide", "cores"])
@pytest.mark.parametrize("what", ["sound", "small_then_large"])
def test_programs_of_many_kinds(what, kind, tmp_path):
    said = simulated(what, kind, tmp_path).splitlines()
    assert not [line for line in said if "warning" not in line]
