from __future__ import annotations

import pytest

from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.backtracking import MAX_ATTEMPTS, Choices, first_working


def _fail(what: str) -> None:
    raise FrontendError("test", what)


def test_yes_comes_first() -> None:
    assert first_working(lambda choices: [choices.take(), choices.take()]) == [True, True]


def test_the_last_answers_change_first() -> None:
    seen = []

    def attempt(choices: Choices) -> str:
        answers = [choices.take()]
        answers += [choices.take()] if answers[0] else []
        seen.append(answers)
        if answers != [False]:
            _fail("no")
        return "done"

    assert first_working(attempt) == "done"
    assert seen == [[True, True], [True, False], [False]]


def test_the_first_error_is_told() -> None:
    def attempt(choices: Choices) -> None:
        _fail("first" if choices.take() else "second")

    with pytest.raises(FrontendError, match="first"):
        first_working(attempt)


def test_there_is_an_end() -> None:
    count = []

    def attempt(choices: Choices) -> None:
        count.append(0)
        for _ in range(20):
            choices.take()
        _fail("never")

    with pytest.raises(FrontendError, match="never"):
        first_working(attempt)
    assert len(count) == MAX_ATTEMPTS
