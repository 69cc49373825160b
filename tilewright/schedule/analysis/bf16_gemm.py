"""GEMMs of bf16 operands accumulated in f32, with a constant B: what AMX and bf16 dots compute."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import Binary, Cast, Load, Var
from tilewright.core.dtypes import BF16, F32
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import is_simple, reductions, spatial, term_of, uses
from tilewright.schedule.analysis.gemm import starts_at_zero
from tilewright.schedule.analysis.tile_axes import is_plain


@dataclass(frozen=True)
class Bf16Gemm:
    """A GEMM with one axis for each of M, N and K; further axes of M are batch axes.

    `m` is `None` where there is one row only.
    """

    m: Iter | None
    n: Iter
    k: Iter
    batch: tuple[Iter, ...]
    a: Load
    b: Load


def match_bf16_gemm(block: Block, constants: frozenset[str]) -> Bf16Gemm | None:
    """The bf16 GEMM with a constant B that a block computes, `None` if it computes none."""
    axes, sums = spatial(block), reductions(block)
    if not (is_simple(block) and starts_at_zero(block)) or len(sums) != 1 or not axes:
        return None
    operands, n = bf16_operands(block), axes[-1]
    b = next((o for o in operands if uses(o, n.name)), None)
    a = next((o for o in operands if o is not b), None)
    if a is None or b is None or b.buffer not in constants:
        return None
    if uses(a, n.name) or a.indices[-1] is not Var(sums[0].name):
        return None
    rows = [it for it in axes[:-1] if uses(a, it.name) and not uses(b, it.name)]
    m = rows[-1] if rows else None
    batch = tuple(it for it in axes[:-1] if it is not m)
    plain = all(is_plain(load, block) for load in (a, b))
    return Bf16Gemm(m, n, sums[0], batch, a, b) if plain else None


def bf16_operands(block: Block) -> tuple[Load, ...]:
    """The two factors of what is summed, if they are bf16 and their product is f32."""
    match term_of(block):
        case Binary("mul", Cast(dtype, Load() as a), Cast(_, Load() as b)) if dtype == F32:
            return (a, b) if (a.dtype, b.dtype) == (BF16, BF16) else ()
    return ()
