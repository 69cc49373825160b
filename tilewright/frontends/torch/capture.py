"""A module, or a program that `torch.export` made, to our graph.

    graph = import_torch(module, (torch.zeros(1, 3, 224, 224),))

Parameters and buffers are constants of the graph. Its inputs have the names of the arguments of
`forward`. Sizes are those of the examples; a program exported with dynamic shapes keeps its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils._pytree import tree_map_only

from tilewright.core.errors import ConfigError, Error, FrontendError, UnsupportedError
from tilewright.frontends.torch.decompositions import decompositions
from tilewright.frontends.torch.importer import import_fx
from tilewright.ir.graph.nodes import Graph

_STORED = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


def import_torch(source: torch.nn.Module | ExportedProgram, inputs: Any = None) -> Graph:
    """The graph of a module called with `inputs`, a tuple or a mapping by name."""
    program = source if isinstance(source, ExportedProgram) else _export(source, inputs)
    program = program.run_decompositions(decompositions())
    _check_pure(program)
    return import_fx(program.graph_module, _constants(program), name=type(source).__name__).graph


def _export(module: torch.nn.Module, inputs: Any) -> ExportedProgram:
    if inputs is None:
        raise ConfigError(
            "torch.inputs",
            "a module is compiled for example inputs, and none are given",
            help="compile(module, inputs=(torch.zeros(1, 3, 224, 224),))",
        )
    if module.training:
        raise UnsupportedError(
            "torch.training", "the module is in training mode", help="call module.eval() first"
        )
    args, named = ((), dict(inputs)) if isinstance(inputs, Mapping) else (inputs, {})
    args = args if isinstance(args, tuple | list) else (args,)
    args, named = _distinct(args, named)
    try:
        with torch.no_grad():
            return torch.export.export(module, tuple(args), named)
    except Error:
        raise
    except Exception as error:  # the user's own code runs, and torch's
        raise FrontendError(
            "torch.export",
            f"torch.export cannot trace {type(module).__name__}: {_first_line(error)}",
            help="torch.export.export(module, inputs) must work by itself",
        ) from error


def _distinct(args: Any, named: Any) -> Any:
    """The inputs, no tensor twice: `torch.export` takes one that is given twice for one input."""
    seen: set[int] = set()

    def distinct(tensor: torch.Tensor) -> torch.Tensor:
        if id(tensor) in seen:
            return tensor.clone()
        seen.add(id(tensor))
        return tensor

    return tree_map_only(torch.Tensor, distinct, (args, named))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _check_pure(program: ExportedProgram) -> None:
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise UnsupportedError(
                "torch.mutation",
                f"the module changes {spec.target or 'its state'} when it runs",
                help="call module.eval() first; torch.compile(module, backend='tilewright')"
                " supports buffers and inputs that are written to",
            )


def _constants(program: ExportedProgram) -> dict[str, torch.Tensor]:
    """The tensors behind placeholders that are no inputs."""
    stored = {**program.constants, **program.state_dict}
    specs = program.graph_signature.input_specs
    return {s.arg.name: stored[s.target] for s in specs if s.kind in _STORED and s.target}
