"""Counter-based random numbers: each is a function of its position and a key, so that they are the
same in every run and on any number of threads.

The generator is Philox 2x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1,
2, 3"): the position is the counter, and its two words give one number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi

from tilewright.arith.expr import Expr, binary, call, cast, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, F64, U32, U64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail
from tilewright.ops.tensor.manipulation import flatten

ROUNDS = 10
MULTIPLIER, WEYL = 0xD256D193, 0x9E3779B9


@node
class RandomAttrs(Attrs):
    """Shape and type of the numbers, their distribution and the generator's key.

    Uniform numbers lie from `a` to below `b`; normal ones have mean `a` and deviation `b`.
    """

    shape: tuple[Expr, ...]
    dtype: DType = F32
    distribution: str = "uniform"
    a: float = 0.0
    b: float = 1.0
    key: int = 0


def philox(low: Expr, high: Expr, key: int) -> tuple[Expr, Expr]:
    """Two random words of a counter's two words, all u32."""
    for _ in range(ROUNDS):
        wide = cast(U64, low) * const(MULTIPLIER, U64)
        upper = cast(U32, binary("shr", wide, const(32, U64)))
        low, high = binary("xor", binary("xor", upper, const(key, U32)), high), cast(U32, wide)
        key = (key + WEYL) & 0xFFFFFFFF
    return low, high


def _fraction(word: Expr, real: DType, shift: int = 0) -> Expr:
    """A word as a fraction of 1, with as many bits as the type holds; `shift` is added before."""
    bits = 24 if real == F32 else 32
    whole = cast(real, binary("shr", word, const(32 - bits, U32)))
    return (whole + const(shift, real)) * const(2.0**-bits, real)


def _uniform(attrs: RandomAttrs, words: tuple[Expr, Expr], real: DType) -> Expr:
    part = _fraction(words[0], real)
    if real == F64:
        part = part + _fraction(words[1], real) * const(2.0**-32, real)
    return const(attrs.a, real) + part * const(attrs.b - attrs.a, real)


def _normal(attrs: RandomAttrs, words: tuple[Expr, Expr], real: DType) -> Expr:
    """Box and Muller's formula; the first fraction is above 0."""
    length = call("sqrt", const(-2, real) * call("log", _fraction(words[0], real, 1)))
    angle = call("cos", const(2 * pi, real) * _fraction(words[1], real))
    return const(attrs.a, real) + length * angle * const(attrs.b, real)


DISTRIBUTIONS: dict[str, Callable[[RandomAttrs, tuple[Expr, Expr], DType], Expr]] = {
    "uniform": _uniform,
    "normal": _normal,
}


def _type(attrs: RandomAttrs, _: Sequence[TensorType]) -> TensorType:
    if attrs.distribution not in DISTRIBUTIONS or not attrs.dtype.is_float:
        raise fail("random", f"{attrs.distribution} numbers of type {attrs.dtype}")
    return TensorType(attrs.dtype, tuple(simplify(d) for d in attrs.shape))


def _random(
    b: Builder, attrs: RandomAttrs, _: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    shape = outs[0].shape
    real = F64 if attrs.dtype == F64 else F32

    def element(*i: Expr) -> Expr:
        place = cast(U64, flatten(shape, i))
        low, high = cast(U32, place), cast(U32, binary("shr", place, const(32, U64)))
        words = philox(low, high, attrs.key)
        return cast(attrs.dtype, DISTRIBUTIONS[attrs.distribution](attrs, words, real))

    return b.compute("y", shape, element)


OPS = (
    Op(
        "random",
        _type,
        "injective",
        RandomAttrs,
        te=_random,
        flops=60,
        doc="Random numbers, the same in every run.",
    ),
)
