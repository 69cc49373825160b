"""The compiled segments of a model: made when they are asked for, or found in the model's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from tilewright.core.disk_cache import fingerprint
from tilewright.driver.cache_key import compiler_fingerprint
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.runtime.container import Container
from tilewright.runtime.model import CompiledModel
from tilewright.runtime.open import open_model
from tilewright.target.registry import resolve_target


@dataclass
class SegmentCache:
    """Compiles graphs; those that are among the `saved` ones need no compilation.

    Graphs have the same key if they compute the same and are compiled alike.
    """

    compile_container: Callable[[Graph], Container]
    target: str = "native"
    precision: str = "f32"
    threads: int | None = None
    saved: Mapping[str, Container] = field(default_factory=dict)
    _keys: WeakKeyDictionary[CompiledModel, str] = field(default_factory=WeakKeyDictionary)

    def __call__(self, graph: Graph) -> CompiledModel:
        """The segment that computes `graph`."""
        key = self.key(graph)
        container = self.saved.get(key) or self.compile_container(graph)
        made = open_model(container, threads=self.threads)
        self._keys[made] = key
        return made

    def key(self, graph: Graph) -> str:
        """What tells a compiled segment from others."""
        machine = repr(resolve_target(self.target))
        return fingerprint(print_graph(graph), machine, self.precision, compiler_fingerprint())

    def key_of(self, made: CompiledModel) -> str:
        """The key of a segment that was made here."""
        return self._keys[made]
