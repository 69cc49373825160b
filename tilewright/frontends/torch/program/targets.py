"""The functions that a saved program may call, by the names it has for them.

A name is looked up here and never evaluated.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from typing import Any

import torch

from tilewright.core.errors import UnsupportedError

# Functions of numbers: of sizes, mostly.
_NUMBERS: dict[str, Callable[..., Any]] = {
    **{
        f"_operator.{function.__name__.strip('_')}": function
        for function in (
            *(operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv),
            *(operator.mod, operator.pow, operator.neg, operator.pos, operator.getitem),
            *(operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge),
        )
    },
    "_operator.and_": operator.and_,
    "_operator.or_": operator.or_,
    "math.ceil": math.ceil,
    "math.floor": math.floor,
    "math.trunc": math.trunc,
    **{
        f"torch.{function.__name__}": function
        for function in (
            *(torch.sym_int, torch.sym_float, torch.sym_max, torch.sym_min, torch.sym_not),
            *(torch.sym_ite, torch.sym_sum),
        )
    },
    "torch._sym_sqrt": torch._sym_sqrt,
}


def _with_gradients(enabled: bool, function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)  # nothing that is compiled asks for gradients here


def _with_autocast(
    device: str,
    dtype: torch.dtype | None,
    enabled: bool,
    cached: bool | None,
    function: Callable[..., Any],
    *args: Any,
) -> Any:
    """The rules of the CPU, where tensors are, wherever they were."""
    with torch.autocast("cpu", dtype, enabled, cached):
        return function(*args)


# Functions of functions that mean something while torch traces.
_REGIONS: dict[str, Callable[..., Any]] = {
    "torch.ops.higher_order.wrap_with_set_grad_enabled": _with_gradients,
    "torch.ops.higher_order.wrap_with_autocast": _with_autocast,
}
_OPERATOR = re.compile(r"torch\.ops\.(aten|prims|higher_order)\.(\w+)(?:\.(\w+))?")
# They read files, or tell torch what to do with the process.
_OUTSIDE = re.compile(r"from_file|_?save\w*|_print|record_stream|set_\w*|manual_seed")


def find_target(name: str) -> Callable[..., Any]:
    """The function of a name, if programs may call it."""
    known = _NUMBERS.get(name) or _REGIONS.get(name)
    if known is not None:
        return known
    match = _OPERATOR.fullmatch(name)
    if match and not _OUTSIDE.fullmatch(match[2]):
        namespace, operator_name, overload = match.groups()
        found = getattr(getattr(torch.ops, namespace), operator_name, None)
        if overload is not None:
            found = getattr(found, overload, None)
        if isinstance(found, torch._ops.OperatorBase | torch._ops.OpOverloadPacket):
            operator_found: Callable[..., Any] = found
            return operator_found
    raise UnsupportedError(
        "torch.target",
        f"the program calls {name}, which is no operator of torch that is known here",
        help="register what it stands for, or compile the module itself",
    )
