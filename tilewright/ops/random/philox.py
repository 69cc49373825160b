"""Counter-based random numbers: each is a function of its position and a key, so that they are the
same on any number of threads.

The generator is Philox 4x32 with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1,
2, 3"). Two words of the counter are an element's position, the third tells nodes of one key apart;
four words of result give one number. The key is an attribute, so that every run gives the same
numbers, or an input that a caller draws anew for each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi

from tilewright.arith.expr import Expr, binary, call, cast, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BF16, F16, F32, F64, I64, U32, U64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.op import Op, fail
from tilewright.ops.tensor.manipulation import flatten

ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
# Bits of a fraction of 1: as many as a type holds below 1, so that none is rounded up to 1.
FRACTION_BITS = {F64: 53, F32: 24, F16: 11, BF16: 8}

Words = tuple[Expr, Expr, Expr, Expr]


@node
class RandomAttrs(Attrs):
    """Shape and type of the numbers, their distribution and the generator's key.

    Uniform numbers lie from `a` to below `b`; normal ones have mean `a` and deviation `b`; `bits`
    are 32 or 64 random bits. Nodes that share a key differ by their `stream`.
    """

    shape: tuple[Expr, ...]
    dtype: DType = F32
    distribution: str = "uniform"
    a: float = 0.0
    b: float = 1.0
    key: int = 0
    stream: int = 0


def philox(counter: Words, key: tuple[Expr, Expr]) -> Words:
    """Four random words of a counter's four words, all u32."""
    c0, c1, c2, c3 = counter
    for round in range(ROUNDS):
        k0, k1 = (
            simplify(k + const(round * w & 0xFFFFFFFF, U32)) for k, w in zip(key, WEYL, strict=True)
        )
        high0, low0 = _wide_product(c0, MULTIPLIERS[0])
        high1, low1 = _wide_product(c2, MULTIPLIERS[1])
        c0, c1 = binary("xor", binary("xor", high1, c1), k0), low1
        c2, c3 = binary("xor", binary("xor", high0, c3), k1), low0
    return c0, c1, c2, c3


def _wide_product(word: Expr, by: int) -> tuple[Expr, Expr]:
    wide = cast(U64, word) * const(by, U64)
    return _halves(wide)


def _halves(wide: Expr) -> tuple[Expr, Expr]:
    """The upper and the lower word of 64 bits."""
    return cast(U32, binary("shr", wide, const(32, U64))), cast(U32, wide)


def _joined(low: Expr, high: Expr) -> Expr:
    return binary("or", cast(U64, low), binary("shl", cast(U64, high), const(32, U64)))


def _fraction(words: tuple[Expr, Expr], dtype: DType, shift: int = 0) -> Expr:
    """Words as a fraction of 1, with as many bits as the type holds; `shift` is added before."""
    real, bits = (F64 if dtype == F64 else F32), FRACTION_BITS[dtype]
    if real == F64:
        whole = binary("shr", _joined(*words), const(64 - bits, U64))
    else:
        whole = binary("shr", words[0], const(32 - bits, U32))
    return (cast(real, whole) + const(shift, real)) * const(2.0**-bits, real)


def _uniform(attrs: RandomAttrs, words: Words) -> Expr:
    part = _fraction(words[:2], attrs.dtype)
    return const(attrs.a, part.dtype) + part * const(attrs.b - attrs.a, part.dtype)


def _normal(attrs: RandomAttrs, words: Words) -> Expr:
    """Box and Muller's formula; the first fraction is above 0."""
    real = F64 if attrs.dtype == F64 else F32
    length = call("sqrt", const(-2, real) * call("log", _fraction(words[:2], real, 1)))
    angle = call("cos", const(2 * pi, real) * _fraction(words[2:], real))
    return const(attrs.a, real) + length * angle * const(attrs.b, real)


def _bits(attrs: RandomAttrs, words: Words) -> Expr:
    return words[0] if attrs.dtype == U32 else _joined(words[0], words[1])


DISTRIBUTIONS: dict[str, tuple[Callable[[RandomAttrs, Words], Expr], tuple[DType, ...]]] = {
    "uniform": (_uniform, tuple(FRACTION_BITS)),
    "normal": (_normal, tuple(FRACTION_BITS)),
    "bits": (_bits, (U32, U64)),
}


def _type(attrs: RandomAttrs, ins: Sequence[TensorType]) -> TensorType:
    _, dtypes = DISTRIBUTIONS.get(attrs.distribution, (None, ()))
    if attrs.dtype not in dtypes:
        raise fail("random", f"{attrs.distribution} numbers of type {attrs.dtype}")
    if ins and ins[0] != TensorType(I64, (const(1),)):
        raise fail("random", f"a key of type {ins[0]}", help="it is one number of type i64")
    return TensorType(attrs.dtype, tuple(simplify(d) for d in attrs.shape))


def _random(
    b: Builder, attrs: RandomAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    shape = outs[0].shape
    formula, _ = DISTRIBUTIONS[attrs.distribution]

    def element(*i: Expr) -> Expr:
        key = cast(U64, ins[0].at(const(0))) if ins else const(attrs.key, U64)
        key_high, key_low = map(simplify, _halves(key))
        high, low = _halves(cast(U64, flatten(shape, i)))
        counter = (low, high, const(attrs.stream, U32), const(0, U32))
        return cast(attrs.dtype, formula(attrs, philox(counter, (key_low, key_high))))

    return b.compute("y", shape, element)


OPS = (
    Op(
        "random",
        _type,
        "injective",
        RandomAttrs,
        te=_random,
        flops=60,
        doc="Random numbers of a key, which is an attribute or an input.",
    ),
)
