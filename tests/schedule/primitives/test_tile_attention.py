from __future__ import annotations

import numpy as np
import pytest

from tests.finalize.kernel_steps import run, sample
from tests.schedule.programs import dense, refused
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.registry import get_op
from tilewright.schedule.schedule import Schedule


def _attention(size: object = 16, dtype: DType = F16, **attrs: object) -> Func:
    q, k = tensor(dtype, 2, 20, size), tensor(dtype, 2, 50, size)
    given = FusedAttentionAttrs(scale=0.25, **attrs)
    loops = get_op("fused_attention").loops
    assert loops is not None
    return loops(given, (q, k, k), (q,))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("attrs", [{}, {"window_right": 0, "softcap": 2.0}])
def test_tiles_compute_the_same(parts: int, attrs: dict[str, object]) -> None:
    func = _attention(**attrs)
    sch = Schedule(func)
    sch.tile_attention(16, 32, parts)
    verify_func(sch.func)
    assert sch.func.annotations == ()
    assert sch.func.params == func.params
    assert str(sch.trace).strip() == f"tile_attention(16, 32{', 3' if parts > 1 else ''})"
    arrays = sample(func, {})
    expected = {o: a.copy() for o, a in run(func, arrays, {}).items()}
    for name, found in run(sch.func, arrays, {}).items():
        np.testing.assert_allclose(
            found.astype(np.float32), expected[name].astype(np.float32), rtol=4e-3, atol=2e-3
        )


def test_tiles_in_f32_have_no_parts() -> None:
    sch = Schedule(_attention(dtype=F32))
    refused("tile-attention.size", sch.tile_attention, 16, 16)
    refused("tile-attention.size", sch.tile_attention, 48, 32)
    refused("tile-attention.size", sch.tile_attention, 16, 32, 2)
    refused("tile-attention.heads", Schedule(_attention(136, F32)).tile_attention, 16, 32)
    refused("tile-attention.heads", Schedule(_attention(18, F32)).tile_attention, 16, 32)
    sch.tile_attention(16, 32)
    verify_func(sch.func)


def test_errors() -> None:
    sch = Schedule(_attention())
    refused("tile-attention.size", sch.tile_attention, 0, 32)
    refused("tile-attention.size", sch.tile_attention, 16, 20)
    refused("tile-attention.size", sch.tile_attention, 16, 32, 0)
    refused("tile-attention.heads", Schedule(_attention(264)).tile_attention, 16, 32)
    refused("tile-attention.heads", Schedule(_attention(Var("D"))).tile_attention, 16, 32)
    sch.tile_attention(16, 32)
    refused("tile-attention.problem", sch.tile_attention, 16, 32)
    refused("tile-attention.problem", Schedule(dense()).tile_attention, 16, 32)
