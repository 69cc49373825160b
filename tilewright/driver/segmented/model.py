"""A model in the user's hands that is compiled in segments, each when what it waits for is known.

    model = tw.compile("model.onnx")      # a SegmentedModel if it has graph breaks
    y = model(x)
    model.save("model.tw")                # with the segments that this run has compiled

Values are arrays; sequences are lists, maps dictionaries, an optional that is empty is `None`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TypeProto, ValueInfoProto, inliner

from tilewright.core.dtypes import STRING, DType
from tilewright.core.errors import ConfigError, Error, ExecutionError, Loc, UnsupportedError
from tilewright.driver.segmented.executor import CompileGraph, SegmentExecutor
from tilewright.driver.segmented.file import save_segmented
from tilewright.driver.segmented.profile import Clock, SegmentProfile, segment_profile
from tilewright.driver.segmented.segment_cache import SegmentCache
from tilewright.frontends.onnx.model.constants import model_constants
from tilewright.frontends.onnx.model.dtypes import onnx_dtype
from tilewright.frontends.onnx.model.read import Model, Source, read_model
from tilewright.frontends.onnx.segments.operator_counts import OperatorCounts, operator_counts
from tilewright.frontends.onnx.segments.partition import PendingNode, remaining_graph
from tilewright.runtime.cpu.executable import Executable


@dataclass(frozen=True)
class ValuePort:
    """An input or output: its name, and its type as text.

    What is no tensor has no `dtype`; a tensor of unknown rank has no `shape`.
    """

    name: str
    type: str
    dtype: DType | None = None
    shape: tuple[int | str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}"


@dataclass(frozen=True)
class BreakReason:
    """Why a model is not compiled as a whole: what the first node that waits said, and its name."""

    message: str = "something is known only when the model runs"
    node: str = ""

    def __str__(self) -> str:
        return f"{self.message}{f' (node {self.node})' if self.node else ''}"


class SegmentedModel:
    """A model that runs in segments; it is called as an `Executable` is."""

    def __init__(
        self,
        source: Source | Model,
        compile_graph: CompileGraph,
        dims: Mapping[str, int] | None = None,
        break_reason: BreakReason | None = None,
    ) -> None:
        """`dims` are sizes that inputs must have, by the names of their dimensions."""
        model = source if isinstance(source, Model) else read_model(source)
        if model.proto.functions:
            model.proto = inliner.inline_local_functions(model.proto)
        self._lock = threading.Lock()
        self._model, self._compile_graph = model, compile_graph
        self._dims, self.break_reason = dict(dims or {}), break_reason or BreakReason()
        try:
            self._declare(model, dims or {})
            self._program = SegmentExecutor(remaining_graph(model), compile_graph)
        except Error as error:
            raise error.at(Loc(model.file)) from error.__cause__

    def _declare(self, model: Model, dims: Mapping[str, int]) -> None:
        graph = model.proto.graph
        constants = model_constants(model)
        declared = [v for v in graph.input if v.name not in constants]
        self._declared = {v.name: _fixed(v.type, dims) for v in declared}
        _check_names(dims, declared)
        self.inputs = tuple(value_port(k, t) for k, t in self._declared.items())
        self.outputs = tuple(value_port(v.name, v.type) for v in graph.output)

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
        """What the compiler did in each segment that it has compiled so far."""
        segments = [segment.explain() for segment in self._program.executables()]
        head = [f"{len(segments)} segments compiled so far", str(self.operators)]
        head.append(f"compiled in segments because of {self.break_reason}")
        return "\n\n".join(["\n".join(head), *segments])

    @property
    def segments(self) -> int:
        """How many segments are compiled so far."""
        return len(list(self._program.executables()))

    @property
    def operators(self) -> OperatorCounts:
        """How many operators the model has, and how many of them run on the host."""
        return operator_counts(self._model.proto.graph.node)

    def profile(self, /, *args: Any, runs: int = 10, **named: Any) -> SegmentProfile:
        """Run the model once to compile its segments, then `runs` times with a clock."""
        self(*args, **named)
        clocks = []
        for _ in range(runs):
            with Clock() as clock:
                self(*args, **named)
            clocks.append(clock)
        numbers = count(1)
        parts = dict.fromkeys(what for clock in clocks for what in clock.times)
        names = {what: _part_name(what, numbers) for what in parts}
        return segment_profile(clocks, names)

    @property
    def threads(self) -> int:
        """How many threads run each segment; 0 for one a processor."""
        library = self._compile_graph
        return (library.threads or 0) if isinstance(library, SegmentCache) else 0

    def set_threads(self, threads: int) -> None:
        """Use `threads` threads for every segment; 0 means one for each processor."""
        if isinstance(self._compile_graph, SegmentCache):
            self._compile_graph.threads = threads
        for segment in self._program.executables():
            segment.set_threads(threads)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to `path` as one file, with the segments that are compiled so far.

        `tw.load` reads it. A segment that is not in the file is compiled when it is first run, so
        that a model in segments needs the compiler where it is loaded.
        """
        library = self._compile_graph
        assert isinstance(library, SegmentCache), "segments that were made elsewhere have no key"
        with self._lock:
            segments = list(self._program.executables())
            reason = [self.break_reason.message, self.break_reason.node]
            segmented = {"dims": self._dims, "break_reason": reason}
            inputs, outputs = (
                [{"name": p.name, "type": p.type} for p in ports]
                for ports in (self.inputs, self.outputs)
            )
            about: dict[str, Any] = {
                "inputs": inputs,
                "outputs": outputs,
                "explain": self.explain(),
            }
            about |= {"segmented": segmented}
            return save_segmented(path, self._model, library, segments, about)

    def export_library(self, path: str | os.PathLike[str]) -> Path:
        """Refused: a library cannot hold the compiler that the segments wait for."""
        raise UnsupportedError(
            "export.segmented",
            f"{Path(path).name} cannot be made: the model is compiled in segments, because of "
            f"{self.break_reason.message}",
            loc=Loc(self._model.file, self.break_reason.node),
            help="make what is waited for constant; model.save() keeps the model as it is",
        )

    def close(self) -> None:
        """End the threads of all segments and free their code and memory."""
        for segment in self._program.executables():
            segment.close()

    def __enter__(self) -> SegmentedModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<SegmentedModel ({takes}) -> ({gives})>"

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
        # segments are made while others run; one run at a time keeps that simple
        with self._lock:
            return self._program.run(values)


def _part_name(what: Executable | PendingNode, numbers: Iterator[int]) -> str:
    """What a profile calls a segment, or an operator on the host."""
    if isinstance(what, PendingNode):
        op, node = what.proto.op_type, what.loc.node
        return f"host {node if op in node else f'{op} {node}'}".rstrip()
    kernels = what.counters.get("kernels", 0)
    return f"segment {next(numbers)} ({kernels} kernel{'' if kernels == 1 else 's'})"


def value_port(name: str, declared: TypeProto) -> ValuePort:
    """An input or output of the declared type."""
    text = type_text(declared)
    if declared.WhichOneof("value") != "tensor_type":
        return ValuePort(name, text)
    tensor = declared.tensor_type
    dtype = onnx_dtype(tensor.elem_type)
    if not tensor.HasField("shape"):
        return ValuePort(name, text, dtype)
    sizes = (
        d.dim_value if d.HasField("dim_value") else d.dim_param or f"{name}_{axis}"
        for axis, d in enumerate(tensor.shape.dim)
    )
    return ValuePort(name, text, dtype, tuple(sizes))


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
    try:
        array = np.asarray(value)
    except ValueError:  # lists of several lengths
        raise _misfit(name, value, declared) from None
    tensor = declared.tensor_type
    if not tensor.elem_type:
        raise ExecutionError("run.untyped", f"the model does not say of which type input {name} is")
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
