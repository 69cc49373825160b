"""How soon a thread that waits for a worker gets Python's lock from one that computes.

    with prompt_switching():
        compute()           # while threads feed workers

A thread gives the lock up every 5 ms only. One that feeds a worker gives it up, and waits for it
again, at each of the ten or so system calls that a request takes: until the next request comes, the
worker is idle for 50 ms.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

PROMPT_SECONDS = 0.0005
"""How long a computing thread keeps the lock that another one waits for."""

_LOCK = Lock()
_users: list[float] = []


@contextmanager
def prompt_switching() -> Iterator[None]:
    """Switch between threads at short intervals in this block, whoever else is in one."""
    with _LOCK:
        _users.append(sys.getswitchinterval())
        before = _users[0]
        if before > PROMPT_SECONDS:
            sys.setswitchinterval(PROMPT_SECONDS)
    try:
        yield
    finally:
        with _LOCK:
            _users.pop()
            if not _users and before > PROMPT_SECONDS:
                sys.setswitchinterval(before)
