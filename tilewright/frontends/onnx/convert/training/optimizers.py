"""Steps of optimisers: Adagrad, Adam, Momentum.

All take the learning rate, the number of steps done, and then for any number of tensors their
values, their gradients and their states; the results are the new values and the new states.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ops.traced_value import where

# Rate and step, a tensor with its gradient and states; the new tensor and its new states.
Step = Callable[..., tuple[NodeValue, ...]]
DOMAIN = "ai.onnx.preview.training"


def optimizer(step: Step, states: int) -> Converter:
    """The converter that applies `step` to each tensor, which has this many states."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        rate, done, *rest = (traced(c, n, n.required(i)) for i in range(len(n.inputs)))
        groups = states + 2
        if not rest or len(rest) % groups:
            raise n.invalid(f"{len(rest)} tensors are not groups of {groups}")
        count = len(rest) // groups
        results = [step(n, rate, done, *rest[i::count]) for i in range(count)]
        return tuple(result[k].name for k in range(states + 1) for result in results)

    return convert


def _regularized(n: OnnxNode, x: NodeValue, gradient: NodeValue) -> NodeValue:
    weight = n.float_attr("norm_coefficient", 0.0)
    return x * weight + gradient if weight else gradient


def adagrad(
    n: OnnxNode, rate: NodeValue, done: NodeValue, x: NodeValue, g: NodeValue, h: NodeValue
) -> tuple[NodeValue, ...]:
    """The rate is divided by the root of the sum of squared gradients."""
    rate = rate / (done.cast(rate.dtype) * n.float_attr("decay_factor", 0.0) + 1)
    g = _regularized(n, x, g)
    h = h + g * g
    root = h.apply("sqrt") + n.float_attr("epsilon", 0.0)
    return x - rate.cast(x.dtype) * g / root, h


def adam(
    n: OnnxNode,
    rate: NodeValue,
    done: NodeValue,
    x: NodeValue,
    g: NodeValue,
    v: NodeValue,
    h: NodeValue,
) -> tuple[NodeValue, ...]:
    """Running means of gradients and of their squares, corrected for starting at zero."""
    alpha, beta = n.float_attr("alpha", 0.9), n.float_attr("beta", 0.999)
    g = _regularized(n, x, g)
    v = v * alpha + g * (1 - alpha)
    h = h * beta + g * g * (1 - beta)
    root = h.apply("sqrt") + n.float_attr("epsilon", 0.0)
    steps = done.cast(rate.dtype)
    second, first = (1 - rate.number(b).apply("pow", steps) for b in (beta, alpha))
    corrected = rate * second.apply("sqrt") / first
    rate = where(done.apply("greater", 0), corrected, rate)
    x = x - rate.cast(x.dtype) * (v / root)
    return x * (1 - n.float_attr("norm_coefficient_post", 0.0)), v, h


def momentum(
    n: OnnxNode, rate: NodeValue, done: NodeValue, x: NodeValue, g: NodeValue, v: NodeValue
) -> tuple[NodeValue, ...]:
    """Gradients added up with less and less weight; the first counts in full."""
    alpha, mode = n.float_attr("alpha"), n.str_attr("mode")
    if mode not in ("standard", "nesterov"):
        raise n.invalid(f"mode is {mode!r}", "one of standard, nesterov")
    g = _regularized(n, x, g)
    dampening = where(done.apply("greater", 0), g.number(n.float_attr("beta")), g.number(1))
    v = v * alpha + dampening * g
    step = g + v * alpha if mode == "nesterov" else v
    return x - rate.cast(x.dtype) * step, v


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::Adagrad": optimizer(adagrad, 1),
    f"{DOMAIN}::Adam": optimizer(adam, 2),
    f"{DOMAIN}::Momentum": optimizer(momentum, 1),
}
