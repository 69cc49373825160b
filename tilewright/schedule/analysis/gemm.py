"""Sums of products: which axes number rows, columns and batches, and which are summed over.

    sum(c, r, q) x[n, c, h + r, w + q] * w[o, c, r, q]

has the columns n, h, w of `x`, the rows o of `w`, and c, r, q as its depth: a product of matrices,
whatever the operands look like. Axes of both operands number batches.
"""

from __future__ import annotations

from tilewright.arith.expr import Binary, Cast, Const, Expr, Load, Var
from tilewright.arith.walk import free_vars, loads
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Iter, Store


@node
class ProductRoles:
    """The axes and operands of a sum of products; an operand is a load, perhaps converted."""

    batch: tuple[Iter, ...]
    rows: tuple[Iter, ...]
    columns: tuple[Iter, ...]
    depth: tuple[Iter, ...]
    left: Expr
    right: Expr


def product_roles(block: Block, vectors: bool = False) -> ProductRoles | None:
    """The roles of a sum of products, `None` if a block is none.

    The last axis of what it writes is one of the columns. With `vectors`, there may be no axis of
    rows: a product of one row.
    """
    factors = _factors(block)
    axes = [it for it in block.iters if it.kind == "S"]
    sums = tuple(it for it in block.iters if it.kind == "R")
    if factors is None or not axes or not sums:
        return None
    one, other = factors
    if axes[-1].name in free_vars(one):
        one, other = other, one
    used, used_right = free_vars(one), free_vars(other)
    if any(it.name not in used & used_right for it in sums):
        return None
    if any(it.name not in used | used_right for it in axes):
        return None
    batch = tuple(it for it in axes if it.name in used & used_right)
    rows = tuple(it for it in axes if it.name in used - used_right)
    columns = tuple(it for it in axes if it.name in used_right - used)
    whole = bool(columns) and (vectors or bool(rows))
    return ProductRoles(batch, rows, columns, sums, one, other) if whole else None


def overlaps(operand: Expr, axes: tuple[Iter, ...], depth: tuple[Iter, ...]) -> bool:
    """Whether rows, or columns, of an operand are windows that overlap.

    Places along an array are numbered by those and by the depth at once.
    """
    own, summed = ({it.name for it in some} for some in (axes, depth))
    used = [free_vars(i) for i in operand_load(operand).indices]
    return any(names & own and names & summed for names in used)


def swapped_roles(roles: ProductRoles) -> ProductRoles:
    """The roles in the transposed product."""
    sides = (roles.columns, roles.rows)
    return ProductRoles(roles.batch, *sides, roles.depth, roles.right, roles.left)


def _factors(block: Block) -> tuple[Expr, Expr] | None:
    """The two loads whose product is summed, from zero on."""
    init, body = block.init, block.body
    if not (isinstance(init, Store) and isinstance(init.value, Const) and init.value.value == 0):
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
