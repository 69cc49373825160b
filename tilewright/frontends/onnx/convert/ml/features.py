"""Features of ai.onnx.ml: scaling, encoding and choosing columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import F32, I64, STRING
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.node_scope import traced
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.traced_value import where

DOMAIN = "ai.onnx.ml"


def array_feature_extractor(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Columns chosen by their numbers; a vector is a matrix of one row."""
    x, indices = n.required(0), n.required(1)
    if c.type(x).rank == 1:
        x = add_reshape(c, n, x, (const(1), *c.type(x).shape))
    indices = add_reshape(c, n, indices, (c.type(indices).elements,))
    return (c.add(n, "gather", x, indices, attrs=GatherAttrs(c.type(x).rank - 1)),)


def binarizer(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """1 above a threshold, else 0."""
    x = traced(c, n, n.required(0))
    return (x.apply("greater", n.float_attr("threshold", 0.0)).cast(x.dtype).name,)


def scaler(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """`(x - offset) * scale`, one of each for all or one a column."""
    x = traced(c, n, n.required(0)).cast(F32)
    offset, scale = (np.array(n.floats_attr(a, ()), np.float32) for a in ("offset", "scale"))
    for op, data in (("sub", offset), ("mul", scale)):
        if data.size:
            x = x.apply(op, traced(c, n, c.constant(data, F32)))
    return (x.name,)


def imputer(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Elements of one value, NaN by default, replaced: by one number or by one a column."""
    x = traced(c, n, n.required(0))
    if x.dtype.is_float:
        values: Sequence[float] = n.floats_attr("imputed_value_floats", ())
        replaced = n.float_attr("replaced_value_float", 0.0)
    else:
        values = n.ints_attr("imputed_value_int64s", ())
        replaced = n.int_attr("replaced_value_int64", 0)
    if not values:
        raise n.invalid("there is no value to put in", "give one number, or one a column")
    is_missing = x.apply("is_nan") if np.isnan(replaced) else x.apply("equal", replaced)
    row = c.constant(np.array(values), x.dtype)
    return (where(is_missing, traced(c, n, row), x).name,)


# What a row is divided by.
_NORMS = {"MAX": "reduce_max", "L1": "reduce_sum", "L2": "reduce_l2"}


def normalizer(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Rows divided by their greatest absolute element, their sum of such, or their length."""
    x, norm = traced(c, n, n.required(0)).cast(F32), n.str_attr("norm", "MAX")
    if norm not in _NORMS:
        raise n.invalid(f"norm is {norm!r}", f"one of {', '.join(_NORMS)}")
    size = x.apply("abs").apply(_NORMS[norm], attrs=ReduceAttrs((-1,), keepdims=True))
    return ((x / size.apply("max", 1e-30)).name,)


def feature_vectorizer(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Columns of several inputs side by side, as f32."""
    parts = []
    for i in range(len(n.inputs)):
        x = n.required(i)
        if c.type(x).rank == 1:
            x = add_reshape(c, n, x, (*c.type(x).shape, const(1)))
        parts.append(c.cast(n, x, F32))
    return (c.add(n, "concat", *parts, attrs=ConcatAttrs(1)) if len(parts) > 1 else parts[0],)


def one_hot_encoder(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """1 in the place of an element's category; all 0 for one that is not listed."""
    x, is_text = n.required(0), c.type(n.required(0)).dtype == STRING
    categories = n.strs_attr("cats_strings", ()) if is_text else n.ints_attr("cats_int64s", ())
    if not categories:
        raise n.invalid("it has no categories", "give cats_strings for texts, else cats_int64s")
    known = c.table(np.array(categories, object if is_text else np.int64))
    number = x if is_text else c.cast(n, x, I64)
    column = add_reshape(c, n, number, (*c.type(x).shape, const(1)))
    return (c.cast(n, c.add(n, "equal", column, known), F32),)


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::ArrayFeatureExtractor": array_feature_extractor,
    f"{DOMAIN}::Binarizer": binarizer,
    f"{DOMAIN}::FeatureVectorizer": feature_vectorizer,
    f"{DOMAIN}::Imputer": imputer,
    f"{DOMAIN}::Normalizer": normalizer,
    f"{DOMAIN}::OneHotEncoder": one_hot_encoder,
    f"{DOMAIN}::Scaler": scaler,
}
