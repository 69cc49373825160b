"""Finalized functions → LLVM modules for NVIDIA GPUs: one kernel for each launch.

A launch becomes `ptx_kernel void @name(buffers..., sizes..., tensor maps...)`, with the index of
the step behind them where a host loop launches it. The index of a block is the grid loop's
variable. `block_emitter.py` emits the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import as_int
from tilewright.codegen.gpu.block_emitter import BlockEmitter
from tilewright.codegen.gpu.grid_sync import BLOCK, GridSyncKernel
from tilewright.codegen.gpu.launches import (
    Launch,
    launches,
)
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.core.dtypes import DType
from tilewright.ir.loop.annotations import ALIGNED
from tilewright.ir.loop.nodes import (
    Alloc,
    Func,
    Stmt,
)
from tilewright.ir.loop.thread_mapping import PRIVATE, THREAD
from tilewright.ir.loop.walk import buffers, statements_in

THREAD_INDEX = "llvm.nvvm.read.ptx.sreg.tid.x"
BLOCK_INDEX = "llvm.nvvm.read.ptx.sreg.ctaid.x"
# The parameter that is a tensor map.
TENSOR_MAP = 'ptr byval([128 x i8]) align 64 "nvvm.grid_constant"'
# By one thread.
PREFETCH_MAP = (
    "{.reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.u32 p, t, 0; "
    "@p prefetch.tensormap [$0];}"
)
# The largest grid.
MAX_BLOCKS = 2**31 - 1


def emit_launches(
    module: ModuleBuilder, func: Func, sizes: Sequence[str], pdl: bool = False
) -> None:
    """Emit every launch of a finalized function; each takes its buffers, then `sizes`.

    With programmatic dependent launch (`pdl`) each one waits for those before it by itself, except
    cooperative launches. Until then it fetches its tensor maps, which are of its own parameters.
    """
    dtypes = {name: b.dtype for name, b in buffers(func).items()}
    for launch in launches(func):
        _emit_launch(module, func, launch, sizes, dtypes, pdl)


def _emit_launch(
    module: ModuleBuilder,
    func: Func,
    launch: Launch,
    sizes: Sequence[str],
    dtypes: Mapping[str, DType],
    pdl: bool,
) -> None:
    alignment = ALIGNED.of(func)
    pointer = f"ptr align {alignment}" if alignment else "ptr"
    params = [(f"%b{i}", pointer) for i in range(len(func.params))]
    values = {name: f"%s{i}" for i, name in enumerate((*sizes, *filter(None, (launch.loop,))))}
    numbers = [(register, "i64") for register in values.values()]
    maps = [(f"%m{i}", TENSOR_MAP) for i in range(len(launch.maps))]
    params += [*numbers[: len(sizes)], *maps, *numbers[len(sizes) :]]
    fn = FunctionBuilder(module, launch.name, params)
    emitter = ExprEmitter(
        fn,
        values,
        {p.name: f"%b{i}" for i, p in enumerate(func.params)},
        _own_buffers(launch.body),
    )
    emitter.ranges = {name: Interval(0, None) for name in values}
    emitter.alignments = {p.name: alignment for p in func.params} if alignment else {}
    _index(emitter, THREAD, THREAD_INDEX, launch.threads)
    block = BLOCK if launch.cooperative_launch else launch.block_var
    if block:
        extent = as_int(launch.grid)
        _index(emitter, block, BLOCK_INDEX, MAX_BLOCKS if extent is None else extent)
    for name, _ in maps:
        fn.emit(f'call void asm sideeffect "{PREFETCH_MAP}", "l"(ptr {name})')
    make = GridSyncKernel if launch.cooperative_launch else BlockEmitter
    body = make(emitter, launch, dtypes, func.params)
    body.waits_for_launches = pdl and not launch.cooperative_launch
    body.emit(launch.body)
    limits = f'nounwind "nvvm.reqntid"="{launch.threads}"'
    limits += f' "nvvm.minctasm"="{launch.min_blocks_per_sm}"' if launch.min_blocks_per_sm else ""
    fn.finish(limits, convention="ptx_kernel ")


def _own_buffers(body: Stmt) -> set[str]:
    """The buffers that are private to a thread."""
    allocs = (s.buffer for s in statements_in(body) if isinstance(s, Alloc))
    return {b.name for b in allocs if b.scope in PRIVATE}


def _index(emitter: ExprEmitter, name: str, intrinsic: str, count: int) -> None:
    """Let a variable be an index that the hardware gives, less than `count`."""
    fn = emitter.fn
    fn.module.declare(intrinsic, "i32 ()")
    bounds = f"range(i32 0, {min(max(count, 1), MAX_BLOCKS)}) "
    register = fn.let(f"call {bounds}i32 @{intrinsic}()", "n")
    emitter.values[name] = fn.let(f"zext i32 {register} to i64", "n")
    emitter.ranges[name] = Interval(0, max(count, 1) - 1)
