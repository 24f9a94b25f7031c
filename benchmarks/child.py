"""One process that imports a library and makes its first training step: seconds, and memory at the peak.

python -m benchmarks.child PEER [--small]
"""

from __future__ import annotations

import json
import pathlib
import resource
import sys
import time


def peak_mib() -> float:
    """The largest resident set of this process so far. (getrusage would count what its parent had before exec.)"""
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        found = [line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        if found:
            return int(found[0]) / 1024
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def main(name: str, small: bool = False) -> None:
    from benchmarks.peers import PEERS
    from benchmarks.workloads import mlp

    peer, workload = PEERS[name], mlp.WORKLOADS[0]
    if peer.prepare:
        peer.prepare(1)
    peer.xp()
    given = peer.arguments(workload.make(small))
    start = time.perf_counter()
    step = mlp.steps(name)
    step(*given)
    first = time.perf_counter() - start
    for _ in range(10):
        step(*given)
    print(json.dumps({"first": first, "peak_mib": peak_mib()}))


if __name__ == "__main__":
    main(sys.argv[1], "--small" in sys.argv)
