"""Each sketch rule: when it applies, what it makes, and that it computes the same."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import on_threads
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.gpu.test_recurrence import steps_of
from tests.schedule.builtin.scheduled import sources
from tests.schedule.programs import check_same, conv, dense, matmul, softmax
from tests.tune.space.structures import func_of, product
from tilewright.arith.expr import Expr, cast
from tilewright.core.dtypes import BF16, F16, F32, I8, I32, DType
from tilewright.core.errors import ScheduleError
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import blocks, buffers, loops
from tilewright.ir.tensor.build import Builder
from tilewright.lower.loop_nests import program_func
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.for_target import schedule_for
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import parse_trace
from tilewright.target.registry import CPUS
from tilewright.target.target import Target
from tilewright.tune.space.sketch.space import SketchSpace
from tilewright.tune.space.sketch.state import Sketch, reuses
from tilewright.tune.space.sketch.table import rules_for
from tilewright.tune.space.sketch.tiling_structure import (
    CPU,
    GPU,
    TilingStructure,
    tiling_structure,
)

ARM = CPUS["aarch64"]


def _with(
    func: Func, target: Target = ARM, constants: str = "", **wanted: object
) -> tuple[SketchSpace, Func, str]:
    """The function with these decisions, by the end of their names, and defaults else."""
    space = SketchSpace(func, frozenset(constants.split()), target)

    def decide(name: str, default: object, options: tuple[object, ...]) -> object:
        for key, value in wanted.items():
            if name.endswith(key.replace("_", ".")) and value in options:
                return value
        return default

    made = space.make(decide)
    return space, made.func, str(made.trace)


def _applying(func: Func, name: str, target: Target = ARM, constants: str = "") -> set[str]:
    sch = Schedule(func)
    sketch = Sketch(sch, frozenset(constants.split()), target, tiling_structure(target))
    for block in reversed(sketch.graph.blocks):
        if block.name == name:
            break
        sketch.pending[block.name] = "plain"
    return {rule.name for rule in rules_for(target) if rule.applies(sketch, name)}


def _typed(m: int, n: int, k: int, dtype: DType, result: DType) -> Func:
    """`y = x @ w` in another type."""
    b = Builder("mm")
    x, w = b.input("x", dtype, (m, k)), b.input("w", dtype, (k, n))

    def element(i: Expr, j: Expr) -> Expr:
        return b.sum((k,), lambda r: cast(result, x[i, r]) * cast(result, w[r, j]))

    return program_func(b.program(b.compute("y", (m, n), element)))


def test_which_rules_apply() -> None:
    tiling = {"fused-tiling", "multi-level-tiling"}
    assert _applying(dense(), "mm") == {*tiling, "rfactor", "skip"}
    assert _applying(dense(), "add") == {"inline", "skip"}
    assert _applying(dense(), "y") == {"skip"}
    assert _applying(matmul(), "y") == {"cache-write", "multi-level-tiling", "rfactor", "skip"}
    assert _applying(softmax(), "s") == {"rfactor", "skip"}
    assert _applying(softmax(), "e") == {"inline", "skip"}
    assert "fused-tiling" in _applying(conv(), "conv")


def test_reuse_is_several_results_of_one_element() -> None:
    assert reuses(next(b for b in blocks(matmul().body)))
    assert not any(reuses(b) for b in blocks(softmax().body))
    assert any(reuses(b) for b in blocks(func_of("pooling")[0].body))


def test_tiles_have_the_levels_of_the_structure() -> None:
    _, func, trace = _with(matmul(24, 32, 16), rule="multi-level-tiling")
    order = next(line for line in trace.splitlines() if line.startswith("reorder"))
    assert [part.strip(' ")').rpartition(".")[0] for part in order[8:].split(",")] == [
        *("y.i0", "y.i1") * 2, "y.r0", *("y.i0", "y.i1"), "y.r0", *("y.i0", "y.i1")
    ]  # fmt: skip
    check_same(matmul(24, 32, 16), func, {}, exact=False)


def test_gpus_have_a_structure_of_their_own() -> None:
    assert (tiling_structure(ARM), tiling_structure(H200)) == (CPU, GPU)
    assert (GPU.spatial, GPU.reduced) == (5, 3)
    assert GPU.binds == ("grid", "unroll", "thread")
    before = matmul(64, 64, 32)
    assert _applying(before, "y", H200) == {"gpu-tiling", "skip"}
    assert _applying(dense(), "add", H200) == {"inline", "skip"}
    _, func, trace = _with(before, H200, y_rule="gpu-tiling", m_1=2)
    kinds = {loop.kind for loop in loops(func.body)}
    assert {"grid", "thread", "unroll"} <= kinds
    assert not kinds & {"parallel"}
    assert {b.scope for b in buffers(func).values()} >= {"shared", "register"}
    assert 'split("y.m", [?, 2, 8, 1, 4])' in trace
    check_same(before, func, {}, exact=False)
    on_threads(before, func, {})


def test_products_of_halves_are_for_tensor_cores() -> None:
    ((before, _),) = sources(product(70, 72, 80, F16), H200)
    name = block_graph(before).blocks[0].name
    assert "tensor-core" in _applying(before, name, H200)
    for wanted in ({"warp": (16, 32), "warps_m": 4}, {"stages": 2}, {"groups": 2, "group_n": 64}):
        _, func, trace = _with(before, H200, **wanted)
        assert "tensorize" in trace
        on_threads(before, func, {})


def test_what_a_gpu_has_no_room_for_is_no_sketch() -> None:
    with pytest.raises(ScheduleError, match="more than the target has"):
        _with(matmul(64, 64, 32), H200, m_4=8, m_3=2, m_1=4, n_4=8, n_3=2, n_1=4)


def test_blocks_that_share_loops_keep_the_built_in_schedule() -> None:
    ((before, constants),) = sources(steps_of("rnn", 2, 3, 40), H200)
    space = SketchSpace(before, constants, H200)
    assert space.scheduled(space.default()).rule == schedule_for(before, constants, H200).rule


@for_each("level", [1, 2])
def test_consumers_are_computed_on_finished_tiles(level: int) -> None:
    before = dense(12, 24, 16)
    _, func, trace = _with(before, rule="fused-tiling", at=level)
    assert f'reverse_compute_at("y", "mm.i1.{level - 1}")' in trace
    check_same(before, func, {}, exact=False)


def test_results_that_nothing_takes_over_are_kept_near() -> None:
    before = matmul(12, 24, 16)
    _, func, trace = _with(before, rule="cache-write")
    assert 'cache_write("y", "local")' in trace
    check_same(before, func, {}, exact=False)


@for_each("packed", [False, True])
def test_constants_are_packed_or_not(packed: bool) -> None:
    before = matmul(12, 24, 16)
    _, func, trace = _with(before, constants="w", rule="cache-write", pack_w=packed)
    assert ("transform_layout" in trace) == packed
    check_same(before, func, {}, exact=False)


@for_each("name", ["s", "m"])
def test_long_sums_are_cut(name: str) -> None:
    before = softmax(9, 64)
    _, func, trace = _with(before, **{f"{name}_rule": "rfactor"})
    assert f'rfactor("{name}"' in trace
    check_same(before, func, {}, exact=False)


@for_each("location", ["root", "y.i0"])
def test_nests_are_computed_where_they_are_read(location: str) -> None:
    before = softmax(9, 64)
    _, func, trace = _with(before, location=location, e_rule="skip")
    assert ('compute_at("e", "y.i0")' in trace) == (location != "root")
    check_same(before, func, {}, exact=False)


def test_threads_of_a_gpu_share_a_sum() -> None:
    before = softmax(9, 64)
    assert "cross-thread" in _applying(before, "s", H200)
    assert "cross-thread" not in _applying(before, "s", ARM)
    assert "cross-thread" not in _applying(softmax(9, 16), "s", H200)
    for lanes, rows in ((32, 4), (128, 1)):
        _, func, trace = _with(before, H200, s_rule="cross-thread", s_lanes=lanes, s_rows=rows)
        assert '"allreduce")' in trace
        check_same(before, func, {}, exact=False)
        on_threads(before, func, {})


@pytest.mark.parametrize(
    ("dtype", "result", "target", "instruction"),
    [
        (BF16, F32, "sapphirerapids", "vdpbf16ps"),
        (BF16, F32, "neoverse-v1", "bfdot"),
        (I8, I32, "neoverse-v1", "sdot"),
    ],
)
def test_products_become_instructions(
    dtype: DType, result: DType, target: str, instruction: str
) -> None:
    before = _typed(7, 33, 16, dtype, result)
    assert "tensorize" in _applying(before, "y", CPUS[target], "w")
    assert "tensorize" not in _applying(before, "y", CPUS[target])
    assert "tensorize" not in _applying(before, "y", ARM, "w")
    for rows, vectors in itertools.product((1, 4), (1, 2)):
        wanted: Mapping[str, object] = {"rule": "tensorize", "rows": rows, "vectors": vectors}
        _, func, trace = _with(before, CPUS[target], "w", **wanted)
        assert f'tensorize("y.tile", "{instruction}")' in trace
        check_same(before, func, {}, exact=False)
        assert parse_trace(trace).replay(before) == func


def test_a_tiling_structure_is_data() -> None:
    deep = TilingStructure("SRSRS")
    assert (deep.spatial, deep.reduced) == (3, 2)
