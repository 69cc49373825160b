"""`cp.async`: a thread copies 4 or 16 bytes from global to shared memory and does not wait."""

from __future__ import annotations

from tilewright.schedule.intrin.intrinsic import Intrinsic, function_text

CP_ASYNC = {16: "cp_async_16", 4: "cp_async_4"}
"""The intrinsics by their number of bytes."""


def _copy(name: str, dtype: str, count: int, instruction: str) -> Intrinsic:
    lines = [
        "%from = addrspacecast ptr %a to ptr addrspace(1)",
        "%to = addrspacecast ptr %c to ptr addrspace(3)",
        f"call void @llvm.nvvm.cp.async.{instruction}"
        "(ptr addrspace(3) %to, ptr addrspace(1) %from)",
    ]
    return Intrinsic(
        f"func @{name}(a: {dtype}[{count}], out c: {dtype}[{count}])"
        f" {{ for i in serial({count}) {{ c[i] = a[i] }} }}",
        tile="copy",
        arch="nvptx64",
        llvm=function_text(name, "ptr %a, ptr %c", lines),
    )


CP_ASYNC_COPIES: dict[str, Intrinsic] = {
    CP_ASYNC[16]: _copy(CP_ASYNC[16], "bf16", 8, "cg.shared.global.16"),
    CP_ASYNC[4]: _copy(CP_ASYNC[4], "f32", 1, "ca.shared.global.4"),
}
"""The entries of the table."""
