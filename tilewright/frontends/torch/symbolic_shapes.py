"""Symbolic sizes: torch's are SymPy expressions, ours are index expressions.

Sizes({"s0": 4}).of(x.shape[0])              # `s0 * 2` is then 8
Sizes({"s0": Var("N")}).of(x.shape[0])       # and here `N * 2`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import sympy
import torch
from torch.fx import GraphModule

from tilewright.arith.expr import Expr, Var, as_expr, as_int, ceildiv, const, maximum, minimum
from tilewright.arith.simplify import simplify
from tilewright.core.errors import UnsupportedError

# By the name of the function: torch has its own division and remainder of integers.
_FUNCTIONS: dict[str, Callable[..., Expr]] = {
    "FloorDiv": lambda a, b: a // b,
    "CleanDiv": lambda a, b: a // b,
    "CeilToInt": lambda a: a,
    "CeilDiv": ceildiv,
    "Mod": lambda a, b: a % b,
    "PythonMod": lambda a, b: a % b,
    "Max": lambda *items: reduce(maximum, items),
    "Min": lambda *items: reduce(minimum, items),
}


class Sizes:
    """Gives each symbolic size its expression; `fixed` are symbols with a value or another name."""

    def __init__(self, fixed: Mapping[str, int | Expr] | None = None) -> None:
        self.fixed = dict(fixed or {})

    def of(self, size: Any) -> Expr:
        """A size: a number, a `SymInt`, or an expression of ours."""
        if isinstance(size, Expr):
            return size
        if isinstance(size, torch.SymInt):
            return simplify(self._expr(size.node.expr))
        return as_expr(int(size))

    def symbol(self, size: Any) -> str | None:
        """The name of a size that is one symbol without a value, else `None`."""
        found = self.of(size)
        return found.name if isinstance(found, Var) else None

    def _expr(self, e: sympy.Expr) -> Expr:
        if isinstance(e, sympy.Integer):
            return const(int(e))
        if isinstance(e, sympy.Symbol):
            value = self.fixed.get(e.name)
            return Var(e.name) if value is None else as_expr(value)
        items = [self._expr(a) for a in e.args]
        if isinstance(e, sympy.Add):
            return reduce(lambda a, b: a + b, items)
        if isinstance(e, sympy.Mul):
            return reduce(lambda a, b: a * b, items)
        if isinstance(e, sympy.Pow):
            return _power(e, items)
        return _function(e)(*items)


def unbound_symbols(module: GraphModule) -> list[str]:
    """The symbols of which no dimension of an input says the value."""
    sizes, bound = Sizes(), set()
    seen: dict[str, None] = {}
    for node in module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        for dim in value.shape if isinstance(value, torch.Tensor) else [value]:
            if isinstance(dim, torch.SymInt):
                seen |= dict.fromkeys(sorted(s.name for s in dim.node.expr.free_symbols))
                if isinstance(value, torch.Tensor):
                    bound.add(sizes.symbol(dim))
    return [symbol for symbol in seen if symbol not in bound]


def _function(e: sympy.Expr) -> Callable[..., Expr]:
    name = type(e).__name__
    if name not in _FUNCTIONS:
        raise _unknown(e)
    return _FUNCTIONS[name]


def _power(e: sympy.Expr, items: list[Expr]) -> Expr:
    count = as_int(items[1])
    if count is None or count < 1:
        raise _unknown(e)
    return reduce(lambda a, b: a * b, [items[0]] * count)


def _unknown(e: sympy.Expr) -> UnsupportedError:
    return UnsupportedError(
        "torch.size",
        f"the size {e} has no counterpart",
        help=f"sums, products and {', '.join(_FUNCTIONS)} have; or compile with dynamic=False",
    )
