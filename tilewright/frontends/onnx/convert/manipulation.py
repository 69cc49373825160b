"""Operators that rearrange whole tensors: Reshape, Transpose, Expand, Tile, ..."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import gcd

from tilewright.arith.affine import factors
from tilewright.arith.expr import Const, Expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, axes_of, simple
from tilewright.frontends.onnx.segments.data_dependent import NeedsConcreteSizes
from tilewright.ir.types import Shape
from tilewright.ops.conv.col2im import Col2ImAttrs
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.manipulation import (
    BlockAttrs,
    ExpandAttrs,
    ReshapeAttrs,
    TileAttrs,
    TransposeAttrs,
    TriluAttrs,
)


def add_reshape(c: OnnxContext, n: OnnxNode, x: str, shape: Sequence[Expr]) -> str:
    """`x` under a new shape; `x` itself where it has that shape already."""
    wanted = tuple(simplify(d) for d in shape)
    return x if c.type(x).shape == wanted else c.add(n, "reshape", x, attrs=ReshapeAttrs(wanted))


def quotient(dims: Sequence[Expr], divisors: Sequence[Expr]) -> Expr:
    """The product of `dims` by the product of `divisors`, common factors cancelled."""
    above, below = _factors(dims), _factors(divisors)
    common = above & below
    above, below = above - common, below - common
    number, divisor = (as_int(product(_constants(f))) or 0 for f in (above, below))
    shared = gcd(number, divisor) or 1
    rest = [[e for e in f.elements() if not isinstance(e, Const)] for f in (above, below)]
    top = product((const(number // shared), *rest[0]))
    return simplify(top // product((const(divisor // shared), *rest[1])))


def _factors(dims: Sequence[Expr]) -> Counter[Expr]:
    return Counter(f for d in dims for f in factors(simplify(d)))


def _constants(found: Counter[Expr]) -> tuple[Expr, ...]:
    return tuple(e for e in found.elements() if isinstance(e, Const))


def reshape(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """0 copies a dimension (unless `allowzero`), -1 is what is left; an attribute at first."""
    x = n.required(0)
    given = map(const, n.ints_attr("shape")) if n.has_attr("shape") else c.known_ints(n, 1)
    old, wanted = c.type(x).shape, list(given)
    if not n.int_attr("allowzero", 0):
        for i, d in enumerate(wanted):
            if as_int(d) == 0:
                if i >= len(old):
                    raise n.invalid(f"dimension {i} is 0, but the input has rank {len(old)}")
                wanted[i] = old[i]
    return (add_reshape(c, n, x, _resolved(n, old, wanted)),)


def _resolved(n: OnnxNode, old: Shape, wanted: Sequence[Expr]) -> tuple[Expr, ...]:
    """`wanted` with a -1 replaced by the size that keeps the number of elements."""
    open_dims = [i for i, d in enumerate(wanted) if as_int(d) == -1]
    if not open_dims:
        return tuple(wanted)
    others = [d for i, d in enumerate(wanted) if i != open_dims[0]]
    if len(open_dims) > 1 or any(as_int(d) == 0 for d in others):
        raise n.invalid(f"the shape [{', '.join(map(str, wanted))}] is ambiguous")
    return tuple(quotient(old, others) if as_int(d) == -1 else d for d in wanted)


def flatten(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A matrix: dimensions before `axis` by those from it on."""
    x = n.required(0)
    shape = c.type(x).shape
    axis = n.int_attr("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise n.invalid(f"axis {axis} is outside rank {len(shape)}")
    axis += len(shape) if axis < 0 else 0
    return (add_reshape(c, n, x, (product(shape[:axis]), product(shape[axis:]))),)


def squeeze(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Dimensions of size 1 removed: those in `axes`, or all."""
    x = n.required(0)
    shape = c.type(x).shape
    axes = axes_of(c, n)
    if axes is None:
        gone = _ones(c, n, x)
    else:
        gone = {normalize_axis("Squeeze", a, len(shape)) for a in axes}
    for axis in gone:
        if not c.g.add_check(shape[axis].eq(1), f"Squeeze: {shape[axis]} is not 1", n.loc):
            raise n.invalid(f"dimension {axis} of {c.type(x)} is not 1")
    return (add_reshape(c, n, x, [d for i, d in enumerate(shape) if i not in gone]),)


def _ones(c: OnnxContext, n: OnnxNode, x: str) -> set[int]:
    """The dimensions of size 1, which must be known: how many there are decides the rank."""
    for axis, size in enumerate(c.type(x).shape):
        if as_int(size) is None and not c.is_above_one(size):
            what = f"whether dimension {axis} of {c.type(x)} is 1 decides the rank of its result"
            raise NeedsConcreteSizes(n.op_type, what, n.loc)
    return {i for i, d in enumerate(c.type(x).shape) if as_int(d) == 1}


def unsqueeze(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Dimensions of size 1 inserted; `axes` count in the result."""
    x = n.required(0)
    axes = axes_of(c, n)
    if axes is None:
        raise n.invalid("axes are missing")
    shape = list(c.type(x).shape)
    rank = len(shape) + len(axes)
    places = sorted(normalize_axis("Unsqueeze", a, rank) for a in axes)
    if len(set(places)) != len(places):
        raise n.invalid(f"axes {list(axes)} name a dimension twice")
    for place in places:
        shape.insert(place, const(1))
    return (add_reshape(c, n, x, shape),)


def transpose(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Dimensions in another order, by default reversed."""
    x = n.required(0)
    rank = c.type(x).rank
    perm = n.ints_attr("perm", range(rank)[::-1])
    if perm == tuple(range(rank)):
        return (x,)
    return (c.add(n, "transpose", x, attrs=TransposeAttrs(perm)),)


def expand(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Broadcast in both directions: the shape may be smaller than the input's."""
    x = n.required(0)
    shape = tuple(simplify(d) for d in c.known_ints(n, 1))
    wanted = c.g.broadcast("Expand", c.type(x).shape, shape, loc=n.loc)
    if wanted == c.type(x).shape:
        return (x,)
    return (c.add(n, "expand", x, attrs=ExpandAttrs(wanted)),)


def tile(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Each dimension repeated; in version 1 one axis, given with its number."""
    x = n.required(0)
    repeats = c.known_ints(n, 1)
    if n.opset < 6:
        rank, (axis,) = c.type(x).rank, c.static_ints(n, 2)
        repeats = tuple(repeats[0] if a == axis % rank else const(1) for a in range(rank))
    return (c.add(n, "tile", x, attrs=TileAttrs(repeats)),)


def trilu(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A triangle; the number of the diagonal may be computed when running."""
    x, upper = n.required(0), bool(n.int_attr("upper", 1))
    if not n.has_input(1):
        return (c.add(n, "trilu", x, attrs=TriluAttrs(upper)),)
    known = c.g.symbolic_value(n.input(1))
    if known is None:
        return (c.add(n, "trilu", x, n.input(1), attrs=TriluAttrs(upper)),)
    return (c.add(n, "trilu", x, attrs=TriluAttrs(upper, n.only(known, 1))),)


def block_attrs(n: OnnxNode) -> BlockAttrs:
    """Attributes of DepthToSpace and SpaceToDepth."""
    return BlockAttrs(n.int_attr("blocksize"), n.str_attr("mode", "DCR"))


def col2im(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Blocks put back into an image; the shapes of both must be known."""
    image, kernel = c.known_ints(n, 1), tuple(map(const, c.static_ints(n, 2)))
    rank = len(kernel)
    attrs = Col2ImAttrs(
        image,
        kernel,
        n.ints_attr("strides", (1,) * rank),
        n.ints_attr("pads", (0,) * (2 * rank)),
        n.ints_attr("dilations", (1,) * rank),
    )
    return (c.add(n, "col2im", n.required(0), attrs=attrs),)


CONVERTERS: dict[str, Converter] = {
    "Reshape": reshape,
    "Flatten": flatten,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Transpose": transpose,
    "Expand": expand,
    "Tile": tile,
    "Trilu": trilu,
    "Col2Im": col2im,
    "DepthToSpace": simple("depth_to_space", block_attrs),
    "SpaceToDepth": simple("space_to_depth", block_attrs),
}
