from __future__ import annotations

import errno
import io
import json
from collections.abc import Mapping
from typing import Any

from tests.for_each import for_each
from tilewright.core.errors import ConfigError, ExecutionError, ScheduleError
from tilewright.core.worker.serve import answer_lines


def answers(handle: Any, *requests: Mapping[str, Any]) -> list[Any]:
    sink = io.BytesIO()
    lines = b"".join(json.dumps(request).encode() + b"\n" for request in requests)
    answer_lines(handle, io.BytesIO(lines), sink)
    ready, *replies = map(json.loads, sink.getvalue().splitlines())
    assert ready == {}
    return replies


def test_one_answer_a_request() -> None:
    assert answers(lambda request: {"twice": 2 * request["n"]}, {"n": 1}, {"n": 4}) == [
        {"twice": 2},
        {"twice": 8},
    ]


@for_each(
    ("error", "failure"),
    [
        (ScheduleError("split.factor", "no"), "refused: ScheduleError[split.factor]: no"),
        (ExecutionError("run.memory", "too much"), "memory: too much"),
        (MemoryError("9 GiB"), "memory: 9 GiB"),
        (OSError(errno.ENOSPC, "No space left"), "disk: [Errno 28] No space left"),
        (OSError(errno.EFBIG, "File too large"), "disk: [Errno 27] File too large"),
        (ConfigError("file.disk-full", "no space"), "disk: ConfigError[file.disk-full]: no space"),
        (ConfigError("file.other", "no"), "refused: ConfigError[file.other]: no"),
        (OSError(errno.ENOENT, "gone"), "crashed: FileNotFoundError: [Errno 2] gone"),
        (KeyError("k"), "crashed: KeyError: 'k'"),
    ],
)
def test_an_error_is_the_answer_to_its_request(error: Exception, failure: str) -> None:
    def handle(request: Mapping[str, Any]) -> Mapping[str, Any]:
        if request["bad"]:
            raise error
        return {}

    assert answers(handle, {"bad": True}, {"bad": False}) == [{"failure": failure}, {}]
