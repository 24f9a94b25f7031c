"""Another user who may write above the cache puts a directory of his own in its place, over and over.

What he offers is an entry with a right checksum that computes something else. It is never opened. Needs root, who can
become another user.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from common import options, say, works

from harp.backends.toolchain import cache

NOBODY = 65534
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
CALL = """
import numpy as np, harp
print(float(harp.jit(lambda x: x * FACTOR)(np.ones(3))[1]))
"""
# Looks the entry up until the time is over; prints how often, and how often it was the other user's.
VICTIM = """
import os, sys, time
from harp.backends.toolchain import cache
key, seconds = sys.argv[1], float(sys.argv[2])
end, count, wrong = time.monotonic() + seconds, 0, 0
while time.monotonic() < end:
    found = cache.get_library(key)
    count += 1
    if found is not None:
        wrong += os.fstat(found.handle).st_uid != os.geteuid()
        os.close(found.handle)
print(count, wrong)
"""
# What the other user does, in the directory above. What the victim has made there in the meantime is put aside.
AWAY = "n=$((n+1)); mv -T cache kept; mv -T cache aside$n"
BACK = "mv -T kept cache"
ATTACKS = {
    "renames": f"while :; do {AWAY}; mv -T theirs cache; mv -T cache theirs; {BACK}; done",
    "links": f"while :; do {AWAY}; ln -sT theirs cache; rm -f cache; {BACK}; done",
    "first": "while :; do cp -rT theirs cache; rm -r cache; done",
    "entries": "while :; do for f in theirs/*; do rm -f cache/*; cp $f cache/; ln -sf $PWD/$f cache/; done; done",
}


def call(factor: float, place: pathlib.Path) -> float:
    """In a process of its own."""
    code = CALL.replace("FACTOR", str(factor))
    environment = os.environ | {"HARP_CACHE_DIR": str(place), "HARP_VERIFY": "0"}
    command = [sys.executable, "-W", "ignore", "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise SystemExit(f"status {done.returncode}\n{done.stderr[-4000:]}")
    return float(done.stdout)


def library(place: pathlib.Path) -> pathlib.Path:
    """The one that a call with an empty cache has made; the pool of threads is another one."""
    return min((path for path in place.glob("*.so")), key=lambda path: path.stat().st_size)


def offer(good: pathlib.Path, bad: pathlib.Path, theirs: pathlib.Path) -> str:
    """A directory of the other user: the entries of a call, of which one is the library of another one."""
    shutil.copytree(good, theirs)
    name = library(good).name
    content = library(bad).read_bytes()[: -cache._DIGEST]
    (theirs / name).write_bytes(content + cache.digest(name, content))
    for path in (theirs, *theirs.iterdir()):
        os.chown(path, NOBODY, NOBODY)
    return name.removesuffix(".so")


def turn(name: str, directory: pathlib.Path, counts: dict[str, int]) -> None:
    above = pathlib.Path(tempfile.mkdtemp(dir=directory))  # of this turn alone: what the other started may end late
    above.chmod(0o1777 if name == "first" else 0o777)
    directory.chmod(0o755)
    key = offer(directory / "good", directory / "bad", above / "theirs")
    if name != "first":
        shutil.copytree(directory / "good", above / "cache")
        (above / "cache").chmod(0o777 if name == "entries" else 0o700)
    words, quiet = [*AS_NOBODY, "sh", "-c", ATTACKS[name]], subprocess.DEVNULL
    attacker = subprocess.Popen(words, cwd=above, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        if call(2.0, above / "cache") != 2.0:
            raise SystemExit(f"{name}: the other user's program was run")
        environment = os.environ | {"HARP_CACHE_DIR": str(above / "cache")}
        command = [sys.executable, "-c", VICTIM, key, "5"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=600)
        count, wrong = map(int, done.stdout.split())
        if wrong:
            raise SystemExit(f"{name}: {wrong} of {count} times the other user's library was opened")
        counts["looked up"] += count
        counts[name] += 1
    finally:
        os.killpg(attacker.pid, signal.SIGKILL)
        attacker.wait()
        shutil.rmtree(above, ignore_errors=True)


def main() -> None:
    if os.geteuid() or not works([*AS_NOBODY, "true"]):
        print("others: only root can become another user; passed over")
        return
    chosen = options(__doc__)
    end, names = time.monotonic() + chosen.seconds, itertools.cycle(ATTACKS)
    counts = dict.fromkeys((*ATTACKS, "looked up"), 0)
    with tempfile.TemporaryDirectory(prefix="harp-soak-") as made:
        directory = pathlib.Path(made)
        if call(2.0, directory / "good") != 2.0 or call(666.0, directory / "bad") != 666.0:
            raise SystemExit("a wrong result before anybody did anything")
        while time.monotonic() < end:
            turn(next(names), directory, counts)
    attacks = ", ".join(f"{counts[name]} of {name}" for name in ATTACKS)
    say(chosen, f"attacks: {attacks}; the entry was looked up {counts['looked up']} times, never theirs")


if __name__ == "__main__":
    main()
