"""`cp.async`: a thread copies 4, 8 or 16 bytes from global to shared memory and does not wait.

A padded copy is given how many of its elements there are, all or none; the others are zero, and
their memory is not touched. So a condition needs no branch.
"""

from __future__ import annotations

from tilewright.schedule.intrin.intrinsic import Intrinsic, function_text

CP_ASYNC = {16: "cp_async_16", 8: "cp_async_8", 4: "cp_async_4"}
"""The intrinsics by their number of bytes."""
CP_ASYNC_PADDED = {size: f"{name}_padded" for size, name in CP_ASYNC.items()}
"""Those of padded copies."""
_ADDRESSES = (
    "%from = addrspacecast ptr %a to ptr addrspace(1)",
    "%to = addrspacecast ptr %c to ptr addrspace(3)",
)
_OPERANDS = "ptr addrspace(3) %to, ptr addrspace(1) %from"


def _copy(name: str, dtype: str, count: int, instruction: str) -> Intrinsic:
    lines = [*_ADDRESSES, f"call void @llvm.nvvm.cp.async.{instruction}({_OPERANDS})"]
    return Intrinsic(
        _pattern(name, dtype, count),
        tile="copy",
        arch="nvptx64",
        llvm=function_text(name, "ptr %a, ptr %c", lines),
    )


def _padded(name: str, dtype: str, count: int, instruction: str) -> Intrinsic:
    lines = [
        *_ADDRESSES,
        "%bytes = trunc i64 %a.row to i32",
        f"call void @llvm.nvvm.cp.async.{instruction}.s({_OPERANDS}, i32 %bytes)",
    ]
    return Intrinsic(
        _pattern(name, dtype, count),
        tile="copy.padded",
        arch="nvptx64",
        llvm=function_text(name, "ptr %a, i64 %a.row, ptr %c, i64 %c.row", lines),
        strided=True,
    )


def _pattern(name: str, dtype: str, count: int) -> str:
    return (
        f"func @{name}(a: {dtype}[{count}], out c: {dtype}[{count}])"
        f" {{ for i in serial({count}) {{ c[i] = a[i] }} }}"
    )


_FORMS = {
    16: ("bf16", 8, "cg.shared.global.16"),
    8: ("bf16", 4, "ca.shared.global.8"),
    4: ("f32", 1, "ca.shared.global.4"),
}
CP_ASYNC_COPIES: dict[str, Intrinsic] = {
    **{CP_ASYNC[size]: _copy(CP_ASYNC[size], *form) for size, form in _FORMS.items()},
    **{
        CP_ASYNC_PADDED[size]: _padded(CP_ASYNC_PADDED[size], *form)
        for size, form in _FORMS.items()
    },
}
"""The entries of the table."""
