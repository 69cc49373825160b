"""Work shared among workers that come to an end: everything is answered once, as long as one lives.

A worker gets a few pieces at a time and the next when it has answered them. What a worker that goes
has not answered is given to others.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tilewright.tune.measure.cluster.transport import Cluster, Gone, Link
from tilewright.tune.measure.cluster.worker import Message


@dataclass
class Work:
    """Pieces by number, of which a worker gets `portion` at most; what is left is `waiting`.

    `begin` calls a worker about some of them, `told` has each answer, `lose` ends a worker.
    """

    count: int
    portion: int
    begin: Callable[[Link, Sequence[int]], None]
    told: Callable[[Link, int, Message], None]
    lose: Callable[[Link, str], None]
    waiting: deque[int] = field(init=False)

    def __post_init__(self) -> None:
        self.waiting = deque(range(self.count))


@dataclass
class _Call:
    """The pieces that a worker was called about, those not answered yet, when it last spoke."""

    numbers: list[int]
    left: set[int]
    heard: float


def share(
    cluster: Cluster, able: Callable[[], Sequence[Link]], work: Work, patience: float
) -> None:
    """Have the work done by those who are able to; ends early where there is nobody left."""
    busy: dict[Link, _Call] = {}
    _hand_out(able(), work, busy)
    while busy:
        silent = min(call.heard for call in busy.values()) + patience
        for link in cluster.wait(list(busy), max(0.0, silent - time.monotonic())):
            _hear(link, work, busy)
        for link in _silent(busy, patience):
            _give_up(link, f"it said nothing for {patience:.0f} s", work, busy)
        _hand_out(able(), work, busy)


def _hand_out(able: Sequence[Link], work: Work, busy: dict[Link, _Call]) -> None:
    for link in able:
        if link in busy or not work.waiting:
            continue
        size = min(work.portion, math.ceil(len(work.waiting) / len(able)))
        numbers = [work.waiting.popleft() for _ in range(size)]
        busy[link] = _Call(numbers, set(numbers), time.monotonic())
        work.begin(link, numbers)


def _hear(link: Link, work: Work, busy: dict[Link, _Call]) -> None:
    call = busy[link]
    try:
        message = link.take()
    except Gone as gone:
        _give_up(link, str(gone), work, busy)
        return
    if message is None:
        assert not call.left, "a worker has not answered everything"
        del busy[link]
    elif "problem" in message:
        _give_up(link, message["problem"], work, busy)
    else:
        number = call.numbers[message.get("number", 0)]
        call.left.remove(number)
        call.heard = time.monotonic()
        work.told(link, number, message)


def _silent(busy: dict[Link, _Call], patience: float) -> list[Link]:
    now = time.monotonic()
    return [link for link, call in busy.items() if now - call.heard >= patience]


def _give_up(link: Link, why: str, work: Work, busy: dict[Link, _Call]) -> None:
    work.waiting.extendleft(sorted(busy.pop(link).left, reverse=True))
    work.lose(link, why)
