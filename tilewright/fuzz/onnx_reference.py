"""The second oracle: ONNX's reference evaluator.

The interpreter runs what the converters made of a model, so that it cannot see a converter that
misreads an operator. The reference reads the model itself. It is slow and has defects of its own:
what it cannot run is not compared, nor are models with an operator of `KNOWN_DIFFERENCES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tilewright.frontends.onnx.model.read import DOMAINS
from tilewright.fuzz.case_file import Arrays
from tilewright.fuzz.oracle import Expected, mismatch
from tilewright.fuzz.random_values import finfo, iinfo, is_float
from tilewright.fuzz.reference_control_flow import OPERATORS
from tilewright.fuzz.shrink import constants

# Operators in which the reference is wrong, or which ONNX leaves open.
KNOWN_DIFFERENCES: Mapping[str, str] = {
    "CastLike": "a float outside the range of an integer type is nobody's promise",
    "GlobalMaxPool": "the last two axes are reduced, however many there are",
    "LpNormalization": "the norm of p = 1 adds elements, not their magnitudes",
    "LpPool": "windows with padding are averaged over what is inside, then multiplied by all",
    "MaxPool": "places are looked up in the output's shape, paddings taken in another order",
    "QuantizeLinear": "numbers beyond 32 bits wrap before they saturate",
    "Unique": "without `sorted`, values are sorted all the same",
    "Pow": "integers beyond 2^53 are rounded, here and in ONNX Runtime",
}
# The same for models with an input that is not finite.
KNOWN_DIFFERENCES_NOT_FINITE: Mapping[str, str] = {
    "Attention": "keys that are hidden count nothing, but NaN and infinities of theirs are spread",
    "AveragePool": "elements that are NaN are taken for padding",
    "BatchNormalization": "here a scale and an offset are formed first, NaN of an infinite scale",
    "Conv": "a dilated kernel is filled up with zeros, whose product with infinity is NaN",
    "Det": "some of NumPy's libraries pass over a pivot that is NaN, and give 0",
    "DFT": "in a fast transform infinities meet other factors",
    "DynamicQuantizeLinear": "what integer NaN becomes is open",
    "Gelu": "minus infinity becomes NaN; here the limit, which is 0",
    "Range": "a step without end takes one element; by ONNX's formula none",
    "Resize": "elements that count nothing are multiplied by 0, which makes infinities NaN",
    "RoiAlign": "elements that count nothing are multiplied by 0, and the maximum forgets NaN",
    "ScatterElements": "the minimum and the maximum forget NaN, or keep it, as the order has it",
    "STFT": "in a fast transform infinities meet other factors",
}
# The same for nodes whose first operand is not of floats, unless they only choose among elements.
KNOWN_DIFFERENCES_INTEGERS: Mapping[str, str] = {
    "GridSample": "the weights are cut off to integers, and so are 0",
    "ReduceMean": "the mean is formed in floats, integers beyond 2^53 are rounded",
    "Resize": "what lies between integers is rounded; here and in ONNX Runtime it is cut off",
}
# The same for models of an opset before this one: until then all axes from `axis` on were one, and
# the reference has only the newest meaning of an operator.
KNOWN_DIFFERENCES_BEFORE: Mapping[str, int] = {"Hardmax": 13, "LogSoftmax": 13, "Softmax": 13}
# The same for nodes with this element type as the attribute `to`.
KNOWN_DIFFERENCES_CAST_TO: Mapping[int, str] = {
    onnx.TensorProto.FLOAT8E8M0: "it has no sign: what a negative number becomes is open",
}
# How much further than roundings of the interpreter a result may lie from the reference's: it sums
# in other orders, and half-precision steps by steps.
SLACK_FACTOR = 16.0
# Shares of numbers no further apart than this have all their digits.
NARROW = 8.0
_INTEGERS = [
    getattr(onnx.TensorProto, f"{sign}INT{bits}")
    for sign in ("", "U")
    for bits in (2, 4, 8, 16, 32, 64)
]
_BY_LENGTH = (b"pytorch_half_pixel", b"tf_crop_and_resize")
_FLOATS = [getattr(onnx.TensorProto, name) for name in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")]


def _fits(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """What becomes of a float that an integer type cannot hold is open."""
    x, target = operands[0], next(a.i for a in node.attribute if a.name == "to")
    if target not in _INTEGERS or not is_float(x.dtype):
        return True
    info = iinfo(onnx.helper.tensor_dtype_to_np_dtype(target))
    wide = x.astype(np.float64)
    return bool(np.all((float(info.min) - 1 < wide) & (wide < float(info.max) + 1)))


def _is_narrow(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """The logarithm is that of a share, which has been rounded, or has become 0."""
    x = operands[0].astype(np.float64)
    return not x.size or bool(np.ptp(x) <= NARROW)


def _is_of_integers(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """Short floats are cut off to integers."""
    return not any(is_float(x.dtype) and x.dtype.itemsize == 1 for x in operands)


def _is_finite(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """Operators of `KNOWN_DIFFERENCES_NOT_FINITE` may meet infinities that come up on the way."""
    floats = [x.astype(np.float64) for x in operands if is_float(x.dtype)]
    return all(np.isfinite(x).all() for x in floats)


def _is_exact_in_doubles(x: np.ndarray) -> bool:
    return x.dtype.kind not in "iu" or bool(np.all((x <= 1 << 53) & (x >= -(1 << 53))))


def _has_whole_lengths(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """Some coordinates depend on the new length, which is not rounded, and 1 is shifted by half.

    Of complex numbers only the real part is resized, and integers beyond 2^53 are rounded.
    """
    if operands[0].dtype.kind == "c" or not _is_exact_in_doubles(operands[0]):
        return False
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if given.get("coordinate_transformation_mode") not in _BY_LENGTH:
        return _is_finite(node, operands)
    data, last = operands[0], operands[-1].astype(np.float64)
    axes = given.get("axes", range(data.ndim))
    lengths = last * [data.shape[a] for a in axes] if is_float(operands[-1].dtype) else last
    stretched = given.get("keep_aspect_ratio_policy", b"stretch") == b"stretch"
    whole = bool(np.all((lengths > 1) & (lengths == np.round(lengths))))
    return stretched and whole and _is_finite(node, operands)


def _is_spread(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """Zeros alone have the scale 0 by ONNX's formula; others take another."""
    return bool(operands[0].any()) and _is_finite(node, operands)


def _is_real(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """The spectrum of complex numbers has no half that tells all, though it is asked for."""
    x, whole = operands[0], any(a.name == "onesided" and a.i == 0 for a in node.attribute)
    return (whole or x.ndim < 3 or x.shape[-1] == 1) and _is_finite(node, operands)


def _is_no_double(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """The statistics are formed in f32, also of doubles, which it may not hold."""
    return operands[0].dtype != np.float64


def _has_windows_in_place(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """What `ceil_mode` adds is divided between both ends, and moves every window.

    Windows begin where the padding does; there is nothing to divide if only one place is added.
    """
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    sizes, kernel = operands[0].shape[2:], given["kernel_shape"]
    pads = given.get("pads", [0, 0] * len(kernel))
    strides, dilations = (given.get(name, [1] * len(kernel)) for name in ("strides", "dilations"))
    for i, size in enumerate(sizes if given.get("ceil_mode", 0) else ()):
        there = size + pads[i] + pads[len(kernel) + i]
        rest = there - dilations[i] * (kernel[i] - 1) - 1
        windows = -(-rest // strides[i]) + 1
        if (windows - 1) * strides[i] >= size + pads[i]:
            windows -= 1
        if (windows - 1) * strides[i] - rest > 1:
            return False
    return _is_finite(node, operands)


def _has_an_order(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """NaN has a place among NumPy's own floats only; others are not sorted around it."""
    x = operands[0]
    return x.dtype.isbuiltin == 1 or not is_float(x.dtype) or not np.isnan(x).any()


def _is_inside(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> bool:
    """What lies outside is nobody's promise, and not refused where there are few elements."""
    axis = next((a.i for a in node.attribute if a.name == "axis"), 0)
    size = operands[0].shape[axis]
    return bool(np.all((-size <= operands[1]) & (operands[1] < size)))


# Operators in which the reference is right for some operands only, and for which.
RIGHT_FOR: Mapping[str, Callable[[onnx.NodeProto, Sequence[np.ndarray]], bool]] = {
    "AveragePool": _has_windows_in_place,
    "Cast": _fits,
    "DynamicQuantizeLinear": _is_spread,
    "GatherElements": _is_inside,
    "GroupNormalization": _is_no_double,
    "LogSoftmax": _is_narrow,
    "QLinearMatMul": _is_of_integers,
    "Resize": _has_whole_lengths,
    "STFT": _is_real,
    "SoftmaxCrossEntropyLoss": _is_narrow,
    "TopK": _has_an_order,
}


def differs_from_reference(
    model: onnx.ModelProto, inputs: Arrays, expected: Expected
) -> str | None:
    """What the interpreter says otherwise than the reference, or ""; `None` if not compared."""
    if not _is_comparable(model, inputs):
        return None
    theirs = _reference(model, inputs)
    if theirs is None or _spreads_infinities(model, theirs):
        return None
    if not any(_is_judged(x, s) for x, s in zip(expected.outputs, expected.spread, strict=True)):
        return None
    for number, (x, y) in enumerate(zip(expected.outputs, theirs, strict=True)):
        wrong = _apart(x, y, expected.spread[number])
        if wrong:
            return f"output {number} {wrong} in the reference"
    return ""


def _is_comparable(model: onnx.ModelProto, inputs: Arrays) -> bool:
    nodes = list(_nodes(model.graph))
    operators = {node.op_type for node in nodes}
    attributes = [a for node in nodes for a in node.attribute]
    if any(a.name == "to" and a.i in KNOWN_DIFFERENCES_CAST_TO for a in attributes):
        return False
    given = [*inputs.values(), *constants(model).values()]
    floats = [x for x in given if is_float(x.dtype)]
    opset = max((o.version for o in model.opset_import if o.domain in DOMAINS), default=1)
    excluded = {
        *KNOWN_DIFFERENCES,
        *(op for op, since in KNOWN_DIFFERENCES_BEFORE.items() if opset < since),
    }
    if not all(np.isfinite(x.astype(np.float64)).all() for x in floats):
        excluded |= KNOWN_DIFFERENCES_NOT_FINITE.keys()
    floating = _floating(model)
    return (
        floating is not None
        and not any(n.op_type in RIGHT_FOR for n in _nested(model.graph))
        and not operators & excluded
        and all(n.input[0] in floating for n in nodes if _makes_numbers_between(n))
    )


def _makes_numbers_between(node: onnx.NodeProto) -> bool:
    """Whether an operator of `KNOWN_DIFFERENCES_INTEGERS` gives what is between its elements."""
    if node.op_type not in KNOWN_DIFFERENCES_INTEGERS:
        return False
    usual = onnx.defs.get_schema(node.op_type).attributes.values()
    values = [x.default_value for x in usual] + list(node.attribute)
    return {a.name: a.s for a in values}.get("mode") != b"nearest"


def _spreads_infinities(model: onnx.ModelProto, results: list[Any]) -> bool:
    """Whether what is not finite may come from an operator on the way, and was spread there."""
    arrays = [np.asarray(x) for x in results if not isinstance(x, list | dict)]
    finite = all(np.isfinite(x.astype(np.float64)).all() for x in arrays if is_float(x.dtype))
    return not finite and any(
        n.op_type in KNOWN_DIFFERENCES_NOT_FINITE for n in _nodes(model.graph)
    )


def _floating(model: onnx.ModelProto) -> set[str] | None:
    """The names of floats; `None` for types that ONNX does not allow: the compiler takes more."""
    try:
        known = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True).graph
    except onnx.shape_inference.InferenceError:
        return None
    types = {v.name: v.type.tensor_type.elem_type for v in (*known.input, *known.value_info)}
    types |= {t.name: t.data_type for t in known.initializer}
    return {name for name, number in types.items() if number in _FLOATS}


def _nested(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Nodes of branches and steps, whose operands are not known here."""
    for node in graph.node:
        for attribute in node.attribute:
            yield from _nodes(attribute.g)


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from _nodes(attribute.g)


def _reference(model: onnx.ModelProto, inputs: Arrays) -> list[Any] | None:
    """What the reference gives, if it is right; it raises whatever NumPy raises."""
    tables = (RIGHT_FOR, KNOWN_DIFFERENCES_NOT_FINITE)
    judged = [node for node in model.graph.node if any(node.op_type in t for t in tables)]
    names = [v.name for v in model.graph.output]
    read = sorted({name for node in judged for name in node.input if name})
    try:
        with np.errstate(all="ignore"):
            given = {n: a.copy() for n, a in inputs.items()}
            found: list[Any] = [*_evaluator(model).run([*names, *read], given)]
    except Exception:
        return None
    values = dict(zip(read, found[len(names) :], strict=True))
    for node in judged:
        operands = [values[name] for name in node.input if name]
        if not RIGHT_FOR.get(node.op_type, _is_finite)(node, operands):
            return None
    return list(found[: len(names)])


def _evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    return ReferenceEvaluator(model, new_ops=list(OPERATORS))


def _is_judged(ours: Any, spread: np.ndarray | None) -> bool:
    """Whether an output is compared: numbers whose shape does not depend on rounding."""
    return isinstance(ours, np.ndarray) and ours.dtype.kind not in "OUS" and spread is not None


def _apart(ours: Any, theirs: Any, spread: np.ndarray | None) -> str:
    if spread is None or not _is_judged(ours, spread):
        return ""
    theirs = np.asarray(theirs)
    if theirs.shape != ours.shape:
        return mismatch(ours, theirs, spread, False)
    last = _last(theirs, ours.dtype)
    floats = is_float(theirs.dtype) and is_float(ours.dtype)
    if floats or theirs.dtype.kind == ours.dtype.kind:
        theirs = theirs.astype(ours.dtype)
    return mismatch(ours, theirs, SLACK_FACTOR * (spread + last), False)


def _last(theirs: np.ndarray, ours: np.dtype) -> np.ndarray:
    """A unit in the last place of the largest element, of f32 at least: attributes have no more."""
    if not is_float(theirs.dtype) or not is_float(ours):
        return np.zeros(theirs.shape)
    size = np.abs(theirs.astype(np.float64))
    eps = max(float(finfo(kind).eps) for kind in (theirs.dtype, ours, np.float32))
    most = float(np.max(size, initial=0.0, where=np.isfinite(size)))
    return np.full(theirs.shape, eps * most)
