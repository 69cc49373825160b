"""Einstein sums: pairwise contractions on the matrix product, `contract` for the rest.

    einsum(x, w) {equation="bij,bjk->bik"}

Operands are contracted from left to right, each time keeping only the labels needed later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from tilewright.arith.expr import Expr, const, product
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulate, widen
from tilewright.ops.op import GraphOps, Op, broadcast_index, fail, same_dtype
from tilewright.ops.shape.assumptions import same_size
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs

# Labels of the dimensions that `...` stands for: characters that no equation can contain.
_ELLIPSIS_LABELS = "0123456789"
_OPERAND = re.compile(r"[A-Za-z]*(\.\.\.)?[A-Za-z]*")


@node
class EinsumAttrs(Attrs):
    """The equation in NumPy's notation: `...` and an implicit output are allowed."""

    equation: str


@dataclass(frozen=True)
class Equation:
    """An equation with the ellipsis spelt out: one label a dimension, and the size of each."""

    operands: tuple[str, ...]
    output: str
    sizes: dict[str, Expr]

    @property
    def shape(self) -> Shape:
        """The shape of the result."""
        return tuple(self.sizes[label] for label in self.output)


def parse_equation(equation: str, shapes: Sequence[Shape]) -> Equation:
    """Check an equation against the operands' shapes and expand it."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(shapes):
        raise fail("einsum", f"{equation!r} has {len(terms)} operands, {len(shapes)} are given")
    if not all(_OPERAND.fullmatch(t) for t in [*terms, right]):
        raise fail("einsum", f"{equation!r} is not an equation", help='e.g. "bij,bjk->bik"')
    ranks = [len(s) - len(t.replace("...", "")) for t, s in zip(terms, shapes, strict=True)]
    for term, rank in zip(terms, ranks, strict=True):
        if rank < 0 or (rank and "..." not in term) or rank > len(_ELLIPSIS_LABELS):
            raise fail("einsum", f"{term!r} does not fit an operand of {equation!r}")
    operands = tuple(_expand(t, r) for t, r in zip(terms, ranks, strict=True))
    wide = max((r for t, r in zip(terms, ranks, strict=True) if "..." in t), default=0)
    output = _expand(right, wide) if arrow else _implicit(operands, wide)
    sizes = _sizes(equation, operands, shapes)
    if len(set(output)) < len(output) or not set(output) <= set(sizes):
        raise fail("einsum", f"the result of {equation!r} repeats a label, or has a new one")
    return Equation(operands, output, sizes)


def _expand(term: str, rank: int) -> str:
    # Ellipses align at their ends: the last dimension is "0" for every operand.
    return term.replace("...", _ELLIPSIS_LABELS[:rank][::-1])


def _implicit(operands: Sequence[str], wide: int) -> str:
    """NumPy's rule: the ellipsis, then every label that occurs once, in alphabetical order."""
    text = "".join(operands)
    once = sorted(c for c in set(text) if text.count(c) == 1 and c.isalpha())
    return _ELLIPSIS_LABELS[:wide][::-1] + "".join(once)


def _sizes(equation: str, operands: Sequence[str], shapes: Sequence[Shape]) -> dict[str, Expr]:
    sizes: dict[str, Expr] = {}
    for term, shape in zip(operands, shapes, strict=True):
        for label, size in zip(term, shape, strict=True):
            known = sizes.setdefault(label, size)
            if size is const(1) or known is const(1):
                sizes[label] = known if size is const(1) else size
                continue
            joined = same_size("einsum", known, size)
            if joined is None:
                raise fail("einsum", f"{equation!r}: sizes {known} and {size} of one label differ")
            sizes[label] = joined
    return sizes


def _einsum_type(attrs: EinsumAttrs, ins: Sequence[TensorType]) -> TensorType:
    shape = parse_equation(attrs.equation, [t.shape for t in ins]).shape
    return TensorType(same_dtype("einsum", ins), shape)


def _contraction(
    b: Builder, attrs: EinsumAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    parsed = parse_equation(attrs.equation, [t.shape for t in ins])
    summed = [label for label in parsed.sizes if label not in parsed.output]

    def element(*i: Expr) -> Expr:
        def term(*r: Expr) -> Expr:
            index = dict(zip([*parsed.output, *summed], [*i, *r], strict=True))
            factors = [
                widen(x.at(*broadcast_index(x.shape, [index[c] for c in labels])))
                for labels, x in zip(parsed.operands, ins, strict=True)
            ]
            return reduce(lambda a, c: a * c, factors)

        return b.sum([parsed.sizes[label] for label in summed], term) if summed else term()

    return accumulate(b, outs[0].shape, outs[0].dtype, element)


def _flops(attrs: EinsumAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    parsed = parse_equation(attrs.equation, [t.shape for t in ins])
    return product(tuple(parsed.sizes.values())) * const(len(ins))


@dataclass(frozen=True)
class _Term:
    """A value and the label of each of its dimensions."""

    value: str
    labels: str


def _einsum(g: GraphOps, attrs: EinsumAttrs, ins: Sequence[str]) -> str:
    parsed = parse_equation(attrs.equation, [g.type(i).shape for i in ins])
    terms = [_Term(v, t) for v, t in zip(ins, parsed.operands, strict=True)]
    result = terms[0]
    for position, term in enumerate(terms[1:], 1):
        later = "".join(t.labels for t in terms[position + 1 :]) + parsed.output
        result = _contract(g, result, term, later)
    return _to_output(g, result, parsed)


def _to_output(g: GraphOps, term: _Term, parsed: Equation) -> str:
    if sorted(term.labels) == sorted(parsed.output):
        return _transposed(g, term, parsed.output)
    return _formula(g, [term], parsed.output)


def _formula(g: GraphOps, terms: Sequence[_Term], output: str) -> str:
    """`contract`, with labels renamed to letters, since ellipsis labels are our own."""
    labels = dict.fromkeys("".join(t.labels for t in terms))
    free = iter(c for c in _LETTERS if c not in labels)
    letter = {c: c if c.isalpha() else next(free) for c in labels}
    spelt = ["".join(letter[c] for c in text) for text in (*(t.labels for t in terms), output)]
    equation = f"{','.join(spelt[:-1])}->{spelt[-1]}"
    values = [t.value for t in terms]
    return g.add("contract", *values, attrs=EinsumAttrs(equation))


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _contract(g: GraphOps, a: _Term, b: _Term, later: str) -> _Term:
    """The product of two terms, summed over what neither `later` nor the other one needs."""
    a, b = _reduced(g, a, b.labels + later), _reduced(g, b, a.labels + later)
    shared = [c for c in a.labels if c in b.labels]
    batch = "".join(c for c in shared if c in later)
    inner = "".join(c for c in shared if c not in later)
    left = "".join(c for c in a.labels if c not in shared)
    right = "".join(c for c in b.labels if c not in shared)
    labels = batch + left + right
    if not inner:
        return _Term(_outer(g, a, b, batch, left, right), labels)
    sizes = [dict(zip(t.labels, g.type(t.value).shape, strict=True)) for t in (a, b)]
    broadcasts = any(sizes[0][c] is not sizes[1][c] for c in shared)
    if broadcasts or not (left or right):
        return _Term(_formula(g, [a, b], labels), labels)
    return _Term(_matmul(g, a, b, (batch, left, inner, right)), labels)


def _reduced(g: GraphOps, term: _Term, needed: str) -> _Term:
    """A term with diagonals taken for repeated labels, and unused labels summed away."""
    kept = "".join(c for c in dict.fromkeys(term.labels) if c in needed)
    return term if kept == term.labels else _Term(_formula(g, [term], kept), kept)


def _outer(g: GraphOps, a: _Term, b: _Term, batch: str, left: str, right: str) -> str:
    """Nothing to sum: one broadcasting multiplication."""
    value = _transposed(g, a, batch + left)
    if right:
        shape = g.type(value).shape
        value = _reshaped(g, value, (*shape, *(const(1),) * len(right)))
    other = _transposed(g, b, batch + right)
    if left and batch:
        shape = g.type(other).shape
        ones = (const(1),) * len(left)
        other = _reshaped(g, other, (*shape[: len(batch)], *ones, *shape[len(batch) :]))
    return g.add("mul", value, other)


def _matmul(g: GraphOps, a: _Term, b: _Term, parts: tuple[str, str, str, str]) -> str:
    batch, left, inner, right = parts
    x, w = _transposed(g, a, batch + left + inner), _transposed(g, b, batch + inner + right)
    split = len(batch)
    sizes = (
        *g.type(x).shape[: split + len(left)],
        *g.type(w).shape[split + len(inner) :],
    )
    rows, columns = sizes[split : split + len(left)], sizes[split + len(left) :]
    depth = g.type(w).shape[split : split + len(inner)]
    m, k, n = product(rows), product(depth), product(columns)
    y = g.add(
        "matmul",
        _reshaped(g, x, (*sizes[:split], m, k)),
        _reshaped(g, w, (*sizes[:split], k, n)),
    )
    return _reshaped(g, y, sizes)


def _transposed(g: GraphOps, term: _Term, order: str) -> str:
    perm = tuple(term.labels.index(c) for c in order)
    if perm == tuple(range(len(perm))):
        return term.value
    return g.add("transpose", term.value, attrs=TransposeAttrs(perm))


def _reshaped(g: GraphOps, value: str, shape: Shape) -> str:
    if g.type(value).shape == shape:
        return value
    return g.add("reshape", value, attrs=ReshapeAttrs(shape))


OPS = (
    Op(
        "einsum",
        _einsum_type,
        "opaque",
        EinsumAttrs,
        decompose=_einsum,
        flops=_flops,
        doc="Einstein sum of any number of operands.",
    ),
    Op(
        "contract",
        _einsum_type,
        "out_fusable",
        EinsumAttrs,
        te=_contraction,
        flops=_flops,
        doc="Einstein sum as one formula: every product of elements, summed.",
    ),
)
