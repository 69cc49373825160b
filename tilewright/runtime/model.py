"""What every compiled model is in the user's hands, whatever machine it runs on.

What it knows of the model is the container's manifest, a JSON object:

    target       {"kind", "triple", "cpu", "features"}: all instruction sets the code may use
    precision    what the compiler was allowed: "f32", or "bf16" for products
    symbols      names of the symbolic sizes, in the order of the native `dims`
    dim_sources  for each symbol [input, axis]: where its value is read from
    inputs       [{"name", "dtype", "shape"}], a dimension being a number or a symbol
    outputs      the same; a dimension may also be a formula in the symbols, as text
    kernels      the steps, in the order of the profiled nanoseconds: {"name", "flops", "bytes",
                 "weights" (bytes that are constants), "nodes" (computed), "unfused_reason" (why
                 its producers or consumers are not fused with it)}
    schedules    {kernel: {"rule", "why", "decisions"}}
    explain      the compiler's report
    counters     {name: number}, the compiler's statistics
    threads      how many threads to use, 0 for one a processor
    errors       optional, {status: message} for what a run may end with
    index_checks  optional, {"bytes", "places": {status: [offset, node]}}: the words of all index
                 checks, the index (0 if all was well) and the size that each has at its offset
    data_dependent_sizes  optional, names of sizes that only a run gives, after the others in `dims`
    output_limits  with those: upper bounds of the output shapes
    program      on a GPU: what a run does, see `codegen/gpu/plan_manifest.py`
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from tilewright.core.arguments import mapping_argument
from tilewright.core.errors import ExecutionError, index_outside
from tilewright.runtime.binding import Binder, Port, check_results
from tilewright.runtime.container import Container, write_container
from tilewright.runtime.shape_plan import ShapePlan

if TYPE_CHECKING:
    from tilewright.runtime.profile import Profile
    from tilewright.runtime.roofline.roofline import Roofline


class CompiledModel(ABC):
    """A model that runs: NumPy or DLPack arrays in, NumPy arrays out."""

    def __init__(self, container: Container) -> None:
        manifest = container.manifest
        self.inputs = tuple(map(Port.from_manifest, manifest["inputs"]))
        self.outputs = tuple(map(Port.from_manifest, manifest["outputs"]))
        self._output_names = [port.name for port in self.outputs]
        self._container = container
        self._binder = Binder(self.inputs, manifest["symbols"], manifest["dim_sources"])

    def __call__(self, /, *args: Any, **named: Any) -> np.ndarray | tuple[np.ndarray, ...]:
        """Run the model; inputs by position or name. One output is given alone, more as a tuple."""
        outputs = self._run(self._binder.in_order(args, named) if named else args)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def run(
        self, inputs: Mapping[str, Any], into: Mapping[str, np.ndarray] | None = None
    ) -> dict[str, np.ndarray]:
        """Run the model on inputs by name and give the outputs by name.

        Where `into` is given it holds an array for each output, to which the results are written.
        """
        given = mapping_argument("inputs", inputs, "arrays by the names of the inputs")
        args: Sequence[Any] = self._binder.in_order((), given)
        targets = None
        if into is not None:
            args, plan = self._bind(args)
            targets = check_results(self.outputs, plan.outputs, into, args)
        outputs = self._run(args, targets)
        return dict(zip(self._output_names, outputs, strict=True))

    def put(self, array: np.ndarray) -> Any:
        """An array as it is given to calls whose data stay where the model runs."""
        return array

    @abstractmethod
    def profile(
        self, /, *args: Any, runs: int = 10, roofline: Roofline | None = None, **named: Any
    ) -> Profile:
        """Run the model with a clock on every kernel."""

    @property
    @abstractmethod
    def threads(self) -> int:
        """How many threads of the processor run the model; 0 where it runs elsewhere."""

    @abstractmethod
    def set_threads(self, threads: int) -> None:
        """Use so many threads of the processor, if that is where the model runs; 0: one each."""

    @abstractmethod
    def close(self) -> None:
        """Free the model's code and memory; it cannot be called any more."""

    @abstractmethod
    def _run(
        self, args: Sequence[Any], into: Sequence[np.ndarray] | None = None
    ) -> Sequence[np.ndarray]:
        """The results, which are `into` where that is given."""

    @abstractmethod
    def _bind(self, args: Sequence[Any]) -> tuple[Sequence[np.ndarray], ShapePlan]:
        """Checked arrays for the arguments, and what follows from their shapes."""

    def explain(self) -> str:
        """What the compiler did: passes, fusion, schedules, the memory plan."""
        return str(self._container.manifest.get("explain", ""))

    @property
    def counters(self) -> dict[str, Any]:
        """The compiler's statistics, by name."""
        return dict(self._container.manifest.get("counters", {}))

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What is known of the model; see the module's description."""
        return self._container.manifest

    @property
    def container(self) -> Container:
        """The compiled model as it is written to a file."""
        return self._container

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to `path` as one file, for `tw.load`."""
        container = self._container
        return write_container(
            path, container.manifest, container.objects, [(0, container.weights)]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled model holds its code and weights, and is loaded again when it is unpickled."""
        return type(self)._reopened, (self._container, self.threads)

    @classmethod
    def _reopened(cls, container: Container, threads: int) -> Self:
        model = cls(container)
        model.set_threads(threads)
        return model

    def _repr_html_(self) -> str:
        """The model as notebooks show it: what goes in and out, for which machine."""
        manifest = self._container.manifest
        machine = f"{manifest['target'].get('cpu', '')}, {manifest.get('precision', 'f32')}"
        rows = [("input", str(port)) for port in self.inputs]
        rows += [("output", str(port)) for port in self.outputs]
        rows += [("machine", machine), ("kernels", str(len(manifest["kernels"])))]
        rows += [("weights", f"{self._container.weights.nbytes:,} bytes")]
        cells = "".join(f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in rows)
        return f"<table>{cells}</table>"

    def __repr__(self) -> str:
        takes, gives = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<{type(self).__name__} ({takes}) -> ({gives})>"

    def _index_error(self, words: Sequence[int], notes: tuple[str, ...] = ()) -> ExecutionError:
        """The error of the first index check that has reported an index."""
        for offset, node in self._container.manifest["index_checks"]["places"].values():
            index, size = words[offset // 8 : offset // 8 + 2]
            if index:
                return index_outside(index, size, node, notes)
        raise AssertionError("no index check has failed")

    def _failure(self, status: int, sizes: Sequence[int], words: Sequence[int]) -> ExecutionError:
        """Why a run ended with a status; `words` are those of index checks."""
        if str(status) in self._container.manifest.get("index_checks", {}).get("places", {}):
            return self._index_error(words)
        known = self._container.manifest.get("errors", {}).get(str(status))
        if known is None:
            message = f"the model's native code failed with status {status}"
            return ExecutionError("run.status", message)
        given = zip(self._container.manifest["symbols"], sizes, strict=False)
        text = ", ".join(f"{name} = {size}" for name, size in given)
        return ExecutionError("run.check", known, help=f"the sizes are {text}" if text else "")
