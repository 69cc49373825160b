"""GEMM matching: which axes of a sum of products are batch, M, N and K, and its operands A and B.

    sum(c, r, q) x[n, c, h + r, w + q] * w[o, c, r, q]

has M = o with A = `w`, N = (n, h, w) with B = `x`, and K = (c, r, q): an implicit GEMM, whatever
the operands look like. Axes that both operands use are batch axes.
"""

from __future__ import annotations

from typing import Literal

from tilewright.arith.expr import Binary, Cast, Const, Expr, Load, Var, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads
from tilewright.core.dtypes import BF16, F32
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Buffer, Iter, Store
from tilewright.schedule.analysis.blocks import flat_stride, is_plain, spatial, typical_extent


@node
class GemmAxes:
    """The axes and operands of a GEMM; an operand is a load, perhaps converted.

    `a` is indexed by `m` and `k`, `b` by `k` and `n`; both by `batch`.
    """

    batch: tuple[Iter, ...]
    m: tuple[Iter, ...]
    n: tuple[Iter, ...]
    k: tuple[Iter, ...]
    a: Expr
    b: Expr


def match_gemm(block: Block, gemv: bool = False) -> GemmAxes | None:
    """The GEMM that a block computes, `None` if it computes none.

    The last axis of what it writes is an axis of N. With `gemv`, M may be empty: one row.
    """
    factors = _factors(block)
    axes = [it for it in block.iters if it.kind == "S"]
    k = tuple(it for it in block.iters if it.kind == "R")
    if factors is None or not axes or not k:
        return None
    a, b = factors
    if axes[-1].name in free_vars(a):
        a, b = b, a
    used_a, used_b = free_vars(a), free_vars(b)
    if any(it.name not in used_a & used_b for it in k):
        return None
    if any(it.name not in used_a | used_b for it in axes):
        return None
    batch = tuple(it for it in axes if it.name in used_a & used_b)
    m = tuple(it for it in axes if it.name in used_a - used_b)
    n = tuple(it for it in axes if it.name in used_b - used_a)
    return (
        GemmAxes(batch, m, n, _windows_first(k, (*m, *n), a, b), a, b)
        if n and (gemv or m)
        else None
    )


def _windows_first(k: tuple[Iter, ...], own: tuple[Iter, ...], *operands: Expr) -> tuple[Iter, ...]:
    """The axes of K, those of a window before those of channels.

    Consecutive elements along K are then of one place in a window. Its axes and those of M or N
    are in one index.
    """
    moving = {it.name for it in own}
    used = [free_vars(i) for x in operands for i in operand_load(x).indices]
    window = {it.name for it in k if any(it.name in names and names & moving for names in used)}
    return tuple(sorted(k, key=lambda it: it.name not in window))


def match_bf16_gemm(block: Block, constants: frozenset[str]) -> GemmAxes | None:
    """The GEMM of bf16 with a constant B that a block computes, `None` if it computes none.

    AMX and bf16 dot products need one axis of K, A with K innermost, and operands without padding.
    """
    gemm = match_gemm(block, gemv=True)
    if gemm is None or not is_bf16(gemm) or len(gemm.k) > 1 or gemm.n[-1] is not spatial(block)[-1]:
        return None
    a, b = operand_load(gemm.a), operand_load(gemm.b)
    if b.buffer not in constants or a.indices[-1] is not Var(gemm.k[0].name):
        return None
    return gemm if is_plain(a, block) and is_plain(b, block) else None


def is_bf16(gemm: GemmAxes) -> bool:
    """Whether the operands are bf16, and their products f32."""
    return all(
        isinstance(x, Cast) and (x.dtype, x.a.dtype) == (F32, BF16) for x in (gemm.a, gemm.b)
    )


def is_im2col(operand: Expr, axes: tuple[Iter, ...], k: tuple[Iter, ...]) -> bool:
    """Whether an operand's rows, or columns, are overlapping windows of an array (im2col).

    An index of the array then depends on M (or N) and on K at once.
    """
    own, summed = ({it.name for it in some} for some in (axes, k))
    used = [free_vars(i) for i in operand_load(operand).indices]
    return any(names & own and names & summed for names in used)


def is_k_major(block: Block, buffers: dict[str, Buffer], side: Literal["a", "b"]) -> bool:
    """Whether consecutive elements of an operand in memory are consecutive along K."""
    gemm = match_gemm(block, gemv=True)
    assert gemm is not None
    load = operand_load(gemm.a if side == "a" else gemm.b)
    return flat_stride(load, buffers[load.buffer], gemm.k[-1].name) == 1


def size_of(axes: tuple[Iter, ...]) -> int:
    """The product of the extents of some axes, symbolic sizes taken to be typical."""
    extents: tuple[Expr, ...] = tuple(it.extent for it in axes)
    return typical_extent(simplify(product(extents)))


def transposed_gemm(gemm: GemmAxes) -> GemmAxes:
    """The transposed GEMM: M and N, A and B change places."""
    return GemmAxes(gemm.batch, gemm.n, gemm.m, gemm.k, gemm.b, gemm.a)


def _starts_at_zero(block: Block) -> bool:
    """Whether a reduction starts at zero."""
    init = block.init
    return isinstance(init, Store) and isinstance(init.value, Const) and init.value.value == 0


def _factors(block: Block) -> tuple[Expr, Expr] | None:
    """The two loads whose product is summed, from zero on."""
    body = block.body
    if not _starts_at_zero(block):
        return None
    if not isinstance(body, Store) or not all(isinstance(i, Var) for i in body.indices):
        return None
    match body.value:
        case Binary("add", Load(), Binary("mul", a, b)) if _is_operand(a) and _is_operand(b):
            return a, b
    return None


def _is_operand(e: Expr) -> bool:
    inner = e.a if isinstance(e, Cast) else e
    return isinstance(inner, Load) and not any(any(loads(i)) for i in inner.indices)


def operand_load(operand: Expr) -> Load:
    """The load that an operand is or converts."""
    inner = operand.a if isinstance(operand, Cast) else operand
    assert isinstance(inner, Load)
    return inner
