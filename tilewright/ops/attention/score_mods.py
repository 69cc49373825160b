"""Score modifications: scale, softcap, bias, mask and sliding window.

A part of the loops of attention (`flash_loops.py`), which define the indices.
"""

from __future__ import annotations

from tilewright.arith.dtype_limits import lowest
from tilewright.arith.expr import (
    TRUE,
    Expr,
    Load,
    Var,
    call,
    cast,
    const,
    minimum,
    select,
)
from tilewright.arith.simplify import prove, simplify
from tilewright.core.dtypes import BOOL, I64, DType
from tilewright.ir.loop.nodes import Buffer
from tilewright.ops.attention.problem import Problem
from tilewright.ops.op import broadcast_index

ROW, J = Var("at.i"), Var("at.j")  # no size has a name with a dot


class Scores:
    """Formulas on scores, of what the loops have collected."""

    p: Problem
    params: dict[str, Buffer]
    dtype: DType
    batch: tuple[Var, ...]
    # The batches that operands have.
    plain: tuple[Var, ...]
    width: Expr
    key_blocks: Expr
    padded_rows: Expr
    carries: bool

    def _inside(self, j: Expr) -> Expr:
        """Whether a key is one; always where blocks end where the keys do."""
        keys = self.p.k[-2]
        whole = prove(simplify(self.key_blocks * self.width).eq(keys))
        return TRUE if whole else j < keys

    def _key(self) -> Expr:
        """The number of a key among all."""
        return Var("at.k") * self.width + J if self.carries else J

    def _row(self) -> Expr:
        """The row of queries; past the last one it is computed again, and not stored."""
        rows = self.p.q[-2]
        whole = prove(self.padded_rows.eq(rows))
        return ROW if whole else minimum(ROW, simplify(rows - 1))

    def _score(self, product: Expr, hides: bool = True) -> Expr:
        """A product scaled, capped and masked; with `hides`, what is not seen is hidden."""
        attrs, dtype = self.p.attrs, self.dtype
        value = product if attrs.scale == 1 else product * const(attrs.scale, dtype)
        if attrs.softcap > 0:
            cap = const(attrs.softcap, dtype)
            value = call("tanh", value / cap) * cap
        for name in ("x3", "x5") if attrs.bias_last else ("x5", "x3"):
            if name in self.params:
                value = self._masked(self.params[name], value)
        return self._hidden(value) if hides else value

    def _hidden(self, value: Expr) -> Expr:
        """A score, or what none has where there is no key or the band does not show it."""
        seen = self._inside(self._key()) & self._in_band()
        return value if seen is TRUE else select(seen, value, lowest(self.dtype))

    def _masked(self, mask: Buffer, value: Expr) -> Expr:
        shape = mask.shape
        index = broadcast_index(shape, (*self.batch, self._row(), self._key()))
        has_keys = bool(shape) and shape[-1] is not const(1)
        inside = self._inside(self._key()) if has_keys else TRUE
        given = Load(mask.name, index, mask.dtype, None if inside is TRUE else inside)
        if mask.dtype == BOOL:
            return select(given, value, const(self.p.attrs.masked_value, value.dtype))
        return value + cast(value.dtype, given)

    def _in_band(self) -> Expr:
        attrs, j = self.p.attrs, self._key()
        seen: Expr = TRUE
        offset = attrs.offset
        if attrs.bottom_right:
            length = cast(I64, Load("x4", self.plain[:1], self.params["x4"].dtype))
            seen = j < length
            offset = length - self.p.q[-2]
        if attrs.window_right >= 0:
            seen = seen & (j <= ROW + offset + attrs.window_right)
        if attrs.window_left >= 0:
            seen = seen & (ROW + offset <= j + attrs.window_left)
        return seen
