"""A TorchScript archive as a module that follows its text, for `torch.export` to trace."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

import torch

from tilewright.core.errors import ConfigError
from tilewright.frontends.torch.named_arguments import with_arguments
from tilewright.frontends.torch.script.archive import ScriptArchive
from tilewright.frontends.torch.script.evaluate import ScriptEvaluator


class ScriptModule(torch.nn.Module):  # type: ignore[misc]
    """The module of an archive for inputs of these names, or so many; its tensors are constants."""

    def __init__(self, archive: ScriptArchive, inputs: Collection[str] | int) -> None:
        super().__init__()
        self._root = archive.root
        self._evaluator = ScriptEvaluator(archive)
        self._function: ast.FunctionDef = archive.method(archive.root, "forward")
        self.forward = with_arguments(self._run, self._names(inputs))

    def _names(self, inputs: Collection[str] | int) -> list[str]:
        arguments = [one.arg for one in self._function.args.args[1:]]
        names = arguments[:inputs] if isinstance(inputs, int) else list(inputs)
        given = inputs if isinstance(inputs, int) else len(inputs)
        needed = arguments[: len(arguments) - len(self._function.args.defaults)]
        if len(names) < given or not set(needed) <= set(names) <= set(arguments):
            raise ConfigError(
                "torch.inputs",
                f"{given} example inputs are given to a module that takes {', '.join(arguments)}",
                help="give an example of each, in order or by name",
            )
        return names

    def _run(self, **given: Any) -> Any:
        """What the module gives for its inputs."""
        return self._evaluator.call(self._function, [self._root], given)
