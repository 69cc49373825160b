from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.core.errors import CodegenError
from tilewright.finalize.gpu.mainloop import attention_mainloop, gemm_mainloop, is_gemm
from tilewright.ir.loop.nodes import For, Stmt
from tilewright.ir.loop.text import parse_func

COPY_K = 'tile copy K[0 : 64] <- x1[k * 4096 : 64] using "tma_load_f16_64x64"'
COPY_V = 'tile copy V[0 : 64] <- x2[k * 4096 : 64] using "tma_load_f16_64x64"'
FIRST = (
    'for p in warp(4) { tile mma.nt S[0 : 64] <- A[0 : 64], K[0 : 64] using "wgmma_f16_64_rs_t" }'
)
SECOND = (
    'for q in warp(4) { tile mma.nn O[0 : 64] <- W[0 : 64], V[0 : 64] using "wgmma_f16_64_rs_n" }'
)
E = "for e in thread(128) { E[0] = S[0] * 2.0 }"
W = "for w in thread(128) { W[0] = f16(E[0]) }"
L = "for l in thread(128) { L[0] = E[0] }"


def _body(*steps: str) -> Stmt:
    func = parse_func(f"""func @f(x1: f16[16384], x2: f16[16384], out y0: f32[128]) {{
      for b in grid(1) {{
        alloc A: f16[1024] @fragment
        alloc O: f32[1024] @fragment
        alloc W: f16[1024] @fragment
        alloc S: f32[1024] @fragment
        alloc E: f32[1] @register
        alloc L: f32[1] @register
        alloc K: f16[4096] @shared
        alloc V: f16[4096] @shared
        for a in thread(128) {{ A[0] = f16(1.0) }}
        for k in serial(4) {{pipeline_stages=2, warp_specialized=1}} {{ {"  ".join(steps)} }}
        for y in thread(128) {{ y0[y] = O[0] }}
      }}
    }}""")
    assert isinstance(func.body, For)
    return func.body.body


def test_formulas_that_touch_the_second_product_wait_for_it() -> None:
    parts = attention_mainloop(_body(COPY_K, "barrier", COPY_V, "barrier", FIRST, E, W, L, SECOND))
    assert [buffers.buffers for buffers in parts.pipelines] == [("K",), ("V",)]
    assert [len(buffers.copies) for buffers in parts.pipelines] == [1, 1]
    names = [
        [s.name for s in part if isinstance(s, For)] for part in (parts.softmax, parts.rescale)
    ]
    assert names == [["e", "l"], ["w"]]
    assert [len(part) for part in (parts.prologue, parts.epilogue)] == [1, 1]


@for_each(
    "steps",
    [
        (COPY_K, FIRST, E, W),
        (COPY_K, FIRST, E, SECOND),
        (
            COPY_K,
            COPY_V,
            FIRST,
            E,
            "for w in thread(128) { W[0] = f16(L[0])  L[0] = 1.0 }",
            L,
            SECOND,
        ),
    ],
    ids=["one product", "no copy", "an order"],
)
def test_other_loops_are_refused(steps: tuple[str, ...]) -> None:
    with pytest.raises(CodegenError, match=r"gpu\.warp-specialize"):
        attention_mainloop(_body(*steps))


ONE = 'for p in warp(4) { tile mma.nt S[0 : 64] <- K[0 : 64], V[0 : 64] using "wgmma_f16_64_nt" }'


def test_both_operands_of_a_gemm_share_their_mbarriers() -> None:
    body = _body(COPY_K, "barrier", COPY_V, "barrier", ONE)
    assert is_gemm(body)
    parts = gemm_mainloop(body)
    assert parts.operands.buffers == ("K", "V")
    assert len(parts.operands.copies) == 2
    assert [len(part) for part in (parts.prologue, parts.epilogue)] == [1, 1]


def test_formulas_beside_one_product_are_refused() -> None:
    with pytest.raises(CodegenError, match=r"gpu\.warp-specialize"):
        gemm_mainloop(_body(COPY_K, COPY_V, ONE, E))
