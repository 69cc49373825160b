"""Where a buffer of the function's own lives on a GPU, by the loops around all its accesses.

    in a thread loop           registers or stack of the thread
    in a grid loop             shared memory, as long as it fits
    in neither                 whole, in memory that the caller plans: other launches read it

A buffer that a schedule has put somewhere stays there.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.errors import CodegenError
from tilewright.finalize.compact_buffers import ScopeChoice
from tilewright.ir.loop.annotations import ALIGNED
from tilewright.ir.loop.nodes import Buffer, For
from tilewright.ir.loop.thread_mapping import THREAD
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# Bytes of one buffer that a thread may have on its stack.
STACK_LIMIT = 4096
# Where variables of the shared memory begin: at its first bank.
ALIGNMENT = 128
# The annotation of a function whose parameters the caller aligns: to the widest vector access.
ALIGNED_PARAMS = ALIGNED.note(VECTOR_BYTES)


def gpu_scopes(target: GpuTarget) -> ScopeChoice:
    """The scopes of a GPU; it counts shared memory, so it serves one function only."""
    left = target.static_shared
    most = target.max_shared_per_block

    def scope(buffer: Buffer, outer: Sequence[For], size: int) -> str | None:
        nonlocal left, most
        kinds = {loop.kind for loop in outer}
        if THREAD in kinds and buffer.scope != "shared":
            return _on_stack(buffer, size)
        if buffer.scope not in ("global", "shared"):
            return buffer.scope  # each thread has its part of it
        padded = -(-size // ALIGNMENT) * ALIGNMENT
        if "grid" in kinds and padded <= (most if buffer.scope == "shared" else left):
            left, most = left - padded, most - padded
            return "shared"
        if buffer.scope == "shared":
            message = f"{buffer.name} of {size} bytes go to the shared memory of a block"
            raise CodegenError("gpu.shared", f"{message}, of which {most} are left")
        return None

    return scope


def _on_stack(buffer: Buffer, size: int) -> str | None:
    if buffer.scope == "global":
        return "local" if size <= STACK_LIMIT else None
    return buffer.scope
