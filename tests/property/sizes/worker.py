"""Runs cases in a process of its own, which may crash or hang without harm to the one that searches."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection

from .case import Case
from .oracle import Finding, Report, check

PATIENCE = 60.0  # seconds for one case


def _serve(connection: Connection) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)  # what a crash prints is no news
    while True:
        try:
            case, backend = connection.recv()
        except (EOFError, KeyboardInterrupt):
            return
        connection.send(check(case, backend))


class Worker:
    """A process that checks cases, started again after a crash."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._connection, other = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def check(self, case: Case, backend: str) -> Report:
        """What `oracle.check` says. A crash, and a case that takes too long, are findings."""
        self._connection.send((case, backend))
        try:
            if self._connection.poll(PATIENCE):
                return self._connection.recv()
            finding = Finding("hang", 0, f"no result after {PATIENCE:.0f} s")
        except (EOFError, ConnectionError):
            self._process.join()
            finding = Finding("crash", 0, f"the process ended with {self._process.exitcode}")
        self.close()
        self._start()
        return Report(finding)

    def close(self) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()
