"""The built-in schedules as a space: its candidates compute the same, its default is the rule's."""

from __future__ import annotations

from random import Random

import pytest

from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tests.tune.space.structures import (
    FEW,
    GPU_STRUCTURES,
    STRUCTURES,
    check_draws,
    check_gpu_draws,
    func_of,
)
from tilewright.schedule.builtin.for_target import schedule_for
from tilewright.schedule.trace import parse_trace
from tilewright.target.host import host
from tilewright.target.registry import CPUS
from tilewright.tune.space.constructed import ConstructedSpace
from tilewright.tune.space.variation import crossover, mutate, sample


@pytest.mark.parametrize("name", FEW)
def test_drawn_schedules_compute_the_same(name: str) -> None:
    check_draws(name, ConstructedSpace, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURES)
def test_many_drawn_schedules_are_legal_and_compute_the_same(name: str) -> None:
    check_draws(name, ConstructedSpace, range(1, 7), legality=True)


@for_each("name", ["gemm", "softmax", "transpose"])
def test_drawn_schedules_for_gpus_compute_the_same(name: str) -> None:
    check_gpu_draws(name, ConstructedSpace, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU_STRUCTURES)
def test_many_drawn_schedules_for_gpus_compute_the_same(name: str) -> None:
    check_gpu_draws(name, ConstructedSpace, range(1, 9))


@for_each("name", STRUCTURES)
@for_each("target", [host(), CPUS["x86-64-v4"], H200], ids=["native", "x86", "gpu"])
def test_defaults_are_what_is_compiled_without_a_space(name: str, target) -> None:
    func, constants = func_of(name)
    space = ConstructedSpace(func, constants, target)
    default = space.default()
    assert space.trace(default) == str(schedule_for(func, constants, target).trace)
    assert space.parse(space.text(default)) == default


@pytest.mark.parametrize("name", STRUCTURES)
def test_every_structure_has_something_to_decide(name: str) -> None:
    func, constants = func_of(name)
    space, rng = ConstructedSpace(func, constants, host()), Random(0)
    found = {sample(space, rng) for _ in range(5)} - {space.default()}
    assert None not in found
    assert found


def test_texts_are_traces_that_need_nothing_of_the_space() -> None:
    func, constants = func_of("gemm")
    space, rng = ConstructedSpace(func, constants, host()), Random(1)
    one, two = sample(space, rng), sample(space, rng)
    for _ in range(10):
        one, two = mutate(space, one, rng), crossover(space, one, two, rng)
        replayed = parse_trace(space.text(one)).replay(func)
        assert replayed == space.func(one)


def test_what_is_asked_for_depends_on_the_structure() -> None:
    def asked(name: str) -> set[str]:
        func, constants = func_of(name)
        return {*dict(ConstructedSpace(func, constants, host()).default().decisions)}

    assert {"matmul.nr_vectors", "matmul.mr", "matmul.kc", "matmul.loops"} <= asked("deep gemm")
    assert "rule" not in asked("deep gemm")  # rows that share an operand are only tiled
    assert {"rule", "matmul.nr_vectors"} <= asked("gemv")
    assert "conv.channel_block" in asked("depthwise") or "conv.mr" in asked("depthwise")


def test_a_gpu_has_decisions_of_its_own() -> None:
    def asked(name: str) -> set[str]:
        source = max(sources(GPU_STRUCTURES[name](), H200), key=lambda s: len(str(s[0])))
        names = dict(ConstructedSpace(*source, H200).default().decisions)
        return {n.rpartition(".")[2] for n in names}

    assert {"tile", "stages"} <= asked("gemm")
    assert {"tile", "stages", "min_blocks"} <= asked("f32 gemm")
    assert {"lanes", "width", "in_registers"} <= asked("layernorm")
    assert {"through_shared", "rows"} <= asked("transpose")
    assert "parts" in asked("long sum")
