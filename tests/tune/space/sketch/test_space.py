"""Sketches as a space, and a user's own rule in it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.codegen.gpu.ptxas import assemble
from tests.codegen.gpu.test_nvptx import ptx
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tests.schedule.programs import check_same, dense
from tests.tune.space.structures import (
    FEW,
    GPU_STRUCTURES,
    STRUCTURES,
    check_draws,
    check_gpu_draws,
    func_of,
)
from tilewright.schedule.analysis.blocks import loop_of, reductions, spatial
from tilewright.schedule.trace import parse_trace
from tilewright.target.host import host
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.space import SketchSpace
from tilewright.tune.space.sketch.state import Sketch, reuses
from tilewright.tune.space.sketch.table import RULES
from tilewright.tune.space.variation import sample


@pytest.mark.parametrize("name", FEW)
def test_drawn_sketches_compute_the_same(name: str) -> None:
    check_draws(name, SketchSpace, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCTURES)
def test_many_drawn_sketches_are_legal_and_compute_the_same(name: str) -> None:
    check_draws(name, SketchSpace, range(1, 7), legality=True)


@for_each("name", ["f32 gemm", "softmax"])
def test_drawn_sketches_for_gpus_compute_the_same(name: str) -> None:
    check_gpu_draws(name, SketchSpace, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", GPU_STRUCTURES)
def test_many_drawn_sketches_for_gpus_compute_the_same(name: str) -> None:
    check_gpu_draws(name, SketchSpace, range(1, 9))


@pytest.mark.ptxas
@pytest.mark.parametrize("name", GPU_STRUCTURES)
def test_drawn_sketches_for_gpus_assemble(name: str, tmp_path: Path) -> None:
    for func, constants in sources(GPU_STRUCTURES[name](), H200):
        space = SketchSpace(func, constants, H200)
        for seed in range(2):
            candidate = sample(space, Random(seed))
            assert candidate is not None
            assert assemble(ptx(space.func(candidate)), tmp_path)


@for_each("name", STRUCTURES)
def test_every_structure_has_sketches(name: str) -> None:
    func, constants = func_of(name)
    space = SketchSpace(func, constants, host())
    text = space.text(space.default())
    assert space.parse(text) == space.default()
    assert parse_trace(text).replay(func) == space.func(space.default())


def _applies(sketch: Sketch, name: str) -> bool:
    return reuses(sketch.block(name))


def _apply(sketch: Sketch, name: str) -> None:
    """Rows in twos, the sum outside of the columns."""
    sch, block = sketch.sch, sketch.block(name)
    *_, row, column = (loop_of(it) for it in spatial(block))
    sums = [loop_of(it) for it in reductions(block)]
    outer, pair = sch.split(row, [None, sch.choose(f"{name}.pair", 2, lambda: (1, 2, 4))])
    sch.reorder(outer, *sums, pair, column)
    sch.decompose_reduction(name, sums[0])
    sch.parallel(outer)


MINE = SketchRule("mine", _applies, _apply)


def test_a_users_rule_is_a_row_among_others() -> None:
    func = dense(6, 8, 5)
    space = SketchSpace(func, frozenset(), host(), rules=(MINE, *RULES))
    default = space.default()
    assert default.decisions[:2] == (("mm.rule", "mine"), ("mm.pair", 2))
    rng, taken = Random(0), set()
    for _ in range(12):
        candidate = sample(space, rng)
        assert candidate is not None
        taken.add(dict(candidate.decisions)["mm.rule"])
        check_same(func, space.func(candidate), {}, exact=False)
    assert "mine" in taken
    assert len(taken) > 1
    assert space.legal(default)


def test_a_users_rule_can_stand_alone() -> None:
    alone = SketchRule("mine", _applies, _apply, alone=True)
    space = SketchSpace(dense(6, 8, 5), frozenset(), host(), rules=(RULES[0], alone, *RULES[1:]))
    assert "mm.rule" not in dict(space.default().decisions)
    assert 'split("mm.i0", [?, 2])' in space.trace(space.default())
