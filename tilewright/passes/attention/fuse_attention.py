"""Fuse attention: two products with a softmax between them become `fused_attention`.

    %1 = matmul(%q, %kt)
    %2 = mul(%1, 0.125)
    %3 = add(%2, %mask)            →   %5 = fused_attention(%q, %k, %v, %mask) {scale=0.125, ...}
    %4 = softmax(%3)
    %5 = matmul(%4, %v)

Exporters write this in many ways: scaling the queries, the keys or the scores, adding a mask or
selecting by one, with heads transposed before and after. Scales are combined, transposes become
permutation attributes of `fused_attention`, and a causal mask becomes its window. Scores with other
readers stay unfused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from tilewright.arith.expr import Expr, as_int, const
from tilewright.core.dtypes import BF16, BOOL
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.attention.attention import MaskAttrs
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.passes.attention.causal_masks import causal_offset
from tilewright.passes.attention.gpu_attention import is_fused
from tilewright.passes.attention.unbroadcast_masks import Masks
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph
from tilewright.target.gpu import GpuTarget

ONE = const(1)


# Whether a machine has a kernel for attention.
Fits = Callable[[Problem], bool]


def fuse_attention(graph: Graph, context: PassContext) -> Graph:
    """Make attention, whatever its spelling, one operator; on a GPU where that pays."""
    if not any(n.op == "softmax" for n in graph.nodes):
        return graph
    target = context.target
    fits = partial(is_fused, target) if isinstance(target, GpuTarget) else None
    return rewrite_graph(graph, partial(_formed, fits, Masks()))


def _formed(fits: Fits | None, masks: Masks, g: Rewriter, n: Node) -> str | None:
    if n.op == "matmul":
        return _Attention(g, n, fits, masks).formed()
    source = g.producer(n.inputs[0]) if isinstance(n.attrs, TransposeAttrs) else None
    if source is None or source.op != "fused_attention" or g.use_count(source.name) != 1:
        return None
    assert isinstance(source.attrs, FusedAttentionAttrs)
    assert isinstance(n.attrs, TransposeAttrs)
    before = source.attrs.y_perm or tuple(range(n.type.rank))
    perm = tuple(before[d] for d in n.attrs.perm)
    return g.add("fused_attention", *source.inputs, attrs=replace(source.attrs, y_perm=perm))


class _Attention:
    """The parts of attention, found from the product with the values upwards."""

    def __init__(self, g: Rewriter, n: Node, fits: Fits | None, masks: Masks) -> None:
        self.g = g
        self.node = n
        self.fits = fits
        self.masks = masks
        self.attrs = FusedAttentionAttrs()
        self.mask = ""
        self.lengths = ""
        self.bias = ""
        self.soft_band = ""
        self.factors: dict[str, float] = {}

    def formed(self) -> str | None:
        """The attention that ends in this product, `None` if none does."""
        weights = self.g.producer(self.node.inputs[0])
        if weights is None or weights.op != "softmax" or self.g.use_count(weights.name) != 1:
            return None
        t = weights.type
        assert isinstance(weights.attrs, SoftmaxAttrs)
        if weights.attrs.axis % t.rank != t.rank - 1:
            return None
        if t.dtype == BF16 and self.fits is None:
            return None
        self.attrs = FusedAttentionAttrs(fully_masked=weights.attrs.fully_masked)
        product = self._product(weights.inputs[0])
        return None if product is None else self._joined(product)

    def _product(self, value: str) -> Node | None:
        """The product that the scores come from; what is done to it on the way is taken down."""
        while True:
            n = self.g.producer(value)
            if n is None or self.g.use_count(value) != 1:
                return None
            if n.op == "matmul":
                return n
            step = _STEPS.get(n.op)
            found = None if step is None else step(self, n)
            if found is None:
                return None
            value = found

    @property
    def _has_band(self) -> bool:
        return self.attrs.window_left >= 0 or self.attrs.window_right >= 0

    @property
    def _is_masked(self) -> bool:
        return bool(self.mask) or self._has_band or bool(self.attrs.softcap)

    def _scaled(self, n: Node) -> str | None:
        """A multiplication, or division, by a number; around a tanh it is a cap."""
        factor = _factor(self.g, n)
        if factor is None:
            return None
        value, number = factor
        inner = self.g.producer(value)
        if inner is not None and inner.op == "tanh":
            return self._capped(inner, number)
        self.attrs = replace(self.attrs, scale=self.attrs.scale * number)
        return value

    def _capped(self, n: Node, cap: float) -> str | None:
        inner = self.g.producer(n.inputs[0])
        factor = None if inner is None else _factor(self.g, inner)
        alone = self.g.use_count(n.name) == 1 and self.g.use_count(n.inputs[0]) == 1
        if factor is None or not alone or self.attrs.softcap or self.attrs.scale != 1 or cap <= 0:
            return None
        self.attrs = replace(self.attrs, softcap=cap, scale=factor[1] * cap)
        return factor[0]

    def _added(self, n: Node) -> str | None:
        """A mask, or a bias, that is added to the scores."""
        if self.bias or self.attrs.softcap:
            return None
        for value, mask in (n.inputs, n.inputs[::-1]):
            if self.g.type(value) == n.type and self._leads_to_product(value):
                self._take_mask(mask)
                return value
        return None

    def _leads_to_product(self, value: str) -> bool:
        """Whether scores come along here, and not a mask of the same shape."""
        n = self.g.producer(value)
        if n is None or n.op not in _STEPS:
            return n is not None and n.op == "matmul"
        same = [x for x in n.inputs if x and self.g.type(x) == n.type]
        return any(self._leads_to_product(x) for x in same)

    def _take_mask(self, mask: str) -> None:
        data = self.g.constant_data(mask)
        if data is not None and not data.any():
            return
        source = self.g.producer(mask)
        if source is not None and isinstance(source.attrs, CastAttrs):
            mask = source.inputs[0]  # a narrow type may not hold what hides
            data = self.g.constant_data(mask)
        self.factors[mask] = self.attrs.scale
        offset = self._band(mask, data)
        if offset is not None:
            self.attrs = replace(self.attrs, offset=offset, window_right=0)
            return
        if self.soft_band:
            self.mask, self.soft_band = self.soft_band, ""
            self.attrs = replace(self.attrs, offset=const(0), window_right=-1)
        if self.mask:
            self.bias = mask
        else:
            self.mask = mask

    def _band(self, mask: str, data: np.ndarray | None) -> Expr | None:
        """The offset of a mask that is a band.

        Beside another mask it is one only if it hides by -inf: where the other hides all that this
        one shows, what a finite number hides is seen again.
        """
        hard = data is not None and data.min() == -np.inf
        if self._has_band or self.attrs.scale <= 0 or (self.mask and not hard):
            return None
        offset = causal_offset(self.g, mask)
        if offset is not None and not hard:
            self.soft_band = mask
        return offset

    def _scaled_mask(self, mask: str) -> str:
        """A mask as it counts after the scalings that come after it, equal rows being one."""
        factor = self.factors.get(mask, 1.0)
        mask = self.masks.narrowed(self.g, mask) if mask else mask
        if factor == 1:
            return mask
        number = np.asarray(factor, self.g.type(mask).dtype.numpy)
        return self.g.add("mul", mask, self.g.constant(number))

    def _chosen(self, n: Node) -> str | None:
        """Scores where a mask holds, a number elsewhere; or the other way round."""
        if self.bias or self._has_band or self.attrs.softcap:
            return None
        if self.mask and self.g.type(self.mask).dtype == BOOL:
            return None
        condition, first, second = n.inputs
        for value, other, inverted in ((first, second, False), (second, first, True)):
            data = self.g.constant_data(other)
            found = self.g.producer(value)
            if data is None or data.size != 1 or found is None or self.g.type(value) != n.type:
                continue
            # What is added after the choice is a bias that comes last.
            self.bias, last = self.mask, bool(self.mask)
            self.mask = self.g.add("not", condition) if inverted else condition
            hidden = float(data.reshape(-1)[0]) * self.attrs.scale
            self.attrs = replace(self.attrs, masked_value=hidden, bias_last=last)
            return value
        return None

    def _banded(self, n: Node) -> str | None:
        assert isinstance(n.attrs, MaskAttrs)
        scores, mask, lengths = (*n.inputs, "", "")[:3]
        band = n.attrs
        if self._is_masked or self.attrs.scale != 1 or bool(lengths) != band.bottom_right:
            return None
        if mask and self.g.type(mask).shape[-1] is not n.type.shape[-1]:
            return None
        self.mask, self.lengths = mask, lengths
        self.attrs = replace(
            self.attrs,
            offset=band.offset,
            window_left=band.window_left,
            window_right=band.window_right,
            bottom_right=band.bottom_right,
        )
        return scores

    def _joined(self, product: Node) -> str | None:
        g = self.g
        q, k, v = product.inputs[0], product.inputs[1], self.node.inputs[1]
        types = [g.type(x) for x in (q, k, v)]
        rank = product.type.rank
        sizes = as_int(types[0].shape[-1]), as_int(types[2].shape[-1])
        lengths = as_int(types[0].shape[-2]), as_int(types[2].shape[-2])
        batches = types[0].shape[:-2] == product.type.shape[:-2] == self.node.type.shape[:-2]
        known = None not in sizes and 0 not in (*sizes, *lengths)
        known = known and sizes[1] != 1  # single columns are no tile, and worth none
        fits = types[1].shape[-1] is types[2].shape[-2] and all(t.rank == rank for t in types)
        if not fits or not batches or not known:
            return None
        q, q_perm, q_scale = self._source(q)
        k, k_perm, k_scale = self._source(k)
        v, v_perm, _ = self._source(v, scales=False)
        attrs = replace(
            self.attrs,
            scale=self.attrs.scale * q_scale * k_scale,
            q_perm=_unless_plain(q_perm),
            k_perm=_unless_plain((*k_perm[:-2], k_perm[-1], k_perm[-2])),
            v_perm=_unless_plain(v_perm),
        )
        masks = [self._scaled_mask(m) for m in (self.mask, self.bias)]
        inputs = [q, k, v, masks[0], self.lengths, masks[1]]
        while not inputs[-1]:
            inputs.pop()
        given = tuple(g.type(x) if x else None for x in inputs)
        if self.fits is not None and not self.fits(Problem(attrs, given, self.node.type)):
            return None
        return g.add("fused_attention", *inputs, attrs=attrs)

    def _source(self, value: str, scales: bool = True) -> tuple[str, tuple[int, ...], float]:
        """An operand before it was transposed and scaled: its order, and the scale."""
        perm = tuple(range(self.g.type(value).rank))
        scale = 1.0
        while (n := self.g.producer(value)) is not None:
            alone = scales and self.g.use_count(value) == 1
            factor = _factor(self.g, n) or _wide_factor(self.g, n) if alone else None
            transposed = _through_units(self.g, n)
            if isinstance(n.attrs, TransposeAttrs):
                value, perm = n.inputs[0], tuple(n.attrs.perm[d] for d in perm)
            elif transposed is not None:
                value, perm = transposed[0], tuple(transposed[1][d] for d in perm)
            elif factor is not None and self.g.type(factor[0]) == n.type:
                value, scale = factor[0], scale * factor[1]
            else:
                break
        return value, perm, scale


_STEPS: dict[str, Callable[[_Attention, Node], str | None]] = {
    "mul": _Attention._scaled,
    "div": _Attention._scaled,
    "add": _Attention._added,
    "where": _Attention._chosen,
    "mask_scores": _Attention._banded,
}


def _factor(g: Rewriter, n: Node) -> tuple[str, float] | None:
    """What a node multiplies, and by which number; `None` if it does something else."""
    if n.op not in ("mul", "div") or not n.type.dtype.is_float:
        return None
    pairs = (n.inputs, n.inputs[::-1]) if n.op == "mul" else (n.inputs,)
    for value, other in pairs:
        data = g.constant_data(other)
        if data is not None and data.size == 1 and g.type(value) == n.type:
            number = float(data.reshape(-1)[0])
            usable = np.isfinite(number) and number != 0
            return (value, number if n.op == "mul" else 1 / number) if usable else None
    return None


def _wide_factor(g: Rewriter, n: Node) -> tuple[str, float] | None:
    """The same of a value that is multiplied in a wider type, and rounded back."""
    product = g.producer(n.inputs[0]) if n.op == "cast" else None
    factor = None if product is None else _factor(g, product)
    widened = None if factor is None else g.producer(factor[0])
    if factor is None or widened is None or widened.op != "cast":
        return None
    value = widened.inputs[0]
    return (value, factor[1]) if g.type(value).dtype == n.type.dtype else None


def _through_units(g: Rewriter, n: Node) -> tuple[str, tuple[int, ...]] | None:
    """A transposed value that only got dimensions of size 1, as a value of its rank and an order.

    %1 = transpose(%0) {perm=[0, 2, 1]}                %0 as [1, 12, 129, 64], in the
    %2 = reshape(%1) {shape=[1, 12, 64, 129]}    →     order [0, 1, 3, 2]
    """
    source = g.producer(n.inputs[0]) if isinstance(n.attrs, ReshapeAttrs) else None
    if source is None or not isinstance(source.attrs, TransposeAttrs):
        return None
    perm, before = source.attrs.perm, source.type.shape
    more = n.type.rank - len(before)
    if more < 1 or [d for d in n.type.shape if d is not ONE] != [d for d in before if d is not ONE]:
        return None
    stored = g.type(source.inputs[0]).shape
    value = g.add("reshape", source.inputs[0], attrs=ReshapeAttrs((ONE,) * more + stored))
    long = iter([more + perm[d] for d, size in enumerate(before) if size is not ONE])
    units = iter([*range(more), *(more + d for d, size in enumerate(stored) if size is ONE)])
    return value, tuple(next(units if size is ONE else long) for size in n.type.shape)


def _unless_plain(perm: tuple[int, ...]) -> tuple[int, ...]:
    return () if perm == tuple(range(len(perm))) else perm
