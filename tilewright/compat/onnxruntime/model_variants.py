"""The compiled variants of a model, and which of them a run needs.

A model is compiled once, its varying sizes symbolic. ONNX Runtime takes equally named sizes that
differ, sizes that only broadcast, and values for initializers; what the compiled model refuses for
such a reason runs in segments compiled for the given inputs (see `driver.segmented.model`), with
the same result.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import onnx

from tilewright.compat.onnxruntime.model import OpenedModel
from tilewright.compat.onnxruntime.status import InvalidGraph, error, translated
from tilewright.compat.onnxruntime.types import Declared
from tilewright.core.errors import Error, ExecutionError, TypeCheckError, UnsupportedError
from tilewright.driver.compile import compile_model, compile_segmented
from tilewright.driver.options import make_options
from tilewright.runtime.model import CompiledModel

if TYPE_CHECKING:
    # Imported when a model needs it: what is in the cache is ready without the compiler.
    from tilewright.driver.segmented.model import SegmentedModel

# The refusals that another form of the model may not share.
_OF_SHAPES = ("run.symbol", "run.check", "run.shape")


class _Form:
    """A model whose inputs are fixed: compiled as a whole, and in segments where that refuses."""

    def __init__(self, source: Any, model: OpenedModel, threads: int | None) -> None:
        self._source = source
        self._options = make_options(dims=model.dims, threads=threads)
        self._lock = threading.Lock()
        self._segmented: SegmentedModel | None = None
        self.whole = self._compile(model)

    def run(self, args: Sequence[Any], names: Sequence[str]) -> Sequence[Any]:
        """The outputs for inputs in order."""
        try:
            return as_sequence(self.whole(*args))
        except ExecutionError as refusal:
            if refusal.code not in _OF_SHAPES or not isinstance(self.whole, CompiledModel):
                raise
            try:
                return as_sequence(self._segmented_model()(*args))
            except Error:
                # what the model as a whole says is clearer
                raise refusal from None

    def _compile(self, model: OpenedModel) -> CompiledModel | SegmentedModel:
        try:
            return compile_model(self._source, self._options)
        except (TypeCheckError, UnsupportedError) as refusal:
            if refusal.code == "onnx.operator" or not _varies(model.inputs):
                raise
            return self._segmented_model()  # what does not fit any size may fit those that come

    def _segmented_model(self) -> SegmentedModel:
        with self._lock:
            if self._segmented is None:
                self._segmented = compile_segmented(self._source, self._options)
            return self._segmented


class ModelVariants:
    """A model that runs; inputs have been checked by the caller. Safe to call from threads."""

    def __init__(self, model: OpenedModel, threads: int | None) -> None:
        self._model = model
        self._threads = threads
        self._names = [d.name for d in model.inputs]
        self._lock = threading.Lock()
        try:
            self._form = _Form(model.source, model, threads)
        except Error as cause:
            raise _refusal(model, cause) from cause
        self._with_inputs: dict[tuple[str, ...], _Form] = {}
        self.direct = self._form.whole

    def run(self, values: Mapping[str, Any]) -> Sequence[Any]:
        """The outputs in order, for values of all inputs and perhaps of initializers."""
        extra = tuple(d.name for d in self._model.overridable if d.name in values)
        args = [values.get(name) for name in self._names]
        try:
            if not extra:
                return self._form.run(args, self._names)
            form = self._form_with(extra)
            order = [port.name for port in form.whole.inputs]
            return form.run([values.get(name) for name in order], order)
        except Error as cause:
            raise translated(cause) from cause

    def _form_with(self, names: tuple[str, ...]) -> _Form:
        with self._lock:
            found = self._with_inputs.get(names)
            if found is None:
                source = self._model.with_inputs(names)
                found = self._with_inputs[names] = _Form(source, self._model, self._threads)
            return found


def as_sequence(outputs: Any) -> Sequence[Any]:
    """The outputs of a call, which gives one alone."""
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _varies(inputs: Sequence[Declared]) -> bool:
    dims = (d for i in inputs for d in i.type.tensor_type.shape.dim)
    return any(not d.HasField("dim_value") for d in dims)


def _refusal(model: OpenedModel, cause: Error) -> Exception:
    """Why a model cannot be compiled: an operator that ONNX does not have is the model's fault."""
    if cause.code == "onnx.operator":
        versions = {_domain(o.domain): o.version for o in model.proto.opset_import}
        for node in model.proto.graph.node:
            why = _unknown(node, versions)
            if why:
                return error(
                    InvalidGraph,
                    f'This is an invalid model. In Node, ("{node.name}", {node.op_type}, '
                    f'"{node.domain}", -1), Error {why}',
                )
    return translated(cause)


def _unknown(node: onnx.NodeProto, versions: Mapping[str, int]) -> str:
    """Why a node's operator is not one, where that can be said."""
    domain = _domain(node.domain)
    if domain not in versions:
        return f"No opset import for domain '{node.domain}'"
    version = versions[domain]
    if domain in ("", "ai.onnx.ml") and not onnx.defs.has(node.op_type, version, domain):
        return f"No Op registered for {node.op_type} with domain_version of {version}"
    return ""


def _domain(name: str) -> str:
    return "" if name == "ai.onnx" else name
