"""The ONNX backend interface, through which ONNX runs its own tests.

import onnx.backend.test
tests = onnx.backend.test.BackendTest(tilewright.compat.onnx_backend.TilewrightBackend)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import ModelProto
from onnx.backend.base import Backend, BackendRep

from tilewright.driver.compile import compile as compile_model
from tilewright.driver.segmented.model import SegmentedModel
from tilewright.runtime.model import CompiledModel


class PreparedModel(BackendRep):
    """A compiled model that takes its inputs in the order in which ONNX declares them."""

    def __init__(self, model: CompiledModel | SegmentedModel, inputs: Sequence[str]) -> None:
        self._model = model
        self._inputs = inputs
        self._taken = {port.name for port in model.inputs}

    def run(self, inputs: Sequence[Any], **_: Any) -> tuple[Any, ...]:
        """The outputs, in the model's order."""
        given = zip(self._inputs, inputs, strict=False)
        outputs = self._model.run({k: v for k, v in given if k in self._taken})
        return tuple(outputs[port.name] for port in self._model.outputs)


class TilewrightBackend(Backend):
    """Compiles for the processor at hand."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **options: Any) -> PreparedModel:
        """Compile a model; `options` are those of `tilewright.compile`."""
        constants = {t.name for t in model.graph.initializer}
        inputs = [v.name for v in model.graph.input if v.name not in constants]
        return PreparedModel(compile_model(model, **options), inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Only the processor so far."""
        return device == "CPU"
