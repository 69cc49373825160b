"""The table of ONNX operators that have a converter, gathered from the family files.

Operators of the default domain are listed by their type, others as `domain::type`.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.onnx.context import Converter, OnnxNode
from tilewright.frontends.onnx.convert import (
    attention,
    cast,
    constant,
    conv,
    creation,
    elementwise,
    indexing,
    logic,
    manipulation,
    matmul,
    non_max_suppression,
    nonzero,
    norm,
    pool,
    qlinear,
    quantize,
    random,
    recurrent,
    reduce,
    resize,
    sampling,
    signal,
    slicing,
    tfidf,
    unique,
)
from tilewright.frontends.onnx.convert.control_flow import conditional, loop, scan
from tilewright.frontends.onnx.convert.microsoft import attention as microsoft_attention
from tilewright.frontends.onnx.convert.microsoft import block_quantized as microsoft_blocks
from tilewright.frontends.onnx.convert.microsoft import channels_last as microsoft_channels_last
from tilewright.frontends.onnx.convert.microsoft import fused as microsoft_fused
from tilewright.frontends.onnx.convert.microsoft import quantized as microsoft_quantized
from tilewright.frontends.onnx.convert.microsoft import recurrent as microsoft_recurrent
from tilewright.frontends.onnx.convert.ml import features as ml_features
from tilewright.frontends.onnx.convert.ml import labels as ml_labels
from tilewright.frontends.onnx.convert.ml import linear as ml_linear
from tilewright.frontends.onnx.convert.ml import svm as ml_svm
from tilewright.frontends.onnx.convert.ml import trees as ml_trees
from tilewright.frontends.onnx.convert.training import gradient, optimizers

# Blocked layouts, of which a file does not say how large a block is.
_OF_ONE_MACHINE = ("com.microsoft.nchwc", "com.ms.internal.nhwc")

FAMILIES = (
    attention,
    non_max_suppression,
    constant,
    conditional,
    conv,
    cast,
    elementwise,
    creation,
    gradient,
    indexing,
    qlinear,
    manipulation,
    logic,
    loop,
    matmul,
    microsoft_fused,
    microsoft_attention,
    microsoft_blocks,
    microsoft_channels_last,
    microsoft_quantized,
    microsoft_recurrent,
    ml_features,
    ml_labels,
    ml_linear,
    ml_svm,
    ml_trees,
    norm,
    pool,
    quantize,
    random,
    recurrent,
    reduce,
    resize,
    sampling,
    scan,
    nonzero,
    signal,
    slicing,
    tfidf,
    optimizers,
    unique,
)


@cache
def converters() -> dict[str, Converter]:
    """Every converter by operator."""
    return {name: convert for family in FAMILIES for name, convert in family.CONVERTERS.items()}


def key_of(n: OnnxNode) -> str:
    """Where the table has the node's operator, if it has it."""
    domain = n.proto.domain
    return n.op_type if domain in ("", "ai.onnx") else f"{domain}::{n.op_type}"


def converter(n: OnnxNode) -> Converter:
    """The converter for a node."""
    found = converters().get(key_of(n))
    if found is None and n.proto.domain in _OF_ONE_MACHINE:
        raise UnsupportedError(
            "onnx.operator",
            f"operator {n.op_type} of domain {n.proto.domain} has a layout of weights and images"
            " that ONNX Runtime chose for one processor",
            loc=n.loc,
            help="save the model with ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL, or compile the"
            " model as it was before",
        )
    if found is None:
        near = get_close_matches(key_of(n), converters(), 3)
        hint = f"; did you mean {', '.join(near)}?" if near else ""
        raise UnsupportedError(
            "onnx.operator",
            f"operator {n.op_type} of domain {n.proto.domain or 'ai.onnx'}, version {n.opset},"
            " is not supported",
            loc=n.loc,
            help=f"`tilewright list ops` shows what is supported{hint}",
        )
    return found
