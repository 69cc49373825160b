"""What the functions of TorchScript mean: on numbers and lists Python's, on tensors torch's."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.program.targets import find_target

# The numbers that stand for types in TorchScript.
SCALAR_TYPES = (
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16),
    *(torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128),
    *(torch.bool, torch.qint8, torch.quint8, torch.qint32, torch.bfloat16),
)
_NUMBER = (int, float, bool, complex, torch.SymInt, torch.SymFloat, torch.SymBool)


def call_torch(name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """A function `torch.name`: of numbers and lists, else an operator of tensors."""
    if name in _ALWAYS:
        return _ALWAYS[name](*args, **named)
    if name in _PLAIN and not any(isinstance(one, torch.Tensor) for one in args):
        return _PLAIN[name](*args, **named)
    if name in _PLAIN and all(map(_is_number, args)):
        # Traced models compute sizes with constants of no dimension.
        return _PLAIN[name](*map(_as_number, args), **named)
    return call_aten(name, args, named)


def call_aten(name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """An operator of torch.

    Of numbers alone only some are called: others have forms for each kind of number, of which
    torch would take the first that fits.
    """
    if name not in _CREATION and not any(map(_holds_tensor, (*args, *named.values()))):
        raise unknown(f"torch.{name} of numbers")
    return find_target(f"torch.ops.aten.{name}")(*args, **named)


def call_prim(name: str, args: Sequence[Any]) -> Any:
    """A function `ops.prim.name`."""
    if name not in _PRIM:
        raise unknown(f"ops.prim.{name}")
    return _PRIM[name](*args)


def call_builtin(name: str, args: Sequence[Any]) -> Any:
    """A function without a prefix."""
    if name not in _BUILTINS:
        raise unknown(name)
    return _BUILTINS[name](*args)


def unknown(what: str) -> UnsupportedError:
    """The error for what the text of an archive has and is not known here."""
    return UnsupportedError(
        "torch.script.function",
        f"the TorchScript archive uses {what}, which is not known here",
        help="compile the module that it was made of",
    )


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_tensor, value))
    return isinstance(value, torch.Tensor)


def _is_number(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dim() == 0 and type(value) is torch.Tensor and not value.is_floating_point()
    return isinstance(value, _NUMBER)


def _as_number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _append(items: list[Any], item: Any) -> list[Any]:
    items.append(item)
    return items


def _extend(items: list[Any], more: Sequence[Any]) -> list[Any]:
    items.extend(more)
    return items


def _slice(items: Any, start: Any = None, stop: Any = None, step: int = 1) -> Any:
    return items[start : min(stop, len(items)) if stop is not None else None : step]


def _insert(items: list[Any], place: int, item: Any) -> None:
    items.insert(place, item)


def _set_item(items: Any, key: Any, value: Any) -> Any:
    items[key] = value
    return items


def _tensor(
    value: Any, dtype: int | None = None, device: Any = None, requires_grad: bool = False
) -> torch.Tensor:
    """A tensor of numbers, of the type that theirs is by default."""
    kind = None if dtype is None else SCALAR_TYPES[dtype]
    if isinstance(value, list):
        return torch.tensor(value, dtype=kind)
    if kind is None:
        kind = torch.bool if isinstance(value, bool | torch.SymBool) else None
        kind = torch.int64 if kind is None and isinstance(value, int | torch.SymInt) else kind
    return torch.ops.aten.scalar_tensor.default(value, dtype=kind or torch.get_default_dtype())


def _warn(*_: Any, **__: Any) -> None:
    """What a model would tell is nothing that its results depend on."""


def _raise(message: Any, *_: Any) -> None:
    raise UnsupportedError(
        "torch.script.raise",
        f"the module raises an exception for these inputs: {message}",
        help="give inputs that the module accepts",
    )


# Operators that make tensors of numbers.
_CREATION = {
    *("zeros", "ones", "full", "empty", "arange", "linspace", "logspace", "eye", "rand", "randn"),
    *("randint", "randperm", "normal", "tril_indices", "triu_indices", "hann_window"),
    *("hamming_window", "blackman_window", "bartlett_window", "kaiser_window", "empty_strided"),
}
# Whatever their arguments are.
_ALWAYS: dict[str, Callable[..., Any]] = {
    "tensor": _tensor,
    "scalar_tensor": _tensor,
    "len": lambda value: value.shape[0] if isinstance(value, torch.Tensor) else len(value),
    "size": lambda tensor, axis=None: list(tensor.shape) if axis is None else tensor.shape[axis],
    "dim": lambda tensor: tensor.dim(),
    "numel": lambda tensor: tensor.numel(),
    "is_floating_point": lambda tensor: tensor.is_floating_point(),
    "format": lambda text, *values: text.format(*values),
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "append": _append,
    "warn": _warn,
    "list": list,
    "__not__": operator.not_,
    "device": torch.device,
    "insert": _insert,
    "extend": _extend,
    "keys": lambda mapping: list(mapping.keys()),
    "values": lambda mapping: list(mapping.values()),
    "items": lambda mapping: list(mapping.items()),
    "_set_item": _set_item,
    "__contains__": lambda items, item: item in items,
    "ScalarImplicit": lambda value: value,
    "IntImplicit": lambda value: value,
    "FloatImplicit": lambda value: value,
}
# Where no argument is a tensor.
_PLAIN: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floordiv": operator.floordiv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "neg": operator.neg,
    "pow": operator.pow,
    "abs": abs,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "__and__": operator.and_,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "slice": _slice,
    "select": operator.getitem,
    "__getitem__": operator.getitem,
    "sqrt": math.sqrt,
    "ceil": math.ceil,
    "floor": math.floor,
    "log": math.log,
    "exp": math.exp,
    "Int": torch.sym_int,
    "Float": torch.sym_float,
    "Bool": bool,
    "sum": sum,
    "max": max,
    "min": min,
    "any": any,
    "all": all,
    "sorted": sorted,
    "index": lambda items, item: items.index(item),
    "count": lambda items, item: items.count(item),
    "pop": lambda items, place=-1: items.pop(place),
    "copy": lambda value: value.copy(),
    "__range_length": lambda low, high, step: len(range(low, high, step)),
    "__derive_index": lambda index, start, step: start + index * step,
    "lower": str.lower,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "get": lambda mapping, key, default=None: mapping.get(key, default),
}
_NEVER = (
    *("is_cuda", "is_meta", "is_xpu", "is_mps", "is_mkldnn", "is_vulkan", "is_sparse"),
    *("is_nested", "is_quantized", "requires_grad"),
)
"""What is true of no tensor here."""
_PRIM: dict[str, Callable[..., Any]] = {
    "NumToTensor": lambda value: value,
    "unchecked_cast": lambda value: value,
    "unchecked_unwrap_optional": lambda value: value,
    "dtype": lambda tensor: SCALAR_TYPES.index(tensor.dtype),
    "device": lambda tensor: tensor.device,
    "layout": lambda tensor: 0,
    **dict.fromkeys(_NEVER, lambda tensor: False),
    "data": lambda tensor: tensor.detach(),
    "min": lambda *values: min(*values),
    "max": lambda *values: max(*values),
    "abs": abs,
    "RaiseException": _raise,
    "TupleUnpack": tuple,
    "Print": _warn,
    "type": lambda device: device.type,
    "shape": lambda tensor: list(tensor.shape),
}
_BUILTINS: dict[str, Callable[..., Any]] = {
    "int": lambda value: value.item() if isinstance(value, torch.Tensor) else torch.sym_int(value),
    "float": lambda value: (
        value.item() if isinstance(value, torch.Tensor) else torch.sym_float(_infinite(value))
    ),
    "bool": lambda value: value if isinstance(value, torch.Tensor) else bool(value),
    "str": str,
    "range": range,
    "list": list,
    "tuple": tuple,
    "complex": complex,
}


def _infinite(value: Any) -> Any:
    """Infinities and NaN are words in the text."""
    return float(value) if isinstance(value, str) else value
