"""A work queue for workers that may be lost: every item is answered once, while a worker is left.

A worker gets a batch of items at a time, and the next one after it has answered all of them. What a
lost worker has not answered goes back to the queue.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.tune.measure.cluster.transport import Cluster, Connection, WorkerLost
from tilewright.tune.measure.cluster.worker import Message


@dataclass
class WorkQueue:
    """Items by number, of which a worker gets `batch` at most; `waiting` are not assigned.

    `begin` sends items to a worker, `on_answer` gets each answer, `on_lost` a worker that ended.
    """

    count: int
    batch: int
    begin: Callable[[Connection, Sequence[int]], None]
    on_answer: Callable[[Connection, int, Message], None]
    on_lost: Callable[[Connection, str], None]
    waiting: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = deque(range(self.count))


@dataclass
class _Call:
    """The items of a worker, those not answered yet, and when its last message came."""

    numbers: list[int]
    left: set[int]
    last_message: float


def distribute(
    cluster: Cluster, eligible: Callable[[], Sequence[Connection]], queue: WorkQueue, timeout: float
) -> None:
    """Process the queue with the eligible workers; return early when none is left."""
    busy: dict[Connection, _Call] = {}
    _assign(eligible(), queue, busy)
    while busy:
        deadline = min(call.last_message for call in busy.values()) + timeout
        for connection in cluster.wait(list(busy), max(0.0, deadline - time.monotonic())):
            _receive(connection, queue, busy)
        for connection in _timed_out(busy, timeout):
            _requeue(connection, f"it said nothing for {timeout:.0f} s", queue, busy)
        _assign(eligible(), queue, busy)


def _assign(
    eligible: Sequence[Connection], queue: WorkQueue, busy: dict[Connection, _Call]
) -> None:
    for connection in eligible:
        if connection in busy or not queue.waiting:
            continue
        size = min(queue.batch, math.ceil(len(queue.waiting) / len(eligible)))
        numbers = [queue.waiting.popleft() for _ in range(size)]
        busy[connection] = _Call(numbers, set(numbers), time.monotonic())
        queue.begin(connection, numbers)


def _receive(connection: Connection, queue: WorkQueue, busy: dict[Connection, _Call]) -> None:
    call = busy[connection]
    try:
        message = connection.take()
    except WorkerLost as lost:
        _requeue(connection, str(lost), queue, busy)
        return
    if message is None:
        assert not call.left, "a worker has not answered everything"
        del busy[connection]
    elif "problem" in message:
        _requeue(connection, message["problem"], queue, busy)
    else:
        number = call.numbers[message.get("number", 0)]
        call.left.remove(number)
        call.last_message = time.monotonic()
        queue.on_answer(connection, number, message)


def _timed_out(busy: dict[Connection, _Call], timeout: float) -> list[Connection]:
    now = time.monotonic()
    return [connection for connection, call in busy.items() if now - call.last_message >= timeout]


def _requeue(
    connection: Connection, why: str, queue: WorkQueue, busy: dict[Connection, _Call]
) -> None:
    queue.waiting.extendleft(sorted(busy.pop(connection).left, reverse=True))
    queue.on_lost(connection, why)
