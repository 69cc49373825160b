"""Losses by name: how far a model's result is from its target, as a formula of a graph.

    cross_entropy         logits [N, classes, ...] and classes [N, ...], integers
    binary_cross_entropy  logits and truth values, or probabilities, of one shape
    mse, l1, huber        results and targets of one shape

Each is the mean over all targets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from tilewright.core.dtypes import I64
from tilewright.core.errors import ConfigError
from tilewright.ir.types import TensorType
from tilewright.ops.gradient.formula import full, kept, wide
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.traced_value import Value, where


@dataclass(frozen=True)
class Loss:
    """The formula of a loss, and the type of the target for a result of the model."""

    formula: Callable[[Value, Value], Value]
    target: Callable[[TensorType], TensorType]


def named_loss(name: str) -> Loss:
    """A loss by its name."""
    if name not in LOSSES:
        near = get_close_matches(name, LOSSES) or list(LOSSES)
        raise ConfigError(
            "train.loss",
            f"there is no loss {name!r}",
            help=f"one of {', '.join(near)}, or a graph of the result and the target",
        )
    return LOSSES[name]


def mean_of_all(x: Value) -> Value:
    """The mean over all elements, in f32 at least."""
    axes = tuple(range(len(x.shape)))
    x = wide(x)
    return x.apply("reduce_mean", attrs=ReduceAttrs(axes, keepdims=False)) if axes else x


def _classes(t: TensorType) -> TensorType:
    if t.rank < 2:
        raise ConfigError(
            "train.loss",
            f"cross_entropy of {t}",
            help="its classes are the second axis, behind that of samples",
        )
    return replace(t, dtype=I64, shape=(t.shape[0], *t.shape[2:]))


def _cross_entropy(x: Value, target: Value) -> Value:
    logs = wide(x).apply("log_softmax", attrs=SoftmaxAttrs(1))
    places = kept(target, (1,), x.shape)
    return -mean_of_all(logs.apply("gather_elements", places, attrs=GatherAttrs(1)))


def _binary_cross_entropy(x: Value, target: Value) -> Value:
    """`max(x, 0) - x * target + log(1 + exp(-abs(x)))`, which overflows nowhere."""
    x, target = wide(x), wide(target)
    rest = (-x.apply("abs")).apply("softplus")
    return mean_of_all(x.apply("relu") - x * target + rest)


def _mse(x: Value, target: Value) -> Value:
    off = wide(x) - wide(target)
    return mean_of_all(off * off)


def _l1(x: Value, target: Value) -> Value:
    return mean_of_all((wide(x) - wide(target)).apply("abs"))


def _huber(x: Value, target: Value) -> Value:
    """Half the square of what is off by up to 1, and the distance less 1/2 beyond."""
    off = wide(x) - wide(target)
    size = off.apply("abs")
    near = size.apply("less", full(size, size.shape, 1.0))
    return mean_of_all(where(near, off * off * 0.5, size - 0.5))


LOSSES = {
    "cross_entropy": Loss(_cross_entropy, _classes),
    "binary_cross_entropy": Loss(_binary_cross_entropy, lambda t: t),
    "mse": Loss(_mse, lambda t: t),
    "l1": Loss(_l1, lambda t: t),
    "huber": Loss(_huber, lambda t: t),
}
