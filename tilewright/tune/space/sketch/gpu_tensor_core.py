"""Tensor cores: a contraction whose tiles warps multiply, with the sides of tiles left open.

The steps are those of `schedule/builtin/gpu/gemm/tensor_core.py`; its list has the tiles that were
measured, here they are any that the instructions, registers and shared memory allow.
"""

from __future__ import annotations

from math import inf

from tilewright.schedule.analysis.gemm import is_k_major, match_gemm, operand_load
from tilewright.schedule.builtin.gpu.gemm.select_tensor_core_tile import tensor_core_tiles_of
from tilewright.schedule.builtin.gpu.gemm.tensor_core import schedule_tiles
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import Mainloop, TensorCoreTile
from tilewright.schedule.intrin.nvidia.mma import WARP_TILES
from tilewright.schedule.intrin.nvidia.mma_types import kind_of
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.target.gpu import GpuTarget
from tilewright.tune.space.sketch.gpu_tiling import epilogue_of
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch

# Warps of a block along both sides, or warpgroups and columns of these, and pipeline stages: by
# default and else.
WARPS = (2, (1, 2, 4))
GROUPS, GROUP_N = (1, (1, 2)), (128, (64, 96, 128, 160, 192, 256))
STAGES = (3, (2, 3, 4, 5, 6))
# The rows of a warpgroup's instruction, and the bytes of a row of a tile in shared memory.
GROUP_M, WARPS_OF_GROUP = 64, 4
ROW_BYTES = 128
# Elements of 16 bits of a row of an MN-major tile, and the bytes of the widest.
MIN_MN_MAJOR, MAX_BYTES = 64, 2


def is_for_tensor_cores(sketch: Sketch, name: str) -> bool:
    """Whether tensor cores have instructions for a contraction, and its operands a layout."""
    block = sketch.block(name)
    if match_gemm(block) is None:
        return False
    assert isinstance(sketch.target, GpuTarget)
    found = tensor_core_tiles_of(block, sketch.graph.buffers, sketch.target)
    return found is not None and found.default.operand_bytes <= MAX_BYTES


def _apply(sketch: Sketch, name: str) -> None:
    sketch.pending[name] = GPU_TENSOR_CORE.name


def tile_for_tensor_cores(sketch: Sketch, name: str) -> None:
    """Lay a contraction out in tiles of warps, or of warpgroups."""
    sch, target, graph = sketch.sch, sketch.target, sketch.graph
    assert isinstance(target, GpuTarget)
    block = sketch.block(name)
    gemm = match_gemm(block)
    assert gemm is not None
    k_major = (is_k_major(block, graph.buffers, "a"), is_k_major(block, graph.buffers, "b"))
    kind = kind_of(*(str(operand_load(x).dtype) for x in (gemm.a, gemm.b)))
    dtype, size = str(operand_load(gemm.a).dtype), operand_load(gemm.a).dtype.bytes
    groups = k_major[0] and any(s.operands == dtype and s.m == GROUP_M for s in target.mma_shapes)
    wgmma = groups and sch.choose(f"{name}.wgmma", True, lambda: (False, True))
    sides = _group_sides(sketch, name) if wgmma else _warp_sides(sketch, name)
    stages = sch.choose(f"{name}.stages", STAGES[0], lambda: STAGES[1])
    block_k = ROW_BYTES // size
    tile = TensorCoreTile(
        *sides, stages, 1, inf, inf, wgmma, block_k, size, mainloop=Mainloop.CP_ASYNC
    )
    sketch.require(tile.shared <= target.max_shared_per_block, name)
    sketch.require(tile.threads <= target.threads_per_block, name)
    accumulators = tile.block_m * tile.block_n // tile.threads
    sketch.require(accumulators <= target.registers_per_thread // 2 + 1, name)
    sketch.require(k_major[0] or tile.block_m >= MIN_MN_MAJOR, name)
    sketch.require(k_major[1] or tile.block_n % MIN_MN_MAJOR == 0, name)
    sketch.require(all(n in INTRINSICS for n in tile.names(kind, *k_major)), name)
    reader = epilogue_of(sketch, name)
    schedule_tiles(sch, tile, target, name, reader)


def _warp_sides(sketch: Sketch, name: str) -> tuple[int, int, int, int]:
    """M and N of a block, and the warps along both, of single warps."""
    sch = sketch.sch
    high, wide = sch.choose(f"{name}.warp", WARP_TILES[0], lambda: WARP_TILES)
    along_m = sch.choose(f"{name}.warps_m", WARPS[0], lambda: WARPS[1])
    along_n = sch.choose(f"{name}.warps_n", WARPS[0], lambda: WARPS[1])
    return high * along_m, wide * along_n, along_m, along_n


def _group_sides(sketch: Sketch, name: str) -> tuple[int, int, int, int]:
    """The same of warpgroups."""
    groups = sketch.sch.choose(f"{name}.groups", GROUPS[0], lambda: GROUPS[1])
    wide = sketch.sch.choose(f"{name}.group_n", GROUP_N[0], lambda: GROUP_N[1])
    return GROUP_M * groups, wide, WARPS_OF_GROUP * groups, 1


GPU_TENSOR_CORE = SketchRule("tensor-core", is_for_tensor_cores, _apply)
