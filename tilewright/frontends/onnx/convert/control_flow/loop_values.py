"""What a Loop carries, read off its body before that is converted.

    k' = Identity(k)             invariant: what the first step gets, every step gets
    i' = Add(i, 1)               a counter: an expression over the number of the step
    ys' = Concat(ys, piece)      growing: its pieces are rows, joined behind the loop

Only other values are carried from step to step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from onnx import GraphProto, NodeProto, helper

from tilewright.frontends.onnx.model.toposort import reads


@dataclass(frozen=True)
class Growth:
    """A tensor that each step joins a piece to; the ONNX name of the piece, and the axis."""

    piece: str
    axis: int


@dataclass(frozen=True, eq=False)
class LoopBody:
    """The body of a Loop, whose carried values are numbered."""

    graph: GraphProto

    @property
    def carried(self) -> list[str]:
        """The names of the carried values, as a step gets them."""
        return [v.name for v in self.graph.input[2:]]

    @cached_property
    def _producer(self) -> Mapping[str, NodeProto]:
        return {name: n for n in self.graph.node for name in n.output}

    @cached_property
    def _uses(self) -> Counter[str]:
        given = (name for n in self.graph.node for name in reads(n))
        return Counter([*given, *(v.name for v in self.graph.output)])

    def invariant(self) -> Iterator[int]:
        """The carried values that every step gives on as they are."""
        for k, name in enumerate(self.carried):
            if self._source(self.graph.output[1 + k].name) == name:
                yield k

    def counters(self) -> Iterator[int]:
        """The carried values that may be counters: a step adds to them, or subtracts."""
        for k, name in enumerate(self.carried):
            n = self._producer.get(self._source(self.graph.output[1 + k].name))
            if n is not None and n.op_type in ("Add", "Sub") and name in map(self._source, n.input):
                yield k

    def growing(self) -> Iterator[tuple[int, Growth]]:
        """The carried tensors that each step only joins something to."""
        for k, name in enumerate(self.carried):
            n = self._producer.get(self._source(self.graph.output[1 + k].name))
            if n is None or n.op_type != "Concat" or len(n.input) != 2:
                continue
            if n.input[0] == name and self._is_read_once(name, self.graph.output[1 + k].name):
                axis = next(helper.get_attribute_value(a) for a in n.attribute if a.name == "axis")
                yield k, Growth(n.input[1], axis)

    def _is_read_once(self, name: str, result: str) -> bool:
        """Whether only the next step reads what `name` becomes, whose copy is `result`."""
        while result != name:
            if self._uses[result] != 1:
                return False
            result = self._producer[result].input[0]
        return self._uses[name] == 1

    def _source(self, name: str) -> str:
        """The value that `name` is a copy of."""
        while name in self._producer and self._producer[name].op_type == "Identity":
            name = self._producer[name].input[0]
        return name
