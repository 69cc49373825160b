"""Tables from keys to values in ai.onnx.ml: LabelEncoder and CategoryMapper.

Keys and values are numbers or texts; in native code a text is its number, so both are the same.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import I32, STRING
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.node_scope import traced
from tilewright.ops.reduction.reduce import ArgAttrs, ReduceAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.traced_value import where

DOMAIN = "ai.onnx.ml"


def label_encoder(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """What each element is in a table, and what everything else becomes."""
    if n.has_attr("classes_strings"):
        return _between(c, n, _texts(n, "classes_strings"), None)
    values = _side(n, "values")
    return (_looked_up(c, n, _side(n, "keys"), values, _default(n, values)),)


def category_mapper(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Texts to the integers that belong to them, or back."""
    return _between(c, n, _texts(n, "cats_strings"), np.array(n.ints_attr("cats_int64s"), np.int64))


def _between(
    c: OnnxContext, n: OnnxNode, texts: np.ndarray, numbers: np.ndarray | None
) -> tuple[str, ...]:
    """Texts to numbers or numbers to texts, as the input is; by default texts are counted."""
    numbers = np.arange(texts.size) if numbers is None else numbers
    if c.type(n.required(0)).dtype == STRING:
        return (_looked_up(c, n, texts, numbers, _default(n, numbers)),)
    return (_looked_up(c, n, numbers, texts, _default(n, texts)),)


def _looked_up(
    c: OnnxContext, n: OnnxNode, keys: np.ndarray, values: np.ndarray, default: np.ndarray
) -> str:
    """The value of the first key that an element is equal to."""
    x = traced(c, n, n.required(0))
    if len(keys) != len(values):
        raise n.invalid(f"{len(keys)} keys for {len(values)} values")
    if (keys.dtype.kind == "O") != (x.dtype == STRING):
        raise n.invalid(f"keys that are {keys.dtype} for an input that is {x.dtype}")
    column = traced(c, n, add_reshape(c, n, x.name, (*c.type(x.name).shape, const(1))))
    known = traced(c, n, c.table(keys) if x.dtype == STRING else c.constant(keys, x.dtype))
    found = column.apply("equal", known)
    if x.dtype.is_float and np.isnan(keys).any():
        found = found.apply("or", column.apply("is_nan").apply("and", known.apply("is_nan")))
    found = found.cast(I32)
    place = found.apply("argmax", attrs=ArgAttrs(-1, keepdims=False))
    is_known = found.apply("reduce_max", attrs=ReduceAttrs((-1,), keepdims=False))
    place = where(is_known.apply("greater", 0), place, place.number(len(keys)))
    table = c.table(np.append(values, default.astype(values.dtype)))
    return c.add(n, "gather", table, place.name, attrs=GatherAttrs(0, "clip"))


def _side(n: OnnxNode, side: str) -> np.ndarray:
    """Keys or values in whichever attribute they are given."""
    if n.has_attr(f"{side}_tensor"):
        return n.tensor_attr(f"{side}_tensor").reshape(-1)
    if n.has_attr(f"{side}_floats"):
        return np.array(n.floats_attr(f"{side}_floats"), np.float32)
    if n.has_attr(f"{side}_int64s"):
        return np.array(n.ints_attr(f"{side}_int64s"), np.int64)
    return _texts(n, f"{side}_strings")


def _texts(n: OnnxNode, name: str) -> np.ndarray:
    return np.array(n.strs_attr(name), object)


def _default(n: OnnxNode, values: np.ndarray) -> np.ndarray:
    """What elements become that are not in the table."""
    if n.has_attr("default_tensor"):
        return n.tensor_attr("default_tensor").reshape(())
    if values.dtype.kind == "O":
        return np.array(n.str_attr("default_string", "_Unused"), object)
    if values.dtype.kind == "f":
        return np.array(n.float_attr("default_float", -0.0))
    return np.array(n.int_attr("default_int64", -1))


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::CategoryMapper": category_mapper,
    f"{DOMAIN}::LabelEncoder": label_encoder,
}
