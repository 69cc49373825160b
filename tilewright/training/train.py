"""`tw.train`: a model, a loss and an optimizer in, a trainer out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from tilewright.core.errors import ConfigError
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.runtime.model import CompiledModel
from tilewright.training.optim.optimizer import Optimizer
from tilewright.training.step_graph import step_graph
from tilewright.training.trainable import trainable, with_masters
from tilewright.training.trainer import Trainer


def train(
    source: Any,
    loss: str | Graph,
    optimizer: Optimizer,
    *,
    parameters: Collection[str] | None = None,
    max_norm: float | None = None,
    seed: int = 0,
    inputs: Any = None,
    dims: Mapping[str, int] | None = None,
    **options: Any,
) -> Trainer:
    """Compile a step of training: forward, backward and the update of all parameters.

    `source`, `inputs`, `dims` and all further options are those of `tw.compile`; a module of torch
    is trained in the mode that it is in. `loss` is a name or a graph that takes the results of the
    model and then the targets, and gives one number. `parameters` names the weights to be trained;
    without it, all that have a gradient are. Gradients whose norm over all parameters is more than
    `max_norm` are scaled down to it. `seed` begins the random numbers of modules that draw some.
    """
    if max_norm is not None and not max_norm > 0:
        raise ConfigError(
            "train.norm", f"max_norm is {max_norm}", help="a number of more than 0, or none"
        )
    model = with_masters(trainable(source, inputs, dims, parameters))
    step = step_graph(model, loss, optimizer, max_norm)
    compiled = compile(step.graph, **options)
    if not isinstance(compiled, CompiledModel):
        raise ConfigError(
            "train.segments",
            f"{step.graph.name!r} cannot be compiled as one program",
            help="sizes that depend on values are not supported in training",
        )
    drawn = seed if model.seed is not None else None
    return Trainer(compiled, step, optimizer, model.values, list(model.parameters), drawn)
