"""What is certain about indices while loops run: the questions that decide on guards."""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.bounds import upper
from tilewright.arith.expr import Expr
from tilewright.arith.simplify import prove
from tilewright.arith.walk import free_vars


def is_below(a: Expr, b: Expr, extents: Mapping[str, Expr]) -> bool:
    """Whether `a < b` is certain; `extents` are those of the variables that run from 0."""
    if prove(a < b, extents):
        return True
    # The greatest value first: a bound with a division in it may then cancel as a whole, above all
    # where variables that it mentions itself are left alone.
    own = {name: extent for name, extent in extents.items() if name not in free_vars(b)}
    for known in (own, extents):
        greatest = upper(a, known)
        if greatest is not None and prove(greatest < b, extents):
            return True
    return False
