from __future__ import annotations

import pytest

from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.backtracking import MAX_ATTEMPTS, Backtracker, first_success


def _fail(what: str) -> None:
    raise FrontendError("test", what)


def test_yes_comes_first() -> None:
    assert first_success(lambda backtracker: [backtracker.take(), backtracker.take()]) == [
        True,
        True,
    ]


def test_the_last_answers_change_first() -> None:
    seen = []

    def attempt(backtracker: Backtracker) -> str:
        answers = [backtracker.take()]
        answers += [backtracker.take()] if answers[0] else []
        seen.append(answers)
        if answers != [False]:
            _fail("no")
        return "done"

    assert first_success(attempt) == "done"
    assert seen == [[True, True], [True, False], [False]]


def test_the_first_error_is_told() -> None:
    def attempt(backtracker: Backtracker) -> None:
        _fail("first" if backtracker.take() else "second")

    with pytest.raises(FrontendError, match="first"):
        first_success(attempt)


def test_there_is_an_end() -> None:
    count = []

    def attempt(backtracker: Backtracker) -> None:
        count.append(0)
        for _ in range(20):
            backtracker.take()
        _fail("never")

    with pytest.raises(FrontendError, match="never"):
        first_success(attempt)
    assert len(count) == MAX_ATTEMPTS
