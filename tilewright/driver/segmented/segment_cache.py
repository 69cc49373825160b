"""The compiled segments of a model: made when they are asked for, or found in the model's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from tilewright.core.disk_cache import fingerprint
from tilewright.driver.cache_key import compiler_fingerprint
from tilewright.driver.options import CompileOptions
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.runtime.container import Container
from tilewright.runtime.load import open_model
from tilewright.runtime.model import CompiledModel

CompileContainer = Callable[[Graph, CompileOptions], Container]


@dataclass
class SegmentCache:
    """Compiles graphs; those that are among the `saved` ones need no compilation.

    Graphs have the same key if they compute the same and are compiled alike.
    """

    options: CompileOptions
    compile_container: CompileContainer
    saved: Mapping[str, Container] = field(default_factory=dict)
    _keys: WeakKeyDictionary[CompiledModel, str] = field(default_factory=WeakKeyDictionary)

    def __post_init__(self) -> None:
        """Dimensions are given to the inputs of the model; a segment has dimensions of its own."""
        self.threads = self.options.threads
        self.options = replace(self.options, dims={})

    def __call__(self, graph: Graph) -> CompiledModel:
        """The segment that computes `graph`."""
        key = self.key(graph)
        container = self.saved.get(key) or self.compile_container(graph, self.options)
        made = open_model(container, threads=self.threads)
        self._keys[made] = key
        return made

    def key(self, graph: Graph) -> str:
        """What tells a compiled segment from others."""
        options = self.options
        how = repr((options.target, options.precision, options.disable_passes, options.checks))
        return fingerprint(print_graph(graph), how, compiler_fingerprint())

    def key_of(self, made: CompiledModel) -> str:
        """The key of a segment that was made here."""
        return self._keys[made]
