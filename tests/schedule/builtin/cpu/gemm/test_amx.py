"""Products on a matrix unit: the schedule keeps their meaning, and the unit's instruction is used.

The tiles mean their expansion, which the interpreter runs, and this machine as loops; on a machine
with the unit `tests/driver/test_precision.py` runs them as instructions.
"""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np

from tests.codegen.native_func import sizes_of
from tests.for_each import for_each
from tests.schedule.builtin.cpu.gemm.bf16_products import (
    convolution,
    executed,
    interpreted,
    product,
    scheduled,
)
from tilewright.arith.expr import Var, as_int
from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.walk import statements
from tilewright.ops.interpret import run_graph
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.cpu import STACK_BYTES
from tilewright.target.registry import CPUS

AMX = CPUS["sapphirerapids"]


def _check(graph: Graph, x: np.ndarray, cores: int = 2, **sizes: int) -> ScheduledFunc:
    result = scheduled(graph, replace(AMX, cores=cores))
    assert result.rule == "amx"
    expected = run_graph(graph, {"x": x}, sizes)[graph.outputs[0]]
    found = executed(result, graph, x, sizes).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return result


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape).astype(ml_dtypes.bfloat16)


@for_each(("rows", "columns"), [(16, 32), (3, 5)])
def test_the_meaning_of_the_tiles(rows: int, columns: int) -> None:
    graph, x = product(rows, 32, columns), _random(rows, 32)
    expected = run_graph(graph, {"x": x})[graph.outputs[0]]
    found = interpreted(scheduled(graph, AMX), graph, x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@for_each(
    ("rows", "depth", "columns"),
    [(32, 32, 32), (64, 96, 40), (16, 64, 32), (5, 32, 33), (33, 64, 8), (70, 32, 64)],
)
def test_products_of_any_size(rows: int, depth: int, columns: int) -> None:
    _check(product(rows, depth, columns), _random(rows, depth))


@for_each("rows", [0, 1, 31, 32, 65])
def test_rows_known_only_when_run(rows: int) -> None:
    _check(product(Var("N"), 64, 40), _random(rows, 64), N=rows)


@for_each(("size", "stride", "pad"), [(5, 1, 1), (7, 2, 1), (6, 1, 0)])
@for_each("cores", [1, 64])
def test_convolutions(size: int, stride: int, pad: int, cores: int) -> None:
    """With few cores a block of windows is packed for all columns, with many for some of them."""
    _check(convolution(size, 32, 40, stride, pad), _random(2, size, size, 32), cores)


def test_rows_in_whole_blocks_are_read_where_they_are() -> None:
    assert "cache_read" not in str(_check(product(64, 32, 32), _random(64, 32)).trace).replace(
        'cache_read("relu"', ""
    )
    assert 'cache_read("matmul_f32out", "x0"' in str(
        _check(product(40, 32, 32), _random(40, 32)).trace
    )


def test_windows_are_packed_near_the_core() -> None:
    result = scheduled(convolution(20, 32, 40, 1, 1), replace(AMX, cores=2))
    assert 'compute_at("im2col"' in str(result.trace)
    params = finalize(result.func, AMX).params
    assert [p.name for p in params] == [p.name for p in result.func.params], "no workspace"


@for_each(("height", "width"), [(3, 40), (1, 5), (4, 32)])
def test_windows_of_sizes_known_only_when_run(height: int, width: int) -> None:
    graph = convolution(Var("W"), 32, 40, 1, 1, height=Var("H"))
    result = _check(graph, _random(2, height, width, 32), H=height, W=width)
    loops = [(path, s) for path, s in statements(result.func.body) if isinstance(s, For)]
    (parallel,) = [(path, s) for path, s in loops if s.kind == "parallel"]
    assert not any(isinstance(s, For) for s in parallel[0]), "threads start once"


def test_rows_too_long_for_a_stack_are_packed_before() -> None:
    depth = STACK_BYTES // 64 + 32
    result = _check(product(40, depth, 32), _random(40, depth))
    assert 'compute_at("x0' not in str(result.trace)


@for_each("cores", [1, 4, 7, 16])
def test_a_core_has_little_to_do_where_there_are_many(cores: int) -> None:
    """Of 2 blocks of rows and 16 panels, none of `cores` gets more than its share, rounded up."""
    result = scheduled(product(64 - 15, 4608, 512), replace(AMX, cores=cores))
    (extent,) = [
        s.extent
        for _, s in statements(result.func.body)
        if isinstance(s, For) and s.kind == "parallel"
    ]
    tasks = as_int(extent)
    assert tasks is not None
    panels = 2 * 16 // tasks
    assert -(-tasks // cores) * panels <= -(-32 // cores) + 1


@for_each("depth", [16, 48, 100])
def test_steps_that_are_not_whole_are_left_to_others(depth: int) -> None:
    assert scheduled(product(64, depth, 64), AMX).rule == "bf16_dot"


def test_only_with_the_unit() -> None:
    assert scheduled(product(64, 64, 64), CPUS["x86-64-v4"]).rule == "register_blocked"


@for_each("graph", [product(128, 64, 100), product(17, 64, 72)], ids=["big", "odd"])
def test_the_instruction_is_used(graph: Graph) -> None:
    plain = finalize(scheduled(graph, AMX).func, AMX)
    module = ModuleBuilder(native_bf16="x86_64")
    emit_func(module, plain, sizes_of(plain))
    assembly = compile_assembly(module.text(), AMX)
    assert "tdpbf16ps" in assembly
    # Each function that uses tiles configures them, again after what it calls, and releases them.
    assert assembly.count("ldtilecfg") >= assembly.count("tilerelease") > 0
