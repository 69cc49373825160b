"""The index expressions inside attributes and types: rewriting them, and the sizes they mention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

from tilewright.arith.expr import Expr
from tilewright.arith.walk import free_vars
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import OptionalType, SequenceType, TensorType

T = TypeVar("T")


def map_exprs(value: T, f: Callable[[Expr], Expr]) -> T:
    """Attributes, a type, or a tuple of such things, with `f` applied to each expression in it."""
    found: Any = value
    if isinstance(value, Expr):
        found = f(value)
    elif isinstance(value, tuple):
        found = tuple(map_exprs(v, f) for v in value)
    elif isinstance(value, Attrs | TensorType | SequenceType | OptionalType):
        parts = {field.name: map_exprs(getattr(value, field.name), f) for field in fields(value)}
        found = replace(value, **parts)
    result: T = found
    return result


def symbols_of(value: object) -> frozenset[str]:
    """The names of the symbolic sizes that attributes or types mention."""
    names: set[str] = set()

    def collect(e: Expr) -> Expr:
        names.update(free_vars(e))
        return e

    map_exprs(value, collect)
    return frozenset(names)
