"""Runs of a compiler. A run that is given up leaves no process behind: drivers such as gcc start others."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")


class Group:
    """Runs at the same time. Where one fails, or the user interrupts, the others are stopped."""

    def __init__(self) -> None:
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
        futures = [self._pool.submit(function, *given) for given in zip(*arguments, strict=True)]
        for future in as_completed(futures):  # the first failure, not the failure of the first
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


def run(command: tuple[str, ...], seconds: float, group: Group | None = None) -> subprocess.CompletedProcess[str]:
    """Start a program and wait for it: no shell, no input, messages in English.

    Raises OSError if it cannot be started, and subprocess.TimeoutExpired.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        start_new_session=True,  # so that it can be stopped with all that it starts
    )
    with process:
        try:
            if group is not None:
                group.add(process)
            out, err = process.communicate(timeout=seconds)
        except BaseException:
            _kill(process)
            raise
        finally:
            if group is not None:
                group.remove(process)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
        os.killpg(process.pid, signal.SIGKILL)
