"""Recurrent layers: LSTM, GRU, RNN."""

from __future__ import annotations

from functools import partial

from tilewright.arith.expr import as_int
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.ops.recurrent.layers import DIRECTIONS, LENGTHS, R, RecurrentAttrs, W, X

# ONNX's activations: our name, then the two parameters' defaults, `None` where it has none.
ACTIVATIONS: dict[str, tuple[str, float | None, float | None]] = {
    "affine": ("affine", 1.0, 0.0),
    "elu": ("elu", 1.0, None),
    "hardsigmoid": ("hard_sigmoid", 0.2, 0.5),
    "leakyrelu": ("leaky_relu", 0.01, None),
    "relu": ("relu", None, None),
    "scaledtanh": ("scaled_tanh", 1.0, 1.0),
    "sigmoid": ("sigmoid", None, None),
    "softplus": ("softplus", None, None),
    "softsign": ("softsign", None, None),
    "tanh": ("tanh", None, None),
    "thresholdedrelu": ("thresholded_relu", 1.0, None),
}


def _activations(
    n: OnnxNode, default: tuple[str, ...], count: int
) -> tuple[tuple[str, ...], tuple[float, ...], tuple[float, ...]]:
    """Names and parameters; the given parameters go to the activations that take any, in order."""
    given = n.strs_attr("activations", default * count)
    if len(given) != len(default) * count:
        raise n.invalid(f"it has {len(given)} activations", f"give {len(default) * count}")
    unknown = [name for name in given if name.lower() not in ACTIVATIONS]
    if unknown:
        raise n.unsupported(f"activation {unknown[0]}", f"one of {', '.join(ACTIVATIONS)}")
    found = [ACTIVATIONS[name.lower()] for name in given]
    alphas = iter(n.floats_attr("activation_alpha", ()))
    betas = iter(n.floats_attr("activation_beta", ()))
    return (
        tuple(name for name, _, _ in found),
        tuple(0.0 if alpha is None else next(alphas, alpha) for _, alpha, _ in found),
        tuple(0.0 if beta is None else next(betas, beta) for _, _, beta in found),
    )


def _layer(op: str, default: tuple[str, ...], c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    direction = n.str_attr("direction", "forward").lower()
    if direction not in DIRECTIONS:
        raise n.invalid(f"direction is {direction!r}", f"one of {', '.join(DIRECTIONS)}")
    attrs = RecurrentAttrs(
        *_activations(n, default, 2 if direction == "bidirectional" else 1),
        direction,
        n.float_attr("clip", 0.0),
        bool(n.int_attr("linear_before_reset", 0)),
        bool(n.int_attr("input_forget", 0)),
        bool(n.int_attr("layout", 0)),
    )
    for index in (X, W, R):
        n.required(index)
    units = as_int(c.shape(n, n.input(R), 3)[-1])
    if units is not None and n.int_attr("hidden_size", units) != units:
        raise n.invalid(f"hidden_size is {n.int_attr('hidden_size')}, the weights have {units}")
    if n.has_input(LENGTHS) and not c.type(n.input(LENGTHS)).dtype.is_integer:
        raise n.invalid("sequence_lens must be integers")
    return c.add_many(n, op, *n.inputs, attrs=attrs)


def _converter(op: str, *activations: str) -> Converter:
    return partial(_layer, op, activations)


CONVERTERS = {
    "GRU": _converter("gru", "Sigmoid", "Tanh"),
    "LSTM": _converter("lstm", "Sigmoid", "Tanh", "Tanh"),
    "RNN": _converter("rnn", "Tanh"),
}
