"""Random numbers, by the operator `random` in another stream for every call.

Where a graph is seeded it has an input for the key, which `torch.compile` draws from torch's own
generator before each call. Otherwise every run gives the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.arith.expr import Expr, as_expr, const
from tilewright.core.dtypes import BOOL, F32, F64, I64, U64, DType
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext, ValueName
from tilewright.ops.elementwise.arithmetic import ModAttrs
from tilewright.ops.random.philox import FRACTION_BITS, RandomAttrs
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.argsort import ArgsortAttrs
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.topk import TopKAttrs


def _drawn(
    c: TorchContext,
    n: AtenCall,
    distribution: str,
    dtype: DType,
    shape: Sequence[Any],
    a: float = 0.0,
    b: float = 1.0,
) -> str:
    if n.get("generator") is not None:
        raise n.unsupported("a generator of its own", "torch.manual_seed seeds the default one")
    inputs, key, stream = c.next_random_stream()
    dims = tuple(as_expr(d) for d in shape)
    attrs = RandomAttrs(dims, dtype, distribution, float(a), float(b), key, stream)
    return c.add(n, "random", *inputs, attrs=attrs)


def _fractions(c: TorchContext, n: AtenCall, dtype: DType, shape: Sequence[Any]) -> str:
    """From 0 to below 1."""
    return _drawn(c, n, "uniform", dtype, shape)


def _above_zero(c: TorchContext, n: AtenCall, dtype: DType, shape: Sequence[Any]) -> str:
    """From above 0 to 1, as logarithms are taken of."""
    return c.add(n, "sub", c.constant(1, dtype), _fractions(c, n, dtype, shape))


def _shape(c: TorchContext, n: AtenCall) -> tuple[Expr, ...]:
    """The shape that is asked for, or that of the tensor which is to be filled."""
    size = n.get("size")
    return tuple(as_expr(d) for d in size) if size is not None else c.type(n["self"]).shape


def _real(n: AtenCall) -> DType:
    """The type in which numbers are computed before they become those of the result."""
    return F64 if n.dtype == F64 else F32


def uniform(c: TorchContext, n: AtenCall) -> Result:
    """Numbers between two limits, 0 and 1 where there are none."""
    return _drawn(c, n, "uniform", n.dtype, _shape(c, n), n.get("from", 0), n.get("to", 1))


def standard_normal(c: TorchContext, n: AtenCall) -> Result:
    """Normal numbers of mean 0 and deviation 1."""
    return _drawn(c, n, "normal", n.dtype, _shape(c, n))


def normal(c: TorchContext, n: AtenCall) -> Result:
    """Normal numbers, whose mean and deviation are numbers or tensors."""
    mean, deviation = n["mean"], n["std"]
    if not isinstance(mean, ValueName) and not isinstance(deviation, ValueName):
        return _drawn(c, n, "normal", n.dtype, n.type.shape, mean, deviation)
    standard = _drawn(c, n, "normal", n.dtype, n.type.shape)
    scaled = c.add(n, "mul", standard, c.operand(n, deviation, n.dtype))
    return c.add(n, "add", scaled, c.operand(n, mean, n.dtype))


def log_normal(c: TorchContext, n: AtenCall) -> Result:
    """Numbers whose logarithm is normal."""
    real = _real(n)
    exponent = _drawn(c, n, "normal", real, _shape(c, n), n["mean"], n["std"])
    return c.cast(n, c.add(n, "exp", exponent), n.dtype)


def exponential(c: TorchContext, n: AtenCall) -> Result:
    """`-log(u) / lambda`."""
    real = _real(n)
    log = c.add(n, "log", _above_zero(c, n, real, _shape(c, n)))
    return c.cast(n, c.add(n, "mul", log, c.constant(-1 / n["lambd"], real)), n.dtype)


def geometric(c: TorchContext, n: AtenCall) -> Result:
    """Trials up to the first success: `ceil(log(u) / log(1 - p))`, at least 1."""
    real, p = _real(n), n["p"]
    log = c.add(n, "log", _above_zero(c, n, real, _shape(c, n)))
    rate = math.log1p(-p) if p < 1 else -math.inf
    trials = c.add(n, "ceil", c.add(n, "div", log, c.constant(rate, real)))
    return c.cast(n, c.add(n, "max", trials, c.constant(1, real)), n.dtype)


def cauchy(c: TorchContext, n: AtenCall) -> Result:
    """`median + sigma * tan(pi * (u - 1/2))`."""
    real = _real(n)
    angle = _drawn(c, n, "uniform", real, _shape(c, n), -math.pi / 2, math.pi / 2)
    scaled = c.add(n, "mul", c.add(n, "tan", angle), c.constant(n["sigma"], real))
    return c.cast(n, c.add(n, "add", scaled, c.constant(n["median"], real)), n.dtype)


def bernoulli(c: TorchContext, n: AtenCall) -> Result:
    """1 with a probability that is a number, a tensor, or the tensor itself."""
    p = n.get("p", n["self"])
    shape = c.type(n["self"]).shape
    real = F64 if isinstance(p, ValueName) and c.type(p).dtype == F64 else F32
    drawn = _fractions(c, n, real, shape)
    return c.cast(n, c.add(n, "less", drawn, c.operand(n, p, real)), n.dtype)


def _integers(c: TorchContext, n: AtenCall, low: Any, high: Any) -> str:
    """Whole numbers from `low` to below `high`: remainders of 64 random bits."""
    bits = _drawn(c, n, "bits", U64, _shape(c, n))
    first = c.operand(n, low, I64)
    count = c.cast(n, c.add(n, "sub", c.operand(n, high, I64), first), U64)
    rest = c.add(n, "mod", bits, count, attrs=ModAttrs())
    return c.cast(n, c.add(n, "add", c.cast(n, rest, I64), first), n.dtype)


def randint(c: TorchContext, n: AtenCall) -> Result:
    """Whole numbers between limits; the lower one is 0 where there is one only."""
    return _integers(c, n, n.get("low", 0), n["high"])


def any_integer(c: TorchContext, n: AtenCall) -> Result:
    """Whole numbers between limits, without limits all that the type holds above 0."""
    if n.dtype.is_float:
        most = 2 ** FRACTION_BITS[n.dtype] + 1
    else:
        most = 2 if n.dtype == BOOL else 2 ** min(n.dtype.bits - (n.dtype.kind == "int"), 63) - 1
    high = n.get("to")
    return _integers(c, n, n.get("from", 0), most if high is None else high)


def randperm(c: TorchContext, n: AtenCall) -> Result:
    """The order of random bits."""
    count = as_expr(n["n"])
    bits = _drawn(c, n, "bits", U64, (1, count, 1))
    order = c.add(n, "argsort_rows", bits, attrs=ArgsortAttrs())
    return c.cast(n, c.reshape(n, order, (count,)), n.dtype)


def multinomial(c: TorchContext, n: AtenCall) -> Result:
    """Classes drawn by their weights."""
    weights, t = n["self"], c.type(n["self"])
    real, batch = F64 if t.dtype == F64 else F32, t.shape[:-1] or (const(1),)
    rows = c.reshape(n, c.cast(n, weights, real), (*batch, t.shape[-1]))
    draw = _with_replacement if n["replacement"] else _without_replacement
    return c.reshape(n, draw(c, n, rows, n["num_samples"]), n.type.shape)


def _with_replacement(c: TorchContext, n: AtenCall, weights: str, samples: int) -> str:
    """Where the running sum of weights passes a random part of their sum.

    A class with which the sum is complete is not passed, so that none behind it is drawn.
    """
    real, (batch, classes) = c.type(weights).dtype, c.type(weights).shape
    reached = c.add(n, "cumsum", weights, attrs=ScanAttrs(1))
    total = c.add(n, "reduce_max", reached, attrs=ReduceAttrs((1,), keepdims=True))
    unfinished = c.add(n, "less", reached, total)
    drawn = _fractions(c, n, real, (batch, samples))
    wanted = c.reshape(n, c.add(n, "mul", drawn, total), (batch, const(samples), const(1)))
    reached = c.reshape(n, reached, (batch, const(1), classes))
    passed = c.add(n, "less_or_equal", reached, wanted)
    unfinished = c.reshape(n, unfinished, (batch, const(1), classes))
    passed = c.cast(n, c.add(n, "and", passed, unfinished), I64)
    return c.add(n, "reduce_sum", passed, attrs=ReduceAttrs((2,), keepdims=False))


def _without_replacement(c: TorchContext, n: AtenCall, weights: str, samples: int) -> str:
    """The greatest of all weights, each divided by an exponential number (Efraimidis, Spirakis)."""
    t = c.type(weights)
    log = c.add(n, "log", _above_zero(c, n, t.dtype, t.shape))
    # the least of them is not 0, or a class without weight would be no number
    least = c.constant(-(2.0**-60), t.dtype)
    keys = c.add(n, "div", weights, c.add(n, "neg", c.add(n, "min", log, least)))
    return c.g.add_many("topk", keys, attrs=TopKAttrs(const(samples), 1), loc=n.loc)[1]


def native_dropout(c: TorchContext, n: AtenCall) -> Result:
    """Elements dropped with a probability, the others enlarged; and which were not dropped."""
    x, p = n["input"], float(n["p"])
    shape = c.type(x).shape
    if n["train"] is False or p == 0:
        return c.operand(n, x, n.dtype), c.add(n, "full", attrs=FullAttrs(shape, True, BOOL))
    if p == 1:
        empty = c.add(n, "full", attrs=FullAttrs(shape, 0.0, n.dtype))
        return empty, c.add(n, "full", attrs=FullAttrs(shape, False, BOOL))
    kept = c.add(n, "greater_or_equal", _fractions(c, n, F32, shape), c.constant(p, F32))
    scale, zero = c.constant(1 / (1 - p), n.dtype), c.constant(0, n.dtype)
    return c.add(n, "mul", x, c.add(n, "where", kept, scale, zero)), kept


def rrelu(c: TorchContext, n: AtenCall) -> Result:
    """A random slope for every negative element, in training; the slopes are the second result."""
    x, noise, lower, upper = n["self"], n["noise"], n["lower"], n["upper"]
    positive = c.add(n, "greater", x, c.constant(0, n.dtype))
    if not n["training"]:
        slope = c.constant((lower + upper) / 2, n.dtype)
        return c.add(n, "where", positive, x, c.add(n, "mul", x, slope)), noise
    drawn = _drawn(c, n, "uniform", n.dtype, n.type.shape, lower, upper)
    slopes = c.add(n, "where", positive, c.constant(1, n.dtype), drawn)
    return c.add(n, "mul", x, slopes), slopes


CONVERTERS: dict[str, Converter] = {
    "aten.rand": uniform,
    "aten.rand_like": uniform,
    "aten.uniform": uniform,
    "aten.randn": standard_normal,
    "aten.randn_like": standard_normal,
    "aten.normal": normal,
    "aten.normal_functional": normal,
    "aten.log_normal": log_normal,
    "aten.exponential": exponential,
    "aten.geometric": geometric,
    "aten.cauchy": cauchy,
    "aten.bernoulli": bernoulli,
    "aten.randint": randint,
    "aten.randint_like": randint,
    "aten.random": any_integer,
    "aten.randperm": randperm,
    "aten.multinomial": multinomial,
    "aten.native_dropout": native_dropout,
    "aten.rrelu_with_noise_functional": rrelu,
}
