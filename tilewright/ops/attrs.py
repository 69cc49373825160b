"""Operators' attributes from plain values, as text and tools give them.

make_attrs("reshape", {"shape": (Var("N"), 64)})    ReshapeAttrs(shape=(N, 64))
make_attrs("cast", {"to": "f32"})                   CastAttrs(to=F32)

A field's annotation says what its numbers and names mean: a number is an expression where `Expr` is
expected, a name is an element type where `DType` is, `none` is nothing where `None` is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import BOOL, DTYPES, F32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.graph.nodes import NO_ATTRS, Attrs, FusedAttrs
from tilewright.ops.registry import get_op


def make_attrs(op: str, values: Mapping[str, object]) -> Attrs:
    """The attributes of operator `op`; values that are not given have their defaults."""
    return attrs_of(FusedAttrs if op == "fused" else get_op(op).attrs, values, op)


def attrs_of(cls: type[Attrs], values: Mapping[str, object], op: str) -> Attrs:
    """Attributes of a class, those of an operator; values that are not given have defaults."""
    known = _fields(cls)
    unknown = [name for name in values if name not in known]
    missing = [n for n, f in known.items() if n not in values and f.default is MISSING]
    if unknown or missing:
        what = f"has no attribute {unknown[0]!r}" if unknown else f"needs attribute {missing[0]!r}"
        names = ", ".join(known) or "none"
        raise TypeCheckError("attrs.name", f"{op} {what}", help=f"its attributes are: {names}")
    if cls is Attrs:
        return NO_ATTRS
    return cls(**{name: _convert(v, str(known[name].type)) for name, v in values.items()})


def _fields(cls: type[Attrs]) -> dict[str, Field[Any]]:
    return {f.name: f for f in fields(cls)}


def _convert(value: object, annotation: str) -> object:
    words = _words(annotation)
    if isinstance(value, list | tuple):
        return tuple(_convert(v, annotation) for v in value)
    name = value.name if isinstance(value, Var) else value
    if name == "none" and "None" in words:
        return None
    if "DType" in words and isinstance(name, str) and name in DTYPES:
        return DTYPES[name]
    if "Expr" in words and isinstance(value, bool | int | float):
        dtype = BOOL if isinstance(value, bool) else I64 if isinstance(value, int) else F32
        return const(value, dtype)
    return value


@cache
def _words(annotation: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", annotation))
