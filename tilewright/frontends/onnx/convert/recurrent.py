"""Recurrent layers: LSTM, GRU, RNN."""

from __future__ import annotations

from functools import partial

from tilewright.arith.expr import Expr, as_int
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

# The default activations of an LSTM's gates, candidates and results.
LSTM = ("Sigmoid", "Tanh", "Tanh")


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


def layer_attrs(n: OnnxNode, default: tuple[str, ...]) -> RecurrentAttrs:
    """What a layer's attributes say; `default` are the activations of one direction."""
    direction = n.str_attr("direction", "forward").lower()
    if direction not in DIRECTIONS:
        raise n.invalid(f"direction is {direction!r}", f"one of {', '.join(DIRECTIONS)}")
    return RecurrentAttrs(
        *_activations(n, default, 2 if direction == "bidirectional" else 1),
        direction,
        n.float_attr("clip", 0.0),
        bool(n.int_attr("linear_before_reset", 0)),
        bool(n.int_attr("input_forget", 0)),
        bool(n.int_attr("layout", 0)),
    )


def check_layer(c: OnnxContext, n: OnnxNode, units: Expr) -> None:
    """The number of units is what `hidden_size` says, and lengths are integers."""
    known = as_int(units)
    if known is not None and n.int_attr("hidden_size", known) != known:
        raise n.invalid(f"hidden_size is {n.int_attr('hidden_size')}, the weights have {known}")
    if n.has_input(LENGTHS) and not c.type(n.input(LENGTHS)).dtype.is_integer:
        raise n.invalid("sequence_lens must be integers")


def _layer(op: str, default: tuple[str, ...], c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    attrs = layer_attrs(n, default)
    for index in (X, W, R):
        n.required(index)
    check_layer(c, n, c.shape(n, n.input(R), 3)[-1])
    return c.add_many(n, op, *n.inputs, attrs=attrs)


def _converter(op: str, *activations: str) -> Converter:
    return partial(_layer, op, activations)


CONVERTERS = {
    "GRU": _converter("gru", "Sigmoid", "Tanh"),
    "LSTM": _converter("lstm", *LSTM),
    "RNN": _converter("rnn", "Tanh"),
}
