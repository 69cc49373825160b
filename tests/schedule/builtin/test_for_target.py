from __future__ import annotations

from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.programs import matmul
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.for_target import schedule_for
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.target.host import host


def test_each_kind_of_machine_has_its_rules() -> None:
    func, constants = matmul(), frozenset("B")
    for target, rules in ((host(), schedule_func), (H200, schedule_for_gpu)):
        assert schedule_for(func, constants, target) == rules(func, constants, target)  # type: ignore[arg-type]


def test_whoever_decides_is_asked() -> None:
    asked: list[str] = []

    def decide(name: str, default: object, options: tuple[object, ...]) -> object:
        assert default in options
        asked.append(name)
        return default

    for target in (host(), H200):
        asked.clear()
        schedule_for(matmul(), frozenset("B"), target, decide)
        assert asked
