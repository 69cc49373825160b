"""Normalization and the softmax family."""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import as_int, const, product
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, simple
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.ops.attrs import make_attrs
from tilewright.ops.reduction.channel_norm import EpsilonAttrs, GroupNormAttrs, per_channel
from tilewright.ops.reduction.norm import (
    LayerNormAttrs,
    LpNormAttrs,
    LrnAttrs,
    MeanVarianceAttrs,
    RmsNormAttrs,
)
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs, ReshapeAttrs


def _epsilon(n: OnnxNode) -> float:
    return n.float_attr("epsilon", 1e-5)


def batch_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """With given statistics, a multiplication and an addition; else by the batch's own."""
    if _is_training(n):
        return _training_batch_norm(c, n)
    given = [c.constant_of(n.required(i)) for i in range(1, 5)]
    parameters = [p for p in given if p is not None]
    is_spatial = n.opset >= 9 or n.int_attr("spatial", 1)
    if not is_spatial:
        return (_elementwise_norm(c, n),)
    if len(parameters) < 4:
        return (_batch_norm(c, n, [n.required(i) for i in range(1, 5)]),)
    scale, bias, mean, variance = (p.astype(np.float64) for p in parameters)
    factor = scale / np.sqrt(variance + _epsilon(n))
    x = n.required(0)
    dtype, shape = c.type(x).dtype, (-1, *(1,) * (c.type(x).rank - 2))
    scaled = c.add(n, "mul", x, c.constant(factor.reshape(shape), dtype, "scale"))
    offset = c.constant((bias - mean * factor).reshape(shape), dtype, "offset")
    return (c.add(n, "add", scaled, offset),)


def _is_training(n: OnnxNode) -> bool:
    """An attribute says so since version 14; before, that there are more outputs than one."""
    if n.opset >= 14:
        return bool(n.int_attr("training_mode", 0))
    return not n.int_attr("is_test", 0) and any(n.wants(i) for i in range(1, n.n_outputs))


def _elementwise_norm(c: OnnxContext, n: OnnxNode) -> str:
    """With statistics of every element of an image, as versions before 9 allow."""
    x, scale, bias, mean, variance = (n.required(i) for i in range(5))
    epsilon = c.constant(_epsilon(n), c.type(variance).dtype)
    inverse = c.add(n, "rsqrt", c.add(n, "add", variance, epsilon))
    centred = c.add(n, "mul", c.add(n, "sub", x, mean), inverse)
    return c.add(n, "add", c.add(n, "mul", centred, scale), bias)


def _batch_norm(c: OnnxContext, n: OnnxNode, parameters: list[str]) -> str:
    x = n.required(0)
    same = [c.cast(n, p, c.type(x).dtype) for p in parameters]
    return c.add(n, "batch_norm", x, *same, attrs=EpsilonAttrs(_epsilon(n)))


def _training_batch_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Statistics of the batch, and the running ones moved towards them.

    Before version 14 the batch's own follow as further outputs.
    """
    if n.opset < 9 and not n.int_attr("spatial", 1):
        raise n.unsupported("training with spatial=0", "one mean and variance a channel")
    x, momentum = n.required(0), n.float_attr("momentum", 0.9)
    own = c.type(n.required(3)).dtype
    rank = c.type(x).rank
    axes = ReduceAttrs(tuple(a for a in range(rank) if a != 1), keepdims=False)
    wide = c.cast(n, x, own)
    mean = c.add(n, "reduce_mean", wide, attrs=axes)
    centred = c.add(n, "sub", wide, per_channel(c.g, mean, rank))
    variance = c.add(n, "reduce_mean", c.add(n, "mul", centred, centred), attrs=axes)
    y = _batch_norm(c, n, [n.required(1), n.required(2), mean, variance])

    def moved(old: str, new: str) -> str:
        kept = c.add(n, "mul", old, c.constant(momentum, own))
        return c.add(n, "add", kept, c.add(n, "mul", new, c.constant(1 - momentum, own)))

    running = moved(n.required(3), mean), moved(n.required(4), variance)
    return (y, *running) if n.opset >= 14 else (y, *running, mean, variance)


def layer_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Over the trailing axes; the statistics come in the type that `stash_type` says."""
    stats = n.wants(1) or n.wants(2)
    attrs = LayerNormAttrs(n.int_attr("axis", -1), _epsilon(n), stats)
    inputs = [n.required(0), n.required(1), *([n.input(2)] if n.has_input(2) else [])]
    if not stats:
        return (c.add(n, "layer_norm", *inputs, attrs=attrs),)
    y, mean, inverse = c.g.add_many("layer_norm", *inputs, attrs=attrs, loc=n.loc)
    stash = onnx_dtype(n.int_attr("stash_type", 1))
    return y, c.cast(n, mean, stash), c.cast(n, inverse, stash)


def rms_norm(n: OnnxNode) -> RmsNormAttrs:
    """Over the trailing axes."""
    return RmsNormAttrs(n.int_attr("axis", -1), _epsilon(n))


def group_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Scale and bias are one a channel since version 21, and were one a group before."""
    x, groups = n.required(0), n.int_attr("num_groups")
    parameters = [n.required(1), n.required(2)]
    if n.opset < 21:
        if c.type(x).rank < 2:
            raise n.invalid(f"{c.type(x)} has no channels")
        channels = c.type(x).shape[1]
        if groups < 1 or (as_int(channels) or 0) % groups:
            raise n.invalid(f"num_groups {groups} does not divide the channels of {c.type(x)}")
        repeat = channels // groups
        for i, name in enumerate(parameters):
            column = c.add(n, "reshape", name, attrs=ReshapeAttrs((const(groups), const(1))))
            wide = c.add(n, "expand", column, attrs=ExpandAttrs((const(groups), repeat)))
            parameters[i] = c.add(n, "reshape", wide, attrs=ReshapeAttrs((repeat * groups,)))
    attrs = GroupNormAttrs(groups, _epsilon(n))
    return (c.add(n, "group_norm", x, *parameters, attrs=attrs),)


def lp_norm(n: OnnxNode) -> LpNormAttrs:
    """The 1-norm or the 2-norm."""
    order = n.int_attr("p", 2)
    if order not in (1, 2):
        raise n.invalid(f"p is {order}", "use 1 or 2")
    return LpNormAttrs(n.int_attr("axis", -1), order)


def lrn(n: OnnxNode) -> LrnAttrs:
    """Across neighbouring channels."""
    return LrnAttrs(
        n.int_attr("size"),
        n.float_attr("alpha", 1e-4),
        n.float_attr("beta", 0.75),
        n.float_attr("bias", 1.0),
    )


def along_axis(op: str) -> Converter:
    """Softmax and its relatives: before version 13, along all axes from `axis` on as one."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        x, last = n.required(0), make_attrs(op, {"axis": -1})
        shape = c.type(x).shape
        if n.opset >= 13:
            return (c.add(n, op, x, attrs=make_attrs(op, {"axis": n.int_attr("axis", -1)})),)
        axis = n.int_attr("axis", 1)
        axis += len(shape) if axis < 0 else 0
        if axis == len(shape) - 1:
            return (c.add(n, op, x, attrs=last),)
        matrix = ReshapeAttrs((product(shape[:axis]), product(shape[axis:])))
        rows = c.add(n, op, c.add(n, "reshape", x, attrs=matrix), attrs=last)
        return (c.add(n, "reshape", rows, attrs=ReshapeAttrs(shape)),)

    return convert


CONVERTERS: dict[str, Converter] = {
    "BatchNormalization": batch_norm,
    "LayerNormalization": layer_norm,
    "RMSNormalization": simple("rms_norm", rms_norm),
    "GroupNormalization": group_norm,
    "InstanceNormalization": simple("instance_norm", lambda n: EpsilonAttrs(_epsilon(n))),
    "LpNormalization": simple("lp_norm", lp_norm),
    "MeanVarianceNormalization": simple(
        "mean_variance_norm", lambda n: MeanVarianceAttrs(n.ints_attr("axes", (0, 2, 3)))
    ),
    "LRN": simple("lrn", lrn),
    "Softmax": along_axis("softmax"),
    "LogSoftmax": along_axis("log_softmax"),
    "Hardmax": along_axis("hardmax"),
}
