"""The table of all operators, gathered from the family files."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from tilewright.core.errors import UnsupportedError
from tilewright.ops import (
    activation,
    attend,
    attention,
    blocks_to_image,
    channel_norm,
    control,
    conv,
    conv_transpose,
    decision_trees,
    deform_sample,
    determinant,
    einsum,
    elementwise,
    fourier,
    generate,
    grid_sample,
    group_conv,
    indexing,
    layout,
    learn,
    logic,
    loop,
    matmul,
    mersenne,
    norm,
    order_rows,
    padding,
    pairwise_coupling,
    pool,
    random,
    recurrent,
    reduce,
    resize,
    roi,
    rotary,
    scan,
    scatter,
    slicing,
    softmax,
    sorting,
    suppress_boxes,
    tensor_scatter,
    windows,
    winograd,
)
from tilewright.ops.row import Op

FAMILIES = (
    activation,
    attend,
    attention,
    blocks_to_image,
    channel_norm,
    control,
    conv,
    conv_transpose,
    decision_trees,
    deform_sample,
    determinant,
    einsum,
    elementwise,
    fourier,
    generate,
    grid_sample,
    group_conv,
    indexing,
    layout,
    learn,
    logic,
    loop,
    matmul,
    mersenne,
    norm,
    order_rows,
    padding,
    pairwise_coupling,
    pool,
    random,
    recurrent,
    reduce,
    resize,
    roi,
    rotary,
    scan,
    scatter,
    slicing,
    softmax,
    sorting,
    suppress_boxes,
    tensor_scatter,
    windows,
    winograd,
)


@cache
def op_table() -> dict[str, Op]:
    """Every operator by name."""
    return {row.name: row for family in FAMILIES for row in family.OPS}


def op_row(name: str) -> Op:
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
