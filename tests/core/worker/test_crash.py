from __future__ import annotations

import signal

from tests.for_each import for_each
from tilewright.core.worker.crash import crash_failure, memory_kills, reason


@for_each(
    ("status", "words", "killed", "failure"),
    [
        (1, "", False, "crashed: exit status 1"),
        (-signal.SIGSEGV, "going\n", False, "crashed: SIGSEGV: going"),
        (-signal.SIGKILL, "", True, "memory: killed by the system"),
        (1, "MemoryError: 9 GiB", False, "memory: MemoryError: 9 GiB"),
        (1, "ValueError: " + "x" * 99, False, "crashed: exit status 1: ValueError: xxxxxxxx"),
    ],
)
def test_how_a_process_ended(status: int, words: str, killed: bool, failure: str) -> None:
    assert crash_failure(status, words, killed, longest=20) == failure


def test_reason() -> None:
    assert reason("") == ""
    assert reason("a\nb\n\n") == "b"
    whole = "Traceback\n  File x\nfoo.BarError: it broke at core.cpp:84:\n  no such operator\n"
    assert reason(whole) == "foo.BarError: it broke at core.cpp:84: no such operator"


def test_memory_kills() -> None:
    assert memory_kills() >= 0
