"""The table of all operators, gathered from the family files."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from tilewright.core.errors import UnsupportedError
from tilewright.ops.attention import attention, fused_attention, rotary
from tilewright.ops.classical import pairwise_coupling, tree_ensemble
from tilewright.ops.control import bind_dim, conditional, loop
from tilewright.ops.conv import (
    col2im,
    conv,
    conv_transpose,
    deformable_im2col,
    group_conv,
    im2col,
    pool,
    winograd,
)
from tilewright.ops.elementwise import activation, arithmetic, divisor, logic
from tilewright.ops.elementwise.special import (
    airy,
    bessel,
    chebyshev,
    error_function,
    gamma,
    incomplete_gamma,
    modified_bessel,
)
from tilewright.ops.gradient import rules
from tilewright.ops.image import grid_sample, non_max_suppression, resize, roi
from tilewright.ops.linalg import cholesky, determinant, dft, einsum, lu, matmul, solve_triangular
from tilewright.ops.op import Op
from tilewright.ops.random import mt19937, philox
from tilewright.ops.recurrent import layers
from tilewright.ops.reduction import (
    channel_norm,
    cumsum_rows,
    cumulative,
    cumulative_extreme,
    linear_recurrence,
    norm,
    reduce,
    softmax,
)
from tilewright.ops.tensor import (
    argsort,
    creation,
    indexing,
    manipulation,
    nonzero,
    padding,
    scatter,
    slicing,
    tensor_scatter,
    topk,
    topk_rows,
)

FAMILIES = (
    activation,
    airy,
    fused_attention,
    attention,
    bessel,
    chebyshev,
    cholesky,
    col2im,
    channel_norm,
    conditional,
    conv,
    conv_transpose,
    tree_ensemble,
    deformable_im2col,
    determinant,
    divisor,
    error_function,
    einsum,
    arithmetic,
    dft,
    creation,
    gamma,
    grid_sample,
    group_conv,
    incomplete_gamma,
    indexing,
    manipulation,
    bind_dim,
    logic,
    loop,
    lu,
    matmul,
    modified_bessel,
    mt19937,
    nonzero,
    norm,
    argsort,
    padding,
    pairwise_coupling,
    pool,
    philox,
    layers,
    reduce,
    resize,
    roi,
    rotary,
    cumulative,
    cumulative_extreme,
    cumsum_rows,
    linear_recurrence,
    scatter,
    slicing,
    softmax,
    solve_triangular,
    topk,
    topk_rows,
    non_max_suppression,
    tensor_scatter,
    im2col,
    winograd,
)


@cache
def op_table() -> dict[str, Op]:
    """Every operator by name."""
    return rules.attached({row.name: row for family in FAMILIES for row in family.OPS})


def get_op(name: str) -> Op:
    """The operator called `name`."""
    found = op_table().get(name)
    if found is None:
        near = get_close_matches(name, op_table(), 3)
        raise UnsupportedError(
            "op.unknown",
            f"no operator named {name!r}",
            help=f"did you mean {', '.join(near)}?" if near else "see `tilewright list ops`",
        )
    return found
