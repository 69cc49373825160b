from __future__ import annotations

import pytest

from tilewright.arith.expr import const
from tilewright.core.dtypes import F32
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.storage_scope import STACK_LIMIT, gpu_scopes
from tilewright.ir.loop.nodes import Buffer, For, Seq
from tilewright.target.registry import resolve_gpu

H200 = resolve_gpu("cuda")
GRID, THREAD = (For(kind, const(4), kind, Seq(())) for kind in ("grid", "thread"))


def _buffer(scope: str) -> Buffer:
    return Buffer("T", F32, (const(4),), scope)


def test_by_the_loops_around() -> None:
    scope = gpu_scopes(H200)
    assert scope(_buffer("global"), (), 16) is None
    assert scope(_buffer("global"), (GRID,), 16) == "shared"
    assert scope(_buffer("global"), (GRID, THREAD), 16) == "local"
    assert scope(_buffer("global"), (GRID, THREAD), STACK_LIMIT + 1) is None
    assert scope(_buffer("register"), (GRID,), 1 << 20) == "register"


def test_shared_memory_ends() -> None:
    scope = gpu_scopes(H200)
    assert scope(_buffer("shared"), (GRID,), H200.static_shared - 128) == "shared"
    assert scope(_buffer("global"), (GRID,), 129) is None
    left = H200.max_shared_per_block - H200.static_shared + 128
    with pytest.raises(CodegenError, match=f"of which {left} are left"):
        scope(_buffer("shared"), (GRID,), left + 1)
    assert scope(_buffer("shared"), (GRID,), left) == "shared"
