"""What a segmented model asks of its front end.

A front end gives a model piece by piece: a graph of what can be compiled with the values known so
far, then nodes that run on the host, then the rest. `frontends.onnx.segments` implements this for
ONNX; its protobufs stay there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tilewright.core.errors import Loc
from tilewright.frontends.onnx.segments.declared_types import ValuePort
from tilewright.frontends.onnx.segments.operator_counts import OperatorCounts
from tilewright.frontends.onnx.segments.pending_node import HostNodeKey
from tilewright.ir.graph.nodes import Graph


class HostNode(Protocol):
    """A node that runs on the host."""

    @property
    def loc(self) -> Loc:
        """Where it stands in the model."""

    @property
    def op_type(self) -> str:
        """Its operator."""

    @property
    def reads(self) -> frozenset[str]:
        """The values that it reads."""

    @property
    def key(self) -> HostNodeKey:
        """Its operator, and the values that it gives."""

    def run(
        self, read: Callable[[str], Any], nested: Callable[[Any, Mapping[str, Any]], Sequence[Any]]
    ) -> dict[str, Any]:
        """Its results by name; `nested` runs a graph inside it, with further values."""


class Segment(Protocol):
    """A graph to run now, then nodes on the host, then the rest."""

    @property
    def graph(self) -> Graph | None:
        """What is compiled; `None` if there is nothing."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The values that the graph reads, in its order."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values that it gives, in its order."""

    @property
    def hosts(self) -> Sequence[Any]:
        """The nodes that run on the host then, each a `HostNode`."""

    @property
    def rest(self) -> Any:
        """What is left after that, a `RemainingGraph`."""

    @property
    def wants(self) -> frozenset[str]:
        """Values that must be known before more can be compiled."""

    @property
    def sizes(self) -> frozenset[str]:
        """Values that must be known as sizes before more can be compiled."""

    @property
    def texts(self) -> Mapping[str, np.ndarray]:
        """Inputs that are constant strings."""

    @property
    def carriers(self) -> Mapping[str, tuple[str, tuple[int, ...]]]:
        """Inputs whose shapes are elements of other values: which value, which elements."""


class RemainingGraph(Protocol):
    """Nodes of a model that have not run yet."""

    @property
    def nodes(self) -> Sequence[Any]:
        """The nodes, each a `HostNode` if nothing else can run it."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values that they must give."""

    def reads(self) -> frozenset[str]:
        """The values that they read, constants left out."""

    def constant(self, name: str) -> np.ndarray:
        """The data of a constant."""

    def segment(self, given: Mapping[str, Any]) -> Segment:
        """What can be compiled with the `given` values: types, arrays, sizes."""

    def nested(self, node: Any, graph: Any, known: set[str]) -> RemainingGraph:
        """The whole of a graph inside a node, which may read the values that are `known`."""


class SegmentSource(Protocol):
    """A model that is compiled in segments."""

    @property
    def file(self) -> str:
        """What messages call the model."""

    @property
    def dims(self) -> Mapping[str, int]:
        """Sizes that inputs must have, by the names of their dimensions."""

    @property
    def inputs(self) -> Sequence[ValuePort]:
        """The inputs as the model declares them."""

    @property
    def outputs(self) -> Sequence[ValuePort]:
        """The outputs as the model declares them."""

    @property
    def operators(self) -> OperatorCounts:
        """How many operators the model has, and how many of them run on the host, before a run."""

    def remaining(self) -> RemainingGraph:
        """The whole model, nothing of it run."""

    def checked(self, name: str, value: Any) -> Any:
        """A value for an input; what does not fit its declared type is refused."""

    def serialized(self) -> tuple[bytes, dict[int, np.ndarray]]:
        """The model in one piece without long weights, and those by number."""
