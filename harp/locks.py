"""Locks that a forked child finds open: the thread that held one at that moment is not in the child."""

from __future__ import annotations

import os
import threading


def forkable_lock(owner: object) -> threading.Lock:
    """A lock to keep as `owner._lock`, where a forked child gets another one. The owner lives as long as the process.

    >>> import sys
    >>> _lock = forkable_lock(sys.modules[__name__])
    """

    def renew() -> None:
        setattr(owner, "_lock", threading.Lock())  # noqa: B010 (a module or an object: no class has the name)

    os.register_at_fork(after_in_child=renew)
    return threading.Lock()
