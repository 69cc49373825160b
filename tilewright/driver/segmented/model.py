"""A model that is compiled in segments while it runs, each when the values it needs are known.

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

from tilewright.core.arguments import (
    MAX_THREADS,
    count_argument,
    mapping_argument,
    path_argument,
    runs_argument,
)
from tilewright.core.errors import ExecutionError, Loc, UnsupportedError
from tilewright.driver.options import make_options
from tilewright.driver.segmented.executor import CompileGraph, SegmentExecutor
from tilewright.driver.segmented.file import (
    SegmentedFile,
    saved_model,
    saved_segments,
    segmented_file,
)
from tilewright.driver.segmented.profile import Clock, SegmentProfile, segment_profile
from tilewright.driver.segmented.segment_cache import CompileContainer, SegmentCache
from tilewright.driver.segmented.source import HostNode, SegmentSource
from tilewright.frontends.onnx.segments.operator_counts import OperatorCounts
from tilewright.runtime.container import Container, assemble_weights, write_container
from tilewright.runtime.model import CompiledModel


@dataclass(frozen=True)
class BreakReason:
    """Why a model is not compiled as a whole: the message and the name of the first such node."""

    message: str = "something is known only when the model runs"
    node: str = ""

    def __str__(self) -> str:
        return f"{self.message}{f' (node {self.node})' if self.node else ''}"


class SegmentedModel:
    """A model that runs in segments; it is called as an `Executable` is."""

    def __init__(
        self,
        source: SegmentSource,
        compile_graph: CompileGraph,
        break_reason: BreakReason | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._source, self._compile_graph = source, compile_graph
        self.break_reason = break_reason or BreakReason()
        self.inputs, self.outputs = source.inputs, source.outputs
        self._program = SegmentExecutor(source.remaining(), compile_graph)

    @classmethod
    def opened(
        cls, container: Container, compile_container: CompileContainer, threads: int | None = None
    ) -> SegmentedModel:
        """A saved model; what is not in it is compiled as what is in it was."""
        about = container.manifest["segmented"]
        options = make_options(
            about["target"],
            about["precision"],
            disable_passes=about["disable_passes"],
            checks="on" if about["checks"] else "off",
            threads=threads,
        )
        cache = SegmentCache(options, compile_container, saved_segments(container))
        return cls(saved_model(container), cache, BreakReason(*about["break_reason"]))

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled model holds what its file would, and is opened anew where it is unpickled."""
        manifest, objects, weights = self._as_file()
        container = Container(manifest, objects, assemble_weights(weights.items, weights.size))
        cache = self._segment_cache
        return type(self).opened, (container, cache.compile_container, cache.threads)

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
        given = mapping_argument("inputs", inputs, "values by the names of the inputs")
        return dict(zip((port.name for port in self.outputs), self._run(given), strict=True))

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
        """How many operators the model has, and how many of them run on the host.

        Runs so far may have shown more of them than are known before.
        """
        return self._source.operators.with_host_nodes(self._program.host_nodes())

    def profile(self, /, *args: Any, runs: int = 10, **named: Any) -> SegmentProfile:
        """Run the model once to compile its segments, then `runs` times with a clock."""
        times = runs_argument(runs)
        self(*args, **named)
        clocks = []
        for _ in range(times):
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
        wanted = count_argument("threads", threads, 0, MAX_THREADS)
        if isinstance(self._compile_graph, SegmentCache):
            self._compile_graph.threads = wanted
        for segment in self._program.executables():
            segment.set_threads(wanted)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model to `path` as one file, with the segments that are compiled so far.

        `tw.load` reads it. A segment that is not in the file is compiled when it is first run, so
        that a model in segments needs the compiler where it is loaded.
        """
        manifest, objects, weights = self._as_file()
        return write_container(path, manifest, objects, weights.items)

    def _as_file(self) -> SegmentedFile:
        with self._lock:
            segments = list(self._program.executables())
            reason = [self.break_reason.message, self.break_reason.node]
            inputs, outputs = (
                [{"name": p.name, "type": p.type} for p in ports]
                for ports in (self.inputs, self.outputs)
            )
            about: dict[str, Any] = {
                "inputs": inputs,
                "outputs": outputs,
                "explain": self.explain(),
                "segmented": {"break_reason": reason},
            }
            return segmented_file(self._source, self._segment_cache, segments, about)

    @property
    def _segment_cache(self) -> SegmentCache:
        cache = self._compile_graph
        assert isinstance(cache, SegmentCache), "segments that were made elsewhere have no key"
        return cache

    def export_library(self, path: str | os.PathLike[str]) -> Path:
        """Refused: a library cannot hold the compiler that the segments wait for."""
        name = path_argument("path", path).name
        raise UnsupportedError(
            "export.segmented",
            f"{name} cannot be made: the model is compiled in segments, because of "
            f"{self.break_reason.message}",
            loc=Loc(self._source.file, self.break_reason.node),
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
        names = [port.name for port in self.inputs]
        unknown = [name for name in given if name not in names]
        missing = [name for name in names if name not in given]
        for wrong, what in ((unknown, "the model has no input"), (missing, "not given: input")):
            if wrong:
                raise ExecutionError(
                    "run.arguments",
                    f"{what} {', '.join(wrong)}",
                    help=f"the model takes ({', '.join(map(str, self.inputs))})",
                )
        values = {name: self._source.checked(name, value) for name, value in given.items()}
        # segments are made while others run; one run at a time keeps that simple
        with self._lock:
            return self._program.run(values)


def _part_name(what: CompiledModel | HostNode, numbers: Iterator[int]) -> str:
    """What a profile calls a segment, or an operator on the host."""
    if not isinstance(what, CompiledModel):
        op, node = what.op_type, what.loc.node
        return f"host {node if op in node else f'{op} {node}'}".rstrip()
    kernels = what.counters.get("kernels", 0)
    return f"segment {next(numbers)} ({kernels} kernel{'' if kernels == 1 else 's'})"
