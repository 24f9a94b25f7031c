"""Training on ranks of MPI: the weights have the same bits for any number of ranks. Where MPI is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mpi4py")
EXAMPLE = Path(__file__).parents[2] / "examples" / "mpi_training.py"
MPIEXEC = shutil.which("mpiexec", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))


@pytest.mark.skipif(MPIEXEC is None, reason="there is no mpiexec")
def test_ranks_agree():
    ends = set()
    for ranks in (1, 2):
        command = [MPIEXEC, "-n", str(ranks), sys.executable, str(EXAMPLE), "--blocks", "5", "--rounds", "11"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        *rounds, end = done.stdout.splitlines()
        losses = [float(line.rpartition(" ")[2]) for line in rounds]
        assert end.startswith(f"{ranks} ranks, 1 program") and losses[-1] < losses[0] / 2
        ends.add(end.rpartition(" ")[2])
    assert len(ends) == 1
