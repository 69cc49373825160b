"""A module of torch to our graph with its parameters as inputs, for being trained.

    module = nn.Linear(3, 2)     graph @Linear(p_weight: f32[2, 3], p_bias: f32[2], x: f32[4, 3])

A module in training mode draws random numbers where it drops out, and gives what its buffers are
after a run: the running statistics of batch normalization.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind

from tilewright.core.errors import ConfigError, UnsupportedError
from tilewright.frontends.torch.arrays import to_array
from tilewright.frontends.torch.capture import exported
from tilewright.frontends.torch.example_inputs import ExampleInputs
from tilewright.frontends.torch.importer import import_fx
from tilewright.ir.graph.nodes import Graph


@dataclass(frozen=True)
class TrainingModule:
    """A graph, and by the module's own names what a training step changes."""

    graph: Graph
    parameters: Mapping[str, str]
    """The input of each parameter that asks for a gradient."""
    buffers: Mapping[str, tuple[str, str]]
    """The input of each buffer that is written to, and the output, all of which come first."""
    values: Mapping[str, np.ndarray]
    """Copies of what these are."""
    seed: str | None
    """The input that is the key of random numbers, if any are drawn."""


def import_training(source: torch.nn.Module | ExportedProgram, inputs: Any) -> TrainingModule:
    """The graph of a module, in training mode or not, called with `inputs`."""
    if isinstance(source, ExportedProgram):
        raise ConfigError(
            "train.program",
            "a program of torch.export is fixed to the mode that its module was in",
            help="give the module, and inputs=",
        )
    given, name = ExampleInputs.of(inputs), type(source).__name__
    program = exported(source, given)
    parameters, buffers, constants = _sorted(program)
    sizes = given.sizes(program)
    imported = import_fx(program.graph_module, constants, sizes, name, is_seeded=True)
    outputs = imported.graph.outputs
    stored = program.state_dict
    trained = {name: stored[name] for name in (*parameters, *buffers)}
    return TrainingModule(
        imported.graph,
        parameters,
        {name: (place, outputs[i]) for i, (name, place) in enumerate(buffers.items())},
        {name: np.array(to_array(tensor.detach())) for name, tensor in trained.items()},
        imported.graph.inputs[-1].name if imported.takes_seed else None,
    )


def _sorted(
    program: ExportedProgram,
) -> tuple[dict[str, str], dict[str, str], dict[str, torch.Tensor]]:
    """The placeholders of parameters, of buffers that are written to, and what is constant."""
    signature = program.graph_signature
    written = _written(program)
    stored = {**program.constants, **program.state_dict}
    read = {node.name for node in program.graph.nodes if node.op == "placeholder" and node.users}
    parameters, places, constants = {}, {}, {}
    for spec in signature.input_specs:
        name, place = spec.target, spec.arg.name
        if spec.kind is InputKind.USER_INPUT or name is None:
            continue
        if name in written:
            places[name] = place
        elif spec.kind is InputKind.PARAMETER and stored[name].requires_grad and place in read:
            parameters[name] = place
        else:
            constants[place] = stored[name]
    return parameters, {name: places[name] for name in written}, constants


def _written(program: ExportedProgram) -> list[str]:
    """The buffers that a run writes to, in the order in which their new values are results."""
    found = []
    for spec in program.graph_signature.output_specs:
        if spec.kind is OutputKind.BUFFER_MUTATION and spec.target is not None:
            found.append(spec.target)
        elif spec.kind is not OutputKind.USER_OUTPUT:
            raise UnsupportedError(
                "torch.mutation",
                f"the module changes {spec.target or 'its inputs'} when it runs",
                help="it may write to its buffers only",
            )
    return found
