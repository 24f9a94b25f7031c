"""Runs of a compiler. A run that is stopped leaves no process behind: drivers such as gcc start others.

What starts processes and threads is imported with the first run, for most processes of users need none.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self, TypeVar

if TYPE_CHECKING:
    import subprocess

T = TypeVar("T")
# Seconds of one wait: an interrupt that comes in the moment before the wait begins does not end it, only the next one.
_SLICE = 0.2


class Done(NamedTuple):
    """What became of a run."""

    returncode: int
    stdout: str
    stderr: str


class TimedOut(Exception):
    """A run took longer than so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"took longer than {seconds:g} s")
        self.seconds = seconds


class ProcessGroup:
    """Runs at the same time. Where one fails, or the user interrupts, the others are stopped."""

    def __init__(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(os.cpu_count())
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None) -> None:
        if kind is not None:
            with self._lock:
                self._stopped = True
                for process in self._running:
                    _kill(process)
        self._pool.shutdown(cancel_futures=True)

    def map(self, function: Callable[..., T], *arguments: Iterable[object]) -> list[T]:
        """The results of a function, which starts compilers of this group, for each of the arguments."""
        from concurrent.futures import FIRST_EXCEPTION, wait

        futures = [self._pool.submit(function, *given) for given in zip(*arguments, strict=True)]
        waiting = set(futures)
        while waiting:
            done, waiting = wait(waiting, _SLICE, FIRST_EXCEPTION)
            for future in done:  # the first failure, not the failure of the first
                future.result()
        return [future.result() for future in futures]

    def add(self, process: subprocess.Popen[str]) -> None:
        """A process that has started."""
        with self._lock:
            self._running.add(process)
            if self._stopped:
                _kill(process)

    def remove(self, process: subprocess.Popen[str]) -> None:
        """A process that has ended."""
        with self._lock:
            self._running.discard(process)


def run(
    command: tuple[str, ...], seconds: float, group: ProcessGroup | None = None, directory: Path | None = None
) -> Done:
    """Start a program and wait for it: no shell, no input, messages in English, temporary files in a directory.

    Raises OSError if it cannot be started, and TimedOut.
    """
    if group is None:
        # In a thread of its own: an interrupt, which only the main thread gets, cannot come between start and `try`.
        with ProcessGroup() as own:
            return own.map(run, [command], [seconds], [own], [directory])[0]
    import subprocess

    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C", **({"TMPDIR": str(directory)} if directory is not None else {})},
        start_new_session=True,  # so that it can be stopped with all that it starts
    )
    with process:
        try:
            group.add(process)
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            _kill(process)
            raise TimedOut(seconds) from None
        except BaseException:
            _kill(process)
            raise
        finally:
            group.remove(process)
    return Done(process.returncode, out, err)


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
        os.killpg(process.pid, signal.SIGKILL)
