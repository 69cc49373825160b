"""What is certain about indices while loops run: the questions that decide on guards."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.bounds import upper
from tilewright.arith.expr import Expr
from tilewright.arith.simplify import prove


def is_below(a: Expr, b: Expr, extents: Mapping[str, Expr]) -> bool:
    """Whether `a < b` is certain; `extents` are those of the variables that run from 0."""
    if prove(a < b, extents):
        return True
    # The greatest value first: a bound with a division in it may then cancel as a whole.
    greatest = upper(a, extents)
    return greatest is not None and prove(greatest < b, extents)
