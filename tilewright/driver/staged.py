"""A model in the user's hands that is compiled in stages, each when what it waits for is known.

    model = tw.compile("model.onnx")      # a StagedModel, where the model cannot be compiled whole
    y = model(x)

Values are arrays; sequences are lists, maps dictionaries, an optional that is empty is `None`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TypeProto, ValueInfoProto, inliner

from tilewright.core.dtypes import STRING
from tilewright.core.errors import ConfigError, Error, ExecutionError, Loc
from tilewright.driver.program import CompileGraph, Program
from tilewright.frontends.onnx.constants import model_constants
from tilewright.frontends.onnx.context import onnx_dtype
from tilewright.frontends.onnx.read import Model, Source, read_model
from tilewright.frontends.onnx.stages import model_part


@dataclass(frozen=True)
class ValuePort:
    """An input or output: its name, and its type as text."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


class StagedModel:
    """A model that runs in stages; it is called as an `Executable` is."""

    def __init__(
        self, source: Source, compile_graph: CompileGraph, dims: Mapping[str, int] | None = None
    ) -> None:
        """`dims` are sizes that inputs must have, by the names of their dimensions."""
        model = read_model(source)
        if model.proto.functions:
            model.proto = inliner.inline_local_functions(model.proto)
        self._lock = threading.Lock()
        try:
            self._declare(model, dims or {})
            self._program = Program(model_part(model), compile_graph)
        except Error as error:
            raise error.at(Loc(model.file)) from error.__cause__

    def _declare(self, model: Model, dims: Mapping[str, int]) -> None:
        graph = model.proto.graph
        constants = model_constants(model)
        declared = [v for v in graph.input if v.name not in constants]
        self._declared = {v.name: _fixed(v.type, dims) for v in declared}
        _check_names(dims, declared)
        self.inputs = tuple(ValuePort(k, type_text(t)) for k, t in self._declared.items())
        self.outputs = tuple(ValuePort(v.name, type_text(v.type)) for v in graph.output)

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Run the model; inputs by position or name. One output is given alone, more as a tuple."""
        names = [port.name for port in self.inputs]
        if len(args) > len(names):
            raise ExecutionError(
                "run.arguments",
                f"{len(args)} arguments given, the model has {len(names)} inputs",
                help=f"the model takes ({', '.join(map(str, self.inputs))})",
            )
        outputs = self._run({**dict(zip(names, args, strict=False)), **named})
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Run the model on inputs by name and give the outputs by name."""
        return dict(zip((port.name for port in self.outputs), self._run(inputs), strict=True))

    def explain(self) -> str:
        """What the compiler did in each stage that it has compiled so far."""
        stages = [stage.explain() for stage in self._program.executables()]
        return "\n\n".join([f"{len(stages)} stages compiled so far", *stages])

    def close(self) -> None:
        """End the threads of all stages and free their code and memory."""
        for stage in self._program.executables():
            stage.close()

    def __enter__(self) -> StagedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<StagedModel ({takes}) -> ({gives})>"

    def _run(self, given: Mapping[str, Any]) -> Sequence[Any]:
        unknown = [name for name in given if name not in self._declared]
        missing = [name for name in self._declared if name not in given]
        for names, what in ((unknown, "the model has no input"), (missing, "not given: input")):
            if names:
                raise ExecutionError(
                    "run.arguments",
                    f"{what} {', '.join(names)}",
                    help=f"the model takes ({', '.join(map(str, self.inputs))})",
                )
        values = {name: checked(name, value, self._declared[name]) for name, value in given.items()}
        # stages are made while others run; one run at a time keeps that simple
        with self._lock:
            return self._program.run(values)


def checked(name: str, value: Any, declared: TypeProto) -> Any:
    """A value for an input of the declared type, arrays as arrays; what does not fit is refused."""
    kind = declared.WhichOneof("value")
    if kind == "optional_type":
        return None if value is None else checked(name, value, declared.optional_type.elem_type)
    if kind == "sequence_type":
        if not isinstance(value, list | tuple):
            raise _misfit(name, value, declared)
        return [checked(name, item, declared.sequence_type.elem_type) for item in value]
    if kind == "map_type":
        return _map(name, value, declared)
    array, tensor = np.asarray(value), declared.tensor_type
    dtype = onnx_dtype(tensor.elem_type)
    if dtype == STRING and array.dtype.kind in "OU":
        array = array.astype(object)
    elif dtype == STRING or array.dtype != dtype.numpy:
        raise _misfit(name, value, declared)
    if tensor.HasField("shape") and not _fits(array.shape, tensor.shape.dim):
        raise _misfit(name, value, declared)
    return array


def _map(name: str, value: Any, declared: TypeProto) -> dict[Any, Any]:
    """A map with keys and values of the declared types."""
    key = str if onnx_dtype(declared.map_type.key_type) == STRING else int
    if not isinstance(value, Mapping) or not all(isinstance(k, key | np.integer) for k in value):
        raise _misfit(name, value, declared)
    dtype = onnx_dtype(declared.map_type.value_type.tensor_type.elem_type)
    if dtype == STRING:
        return {key(k): str(v) for k, v in value.items()}
    return {key(k): dtype.numpy.type(v) for k, v in value.items()}


def _fixed(declared: TypeProto, dims: Mapping[str, int]) -> TypeProto:
    """A declared type with the sizes that are given."""
    copy = TypeProto()
    copy.CopyFrom(declared)
    for d in copy.tensor_type.shape.dim if copy.HasField("tensor_type") else ():
        if d.dim_param in dims:
            d.dim_value = dims[d.dim_param]
    return copy


def _check_names(dims: Mapping[str, int], declared: Sequence[ValueInfoProto]) -> None:
    known = {d.dim_param for v in declared for d in v.type.tensor_type.shape.dim}
    unknown = ", ".join(sorted({*dims} - known))
    if unknown:
        raise ConfigError("dims.unknown", f"the model has no dynamic dimension named {unknown}")


def _fits(shape: Sequence[int], dims: Sequence[Any]) -> bool:
    if len(shape) != len(dims):
        return False
    known = ((size, d.dim_value) for size, d in zip(shape, dims, strict=True))
    return all(size == wanted for size, wanted in known if wanted > 0)


def _misfit(name: str, value: Any, declared: TypeProto) -> ExecutionError:
    given = type(value).__name__
    if isinstance(value, np.ndarray | np.generic):
        given = f"an array of {value.dtype} and shape {list(value.shape)}"
    return ExecutionError("run.input", f"input {name} is {type_text(declared)}, got {given}")


def type_text(type: TypeProto) -> str:
    """A declared type, for people."""
    kind = type.WhichOneof("value")
    if kind == "sequence_type":
        return f"seq({type_text(type.sequence_type.elem_type)})"
    if kind == "optional_type":
        return f"optional({type_text(type.optional_type.elem_type)})"
    if kind == "map_type":
        key = onnx_dtype(type.map_type.key_type)
        return f"map({key}, {type_text(type.map_type.value_type)})"
    if kind != "tensor_type":
        return str(kind)
    tensor = type.tensor_type
    dtype = onnx_dtype(tensor.elem_type)
    if not tensor.HasField("shape"):
        return f"{dtype}[...]"
    dims = tensor.shape.dim
    sizes = (str(d.dim_value) if d.HasField("dim_value") else d.dim_param or "?" for d in dims)
    return f"{dtype}[{', '.join(sizes)}]"
