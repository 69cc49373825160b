from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.for_each import for_each
from tests.models import mlp
from tilewright.arith.expr import Select, Var, const, maximum
from tilewright.codegen.gpu.launches import Launch
from tilewright.codegen.gpu.plan_manifest import LaunchedKernel, device_program, size_expr
from tilewright.codegen.host.plan import (
    Conditional,
    ExecutionPlan,
    KernelCall,
    ParallelCalls,
    place,
)
from tilewright.core.dtypes import F32
from tilewright.core.errors import CodegenError
from tilewright.driver.artifact.entry_point import frame_data
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.ir.loop.nodes import Alloc, Buffer, Seq
from tilewright.runtime.cuda.launch_recorder import ranges_of
from tilewright.runtime.size_expr import evaluate
from tilewright.target.registry import resolve_gpu

N = Var("N")
GPU = resolve_gpu("cuda")


def test_formulas() -> None:
    for e, value in (
        (const(3), 3),
        ((N + 255) // 256 * 4, 4),
        (maximum(N % 7, const(2)), 3),
        (Select((N < 20) & N.eq(10), N, const(0)), 10),
    ):
        assert evaluate(size_expr(e), {"N": 10}) == value


def test_what_the_host_cannot_compute_is_refused() -> None:
    with pytest.raises(CodegenError, match="cannot compute"):
        size_expr(Var("x", F32) / Var("y", F32))


def test_what_may_run_side_by_side_is_done_in_order() -> None:
    calls = tuple(KernelCall(name, (place("arena", 64),), (N,)) for name in "ab")
    code = ExecutionPlan(("N",), (ParallelCalls(calls),), ((N,),))
    found = device_program(code, [], GPU)["actions"]
    assert [(a["do"], a["kernel"]) for a in found] == [("call", "a"), ("call", "b")]
    assert found[0]["buffers"] == [["arena", 64, 0]]


@for_each(
    ("shape", "room", "span"),
    [
        ((6, 8), (6, 8), [192, []]),
        ((6, 8), (6, 20), [32, [[6, 80]]]),
        ((3, 5, 8), (3, 9, 8), [160, [[3, 288]]]),
        ((2, 3, 4), (2, 3, 9), [16, [[3, 36], [2, 108]]]),
        ((4, 6, 8), (9, 6, 8), [768, []]),
    ],
)
def test_where_a_buffer_has_bytes(
    shape: tuple[int, ...], room: tuple[int, ...], span: list[Any]
) -> None:
    sizes = (tuple(map(const, shape)), tuple(map(const, room)))
    flat = Buffer("x", F32, (const(int(np.prod(room))),))
    launch = Launch("k", const(1), 32, "", Seq(()))
    kernel = LaunchedKernel("k", (), (flat,), (launch,), {"x": sizes})
    data = device_program(ExecutionPlan((), (), ()), [kernel], GPU)["kernels"]["k"]
    assert data["byte_ranges"] == [span]
    starts = {r[0] for r in ranges_of(0, span, {})}
    indices = np.indices(shape).reshape(len(shape), -1)
    touched = {4 * int(i) for i in np.ravel_multi_index(indices, room)}
    assert {s + n for s in starts for n in range(0, span[0], 4)} == touched


def test_a_model_is_data() -> None:
    data = frame_data(lower(mlp("N"), make_options(target="cuda")))["program"]
    assert json.loads(json.dumps(data)) == data
    assert data["symbols"] == ["N"]
    assert {a["do"] for a in data["actions"]} == {"call"}
    called = {a["kernel"] for a in data["actions"]}
    assert called == set(data["kernels"])
    for kernel in data["kernels"].values():
        assert all(
            x["threads"] >= 1 and evaluate(x["grid"], {s: 9 for s in kernel["sizes"]})
            for x in kernel["launches"]
        )


def launched(*launches: Launch, target: str = "cuda") -> list[dict[str, Any]]:
    """What the manifest says of launches."""
    kernel = LaunchedKernel("k", (), (), launches, {})
    data = device_program(ExecutionPlan((), (), ()), [kernel], resolve_gpu(target))
    found: list[dict[str, Any]] = data["kernels"]["k"]["launches"]
    return found


def test_dependent_launch_is_for_kernels_with_one_block_on_an_sm() -> None:
    plain = Launch("k", const(4), 32, "", Seq(()))
    some = (plain, replace(plain, min_blocks_per_sm=1), replace(plain, min_blocks_per_sm=2))
    together = replace(plain, cooperative_launch=True)
    assert [x["pdl"] for x in launched(*some, together)] == [True, True, False, False]
    assert not any(x["pdl"] for x in launched(*some, target="cuda -arch=sm_80"))


def test_small_launches_keep_the_division_of_memory_that_large_ones_need() -> None:
    small, large = (Launch("k", const(n), 32, "", Seq(())) for n in (100, 100_000))
    unknown = replace(small, grid=N)
    most = Buffer("s", F32, (const(GPU.shared_per_sm // 8 + 1),), "shared")
    product = replace(large, body=Alloc(most, Seq(())))
    found = launched(small, large, unknown, product)
    assert [x["shared_carveout"] for x in found] == [True, False, False, False]
    assert not any(x["shared_carveout"] for x in launched(small, large, unknown))


def test_steps_are_numbered_as_the_manifest_lists_them() -> None:
    one, two, three = (KernelCall(name, (), ()) for name in "abc")
    choice = Conditional(place("arena", 0), (one,), (two,), ())
    found = device_program(ExecutionPlan((), (choice, three), ()), [], GPU)["actions"]
    assert [found[0]["then"][0]["step"], found[0]["other"][0]["step"], found[1]["step"]] == [
        0,
        1,
        2,
    ]
