"""MT19937, the Mersenne Twister: random numbers in sequence.

Matsumoto and Nishimura's generator with 624 words of state, seeded by one word; two words make a
number in [0, 1), as NumPy's `seed` and `uniform` do. The generator is sequential, so that one
thread makes all numbers; `philox` has a counter-based one.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, binary, cast, ceildiv, const, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F64, U32
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, If, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op

STATE = "state"
WORDS, AHEAD = 624, 397
TWIST, SPREAD = 0x9908B0DF, 1812433253
# Shifts to the left or right, each with a mask: what is done to a word before it is given.
TEMPER = (("shr", 11, 0xFFFFFFFF), ("shl", 7, 0x9D2C5680), ("shl", 15, 0xEFC60000))


@node
class Mt19937Attrs(Attrs):
    """How many numbers, and the word that the state is made of."""

    count: Expr
    seed: int = 0


def _type(attrs: Mt19937Attrs, _: Sequence[TensorType]) -> TensorType:
    return TensorType(F64, (simplify(attrs.count),))


def _word(value: int) -> Expr:
    return const(value, U32)


def _at(place: Expr) -> Load:
    return Load(STATE, (place,), U32)


def _put(place: Expr, value: Expr) -> Stmt:
    return Store(STATE, (place,), value)


def _seeded(seed: int) -> Stmt:
    """The first state: each word made of the one before."""
    i = Var("at.i")
    before = _at(i)
    mixed = binary("xor", before, binary("shr", before, _word(30)))
    spread = mixed * _word(SPREAD) + cast(U32, i + 1)
    return Seq(
        (
            _put(const(0), _word(seed)),
            nest(("at.i",), (const(WORDS - 1),), _put(i + 1, spread)),
        )
    )


def _next_state() -> Stmt:
    """Every word from itself, the next one, and one further on."""
    k = Var("at.k")
    high = binary("and", _at(k), _word(0x80000000))
    low = binary("and", _at((k + 1) % WORDS), _word(0x7FFFFFFF))
    both = binary("or", high, low)
    is_odd = binary("and", both, _word(1)).eq(_word(1))
    twisted = binary("xor", _at((k + AHEAD) % WORDS), binary("shr", both, _word(1)))
    value = binary("xor", twisted, select(is_odd, _word(TWIST), _word(0)))
    return nest(("at.k",), (const(WORDS),), _put(k, value))


def _tempered(word: Expr) -> Expr:
    for shift, by, mask in TEMPER:
        moved = binary(shift, word, _word(by))
        word = binary("xor", word, binary("and", moved, _word(mask)))
    return binary("xor", word, binary("shr", word, _word(18)))


def _number(j: Expr) -> Expr:
    """Two words as the 53 bits of a fraction."""
    high = cast(F64, binary("shr", _tempered(_at(j * 2)), _word(5)))
    low = cast(F64, binary("shr", _tempered(_at(j * 2 + 1)), _word(6)))
    return (high * const(2.0**26, F64) + low) * const(2.0**-53, F64)


def _mt19937(attrs: Mt19937Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    count, each = outs[0].shape[0], const(WORDS // 2)
    params = parameters(ins, outs)
    state = Buffer(STATE, U32, (const(WORDS),))

    def body() -> Stmt:
        j = Var("at.j")
        place = Var("at.round") * each + j
        store = If(place < count, Store("y0", (place,), _number(j)))
        rounds = Seq((_next_state(), nest(("at.j",), (each,), store)))
        count_rounds = simplify(ceildiv(count, WORDS // 2))
        return Seq((_seeded(attrs.seed), nest(("at.round",), (count_rounds,), rounds)))

    block = spatial_block("mt19937", (), body, {**params, STATE: state})
    return Func("mt19937", tuple(params.values()), ("y0",), Alloc(state, block))


OPS = (
    Op(
        "mt19937",
        _type,
        "opaque",
        Mt19937Attrs,
        loops=_mt19937,
        flops=20,
        doc="Random numbers from 0 to below 1 in the order of the Mersenne Twister.",
    ),
)
