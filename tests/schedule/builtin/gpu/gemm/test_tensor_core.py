from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from tests.codegen.gpu.host_threads import run_launches
from tests.codegen.gpu.ptxas import assemble
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.gpu.scheduled import H200, T4, finalized, with_sms
from tests.schedule.builtin.scheduled import assert_replays, operator_results, sources
from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, as_int
from tilewright.codegen.gpu.launches import launches
from tilewright.codegen.gpu.nvptx import emit_launches
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.core.dtypes import BF16, F16, F32, I8, I32, U8, DType
from tilewright.driver.artifact.packed_weights import pack
from tilewright.finalize.gpu.pipeline import finalize_gpu
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func, Store, Tile
from tilewright.ir.loop.walk import buffers, loops, statements
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.gpu.gemm import select_tensor_core_tile
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    MULTISTAGE_TILES,
    PERSISTENT_TILES,
)
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.intrin.nvidia.mma import MMA_M
from tilewright.target.gpu import GpuTarget, with_tf32
from tilewright.target.registry import resolve_gpu

A100 = resolve_gpu("cuda -arch=sm_80")


def dense(
    m: Expr | int, n: Expr | int, k: Expr | int, dtype: DType = BF16, order: str = "nn"
) -> Graph:
    """A product, a bias and relu; `order` says which operands lie transposed."""
    b = GraphBuilder("dense")
    operands = []
    for letter, shape in zip(order, ((m, k), (k, n)), strict=True):
        turned = letter == "t"
        x = b.input(f"x{len(operands)}", tensor(dtype, *(shape[::-1] if turned else shape)))
        perm = make_attrs("transpose", {"perm": (1, 0)})
        operands.append(b.add("transpose", x, attrs=perm) if turned else x)
    y = b.add("add", b.add("matmul", *operands), b.input("bias", tensor(dtype, n)))
    return b.graph(b.add("relu", y))


def the_kernel(graph: Graph, target: GpuTarget = H200) -> tuple[Func, Func]:
    """The one kernel of a graph, before and after scheduling."""
    ((func, constants),) = sources(graph)
    result = schedule_for_gpu(func, constants, target)
    assert_replays(func, result)
    return func, result.func


def tiles(func: Func) -> list[Tile]:
    """The tile statements of a function."""
    return [s for _, s in statements(func.body) if isinstance(s, Tile)]


@pytest.mark.parametrize("sizes", [(16, 8, 24), (17, 40, 9)])
def test_meaning(sizes: tuple[int, int, int]) -> None:
    func, scheduled = the_kernel(dense(*sizes))
    assert tiles(scheduled)
    arrays = sample(func, {})
    expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
    for name, found in run(scheduled, arrays, {}).items():
        np.testing.assert_array_equal(found, expected[name])


def on_threads(
    func: Func,
    scheduled: Func,
    sizes: dict[str, int],
    arrays: dict[str, np.ndarray] | None = None,
    graph: Graph | None = None,
    target: GpuTarget = H200,
) -> None:
    """What is emitted, by threads of this machine, computes what the graph or the loops do."""
    plain = finalized(replace(scheduled, annotations=(ALIGNED_PARAMS,)), target)
    arrays = arrays or sample(func, sizes)
    if graph is None:
        expected = {o: a.copy() for o, a in run(func, arrays, sizes).items()}
    else:
        expected = operator_results(graph, func, arrays, sizes)
    own = {p.name: aligned(evaluate(p.shape[0], sizes), p.dtype.numpy) for p in plain.params}
    layouts = dict(scheduled.layouts)
    for name, array in arrays.items():
        given = pack(array, layouts[name]) if name in layouts else array
        own[name][: given.size] = given.reshape(-1)
    run_launches(plain, own, sizes)
    for name, array in expected.items():
        found, right = own[name][: array.size], array.reshape(-1)
        if right.dtype.kind in "iu":
            np.testing.assert_array_equal(found, right)
            continue
        found = found.astype(np.float32)
        np.testing.assert_allclose(found, right.astype(np.float32), rtol=1e-2, atol=1e-2)


def aligned(count: int, dtype: type) -> np.ndarray:
    """Zeros that begin at a multiple of 16 bytes."""
    raw = np.zeros(count * np.dtype(dtype).itemsize + 32, np.uint8)
    start = -raw.ctypes.data % 16
    return raw[start : start + count * np.dtype(dtype).itemsize].view(dtype)


def grouped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small products have the tiles of larger ones, copied by the engine where it can."""
    factors = [inf if t.block_m == MMA_M else 1 if t.wgmma else 10 for t in MULTISTAGE_TILES]
    tiles = tuple(
        replace(t, us_per_k_tile=factor * t.us_per_k_tile)
        for t, factor in zip(MULTISTAGE_TILES, factors, strict=True)
    )
    monkeypatch.setattr(select_tensor_core_tile, "MULTISTAGE_TILES", tiles)
    times = replace(select_tensor_core_tile.TIMES, tma_min_k_tiles=0, tma_max_stages=8)
    monkeypatch.setattr(select_tensor_core_tile, "TIMES", times)


@pytest.mark.parametrize(
    ("sizes", "dtype", "order", "target"),
    [
        ((16, 64, 64), F16, "nn", A100),
        ((9, 24, 72), BF16, "nt", A100),
        ((64, 16, 64), BF16, "tn", H200),
        ((8, 72, 16), F16, "tt", H200),
        ((5, 9, 77), BF16, "nn", A100),
        ((64, 64, 72), BF16, "nn", H200),
        ((60, 64, 64), F16, "nt", H200),
        pytest.param((64, 64, 320), BF16, "nn", H200, marks=pytest.mark.slow),
        ((64, 64, 128), F16, "nt", H200),
        ((40, 9, 77), F16, "nn", H200),
        ((40, 36, 77), F16, "nn", H200),
        ((9, 34, 76), F16, "nt", A100),
        ((40, 41, 64), BF16, "nt", H200),
        ((12, 64, 72), BF16, "nn", H200),
        ((40, 4, 1024), BF16, "nt", H200),
        pytest.param((70, 200, 72), F16, "nt", H200, marks=pytest.mark.slow),
        ((9, 104, 40), BF16, "tt", A100),
        ((16, 64, 136), F16, "nn", T4),
        ((9, 24, 72), F16, "nt", T4),
        ((40, 72, 77), F16, "tt", T4),
    ],
)
def test_emitted_code_by_threads_of_this_machine(
    sizes: tuple[int, int, int],
    dtype: DType,
    order: str,
    target: GpuTarget,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grouped_first(monkeypatch)
    graph = dense(*sizes, dtype, order)
    func, scheduled = the_kernel(graph, target)
    found = {t.intrinsic.split("_")[0] for t in tiles(scheduled)}
    grouped = target is H200 and order[0] == "n" and sizes[0] > 32
    assert found - {"quad", "row", "tma"} == {"wgmma" if grouped else "mma"}
    assert ("row" in found) == (grouped and sizes[1] % 8 > 0)
    pitches = (sizes[2], sizes[2 if order[1] == "t" else 1])
    assert ("tma" in found) == (grouped and all(n % 8 == 0 for n in pitches))
    outside = any(t.op == "copy.padded" for t in tiles(scheduled))
    assert outside == ("tma" in found and any(n % 64 for n in sizes))
    on_threads(func, scheduled, {}, graph=graph, target=target)


@pytest.mark.parametrize("sizes", [pytest.param((70, 72, 64), marks=pytest.mark.slow), (9, 33, 40)])
def test_arrays_of_the_size_of_the_result_are_read_ahead(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    b = GraphBuilder("residual")
    x, w = b.input("x", tensor(F16, m, k)), b.input("w", tensor(F16, n, k))
    turned = b.add("transpose", w, attrs=make_attrs("transpose", {"perm": (1, 0)}))
    total = b.add("add", b.add("matmul", x, turned), b.input("r", tensor(F16, m, n)))
    func, scheduled = the_kernel(b.graph(b.add("relu", total)))
    assert "x2.held" in {b.name for b in buffers(scheduled).values()}
    on_threads(func, scheduled, {})


def test_a_thread_writes_eight_neighbours_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    grouped_first(monkeypatch)

    def written(order: str, columns: int) -> set[int]:
        _, scheduled = the_kernel(dense(256, columns, 64, BF16, order))
        plain = finalized(replace(scheduled, annotations=(ALIGNED_PARAMS,)))
        stores = (s for _, s in statements(plain.body) if isinstance(s, Store))
        return {s.value.lanes for s in stores if s.buffer == plain.outputs[0]}

    assert written("nt", 256) == {8}
    assert written("nt", 72) == {8}
    assert written("nt", 252) == {1}
    assert written("nn", 256) == {8}


def test_the_depth_is_cut_where_tiles_are_few() -> None:
    _, scheduled = the_kernel(dense(128, 768, 3072))
    grids = [loop for loop in loops(scheduled.body) if loop.kind == "grid"]
    assert [as_int(loop.extent) for loop in grids] == [4 * 2 * 12, 128 * 768 // (2 * 256)]
    _, whole = the_kernel(dense(4096, 4096, 4096))
    assert sum(loop.kind == "grid" for loop in loops(whole.body)) == 1


def test_symbolic_sizes() -> None:
    func, scheduled = the_kernel(dense(Var("M"), 16, 16))
    assert tiles(scheduled)
    on_threads(func, scheduled, {"M": 5})


def test_types_without_an_instruction_are_multiplied_by_threads() -> None:
    graph = dense(20, 24, 40, BF16, "nt")
    func, scheduled = the_kernel(graph, T4)
    assert not tiles(scheduled)
    on_threads(func, scheduled, {}, graph=graph, target=T4)


@pytest.mark.parametrize("target", [H200, A100, T4])
def test_f32_stays_exact(target: GpuTarget) -> None:
    _, scheduled = the_kernel(dense(64, 64, 64, F32, "nt"), target)
    assert not tiles(scheduled)


@pytest.mark.parametrize(
    ("sizes", "target"),
    [
        ((64, 64, 64), H200),
        ((9, 33, 44), A100),
        pytest.param((70, 72, 77), H200, marks=pytest.mark.slow),
    ],
)
def test_f32_is_rounded_where_that_is_allowed(
    sizes: tuple[int, int, int], target: GpuTarget
) -> None:
    graph = dense(*sizes, F32, "nt")
    func, scheduled = the_kernel(graph, with_tf32(target))
    found = {t.intrinsic.split("_")[1] for t in tiles(scheduled) if "transpose" not in t.intrinsic}
    assert found == {"zero", "f32"}
    on_threads(func, scheduled, {}, graph=graph)


@pytest.mark.parametrize(
    ("sizes", "order", "ways"),
    [
        ((128, 64, 96), "nn", "tt"),
        ((64, 128, 64), "tt", "tt"),
        ((64, 192, 64), "nt", "nt"),
    ],
)
def test_whole_tiles_of_f32_are_rounded_on_their_way(
    sizes: tuple[int, int, int], order: str, ways: str
) -> None:
    few = with_sms(4)  # of which each has enough to do for large tiles
    graph = dense(*sizes, F32, order)
    func, scheduled = the_kernel(graph, with_tf32(few))
    found = {t.intrinsic for t in tiles(scheduled)}
    assert any(name.startswith("wgmma_f32") and name.endswith(ways) for name in found)
    assert any(name.startswith("tma_load_f32") for name in found)
    on_threads(func, scheduled, {}, graph=graph)


@pytest.mark.ptxas
@pytest.mark.parametrize("order", ["nn", "nt", "tt"])
def test_kernels_of_rounded_f32_assemble_without_spills(order: str, tmp_path: Path) -> None:
    _, scheduled = the_kernel(dense(4096, 4096, 4096, F32, order), with_tf32(H200))
    assembled(scheduled, H200, tmp_path)


SIZES = [(4096, 4096, 4096), (512, 3072, 768), (4096, 768, 768), (128, 768, 768), (130, 70, 100)]
WAYS = [("nn", H200), ("nt", H200), ("nt", A100), ("nt", T4)]


@pytest.mark.ptxas
@pytest.mark.parametrize(  # CI tries each size in one of the ways
    ("sizes", "way"),
    [
        pytest.param(sizes, way, marks=() if i % len(WAYS) == j else pytest.mark.slow)
        for i, sizes in enumerate(SIZES)
        for j, way in enumerate(WAYS)
    ],
)
def test_kernels_assemble_without_spills(
    sizes: tuple[int, int, int], way: tuple[str, GpuTarget], tmp_path: Path
) -> None:
    order, target = way
    _, scheduled = the_kernel(dense(*sizes, F16 if target is T4 else BF16, order), target)
    assembled(scheduled, target, tmp_path)


def assembled(scheduled: Func, target: GpuTarget, tmp_path: Path) -> None:
    """Nothing is spilled, and a multiprocessor has room for a block."""
    plain = finalize_gpu(replace(scheduled, annotations=(ALIGNED_PARAMS,)), target)
    module = ModuleBuilder()
    emit_launches(module, plain, ())
    text = compile_object(module.text(), target).decode()
    reports = assemble(text, tmp_path, target.cpu)
    for launch in launches(plain):
        report = reports[launch.name]
        assert (report.spilled, report.stack) == (0, 0)
        assert report.registers * launch.threads <= target.registers_per_sm
        assert launch.shared <= target.max_shared_per_block


def test_constants_with_room_behind_their_columns_are_copied_by_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grouped_first(monkeypatch)
    b = GraphBuilder("head")
    weights = b.constant(np.ones((64, 70), np.float16))
    graph = b.graph(b.add("matmul", b.input("x", tensor(F16, 128, 64)), weights))
    func, scheduled = the_kernel(graph)
    assert {t.intrinsic.split("_")[0] for t in tiles(scheduled)} == {"wgmma", "tma", "row"}
    on_threads(func, scheduled, {}, graph=graph)


def test_small_products_side_by_side_take_little_room() -> None:
    b = GraphBuilder("pairs")
    x = b.input("x", tensor(F16, 3, 27, 64))
    turned = b.add("transpose", x, attrs=make_attrs("transpose", {"perm": (0, 2, 1)}))
    func, scheduled = the_kernel(b.graph(b.add("matmul", x, turned)))
    (stages,) = (
        dict(f.annotations)["pipeline_stages"] for f in loops(scheduled.body) if f.annotations
    )
    assert stages == 2
    on_threads(func, scheduled, {})


@pytest.mark.slow
def test_tiles_of_192_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = tuple(t for t in MULTISTAGE_TILES if (t.block_m, t.block_n) == (64, 192))
    monkeypatch.setattr(select_tensor_core_tile, "MULTISTAGE_TILES", wide)
    never = tuple(replace(t, us_per_k_tile=inf) for t in PERSISTENT_TILES)
    monkeypatch.setattr(select_tensor_core_tile, "PERSISTENT_TILES", never)
    func, scheduled = the_kernel(dense(80, 192, 64, F16, "nt"))
    assert any("192" in t.intrinsic for t in tiles(scheduled))
    on_threads(func, scheduled, {})


def stack(m: int, n: int, k: int, dtype: DType) -> Graph:
    """Two products of one matrix, and a bias: see `passes/algebra/combine_parallel_matmuls.py`."""
    b = GraphBuilder("stack")
    x, w = b.input("x", tensor(dtype, m, k)), b.constant(np.ones((2, k, n), dtype.numpy))
    return b.graph(b.add("add", b.add("matmul", x, w), b.input("bias", tensor(dtype, 2, 1, n))))


@pytest.mark.parametrize("target", [H200, with_tf32(with_sms(4))])
def test_columns_of_several_matrices_are_copied_and_written_like_those_of_one(
    target: GpuTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    grouped_first(monkeypatch)
    dtype = F16 if target is H200 else F32
    graph = stack(64, 64, 64, dtype)
    func, scheduled = the_kernel(graph, target)
    found = {t.intrinsic.split("_")[0] for t in tiles(scheduled)}
    assert found == ({"wgmma", "tma", "quad"} if dtype is F16 else {"wgmma", "tma"})
    on_threads(func, scheduled, {}, graph=graph)


@pytest.mark.ptxas
@pytest.mark.parametrize(("dtype", "target"), [(F16, H200), (F32, with_tf32(H200)), (F32, H200)])
def test_products_of_several_matrices_assemble_without_spills(
    dtype: DType, target: GpuTarget, tmp_path: Path
) -> None:
    _, scheduled = the_kernel(stack(1184, 384, 384, dtype), target)
    assembled(scheduled, target, tmp_path)


def of_bytes(
    m: int, n: int, k: int, left: DType, right: DType, turned: bool = True, narrow: bool = False
) -> Graph:
    """A product of bytes less a zero point's part; where `narrow`, in bytes again."""
    b = GraphBuilder("bytes")
    x = b.input("x", tensor(left, m, k))
    w = b.input("w", tensor(right, *((n, k) if turned else (k, n))))
    w = b.add("transpose", w, attrs=make_attrs("transpose", {"perm": (1, 0)})) if turned else w
    y = b.add("sub", b.add("matmul_i32acc", x, w), b.input("zeros", tensor(I32, n)))
    if narrow:
        real = b.add("cast", y, attrs=CastAttrs(F32))
        scaled = b.add("round", b.add("mul", real, b.input("scale", tensor(F32, n))))
        y = b.add("cast", scaled, attrs=CastAttrs(U8))
    return b.graph(y)


def all_bytes(func: Func) -> dict[str, np.ndarray]:
    """Operands over the whole range of their types."""
    rng, arrays = np.random.default_rng(1), sample(func, {})
    for p in func.params:
        if p.dtype in (I8, U8) and p.name not in func.outputs:
            about = np.iinfo(p.dtype.numpy)
            drawn = rng.integers(about.min, about.max + 1, arrays[p.name].shape)
            arrays[p.name] = drawn.astype(p.dtype.numpy)
        if p.dtype == F32:
            arrays[p.name] = np.full(arrays[p.name].shape, 1e-3, np.float32)
    return arrays


@pytest.mark.parametrize(
    ("sizes", "left", "right", "target", "narrow", "found"),
    [
        ((64, 64, 256), U8, I8, H200, False, {"wgmma_u8i8", "tma_load"}),
        ((60, 72, 80), I8, U8, H200, True, {"wgmma_i8u8", "tma_load", "quad_transpose"}),
        ((40, 41, 77), I8, I8, H200, False, {"wgmma_i8", "row_transpose"}),
        ((16, 64, 64), U8, U8, A100, True, {"mma_u8"}),
        ((9, 33, 77), U8, I8, A100, False, {"mma_u8i8"}),
        ((9, 33, 40), I8, U8, A100, False, {"mma_i8u8"}),
        ((16, 64, 200), I8, I8, T4, True, {"mma_i8"}),
        ((9, 33, 77), U8, I8, T4, False, {"mma_u8i8"}),
    ],
)
def test_bytes_are_multiplied_exactly(
    sizes: tuple[int, int, int],
    left: DType,
    right: DType,
    target: GpuTarget,
    narrow: bool,
    found: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grouped_first(monkeypatch)
    graph = of_bytes(*sizes, left, right, narrow=narrow)
    func, scheduled = the_kernel(graph, target)
    names = {"_".join(t.intrinsic.split("_")[:2]) for t in tiles(scheduled)}
    assert names - {"wgmma_zero", "mma_zero"} == found
    held = {"x2.held", "x3.held"} if narrow else {"x2.held"}
    assert held <= {b.name for b in buffers(scheduled).values()}
    assert all("_k16_" in t.intrinsic for t in tiles(scheduled) if t.srcs) or target is not T4
    on_threads(func, scheduled, {}, all_bytes(func), graph, target)


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("sizes", "target"),
    [((4096, 4096, 4096), H200), ((512, 3072, 768), H200), ((4096, 4096, 4096), A100)],
)
def test_kernels_of_bytes_assemble_without_spills(
    sizes: tuple[int, int, int], target: GpuTarget, tmp_path: Path
) -> None:
    _, scheduled = the_kernel(of_bytes(*sizes, U8, I8, narrow=True), target)
    assembled(scheduled, target, tmp_path)
