"""Normalization with a scale and bias for each channel (axis 1): batch, instance and group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.core.dtypes import F32, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.op import GraphOps, Op, fail
from tilewright.ops.reduction.norm import LayerNormAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs


@node
class EpsilonAttrs(Attrs):
    """What is added to the variance."""

    epsilon: float = 1e-5


@node
class GroupNormAttrs(Attrs):
    """The number of groups that the channels are divided into."""

    groups: int
    epsilon: float = 1e-5


def _channel_type(op: str, least_rank: int, _: Attrs, ins: Sequence[TensorType]) -> TensorType:
    x, *parameters = ins
    if x.rank < least_rank or not x.dtype.is_float:
        raise fail(op, f"{x} must be floats of rank {least_rank} or more")
    for t in parameters:
        if t.shape != (x.shape[1],):
            raise fail(op, f"{t} must have one element for each channel of {x}")
    return x


def _group_type(attrs: GroupNormAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = _channel_type("group_norm", 2, attrs, ins)
    known = as_int(x.shape[1])
    if attrs.groups < 1 or (known is not None and known % attrs.groups):
        raise fail("group_norm", f"{attrs.groups} groups do not divide the channels of {x}")
    return x


def per_channel(g: GraphOps, parameter: str, rank: int) -> str:
    """A vector of one element a channel, shaped to broadcast against a tensor of `rank`."""
    if rank == 2:
        return parameter
    shape = (*g.type(parameter).shape, *(const(1),) * (rank - 2))
    return g.add("reshape", parameter, attrs=ReshapeAttrs(shape))


def _batch_norm(g: GraphOps, attrs: EpsilonAttrs, ins: Sequence[str]) -> str:
    """`x * (scale / deviation) + (bias - mean * (scale / deviation))`: all but two on vectors.

    Those are computed in f32 at least, so that each is rounded once.
    """
    x, *parameters = ins
    dtype, rank = g.type(parameters[-1]).dtype, g.type(x).rank
    wide = F32 if dtype.bits < F32.bits else dtype
    scale, bias, mean, variance = (_cast(g, p, wide) for p in parameters)
    epsilon = g.constant(np.asarray(attrs.epsilon, dtype=wide.numpy), "epsilon")
    factor = g.add("div", scale, g.add("sqrt", g.add("add", variance, epsilon)))
    offset = g.add("sub", bias, g.add("mul", mean, factor))
    factor, offset = (per_channel(g, _cast(g, v, dtype), rank) for v in (factor, offset))
    return g.add("add", g.add("mul", x, factor), offset)


def _cast(g: GraphOps, value: str, dtype: DType) -> str:
    return value if g.type(value).dtype == dtype else g.add("cast", value, attrs=CastAttrs(dtype))


def _instance_norm(g: GraphOps, attrs: EpsilonAttrs, ins: Sequence[str]) -> str:
    x, scale, bias = ins
    rank = g.type(x).rank
    rows = LayerNormAttrs(2, attrs.epsilon)
    return g.add(
        "layer_norm", x, per_channel(g, scale, rank), per_channel(g, bias, rank), attrs=rows
    )


def _group_norm(g: GraphOps, attrs: GroupNormAttrs, ins: Sequence[str]) -> str:
    x, scale, bias = ins
    shape = g.type(x).shape
    divided: tuple[Expr, ...] = (const(attrs.groups), shape[1] // attrs.groups)
    ones = (const(1),) * (len(shape) - 2)

    def reshape(value: str, *dims: Expr) -> str:
        return g.add("reshape", value, attrs=ReshapeAttrs(dims))

    normal = g.add(
        "layer_norm",
        reshape(x, shape[0], *divided, *shape[2:]),
        reshape(scale, *divided, *ones),
        reshape(bias, *divided, *ones),
        attrs=LayerNormAttrs(2, attrs.epsilon),
    )
    return reshape(normal, *shape)


OPS = (
    Op(
        "batch_norm",
        partial(_channel_type, "batch_norm", 2),
        "opaque",
        EpsilonAttrs,
        decompose=_batch_norm,
        flops=2,
        doc="(x - mean) / sqrt(variance + epsilon) * scale + bias with given statistics.",
    ),
    Op(
        "instance_norm",
        partial(_channel_type, "instance_norm", 3),
        "opaque",
        EpsilonAttrs,
        decompose=_instance_norm,
        flops=8,
        doc="Normalizes each channel of each sample over its spatial axes.",
    ),
    Op(
        "group_norm",
        _group_type,
        "opaque",
        GroupNormAttrs,
        decompose=_group_norm,
        flops=8,
        doc="Normalizes each group of channels of each sample.",
    ),
)
