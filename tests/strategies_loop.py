"""Hypothesis strategies for loop functions: element expressions, statements, whole functions."""

from __future__ import annotations

from hypothesis import strategies as st

from tilewright.arith.expr import (
    TRUE,
    Binary,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
    const,
)
from tilewright.arith.operators import BINARY, CALLS, COMPARISONS
from tilewright.core.dtypes import BF16, BOOL, F16, F32, F64, I8, I32, I64, U8, U32, DType
from tilewright.ir.loop.nodes import (
    LOOP_KINDS,
    Alloc,
    Await,
    Barrier,
    Block,
    Buffer,
    For,
    Func,
    If,
    Iter,
    Layout,
    Let,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Region,
    Role,
    Roles,
    Seq,
    Signal,
    Stmt,
    Store,
    Tile,
)

ELEMENT_DTYPES = (F32, F64, F16, BF16, I8, I32, I64, U8, U32, BOOL)
_BITS = ("and", "or", "xor")
_SHIFTS = ("shl", "shr")
_BY_WIDTH = {
    width: [d for d in ELEMENT_DTYPES if d.bits == width and d != BOOL] for width in (8, 16, 32, 64)
}


def consts(dtype: DType) -> st.SearchStrategy[Const]:
    """Literals of a dtype, with the awkward ones."""
    if dtype == BOOL:
        return st.booleans().map(lambda v: Const(v, BOOL))
    if dtype.is_float:
        values = st.sampled_from((0.0, -0.0, 1.0, -1.5, 0.1, 300.0, float("inf"), float("nan")))
        return values.map(lambda v: const(v, dtype))
    low = 0 if dtype.kind == "uint" else -7
    return st.integers(low, 100).map(lambda v: const(v, dtype))


def _operators(dtype: DType) -> list[str]:
    """Operators on two values of `dtype` with a result of `dtype`."""
    if dtype == BOOL:
        return list(_BITS)
    banned = (*COMPARISONS, *((*_BITS, *_SHIFTS) if dtype.is_float else _SHIFTS))
    return [op for op in BINARY if op not in banned]


@st.composite
def elements(draw: st.DrawFn, dtype: DType, depth: int = 3) -> Expr:
    """Expressions over the variable `i` and loads `x_<dtype>[i]`; their value is of `dtype`."""
    leaf = [consts(dtype), st.just(Load(f"x_{dtype}", (Var("i"),), dtype))]
    if depth == 0:
        return draw(st.one_of(leaf))
    makers = [
        st.one_of(leaf),
        _binaries(dtype, depth),
        _selects(dtype, depth),
        _casts(dtype, depth),
    ]
    makers.append(_masked_loads(dtype, depth))
    if dtype == BOOL:
        makers += [_comparisons(depth), elements(BOOL, depth - 1).map(lambda a: Unary("not", a))]
    else:
        makers.append(_bitcasts(dtype, depth))
        makers.append(elements(dtype, depth - 1).map(lambda a: Unary("neg", a)))
    if dtype.is_float:
        makers.append(_calls(dtype, depth))
    elif dtype.is_integer:
        makers.append(_shifts(dtype, depth))
    return draw(st.one_of(makers))


@st.composite
def _binaries(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    op = draw(st.sampled_from(_operators(dtype)))
    return Binary(op, draw(elements(dtype, depth - 1)), draw(elements(dtype, depth - 1)))


@st.composite
def _comparisons(draw: st.DrawFn, depth: int) -> Expr:
    dtype = draw(st.sampled_from(ELEMENT_DTYPES))
    op = draw(st.sampled_from(COMPARISONS))
    return Binary(op, draw(elements(dtype, depth - 1)), draw(elements(dtype, depth - 1)))


@st.composite
def _shifts(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    amount = const(draw(st.integers(0, 70)), dtype)
    return Binary(draw(st.sampled_from(_SHIFTS)), draw(elements(dtype, depth - 1)), amount)


@st.composite
def _selects(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    cond = draw(elements(BOOL, depth - 1))
    return Select(cond, draw(elements(dtype, depth - 1)), draw(elements(dtype, depth - 1)))


@st.composite
def _casts(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    source = draw(st.sampled_from([d for d in ELEMENT_DTYPES if d != dtype]))
    return Cast(dtype, draw(elements(source, depth - 1)))


@st.composite
def _bitcasts(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    source = draw(st.sampled_from(_BY_WIDTH[dtype.bits]))
    return Bitcast(dtype, draw(elements(source, depth - 1)))


@st.composite
def _calls(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    fn = draw(st.sampled_from([f for f in CALLS if f not in ("isnan", "isinf")]))
    return Call(fn, tuple(draw(elements(dtype, depth - 1)) for _ in range(CALLS[fn])), dtype)


@st.composite
def _masked_loads(draw: st.DrawFn, dtype: DType, depth: int) -> Expr:
    shift = draw(st.integers(-3, 3))
    index = Binary("add", Var("i"), const(shift))
    inside = Binary("and", Binary("le", const(0), index), Binary("lt", index, const(8)))
    mask = Binary("and", inside, draw(elements(BOOL, depth - 1)))
    return Load(f"x_{dtype}", (index,), dtype, mask)


NAMES = st.sampled_from(["i", "j.0", "j.1", "vi", "N", "i8", "out", "seq", "for"])
INDICES = st.recursive(
    st.one_of(NAMES.map(Var), st.integers(-3, 9).map(const)),
    lambda inner: st.builds(
        Binary,
        st.sampled_from(["add", "sub", "mul", "floordiv", "mod", "min", "max"]),
        inner,
        inner,
    ),
    max_leaves=4,
)
CONDITIONS = st.builds(Binary, st.sampled_from(COMPARISONS), INDICES, INDICES)
BUFFERS = {"A": (F32, 1), "B": (F32, 2), "S": (F32, 0), "if": (F32, 1), "T": (F32, 2)}


@st.composite
def _places(draw: st.DrawFn) -> tuple[str, tuple[Expr, ...]]:
    name = draw(st.sampled_from(list(BUFFERS)))
    return name, tuple(draw(INDICES) for _ in range(BUFFERS[name][1]))


_MASKS = st.one_of(st.none(), CONDITIONS)
LOADS = st.builds(lambda place, mask: Load(*place, F32, mask), _places(), _MASKS)
VALUES = st.recursive(
    st.one_of(LOADS, consts(F32)),
    lambda inner: st.builds(Binary, st.sampled_from(["add", "mul", "max"]), inner, inner),
    max_leaves=4,
)
STORES = st.builds(lambda place, value, mask: Store(*place, value, mask), _places(), VALUES, _MASKS)
UPDATES = _places().flatmap(
    lambda place: VALUES.map(lambda v: Store(*place, Binary("add", Load(*place, F32), v)))
)


@st.composite
def regions(draw: st.DrawFn) -> Region:
    """Boxes of buffers."""
    name = draw(st.sampled_from(list(BUFFERS)))
    extent = st.one_of(st.just(const(1)), INDICES)
    pairs = st.tuples(INDICES, extent)
    return Region(name, tuple(draw(pairs) for _ in range(BUFFERS[name][1])))


ANNOTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["partition", "outlined"]),
        st.one_of(st.integers(-5, 5), st.sampled_from(["x", 'a "quoted" é', ""])),
    ),
    max_size=2,
).map(tuple)
ITERS = st.builds(Iter, NAMES, st.sampled_from("SR"), INDICES, INDICES)
REGION_LISTS = st.lists(regions(), max_size=2).map(tuple)
TILES = st.builds(
    Tile,
    st.sampled_from(["fill", "copy", "mma"]),
    regions(),
    REGION_LISTS,
    st.sampled_from(["", "amx"]),
)


SYNCHRONIZATION = st.one_of(
    st.just(Barrier()),
    st.builds(MbarrierInit, regions(), st.integers(1, 9)),
    st.builds(MbarrierArrive, regions(), _MASKS),
    st.builds(MbarrierWait, regions(), INDICES),
    st.builds(Signal, regions()),
    st.builds(Await, regions(), INDICES),
)


def stmts(depth: int = 3) -> st.SearchStrategy[Stmt]:
    """Statements of any shape; they mean nothing, but they have a text."""
    if depth == 0:
        return st.one_of(STORES, UPDATES, TILES, SYNCHRONIZATION)
    inner = stmts(depth - 1)
    allocation = st.sampled_from(["T", "A"]).map(
        lambda n: Buffer(n, F32, (const(2),) * BUFFERS[n][1], "register" if n == "T" else "global")
    )
    block = st.builds(
        Block,
        st.sampled_from(["C", 'odd "name"']),
        st.lists(ITERS, max_size=2).map(tuple),
        REGION_LISTS,
        REGION_LISTS,
        inner,
        st.one_of(st.none(), inner),
        st.one_of(st.just(TRUE), CONDITIONS),
        ANNOTATIONS,
    )
    return st.one_of(
        stmts(0),
        st.lists(inner, max_size=3).map(lambda s: Seq(tuple(s))),
        st.builds(For, NAMES, INDICES, st.sampled_from(LOOP_KINDS), inner, ANNOTATIONS),
        st.builds(If, CONDITIONS, inner, st.one_of(st.none(), inner)),
        st.builds(Alloc, allocation, inner),
        st.builds(Let, NAMES, INDICES, inner),
        st.lists(st.builds(Role, NAMES, st.integers(1, 8), st.sampled_from((0, 24)), inner)).map(
            lambda roles: Roles(tuple(roles))
        ),
        block,
    )


LAYOUTS = st.builds(
    Layout,
    st.lists(INDICES, min_size=1, max_size=2).map(tuple),
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 3), st.integers(1, 16), st.integers(0, 1)),
            st.tuples(st.integers(0, 3), st.just(0), st.just(0)),
        ),
        max_size=3,
    ).map(tuple),
)


@st.composite
def funcs(draw: st.DrawFn) -> Func:
    """Functions of any shape, for round trips through text."""
    params = tuple(
        Buffer(name, dtype, tuple(draw(INDICES) for _ in range(rank)))
        for name, (dtype, rank) in BUFFERS.items()
    )
    outputs = tuple(b.name for b in params[draw(st.integers(0, len(params))) :])
    layouts = draw(st.lists(st.tuples(st.sampled_from(list(BUFFERS)), LAYOUTS), max_size=2))
    return Func("f", params, outputs, draw(stmts()), tuple(layouts), draw(ANNOTATIONS))
