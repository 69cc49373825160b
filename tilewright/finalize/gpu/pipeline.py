"""The order of finalization for GPUs, one literal list."""

from __future__ import annotations

from functools import partial

from tilewright.finalize.combine_loads import combine_loads
from tilewright.finalize.compact_buffers import compact_buffers
from tilewright.finalize.cpu.pipeline import Step
from tilewright.finalize.expand_tiles import expand_tiles
from tilewright.finalize.flatten import flatten
from tilewright.finalize.gpu.distribute_registers import distribute_registers
from tilewright.finalize.gpu.grid_sync import lower_grid_sync
from tilewright.finalize.gpu.loads_first import loads_first
from tilewright.finalize.gpu.pad_shared import pad_shared
from tilewright.finalize.gpu.place_barriers import place_barriers
from tilewright.finalize.gpu.promote_registers import promote_registers
from tilewright.finalize.gpu.software_pipeline import software_pipeline
from tilewright.finalize.gpu.storage_scope import gpu_scopes
from tilewright.finalize.gpu.stream_k import stream_k
from tilewright.finalize.gpu.swizzle import swizzle
from tilewright.finalize.gpu.uniform_guards import uniform_guards
from tilewright.finalize.gpu.warp_specialize import warp_specialize
from tilewright.finalize.lower_blocks import lower_blocks
from tilewright.finalize.math.gpu import expand_on_gpu
from tilewright.finalize.report_indices import report_indices
from tilewright.finalize.unroll import unroll
from tilewright.finalize.vectorize import vectorize
from tilewright.ir.loop.nodes import Func
from tilewright.target.gpu import GpuTarget


def steps(target: GpuTarget) -> tuple[Step, ...]:
    """All steps by name."""
    pipelined = partial(
        software_pipeline,
        registers=target.registers_per_thread,
        cp_async=target.has("cp.async"),
    )
    return (
        ("expand-tiles", partial(expand_tiles, target=target)),
        ("lower-blocks", lower_blocks),
        ("lower-grid-sync", lower_grid_sync),
        ("promote-registers", promote_registers),
        ("compact-buffers", partial(compact_buffers, choose=gpu_scopes(target))),
        ("pad-shared", pad_shared),
        ("distribute-registers", distribute_registers),
        ("stream-k", stream_k),
        ("flatten", flatten),
        ("uniform-guards", uniform_guards),
        ("loads-first", loads_first),
        ("vectorize", vectorize),
        ("unroll", unroll),
        ("expand-math", expand_on_gpu),
        ("combine-loads", partial(combine_loads, target=target)),
        ("swizzle", swizzle),
        ("place-barriers", place_barriers),
        ("software-pipeline", pipelined),
        ("warp-specialize", partial(warp_specialize, target=target)),
        ("report-indices", report_indices),
    )


def finalize_gpu(func: Func, target: GpuTarget) -> Func:
    """Launches of plain loops over flat buffers, ready for the emitter."""
    for _, step in steps(target):
        func = step(func)
    return func
