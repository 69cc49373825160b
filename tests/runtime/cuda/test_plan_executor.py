from __future__ import annotations

import ctypes
from typing import Any

from tests.for_each import for_each
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.plan_executor import (
    BufferBases,
    PlanExecutor,
    conditions,
    is_capturable,
)

ONCE = {"threads": 8, "shared": 0, "maps": [], "loop": "", "steps": 1}
OFTEN = {"threads": 8, "shared": 0, "maps": [], "loop": "t", "steps": ["sub", "n", 1]}
KERNEL = {"sizes": ["n"], "launches": [{"name": "k", "grid": ["floordiv", "n", 2], **ONCE}]}
ZERO = ["arena", 0, 0]


class _Device:
    """LaunchRecorder launches; downloads give what `memory` has, in order."""

    def __init__(self, memory: tuple[int, ...] = ()) -> None:
        self.memory = list(memory)
        self.launches: list[tuple[int, list[int]]] = []
        self.copies: list[tuple[int, int, int]] = []
        self.waited: list[str] = []

    def launch(
        self,
        function: int,
        shape: tuple[int, int, int],
        arguments: Arguments,
        stream: int,
        name: str,
    ) -> None:
        words = list(arguments.words)
        self.launches.append((shape[0], words))

    def download(self, to: int, source: int, size: int, stream: int) -> None:
        ctypes.memmove(to, self.memory.pop(0).to_bytes(size, "little"), size)

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        self.copies.append((to, source, size))

    def synchronize(self, stream: int, doing: str = "") -> None:
        self.waited.append(doing)


def _run(
    actions: list[dict[str, Any]], device: _Device, waits: bool = False, **sizes: int
) -> tuple[int, PlanExecutor]:
    spaces = BufferBases([100], [200], 1000, 5000)
    run = PlanExecutor(device, {"k": KERNEL}, {"k": 1}, spaces, dict(sizes), 0, waits=waits)
    return run.do(actions), run


def _call(*places: list[Any], size: Any = 4) -> dict[str, Any]:
    return {"do": "call", "step": 0, "kernel": "k", "buffers": list(places), "sizes": [size]}


def test_places_and_sizes() -> None:
    device = _Device()
    places = (["input", 0, 0], ["output", 0, 8], ["arena", "N", 4], ["weights", 64, 0])
    assert _run([_call(*places, size=["mul", "N", 2])], device, N=3)[0] == 0
    assert device.launches == [(3, [100, 208, 1007, 5064, 6, 0])]


def test_steps_of_a_loop_are_launched_in_turn() -> None:
    device = _Device()
    often = [{"name": name, "grid": grid, **OFTEN} for name, grid in (("a", 1), ("b", 2))]
    kernel = {"sizes": ["n"], "launches": [*often, {"name": "c", "grid": 3, **ONCE}]}
    spaces = BufferBases([100], [200], 1000, 5000)
    run = PlanExecutor(device, {"k": kernel}, {"a": 1, "b": 2, "c": 3}, spaces, {}, 0)
    run.do([_call(size=3)])
    assert device.launches == [
        (1, [3, 0]), (2, [3, 0]), (1, [3, 1]), (2, [3, 1]), (3, [3, 0])
    ]  # fmt: skip


def test_nothing_is_launched_for_nothing() -> None:
    device = _Device()
    _run([_call(size=1)], device)
    assert device.launches == []


def test_kernels_are_waited_for_by_name() -> None:
    device = _Device()
    _run([_call()], device)
    assert device.waited == []
    _run([_call()], device, waits=True)
    assert device.waited == ["kernel k ran"]


def test_checks_end_a_run() -> None:
    device = _Device()
    check = {"do": "check_sizes", "condition": ["lt", "N", 5], "status": 7}
    assert _run([check, _call()], device, N=9)[0] == 7
    assert device.launches == []


@for_each(("value", "status"), [(3, 0), (9, 2), (2**64 - 1, 2)])
def test_sizes_are_learnt(value: int, status: int) -> None:
    learn = {"do": "read_size", "name": "S", "place": ZERO, "limit": 8, "status": 2}
    found, run = _run([learn], _Device((value,)))
    assert found == status
    assert status or run.sizes["S"] == 3


@for_each("holds", [True, False])
def test_choices(holds: bool) -> None:
    device = _Device((holds,))
    choose = {
        "do": "conditional",
        "condition": None,
        "place": ZERO,
        "then": [_call(size=2)],
        "other": [_call(size=6)],
        "sizes": [["S", 1, 3]],
    }
    _, run = _run([choose], device)
    assert device.launches == [(1, [2, 0]) if holds else (3, [6, 0])]
    assert run.sizes["S"] == (1 if holds else 3)
    assert not is_capturable([choose])
    assert is_capturable([{**choose, "place": None, "condition": 1}])


def test_conditions_on_some_names_are_found_wherever_they_are() -> None:
    def choose(condition: Any, *inner: Any) -> dict[str, Any]:
        return {
            "do": "conditional",
            "condition": condition,
            "then": list(inner),
            "other": [_call()],
        }

    one, two = ["eq", "a", 3], ["not", ["lt", "b", "N"]]
    loop = {"do": "counted_loop", "actions": [choose(two)]}
    actions = [_call(), choose(["lt", "N", 4], choose(one)), choose(None), choose("a"), loop]
    assert conditions(actions, {"a", "b"}) == [one, "a", two]


def _repeat(count: int, **more: Any) -> dict[str, Any]:
    carried = {"read": 0, "written": 1, "size": 4}
    carried |= {"initial": ["input", 0, 0], "result": ["output", 0, 0], "spare": ZERO}
    step = _call(["carried", 0, 0], ["carried", 1, 0])
    rest = {"begin": None, "going": None, "trip_count": "T", **more}
    return {
        "do": "counted_loop",
        "counter": "t",
        "count": count,
        "actions": [step],
        "carried": [carried],
        **rest,
    }


@for_each("count", [1, 2, 3, 4])
def test_the_last_of_known_steps_writes_the_result(count: int) -> None:
    device = _Device()
    _, run = _run([_repeat(count)], device)
    reads, writes = zip(*((w[0], w[1]) for _, w in device.launches), strict=True)
    assert reads[0] == 100
    assert writes[-1] == 200
    assert reads[1:] == writes[:-1]
    assert device.copies == []
    assert run.sizes["T"] == count


def test_no_step_copies_what_came_in() -> None:
    device = _Device()
    _run([_repeat(0)], device)
    assert device.copies == [(200, 100, 4)]


def test_a_condition_ends_a_loop() -> None:
    device = _Device((1, 1, 0))
    action = _repeat(10, begin=ZERO, going=ZERO)
    _, run = _run([action], device)
    assert run.sizes["T"] == 2
    assert device.copies == [(200, 1000, 4)]
    assert not is_capturable([action])
