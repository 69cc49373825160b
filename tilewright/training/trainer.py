"""A model in training: it holds parameters, buffers and the state of the optimizer.

    trainer = tw.train("model.onnx", "cross_entropy", tw.optim.AdamW(1e-3))
    loss = trainer(images, labels)
    trainer.save("step-100.safetensors")

A trainer that is restored from a checkpoint goes on bit for bit as the one that saved it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import ConfigError
from tilewright.runtime.model import CompiledModel
from tilewright.training.checkpoint import read_checkpoint, write_checkpoint
from tilewright.training.optim.optimizer import Optimizer
from tilewright.training.step_graph import STATE, StepGraph

_FORMAT = "tilewright-1"
# Keys of random numbers of two steps have nothing in common: the odd number near 2 ** 64 / phi.
_STRIDE = 0x9E3779B97F4A7C15


class Trainer:
    """A compiled step of training; a call does one step on a batch and gives its loss."""

    def __init__(
        self,
        model: CompiledModel,
        step: StepGraph,
        optimizer: Optimizer,
        values: Mapping[str, np.ndarray],
        parameters: Sequence[str],
        seed: int | None = None,
    ) -> None:
        """`values` are parameters and buffers at first; `seed` is where random numbers begin."""
        self.model = model
        self.optimizer = optimizer
        self.steps = 0
        """How many steps have been done."""
        self._batch = len(step.batch)
        self._names = list(step.kept)
        self._parameters = list(parameters)
        self._seed = seed
        zeros = {
            name: np.zeros([int(str(d)) for d in t.shape], t.dtype.numpy)
            for name, t in step.kept.items()
            if name.startswith(STATE)
        }
        self._kept: list[Any] = []
        self._put({**zeros, **values})

    def __call__(self, /, *batch: Any, **named: Any) -> float:
        """One step: what the model takes and the targets, by position or name; gives the loss."""
        given = self._given(batch, named)
        step = self.steps + 1
        args = [*given, np.array(self.optimizer.numbers(step), np.float64)]
        if self._seed is not None:
            key = (self._seed + step * _STRIDE) % 2**64
            args.append(np.array([key], np.uint64).view(np.int64))
        loss, *self._kept = self.model(*args, *self._kept)
        self.steps = step
        return float(np.asarray(loss))

    def _given(self, batch: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        ports = [port.name for port in self.model.inputs[: self._batch]]
        rest = ports[len(batch) :]
        if len(batch) > len(ports) or sorted(named) != sorted(rest):
            raise ConfigError(
                "train.batch",
                f"a step takes {', '.join(ports)}; given are {len(batch)} by position"
                f" and {', '.join(named) or 'none'} by name",
                help="give each once, in this order or by name",
            )
        return [*batch, *(named[name] for name in rest)]

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """Copies of the parameters as they are now, by name."""
        state = self.state()
        return {name: state[name] for name in self._parameters}

    def state(self) -> dict[str, np.ndarray]:
        """Copies of all that a step changes: parameters, buffers, and states of the optimizer."""
        return {n: np.array(x) for n, x in zip(self._names, self._kept, strict=True)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a checkpoint, a file of the format of safetensors."""
        texts = {"format": _FORMAT, "steps": str(self.steps), "optimizer": repr(self.optimizer)}
        if self._seed is not None:
            texts["seed"] = str(self._seed)
        return write_checkpoint(path, self.state(), texts)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint of the same model and kind of optimizer."""
        arrays, texts = read_checkpoint(path)
        if texts.get("format") != _FORMAT or not texts.get("steps", "").isdigit():
            raise self._unfit(path, "it is not of a trainer")
        present = self.state()
        for name in [*present, *arrays]:
            if name not in arrays or name not in present:
                where = "the checkpoint" if name not in arrays else "this training"
                raise self._unfit(path, f"{name!r} is not in {where}")
            ours, theirs = present[name], arrays[name]
            if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
                given, wanted = (f"{a.dtype}{list(a.shape)}" for a in (theirs, ours))
                raise self._unfit(path, f"{name!r} is {given} in it, not {wanted}")
        self._put(arrays)
        self.steps = int(texts["steps"])
        self._seed = int(texts["seed"]) if "seed" in texts else self._seed

    def _unfit(self, path: str | os.PathLike[str], what: str) -> ConfigError:
        return ConfigError(
            "checkpoint.unfit",
            f"{os.fspath(path)} does not fit: {what}",
            help="restore with the model, the parameters and the kind of optimizer that saved it",
        )

    def _put(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._kept = [self.model.put(arrays[name]) for name in self._names]
