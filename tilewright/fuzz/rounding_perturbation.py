"""The interpreter with other roundings: inexact results change by a few units in the last place.

Results and operands are perturbed by element; within an operator each sum, product, quotient or
function is scaled by a number of its own, so that what cancels there shows as well. Operators that
only move elements, and all integers, move nothing: they have to agree exactly.

Moving each term of a sum at random does not show all that adding does. Two more things differ from
one order of operations to another, and each is tried with some of the seeds:

- Terms are added one after the other. Errors of 2048 equal terms do not cancel, they add up.
- Sums are formed in a wider type, and so is what is added to a product. A product that is beyond
  the range is infinite by itself, but not within a fused multiply-add, which rounds once:
  `-inf + 1e30 * 1e30` is `-inf` there, NaN elsewhere.

Machines that multiply bf16 take subnormal operands, products and sums of them for zero; where the
machine is such a one, that is tried as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np

from tilewright.arith.expr import Binary, Call, Expr, Reduce, call, const, select
from tilewright.arith.walk import loads, rewrite
from tilewright.core.dtypes import BF16, F16, F32, from_numpy
from tilewright.fuzz.random_values import finfo, is_float
from tilewright.ir.graph.nodes import Node
from tilewright.ir.scalar_semantics import FUNCTIONS
from tilewright.ir.tensor.interp import Sums
from tilewright.ir.types import Type
from tilewright.ops.interpret import Arrays, Sizes, evaluate_node
from tilewright.ops.registry import get_op

# Operators whose results are operands, or exact functions of them.
EXACT = frozenset(
    """identity reshape slice_view concat_view transpose expand tile reverse depth_to_space
    space_to_depth trilu slice concat pad gather gather_elements gather_nd one_hot reverse_sequence
    full eye_like dims where min max abs neg sign floor ceil round relu bitcast cast im2col max_pool
    max_pool_indices max_roi_pool reduce_max reduce_min argmax argmin topk hardmax scatter_nd
    bind_dim flatnonzero tensor_scatter resize_nearest range""".split()
)
# Operators that compute integers in f32.
BY_FLOATS = frozenset({"resize"})
# Operators in which elements of weight 0 are left out where that is known at compile time, so that
# it is open whether infinities among them count.
WEIGHTED = frozenset({"resize"})
# Operators that multiply many numbers, in whichever order.
PRODUCTS = frozenset({"reduce_prod"})
# Units in the last place by which an inexact result, or an operand of a sum, is perturbed.
UNITS = 4.0
# The same for sums, products and quotients within an operator, each of which is rounded once.
ROUNDED = 1.0
# Operators that a fused multiply-add consists of.
_FUSED = ("mul", "add", "sub")
_ARITHMETIC = ("add", "sub", "mul", "div")
# Functions that fall so steeply that it matters how their operand is rounded on the way.
_STEEP_CALLS = ("gelu",)
# In each of these ways some seed adds.
_SUMS: tuple[Sums, ...] = get_args(Sums)
# The least normal number of bf16 and of f32, in which its products are added.
_NORMAL = float(np.finfo(np.float32).smallest_normal)
_INEXACT_CALLS = FUNCTIONS.keys() - {"floor", "ceil", "trunc", "round_even", "copysign"}


class PerturbedEvaluator:
    """Evaluates nodes and moves what is inexact; `count` says how many results were.

    `flushes` says that the machine's products of bf16 know no subnormal numbers.
    """

    def __init__(self, seed: int, flushes: bool = False) -> None:
        self.draw = np.random.default_rng(seed)
        self.leaves_out = seed % 2 == 1
        self.flushes = flushes and seed % 2 == 1
        self.sums = _SUMS[seed % len(_SUMS)]
        self.count = 0
        self._scaled: dict[Expr, Expr] = {}
        self._multiplies_bf16 = False
        # products beyond the range by the identity of what they are stored as
        self._beyond: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(
        self, node: Node, inputs: Arrays, sizes: Sizes, types: Sequence[Type | None]
    ) -> list[np.ndarray]:
        """The results of a node, perturbed."""
        if node.op in EXACT:
            return evaluate_node(node, inputs, sizes, types)
        if node.regions:
            return evaluate_node(node, inputs, sizes, types, self)
        if get_op(node.op).kind not in ("injective", "view"):
            inputs = self._operands(node, inputs)
        edit = self._weighed if self.leaves_out and node.op in WEIGHTED else self.scaled
        self._multiplies_bf16, outer = False, self._multiplies_bf16
        found = evaluate_node(node, inputs, sizes, types, self, edit, self.sums)
        if self._multiplies_bf16:
            found = [_without_subnormals(x) for x in found]
        self._multiplies_bf16 = outer
        results = [self._move(x) for x in found]
        if self.leaves_out and node.op == "softmax":
            # as `exp_ftz` does, which the weights of attention are made by
            results = [_without_subnormals(x) for x in results]
        if self.sums == "wide" and node.op in _FUSED:
            results = [self._fused(node.op, inputs, results[0])]
        if node.op in PRODUCTS:
            results = [np.where(_leaves_range(node, inputs, sizes, types), np.nan, results[0])]
        if node.op in BY_FLOATS:
            results = [self._rounded(x) for x in results]
        self.count += any(is_float(x.dtype) or x.dtype.kind == "c" for x in results)
        return results

    def scaled(self, e: Expr) -> Expr:
        """An expression with each inexact value in it scaled; the same for equal ones."""
        match e:
            case Reduce(op="sum", axes=axes, body=Binary(op="mul", a=a, b=b)):
                # its operands are perturbed, and a sum of products is interpreted at once
                x, y = self.scaled(a), self.scaled(b)
                if self.flushes and _is_of_bf16(a) and _is_of_bf16(b):
                    self._multiplies_bf16 = True
                    return Reduce("sum", axes, _flushed(_flushed(x) * _flushed(y)))
                return Reduce("sum", axes, x * y)
        if self.sums == "wide":
            e = rewrite(e, _multiply_add)
        return rewrite(e, self._scale, self._scaled)

    def _fused(self, op: str, inputs: Arrays, result: np.ndarray) -> np.ndarray:
        """A product, or a sum of one that is rounded only with it."""
        if result.dtype not in (np.float32, np.float64):
            return result
        wide = np.longdouble if result.dtype == np.float64 else np.float64
        operands = [x for x in inputs if x is not None]
        if op == "mul":
            exact = np.multiply(*(x.astype(wide) for x in operands))
            if (np.isinf(result) & np.isfinite(exact)).any():
                self._beyond[id(result)] = result, exact
            return result
        known = [self._beyond.get(id(x), (x, x))[1] for x in operands]
        if all(x is y for x, y in zip(known, operands, strict=True)):
            return result
        together = np.subtract if op == "sub" else np.add
        return np.asarray(together(*(x.astype(wide) for x in known))).astype(result.dtype)

    def _weighed(self, e: Expr) -> Expr:
        return self.scaled(rewrite(e, _product_or_zero))

    def _scale(self, e: Expr) -> Expr | None:
        if not e.dtype.is_float or e.dtype.is_small:
            return None
        if isinstance(e, Binary) and e.op in _ARITHMETIC:
            units = ROUNDED
        elif isinstance(e, Call) and e.fn in _INEXACT_CALLS:
            units = UNITS
        else:
            return None
        if isinstance(e, Call) and e.fn in _STEEP_CALLS:
            e = call(e.fn, *(self._times(a, ROUNDED) for a in e.args))
        return self._times(e, units)

    def _times(self, e: Expr, units: float) -> Expr:
        """A value a few units in its last place larger or smaller."""
        eps = float(finfo(e.dtype.numpy).eps)
        return e * const(1 + eps * self.draw.uniform(-units, units), e.dtype)

    def _operands(self, node: Node, inputs: Arrays) -> Arrays:
        pairs = list(zip(node.inputs, inputs, strict=True))
        perturbed = {n: self._move(x) for n, x in pairs if x is not None}
        return [None if x is None else perturbed[n] for n, x in pairs]

    def _rounded(self, x: np.ndarray) -> np.ndarray:
        """Integers perturbed as far as roundings in f32 may move them."""
        if x.dtype.kind not in "iu":
            return x
        perturbed = np.asarray(x.astype(np.float64) * (1 + self._by(np.float32, x.shape)))
        info = np.iinfo(x.dtype)
        low, high = np.nextafter(float(info.min), 0), np.nextafter(float(info.max), 0)
        self.count += 1
        return np.asarray(np.clip(perturbed, low, high), x.dtype)

    def _by(self, dtype: Any, shape: Sequence[int]) -> np.ndarray:
        eps = float(finfo(dtype).eps)
        return np.asarray(self.draw.uniform(-UNITS * eps, UNITS * eps, shape))

    def _move(self, x: np.ndarray) -> np.ndarray:
        if x.dtype.kind == "c":
            real, imaginary = self._move(x.real), self._move(x.imag)
            return np.asarray(real + np.asarray(1j * imaginary, x.dtype))
        if not is_float(x.dtype) or from_numpy(x.dtype).is_small:  # these only move and convert
            return x
        return np.asarray(x.astype(np.float64) * (1 + self._by(x.dtype, x.shape))).astype(x.dtype)


def _leaves_range(
    node: Node, inputs: Arrays, sizes: Sizes, types: Sequence[Type | None]
) -> np.ndarray:
    """Where a product may become infinite or lose digits on the way, in some order or other."""
    (x,) = inputs
    assert x is not None
    if not is_float(x.dtype):
        return np.zeros((), bool)
    size = np.abs(np.where(np.isfinite(x) & (x != 0), x, 1)).astype(x.dtype)
    one = np.ones((), x.dtype)
    (large,) = evaluate_node(node, [np.maximum(size, one)], sizes, types)
    (small,) = evaluate_node(node, [np.minimum(size, one)], sizes, types)
    return np.asarray(~np.isfinite(large) | (small < finfo(x.dtype).smallest_normal))


def _product_or_zero(e: Expr) -> Expr | None:
    """A product of floats, 0 where its second factor is."""
    if not isinstance(e, Binary) or e.op != "mul" or not e.dtype.is_float:
        return None
    zero = const(0, e.dtype)
    return select(e.b.eq(zero), zero, e)


def _multiply_add(e: Expr) -> Expr | None:
    """A product and what is added to it, rounded once."""
    if e.dtype not in (F16, F32):  # of f64 it would be interpreted slowly
        return None
    match e:
        case Binary(op="add", a=Binary(op="mul", a=a, b=b), b=c):
            return call("fma", a, b, c)
        case Binary(op="add", a=c, b=Binary(op="mul", a=a, b=b)):
            return call("fma", a, b, c)
        case Binary(op="sub", a=Binary(op="mul", a=a, b=b), b=c):
            return call("fma", a, b, -c)
        case Binary(op="sub", a=c, b=Binary(op="mul", a=a, b=b)):
            return call("fma", -a, b, c)
    return None


def _is_of_bf16(e: Expr) -> bool:
    return e.dtype == F32 and {load.dtype for load in loads(e)} == {BF16}


def _flushed(e: Expr) -> Expr:
    zero = const(0, e.dtype)
    return select(call("abs", e) < const(_NORMAL, e.dtype), zero, e)


def _without_subnormals(x: np.ndarray) -> np.ndarray:
    if x.dtype not in (BF16.numpy, np.float32):
        return x
    return np.where(np.abs(x.astype(np.float32)) < _NORMAL, np.zeros((), x.dtype), x)
