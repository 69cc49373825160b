"""A saved program as a module that makes the calls it lists, for `torch.export` to trace.

Sizes and types of what is between are derived again by torch; of those in the file only the
inputs' are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import Dim

from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.named_arguments import with_arguments
from tilewright.frontends.torch.program.archive import Archive
from tilewright.frontends.torch.program.enumerations import DTYPES
from tilewright.frontends.torch.program.interpret import run_graph
from tilewright.frontends.torch.program.structure import build

_SYMBOL = re.compile(r"Symbol\('(\w+)'[^()]*\)|(\w+)")
# An example for a size that says none, kept apart from the sizes torch treats as constants.
_EXAMPLE = 7
_STORED = {
    "parameter": "parameter_name",
    "buffer": "buffer_name",
    "tensor_constant": "tensor_constant_name",
}


class SavedProgram(torch.nn.Module):  # type: ignore[misc]
    """A module that makes the calls of a saved program."""

    def __init__(self, archive: Archive) -> None:
        super().__init__()
        module = archive.program["graph_module"]
        self._graph = module["graph"]
        self._ranges = archive.program["range_constraints"]
        self._results = module["module_call_graph"][0]["signature"]["out_spec"]
        self._dims: dict[str, Any] = {}
        self._stored: dict[str, str] = {}
        self._inputs: list[str] = []
        for position, spec in enumerate(module["signature"]["input_specs"]):
            self._add_input(archive.tensors, position, spec)
        _check_results(module["signature"]["output_specs"])
        self.forward = with_arguments(self._run, self._inputs)

    def _add_input(
        self, tensors: Mapping[str, torch.Tensor], position: int, spec: Mapping[str, Any]
    ) -> None:
        ((kind, told),) = spec.items()
        if kind == "user_input" and "as_tensor" in told["arg"]:
            self._inputs.append(told["arg"]["as_tensor"]["name"])
        elif kind in _STORED:
            # A name of ours: theirs may be one that a module has already.
            name = f"stored_{position}"
            self.register_buffer(name, tensors[told[_STORED[kind]]])
            self._stored[told["arg"]["name"]] = name
        elif kind == "constant_input":
            pass  # it is written where it is used
        else:
            raise UnsupportedError("torch.graph", f"an input of the program is a {kind}")

    def examples(self) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
        """An input of each name, and which of their sizes stay open."""
        metas = {name: self._graph["tensor_values"][name] for name in self._inputs}
        shapes = {name: self._open_sizes(meta["sizes"]) for name, meta in metas.items()}
        return {name: _example(meta) for name, meta in metas.items()}, shapes

    def _open_sizes(self, sizes: Sequence[Mapping[str, Any]]) -> dict[int, Any]:
        return {
            axis: self._dim(size["as_expr"]["expr_str"])
            for axis, size in enumerate(sizes)
            if "as_expr" in size
        }

    def _dim(self, expression: str) -> Any:
        """A symbol by its name; for other expressions torch finds what they are."""
        symbol = _SYMBOL.fullmatch(expression)
        if symbol is None:
            return Dim.AUTO
        name = symbol[1] or symbol[2]
        if name not in self._dims:
            limits = self._ranges.get(name, {})
            self._dims[name] = Dim(name, min=limits.get("min_val"), max=limits.get("max_val"))
        return self._dims[name]

    def _run(self, **inputs: torch.Tensor) -> Any:
        """What the program gives for its inputs."""
        stored = {name: getattr(self, own) for name, own in self._stored.items()}
        return build(self._results, run_graph(self._graph, {**stored, **inputs}))


def _example(meta: Mapping[str, Any]) -> torch.Tensor:
    """An input of the type, the sizes and the order in memory that a program was exported with."""
    sizes = [_example_size(one) for one in meta["sizes"]]
    strides = [_example_size(one) for one in meta["strides"]]
    return torch.empty_strided(sizes, strides, dtype=DTYPES[meta["dtype"]])


def _example_size(size: Mapping[str, Any]) -> int:
    if "as_int" in size:
        return int(size["as_int"])
    hint = size["as_expr"].get("hint")
    return int(hint["as_int"]) if hint else _EXAMPLE


def _check_results(specs: Sequence[Mapping[str, Any]]) -> None:
    for spec in specs:
        if "user_output" not in spec:
            ((_, told),) = spec.items()
            changed = next((told[key] for key in told if key.endswith("_name")), "its state")
            raise UnsupportedError(
                "torch.mutation",
                f"the program changes {changed} when it runs",
                help="export the module after module.eval()",
            )
