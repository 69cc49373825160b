from __future__ import annotations

import sys

import pytest

from tilewright.core.worker.thread_switching import PROMPT_SECONDS, prompt_switching


def test_the_last_to_leave_restores_the_interval() -> None:
    before = sys.getswitchinterval()
    assert before > PROMPT_SECONDS
    first, second = prompt_switching(), prompt_switching()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() <= PROMPT_SECONDS
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == before


def test_a_shorter_interval_stays() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(PROMPT_SECONDS / 5)
    shorter = sys.getswitchinterval()
    try:
        with prompt_switching():
            assert sys.getswitchinterval() == shorter
        assert sys.getswitchinterval() == shorter
    finally:
        sys.setswitchinterval(before)


def test_an_error_restores_the_interval() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(ValueError, match="inside"), prompt_switching():
        raise ValueError("inside")
    assert sys.getswitchinterval() == before
