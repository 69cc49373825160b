from __future__ import annotations

import faulthandler
import os
import time

from tilewright.fuzz.sandbox import SandboxLimits, run_all, run_isolated


def test_a_value_comes_back() -> None:
    outcome = run_isolated(lambda: {"n": [1, 2]})
    assert (outcome.kind, outcome.value) == ("done", {"n": [1, 2]})


def test_an_exception_is_told_as_text() -> None:
    outcome = run_isolated(lambda: 1 // 0)
    assert outcome.kind == "exception"
    assert "ZeroDivisionError" in outcome.value


def test_a_crash_costs_its_job_only() -> None:
    outcomes = dict(run_all([os.abort, lambda: 5], at_once=2))
    assert outcomes[0].kind == "crash"
    assert outcomes[0].value.startswith("SIGABRT")
    assert outcomes[1].value == 5


def test_a_crash_leaves_no_trace_in_the_log_of_the_parent() -> None:
    assert faulthandler.is_enabled()  # by pytest
    assert run_isolated(faulthandler.is_enabled).value is False


def test_a_hang_is_ended() -> None:
    start = time.monotonic()
    assert run_isolated(lambda: time.sleep(60), SandboxLimits(seconds=0.3)).kind == "hang"
    assert time.monotonic() - start < 10


def test_memory_is_limited() -> None:
    assert (
        run_isolated(lambda: len(bytearray(1 << 30)), SandboxLimits(memory=1 << 28)).kind
        == "memory"
    )


def test_a_long_reply_comes_back() -> None:
    assert len(run_isolated(lambda: "x" * 1_000_000).value) == 1_000_000


def test_only_computing_counts() -> None:
    def endless() -> None:
        while True:
            pass

    assert run_isolated(endless, SandboxLimits(seconds=1, patience=100)).kind == "hang"
    assert run_isolated(lambda: time.sleep(1.5), SandboxLimits(seconds=1)).kind == "done"
