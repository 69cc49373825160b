"""The pickles in a TorchScript archive, read by a table of the few names that they may mention.

A pickle is a program for a machine that calls what it names. Here a name that is not in the table
is an error, a class of the archive is an object with attributes and nothing else, and the few
functions build lists and tensors.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch

from tilewright.core.errors import FrontendError

Read = Callable[[str], bytearray]
"""The bytes of a storage, by its name."""


class ScriptObject:
    """An object of a class of the archive, whose methods are text."""

    qualified_name = ""
    attributes: Mapping[str, Any] = MappingProxyType({})

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.attributes = dict(state)


def damaged(what: str) -> FrontendError:
    """The error for an archive that is not as torch writes it."""
    return FrontendError(
        "torch.script", f"the TorchScript archive {what}", help="save it again with torch.jit.save"
    )


def unpickled(data: bytes, storage: Read) -> Any:
    """What a pickle holds; its tensors are on the CPU wherever they were."""
    try:
        return _Unpickler(io.BytesIO(data), storage).load()
    except FrontendError:
        raise
    except Exception as error:  # a pickle that is damaged may fail in any way
        raise damaged(f"is damaged: {type(error).__name__} {error}") from error


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, storage: Read) -> None:
        super().__init__(file)
        self._storage, self._storages = storage, dict[str, bytearray]()
        self._classes: dict[str, type[ScriptObject]] = {}

    def find_class(self, module: str, name: str) -> Any:
        qualified = f"{module}.{name}"
        if qualified.startswith("__torch__."):
            made = type(name, (ScriptObject,), {"qualified_name": qualified})
            return self._classes.setdefault(qualified, made)
        if qualified not in _KNOWN:
            raise damaged(f"names {qualified}, which is nothing that such archives hold")
        return _KNOWN[qualified]

    def persistent_load(self, told: Any) -> tuple[torch.dtype, bytearray]:
        """A storage: its kind, name, device and number of elements, of which two are needed."""
        _, dtype, name, *_ = told
        if name not in self._storages:
            self._storages[name] = self._storage(name)
        return dtype, self._storages[name]


def _tensor(
    storage: tuple[torch.dtype, bytearray], offset: int, sizes: Any, strides: Any, *_: Any
) -> torch.Tensor:
    dtype, data = storage
    given = (offset, *sizes, *strides)
    if len(sizes) != len(strides) or any(not isinstance(n, int) or n < 0 for n in given):
        raise damaged(f"has a tensor of sizes {sizes} and strides {strides}")
    if 0 in sizes:
        return torch.empty(sizes, dtype=dtype)
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if (last + 1) * dtype.itemsize > len(data):
        raise damaged(f"is damaged: a tensor is larger than its {len(data)} bytes")
    return torch.frombuffer(data, dtype=dtype).as_strided(sizes, strides, offset)


def _parameter(data: torch.Tensor, *_: Any) -> torch.Tensor:
    return data


def _restored(value: Any, _type: str) -> Any:
    return value


_STORAGES = {
    "ByteStorage": torch.uint8,
    "CharStorage": torch.int8,
    "ShortStorage": torch.int16,
    "IntStorage": torch.int32,
    "LongStorage": torch.int64,
    "HalfStorage": torch.float16,
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "ComplexFloatStorage": torch.complex64,
    "ComplexDoubleStorage": torch.complex128,
    "BoolStorage": torch.bool,
    "BFloat16Storage": torch.bfloat16,
}
_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")
_KNOWN: dict[str, Any] = {
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch.jit._pickle.restore_type_tag": _restored,
    "torch.device": torch.device,
    "collections.OrderedDict": dict,
    **{f"torch.jit._pickle.{name}": list for name in _LISTS},
    **{f"torch.{name}": dtype for name, dtype in _STORAGES.items()},
}
