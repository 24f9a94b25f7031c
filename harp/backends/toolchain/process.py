"""Runs of a compiler, several at the same time. When a run is stopped, the processes that its driver (such as gcc)
started are stopped, too.

No thread waits for them: near a limit of memory, or after an interrupt, `Thread.start` may never return, or leave a
thread that nobody ends.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harp.backends.toolchain.background import is_here, require_time
from harp.progress import tick

# Seconds between two looks at the processes, where the system does not say when one ends: a part of the time since the
# first one started, within limits.
_PART, _SHORTEST, _LONGEST = 1 / 64, 0.0005, 0.005
# Where it does, milliseconds after which Python looks at all else that it waits for.
_MOMENT = 20
# The niceness of compilers that nobody waits for.
_NICE = 10
# The most interrupts that are survived while processes are stopped.
_TRIES = 100
# Python ignores these signals, but programs do not expect that.
_DEFAULT_SIGNALS = [getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)]
_numbers = itertools.count()


class Done(NamedTuple):
    """The result of a run."""

    returncode: int
    stdout: str
    stderr: str


class TimedOut(Exception):
    """A run took longer than so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")
        self.seconds = seconds


class Job(NamedTuple):
    """A command to run, and a function to call with its result."""

    command: tuple[str, ...]
    ended: Callable[[Done], None]


class _Started(NamedTuple):
    job: Job
    since: float
    printed: Path  # the path of its output, without the suffix


def run(command: tuple[str, ...], seconds: float, directory: Path) -> Done:
    """Start a program and wait for it: no shell, no input, messages in English, temporary files in a directory.

    Raises OSError if it cannot be started, and TimedOut.
    """
    done: list[Done] = []
    run_all([Job(command, done.append)], seconds, directory)
    return done[0]


def run_all(jobs: Iterable[Job], seconds: float, directory: Path) -> None:
    """Run as many jobs at the same time as there are cores; a job is taken from `jobs` when one can start.

    An error in `ended`, or the user's interrupt, stops all of them. Also raises OSError and TimedOut.
    """
    group = _Group(directory)
    waiting, began = iter(jobs), time.monotonic()
    try:
        while True:
            while len(group.running) < (os.cpu_count() or 1) and (job := next(waiting, None)) is not None:
                group.start(job)
            if not group.running:
                return
            if not group.look(seconds):
                tick()
                require_time()
                group.wait(min(max((time.monotonic() - began) * _PART, _SHORTEST), _LONGEST))
    finally:
        try:
            group.stop()
        finally:  # an interrupt may come before its first step
            group.stop()


class _Group:
    """The processes that this one has started.

    A signal may raise an exception after any call. So the C function that starts a process also puts its number into a
    list, and the one that waits for a process also stores its status.
    """

    def __init__(self, directory: Path) -> None:
        self.running: dict[int, _Started] = {}
        self._directory = directory
        self._pids: list[int] = []
        self._ends: list[tuple[int, int]] = []  # process numbers and exit statuses
        self._descriptors: list[int] = []  # of processes, while one waits for them

    def start(self, job: Job) -> None:
        started = _Started(job, time.monotonic(), self._directory / f"printed{next(_numbers)}")
        new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            *((os.POSIX_SPAWN_OPEN, k, f"{started.printed}.{k}", new, 0o600) for k in (1, 2)),
            *((os.POSIX_SPAWN_CLOSE, k) for k in _inheritable()),
        ]
        spawn = partial(
            os.posix_spawn,
            job.command[0],
            job.command,
            {**os.environ, "LC_ALL": "C", "TMPDIR": str(self._directory)},
            file_actions=files,
            setsigdef=_DEFAULT_SIGNALS,
        )
        # A process group, so that it can be stopped with all its children; groups get equal shares of the cores.
        try:
            self._pids.extend(itertools.starmap(partial(spawn, setsid=True), ((),)))
        except NotImplementedError:  # Python was built for an old system
            self._pids.extend(itertools.starmap(partial(spawn, setpgroup=0), ((),)))
        self.running[self._pids[-1]] = started
        if is_here():  # nobody waits for it: those that somebody waits for go first
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PGRP, self._pids[-1], _NICE)

    def look(self, seconds: float) -> bool:
        """Whether some have ended. Raises TimedOut."""
        before = len(self.running)
        for pid, started in list(self.running.items()):
            if self._has_ended(pid, os.WNOHANG):
                del self.running[pid]
                status = os.waitstatus_to_exitcode(dict(self._ends)[pid])
                out, err = (Path(f"{started.printed}.{k}").read_text("utf-8", "replace") for k in (1, 2))
                started.job.ended(Done(status, out, err))
            elif time.monotonic() - started.since > seconds:
                raise TimedOut(seconds)
        return len(self.running) < before

    def wait(self, seconds: float) -> None:
        """Until a process ends, or for a moment; for some seconds where the system does not say when one does."""
        try:
            self._descriptors.extend(map(os.pidfd_open, self.running))
            ends = select.poll()
            for descriptor in self._descriptors:
                ends.register(descriptor, select.POLLIN)
            ends.poll(_MOMENT)
        except (AttributeError, OSError):  # another system, too many descriptors, or one has ended
            time.sleep(seconds)
        finally:
            self._close()

    def _close(self) -> None:
        """Close the descriptors. C takes each out of the list and closes it: no interrupt comes between the two."""
        with contextlib.suppress(IndexError):
            any(map(os.close, iter(self._descriptors.pop, None)))

    def _has_ended(self, pid: int, flags: int) -> bool:
        try:
            self._ends.extend(map(os.waitpid, (pid,), (flags,)))
        except ChildProcessError:  # its status was read by other code, or signals of children are ignored
            self._ends.append((pid, 0))
        if self._ends[-1][0] == pid:
            return True
        del self._ends[-1]
        return False

    def stop(self) -> None:
        """Kill the processes that are still running. An interrupt that comes meanwhile is raised afterwards."""
        late: BaseException | None = None
        for _ in range(_TRIES):
            try:
                self._kill()
                break
            except BaseException as error:
                late = error
        if late is not None:
            raise late

    def _kill(self) -> None:
        self._close()
        ended = {pid for pid, _ in self._ends}
        running = [pid for pid in self._pids if pid not in ended]
        for pid in running:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # it is ending
                os.killpg(pid, signal.SIGKILL)
        for pid in running:
            self._has_ended(pid, 0)


def _inheritable() -> list[int]:
    """The inheritable descriptors of this process, which a compiler must not keep open."""
    descriptors = []
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ():
        with contextlib.suppress(OSError):  # the descriptor of the list itself is closed by now
            if int(name) > 2 and os.get_inheritable(int(name)):
                descriptors.append(int(name))
    return descriptors
