"""What a module is traced with: tensors, or types of tensors as text, whose sizes may be names.

    ExampleInputs.of(("f32[N, 8]", torch.zeros(8)))

A size that is a name stays open, and has that name in the compiled model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch
from torch.export import Dim, ExportedProgram
from torch.utils._pytree import tree_map_only

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.errors import ConfigError
from tilewright.frontends.torch.dtypes import to_torch
from tilewright.frontends.torch.symbolic_shapes import Sizes
from tilewright.ir.graph.parse import parse_type
from tilewright.ir.types import TensorType

# Sizes are told apart by examples of their own; torch takes 0 and 1 for constants.
_FIRST_EXAMPLE = 5


@dataclass(frozen=True)
class ExampleInputs:
    """Inputs by place and by name, and the types that were given for some of them."""

    args: tuple[Any, ...]
    named: Mapping[str, Any]
    types: tuple[TensorType | None, ...]

    @classmethod
    def of(cls, inputs: Any) -> ExampleInputs:
        """The inputs that a user gives: one, several in order, or by name."""
        if inputs is None:
            raise ConfigError(
                "torch.inputs",
                "a module is compiled for example inputs, and none are given",
                help='compile(module, inputs=(torch.zeros(1, 3, 224, 224),)), or ("f32[N, 8]",); '
                'on the command line --type "f32[N, 8]"',
            )
        is_named = isinstance(inputs, Mapping)
        given = inputs.values() if is_named else inputs
        items = list(given) if is_named or isinstance(given, tuple | list) else [given]
        types = tuple(_type(one) if isinstance(one, str) else None for one in items)
        sizes = _examples(types)
        pairs = zip(items, types, strict=True)
        made = _distinct([one if t is None else _tensor(t, sizes) for one, t in pairs])
        if is_named:
            return cls((), dict(zip(inputs, made, strict=True)), types)
        return cls(tuple(made), {}, types)

    def open_sizes(self) -> Any:
        """Which sizes stay open, as `torch.export` is told; nothing where all are known."""
        dims: dict[str, Any] = {}

        def open_axes(t: TensorType | None) -> dict[int, Any]:
            names = {} if t is None else _names(t)
            # Names of ours: some words mean something to what torch writes expressions with.
            made = {n: dims.setdefault(n, Dim(f"size_{len(dims)}")) for n in names.values()}
            return {axis: made[name] for axis, name in names.items()}

        shapes = [open_axes(t) or None for t in self.types]
        if not dims:
            return None
        return dict(zip(self.named, shapes, strict=True)) if self.named else tuple(shapes)

    def sizes(self, program: ExportedProgram) -> Sizes:
        """The names of sizes by the symbols that torch has for them."""
        names = dict(zip(program.graph_signature.user_inputs, self.types, strict=False))
        found: dict[str, Expr] = {}
        for node in program.graph.find_nodes(op="placeholder"):
            t = names.get(node.name)
            for axis, name in ({} if t is None else _names(t)).items():
                symbol = Sizes().symbol(node.meta["val"].shape[axis])
                if symbol is not None:
                    found[symbol] = Var(name)
        return Sizes(found)


def _type(text: str) -> TensorType:
    found = parse_type(text)
    sizes = found.shape if isinstance(found, TensorType) else None
    if sizes is None or any(as_int(d) is None and not isinstance(d, Var) for d in sizes):
        raise ConfigError(
            "torch.inputs.type",
            f"{text!r} is no type of a tensor whose sizes are numbers or names",
            help="for example f32[N, 3, 224, 224]",
        )
    assert isinstance(found, TensorType)
    return found


def _names(t: TensorType) -> dict[int, str]:
    """The axes whose sizes are names."""
    return {axis: size.name for axis, size in enumerate(t.shape) if isinstance(size, Var)}


def _examples(types: tuple[TensorType | None, ...]) -> dict[str, int]:
    names = dict.fromkeys(name for t in types if t is not None for name in _names(t).values())
    return dict(zip(names, count(_FIRST_EXAMPLE, 2), strict=False))


def _tensor(t: TensorType, sizes: Mapping[str, int]) -> torch.Tensor:
    shape = [sizes[d.name] if isinstance(d, Var) else as_int(d) for d in t.shape]
    return torch.zeros(shape, dtype=to_torch(t.dtype))


def _distinct(inputs: Any) -> Any:
    """The inputs, no tensor twice: `torch.export` takes one that is given twice for one input."""
    seen: set[int] = set()

    def distinct(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in seen:
            return tensor.clone()
        seen.add(id(tensor))
        return tensor

    return tree_map_only(torch.Tensor, distinct, inputs)
